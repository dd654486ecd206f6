"""Give every word of a dataset's vocabulary a vector."""

from pathlib import Path

import pyarrow.compute as pc
import torch

from plumbline.config.recipes import Embedding
from plumbline.data.embeddings import embed, second_vectors
from plumbline.job import job
from plumbline.store import read_json, read_table, write_json, write_tensors

with job(snakemake):
    words = read_table(snakemake.input.vocabulary, "vocabulary")["word"].to_pylist()
    instances = read_table(snakemake.input.instances, "instances", ["split", "tokens", "tokens_b"])
    train = instances.filter(pc.equal(instances["split"], "train"))
    training = [tokens[1:-1] for name in ("tokens", "tokens_b") for tokens in train[name].to_pylist() if tokens]
    recipe = Embedding(**snakemake.params.embedding)
    vectors, summary = embed(words, training, recipe, Path(snakemake.params.raw))
    tensors = {"embedding": torch.from_numpy(vectors)}
    if read_json(snakemake.input.summary)["paired"]:
        tensors["pair"] = torch.from_numpy(second_vectors(vectors, recipe))
    write_tensors(snakemake.output.embedding, tensors)
    write_json(snakemake.output.summary, summary)
