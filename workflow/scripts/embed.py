"""Give every word of a dataset's vocabulary a vector."""

from pathlib import Path

import pyarrow.compute as pc
import torch

from plumbline.config.recipes import Embedding
from plumbline.data.embeddings import embed
from plumbline.job import job
from plumbline.store import read_table, write_json, write_tensors

with job(snakemake):
    words = read_table(snakemake.input.vocabulary, "vocabulary")["word"].to_pylist()
    instances = read_table(snakemake.input.instances, "instances", ["split", "tokens"])
    texts = instances.filter(pc.equal(instances["split"], "train"))["tokens"].to_pylist()
    training = [tokens[1:-1] for tokens in texts]
    recipe = Embedding(**snakemake.params.embedding)
    vectors, summary = embed(words, training, recipe, Path(snakemake.params.raw))
    write_tensors(snakemake.output.embedding, {"embedding": torch.from_numpy(vectors)})
    write_json(snakemake.output.summary, summary)
