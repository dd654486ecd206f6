rule agreement_figures:
    input:
        scores=cells(f"results/scores/{AGREEMENT}/{{cell}}.parquet", RUNS.scored[AGREEMENT]),
        table=f"results/tables/{AGREEMENT}.parquet",
        summaries=expand("results/data/{dataset}/dataset.json", dataset=STUDY.datasets),
    output:
        drawn(agreement_plots()),
        latex=f"results/tables/{AGREEMENT}-matrices.tex",
    log:
        "results/logs/agreement_figures.log",
    conda:
        ENVIRONMENT
    params:
        cells=[vars(cell) for cell in RUNS.scored[AGREEMENT]],
        plots=agreement_plots(),
        datasets=list(STUDY.datasets),
        kinds={**kinds("measure"), **kinds("model")},
        code=code("agreement_figures"),
    script:
        "../workflow/scripts/agreement_figures.py"
