def agreement_figures():
    """Jain & Wallace's histograms, one per dataset and model, the matrix of all pairs, and their bars of differences."""
    if "agreement" not in STUDY.protocols:
        return []
    pairs = sorted({(cell.dataset, cell.model) for cell in explained_cells()})
    stems = [f"{kind}/{dataset}/{model}" for kind in ("tau-histogram", "tau-matrix") for dataset, model in pairs]
    return expand("results/figures/{stem}.{format}", stem=[*stems, "mean-differences"], format=FORMATS)


rule agreement_figures:
    input:
        scores=cells("results/scores/agreement/{cell}.parquet", explained_cells()),
        table="results/tables/agreement.parquet",
    output:
        agreement_figures() or "results/figures/agreement.none",
    params:
        cells=[vars(cell) for cell in explained_cells()],
        code=code("agreement_figures"),
    log:
        "results/logs/agreement_figures.log",
    conda:
        ENVIRONMENT
    script:
        "../workflow/scripts/agreement_figures.py"
