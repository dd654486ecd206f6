# plumbline: dataset --(modify)--> variant --(train)--> models --(attribute)--> importances --(score)--> tables, figures, report
from snakemake.utils import min_version

min_version("9.11")


# A study's file replaces the default study; Snakemake alone would merge the two.
if "datasets" not in config:

    configfile: f"{workflow.basedir}/config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/attribute.smk"
include: "rules/score.smk"
include: "rules/tables.smk"
include: "rules/report.smk"
include: "rules/explorer.smk"


if {"diabetes", "anemia"} & set(kinds("dataset").values()):

    include: "rules/mimic.smk"


if ADVERSARIES:

    include: "rules/adversary.smk"


if ROAR:

    include: "rules/roar.smk"


if TRUTH or RATIONALES:

    include: "rules/truth.smk"


if AGREEMENT:

    include: "rules/agreement.smk"


if COUNTERFACTUAL:

    include: "rules/counterfactual.smk"


if judged_by():

    include: "rules/scorecard.smk"


onstart:
    begin()


onsuccess:
    end(log, failed=False)


onerror:
    end(log, failed=True)


localrules:
    all,
    tables,
    figures,


rule all:
    default_target: True
    input:
        report_pages(),
        "results/report/explorer",
        tables_of_study(),
        figures_of_study(),


rule tables:
    input:
        tables_of_study(),


rule figures:
    input:
        figures_of_study(),
