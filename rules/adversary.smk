rule adversary:
    input:
        histories=cells("results/models/{cell}/history.parquet", RUNS.adversaries),
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
