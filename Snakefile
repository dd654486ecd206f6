# dataset --(manipulate)--> variant --(train)--> models --(attribute)--> importances --(score)--> tables, figures, report
from snakemake.utils import min_version

min_version("9.11")


# A study's config file replaces the default study; by default Snakemake would merge the two.
if "datasets" not in config:

    configfile: f"{workflow.current_basedir}/config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/attribute.smk"
include: "rules/score.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/report.smk"


onstart:
    check_own_data()
    RUN.begin(workflow)


onsuccess:
    RUN.end(workflow, [run.reason for run in GRAPH.runs.excluded], findings())


onerror:
    RUN.end(workflow, failed=True)


localrules:
    all,
    tables,
    figures,


rule all:
    default_target: True
    input:
        GRAPH.page_files(),
        "results/report/explorer",
        GRAPH.table_files(),
        GRAPH.figure_files(),


rule tables:
    input:
        GRAPH.table_files(),


rule figures:
    input:
        GRAPH.figure_files(),
