rule attribute:
    input:
        instances="results/data/{dataset}/{variant}/instances.parquet",
        summary="results/data/{dataset}/dataset.json",
        weights=f"results/models/{CELL}/weights.safetensors",
    output:
        importances=f"results/attributions/{CELL}/{{measure}}.parquet",
        manifest=f"results/attributions/{CELL}/{{measure}}.json",
    log:
        f"results/logs/attribute/{CELL}/{{measure}}.log",
    benchmark:
        f"results/benchmarks/attribute/{CELL}/{{measure}}.tsv"
    retries: 1
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        gpu=1,
        mem_mb=doubling(4000),
        runtime=doubling(240),
        token_budget=STUDY.compute.token_budget,
    params:
        model=pointer("model"),
        model_options=options("model"),
        object=pointer("measure"),
        options=options("measure"),
        seeds=seeds,
        splits=STUDY.explain,
        code=code("attribute", "model", "measure"),
    script:
        "../workflow/scripts/attribute.py"
