rule adversary:
    input:
        histories=cells("results/models/{cell}/history.parquet", RUNS.adversaries),
        performance="results/tables/performance.parquet",
    output:
        parquet="results/tables/adversary.parquet",
        csv="results/tables/adversary.csv",
        latex="results/tables/adversary.tex",
    log:
        "results/logs/adversary.log",
    conda:
        ENVIRONMENT
    params:
        cells=adversary_cells(),
        code=code("adversary"),
    script:
        "../workflow/scripts/adversary.py"


rule adversary_figures:
    input:
        table="results/tables/adversary.parquet",
        reproduction="results/tables/reproduction.parquet",
        seeds=f"results/tables/{PROTOCOLS['seed_variance']}.parquet" if "seed_variance" in PROTOCOLS else [],
    output:
        drawn(adversary_plots()),
    log:
        "results/logs/adversary_figures.log",
    conda:
        ENVIRONMENT
    params:
        order=[*STUDY.datasets, *STUDY.models],
        plots=adversary_plots(),
        code=code("adversary_figures"),
    script:
        "../workflow/scripts/adversary_figures.py"
