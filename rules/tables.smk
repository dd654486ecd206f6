rule performance:
    input:
        predictions=cells("results/models/{cell}/predictions.parquet"),
    output:
        parquet="results/tables/performance.parquet",
        csv="results/tables/performance.csv",
        latex="results/tables/performance.tex",
    log:
        "results/logs/performance.log",
    conda:
        ENVIRONMENT
    params:
        cells=[vars(cell) for cell in RUNS.cells],
        least_above_chance=STUDY.least_above_chance,
        code=code("performance"),
    script:
        "../workflow/scripts/performance.py"


rule summarise:
    input:
        scores=scores,
        performance="results/tables/performance.parquet",
    output:
        parquet="results/tables/{protocol}.parquet",
        csv="results/tables/{protocol}.csv",
        latex="results/tables/{protocol}.tex",
    log:
        "results/logs/summarise/{protocol}.log",
    conda:
        ENVIRONMENT
    params:
        cells=lambda wildcards: [vars(cell) for cell in RUNS.scored[wildcards.protocol]],
        object=pointer("protocol"),
        options=options("protocol"),
        code=code("summarise", "protocol"),
    script:
        "../workflow/scripts/summarise.py"


rule reproduction:
    input:
        datasets=expand("results/data/{dataset}/dataset.json", dataset=STUDY.datasets),
        performance="results/tables/performance.parquet",
        agreement=f"results/tables/{AGREEMENT}.parquet" if AGREEMENT else [],
        adversary="results/tables/adversary.parquet" if ADVERSARIES else [],
        faithfulness="results/tables/faithfulness.parquet" if ROAR else [],
        ground_truth=f"results/tables/{TRUTH}.parquet" if TRUTH else [],
        training=cells("results/models/{cell}/manifest.json"),
    output:
        parquet="results/tables/reproduction.parquet",
        csv="results/tables/reproduction.csv",
        latex="results/tables/reproduction.tex",
    log:
        "results/logs/reproduction.log",
    conda:
        ENVIRONMENT
    params:
        names=names_compared(),
        select_on={
            dataset: {model: RESOLVED.trainings[dataset, model].select_on for model in STUDY.models}
            for dataset in STUDY.datasets
        },
        code=code("reproduction"),
    script:
        "../workflow/scripts/reproduction.py"


rule quirks:
    input:
        reproduction="results/tables/reproduction.parquet",
        performance="results/tables/performance.parquet",
        agreement=f"results/tables/{AGREEMENT}.parquet" if AGREEMENT else [],
        sparsity="results/tables/sparsity.parquet" if ROAR else [],
    output:
        parquet="results/tables/quirks.parquet",
        csv="results/tables/quirks.csv",
        latex="results/tables/quirks.tex",
    log:
        "results/logs/quirks.log",
    conda:
        ENVIRONMENT
    params:
        names=names_compared(),
        code=code("quirks"),
    script:
        "../workflow/scripts/quirks.py"


rule timings:
    input:
        manifests(),
    output:
        parquet="results/tables/timings.parquet",
        csv="results/tables/timings.csv",
        latex="results/tables/timings.tex",
    log:
        "results/logs/timings.log",
    conda:
        ENVIRONMENT
    params:
        code=code("timings"),
    script:
        "../workflow/scripts/timings.py"
