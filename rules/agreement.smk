rule agreement_figures:
    input:
        scores=cells("results/scores/agreement/{cell}.parquet", explained_cells()),
        table="results/tables/agreement.parquet",
        summaries=expand("results/data/{dataset}/dataset.json", dataset=STUDY.datasets),
    output:
        agreement_figures() or "results/figures/agreement.none",
    log:
        "results/logs/agreement_figures.log",
    conda:
        ENVIRONMENT
    params:
        cells=[vars(cell) for cell in explained_cells()],
        plots=agreement_plots(),
        kinds={**kinds("measure"), **kinds("model")},
        code=code("agreement_figures"),
    script:
        "../workflow/scripts/agreement_figures.py"
