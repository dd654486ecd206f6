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
        code=code("performance"),
    script:
        "../workflow/scripts/performance.py"


rule summarise:
    input:
        scores=scores,
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
        names=dict(
            datasets=kinds("dataset"),
            # Published numbers are about models that read no other.
            models={model: kind for model, kind in kinds("model").items() if model not in RESOLVED.derived},
            measures=kinds("measure"),
            dataset_options={dataset: RESOLVED.options["dataset", dataset] for dataset in STUDY.datasets},
            model_options={model: changed_options("model", model) for model in STUDY.models},
            measure_options={measure: changed_options("measure", measure) for measure in STUDY.measures},
            masking_target=next((entry.target for entry in STUDY.roar.values()), "gold"),
        ),
        select_on={
            dataset: {model: RESOLVED.trainings[dataset, model].select_on for model in STUDY.models}
            for dataset in STUDY.datasets
        },
        code=code("reproduction"),
    script:
        "../workflow/scripts/reproduction.py"


rule timings:
    input:
        manifests(),
    output:
        parquet="results/tables/timings.parquet",
        csv="results/tables/timings.csv",
    log:
        "results/logs/timings.log",
    conda:
        ENVIRONMENT
    params:
        code=code("timings"),
    script:
        "../workflow/scripts/timings.py"
