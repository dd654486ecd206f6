"""Make one table of the study: a protocol's summary of the scores of all cells, or a declared table."""

from types import SimpleNamespace

from plumbline.protocols.make import declared_table, protocol_table
from plumbline.registry import load
from plumbline.runtime.job import job
from plumbline.tables.export import latex, write_formats
from plumbline.tables.sources import Sources

with job(snakemake):
    params = SimpleNamespace(**snakemake.params.table)
    sources, maker = Sources.of_job(snakemake.input, params), load(params.object)
    kind, frame = (
        protocol_table(maker(**params.options), sources) if "scores" in sources else declared_table(maker, sources)
    )
    write_formats(snakemake.output, kind, frame, load(params.latex)(frame) if params.latex else latex(kind, frame))
