"""Assign a vector to every word of a dataset's vocabulary."""

from pathlib import Path

import pyarrow.compute as pc

from plumbline.config.recipes import Embedding
from plumbline.data.embeddings import embed, second_vectors
from plumbline.data.schemas import INSTANCES, VOCABULARY
from plumbline.runtime.job import job
from plumbline.store import read_record, read_table, write_arrays, write_json

with job(snakemake):
    words = read_table(snakemake.input.vocabulary, VOCABULARY)["word"].to_pylist()
    instances = read_table(snakemake.input.instances, INSTANCES, ["split", "tokens", "tokens_b"])
    train = instances.filter(pc.equal(instances["split"], "train"))
    training = [tokens[1:-1] for name in ("tokens", "tokens_b") for tokens in train[name].to_pylist() if tokens]
    recipe = Embedding(**snakemake.params.embedding)
    vectors, summary = embed(words, training, recipe, Path(snakemake.params.raw))
    arrays = {"embedding": vectors}
    if read_record(snakemake.input.summary)["paired"]:
        arrays["pair"] = second_vectors(vectors, recipe)
    write_arrays(snakemake.output.embedding, arrays)
    write_json(snakemake.output.summary, summary)
