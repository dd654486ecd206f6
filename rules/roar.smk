# Level by level: the importances of models that were trained one level below say which words are masked, and models
# trained on what is left are explained in turn. The lowest level are the study's own models.
use rule train as retrain with:
    input:
        instances=texts,
        summary=summary_of,
        embedding=vectors,
        pieces=pieces,
        files=checkpoint_files,
        predictions=[],
        attention=[],
        importances=importances_below,
        masks=masks_below,
    output:
        masks=f"results/models/{CELL}/masks.parquet",
        weights=kept(f"results/models/{CELL}/weights.safetensors"),
        history=f"results/models/{CELL}/history.parquet",
        predictions=f"results/models/{CELL}/predictions.parquet",
        manifest=f"results/models/{CELL}/manifest.json",
    log:
        f"results/logs/retrain/{CELL}.log",
    wildcard_constraints:
        variant=MASKED,


rule roar:
    input:
        predictions=cells("results/models/{cell}/predictions.parquet", curve_cells()),
    output:
        parquet="results/tables/roar.parquet",
        csv="results/tables/roar.csv",
        latex="results/tables/roar.tex",
    log:
        "results/logs/roar.log",
    conda:
        ENVIRONMENT
    params:
        cells=[vars(cell) for cell in curve_cells()],
        points=curve_points(),
        code=code("roar"),
    script:
        "../workflow/scripts/roar.py"


rule faithfulness:
    input:
        table="results/tables/roar.parquet",
        performance="results/tables/performance.parquet",
    output:
        parquet="results/tables/faithfulness.parquet",
        csv="results/tables/faithfulness.csv",
        latex="results/tables/faithfulness.tex",
    log:
        "results/logs/faithfulness.log",
    conda:
        ENVIRONMENT
    params:
        headlines=HEADLINES,
        random=baseline(RESOLVED),
        code=code("faithfulness"),
    script:
        "../workflow/scripts/faithfulness.py"


rule sparsity:
    input:
        importances=unmasked(),
    output:
        parquet="results/tables/sparsity.parquet",
        csv="results/tables/sparsity.csv",
        latex="results/tables/sparsity.tex",
    log:
        "results/logs/sparsity.log",
    conda:
        ENVIRONMENT
    params:
        cells=[vars(cell) | {"measure": measure} for cell, measure in explained_unmasked()],
        code=code("sparsity"),
    script:
        "../workflow/scripts/sparsity.py"


rule synthetic_roar:
    output:
        parquet="results/tables/synthetic_roar.parquet",
        csv="results/tables/synthetic_roar.csv",
        latex="results/tables/synthetic_roar.tex",
        manifest="results/benchmarks/synthetic_roar.json",
    log:
        "results/logs/synthetic_roar.log",
    conda:
        ENVIRONMENT
    params:
        seeds=[0, 1, 2, 3, 4],
        train=200000,
        test=50000,
        code=code("synthetic_roar"),
    script:
        "../workflow/scripts/synthetic_roar.py"


rule synthetic_roar_figure:
    input:
        table="results/tables/synthetic_roar.parquet",
    output:
        drawn([dict(stem="synthetic-roar")]),
    log:
        "results/logs/synthetic_roar_figure.log",
    conda:
        ENVIRONMENT
    params:
        code=code("synthetic_roar_figure"),
    script:
        "../workflow/scripts/synthetic_roar_figure.py"


rule roar_figures:
    input:
        roar="results/tables/roar.parquet",
        faithfulness="results/tables/faithfulness.parquet",
        sparsity="results/tables/sparsity.parquet",
        reproduction="results/tables/reproduction.parquet",
    output:
        drawn(roar_plots()),
    log:
        "results/logs/roar_figures.log",
    conda:
        ENVIRONMENT
    params:
        plots=roar_plots(),
        headline=HEADLINES,
        random=baseline(RESOLVED),
        code=code("roar_figures"),
    script:
        "../workflow/scripts/roar_figures.py"
