"""Read a dataset from its publisher's files and write its instances and vocabulary."""

from dataclasses import replace
from pathlib import Path

from plumbline.config.recipes import Preparation
from plumbline.data.corpus import Corpus
from plumbline.data.images import ImageCorpus, prepare_images
from plumbline.data.prepare import prepare
from plumbline.data.schemas import INSTANCES, VOCABULARY
from plumbline.registry import load
from plumbline.runtime.job import job
from plumbline.store import write_json, write_table

with job(snakemake) as running:
    recipe = Preparation(**snakemake.params.preparation)
    corpus = load(snakemake.params.object)(Path(snakemake.params.raw), recipe.seed, **snakemake.params.options)
    if snakemake.params.words and isinstance(corpus, Corpus):
        # Words that manipulations insert need word vectors, however rare they are.
        corpus = replace(corpus, vocabulary=[*(corpus.vocabulary or ()), *snakemake.params.words])
    facts = snakemake.wildcards.dataset, snakemake.params.counts, snakemake.params.task
    if isinstance(corpus, ImageCorpus):
        prepared = prepare_images(corpus, recipe, *facts)
    else:
        prepared = prepare(corpus, recipe, *facts, snakemake.params.evidence)
    write_table(snakemake.output.instances, INSTANCES, prepared.instances)
    write_table(snakemake.output.vocabulary, VOCABULARY, prepared.vocabulary)
    write_json(snakemake.output.summary, {"dataset": snakemake.wildcards.dataset, **prepared.summary})
    running.manifest(rows=sum(split["texts"] for split in prepared.summary["splits"].values()))
