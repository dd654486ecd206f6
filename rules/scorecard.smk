# Every measure against every protocol, and the protocols against each other.
rule scorecard:
    input:
        **judged_by(),
        performance="results/tables/performance.parquet",
        importances=[path for cell in RUNS.cells for path in importances(cell)],
    output:
        parquet="results/tables/scorecard.parquet",
        csv="results/tables/scorecard.csv",
        latex="results/tables/scorecard.tex",
    log:
        "results/logs/scorecard.log",
    conda:
        ENVIRONMENT
    params:
        tables=list(judged_by()),
        random=baseline(RESOLVED),
        kinds=kinds("measure"),
        cells=[vars(cell) | {"measures": RUNS.measures[cell.model]} for cell in RUNS.cells],
        code=code("scorecard"),
    script:
        "../workflow/scripts/scorecard.py"


rule meta_evaluation:
    input:
        scorecard="results/tables/scorecard.parquet",
    output:
        parquet="results/tables/meta_evaluation.parquet",
        csv="results/tables/meta_evaluation.csv",
        latex="results/tables/meta_evaluation.tex",
    log:
        "results/logs/meta_evaluation.log",
    conda:
        ENVIRONMENT
    params:
        random=baseline(RESOLVED),
        code=code("meta_evaluation"),
    script:
        "../workflow/scripts/meta_evaluation.py"


rule scorecard_figures:
    input:
        scorecard="results/tables/scorecard.parquet",
        meta_evaluation="results/tables/meta_evaluation.parquet",
    output:
        drawn(scorecard_plots()),
    log:
        "results/logs/scorecard_figures.log",
    conda:
        ENVIRONMENT
    params:
        plots=scorecard_plots(),
        name=STUDY.name,
        code=code("scorecard_figures"),
    script:
        "../workflow/scripts/scorecard_figures.py"
