rule train:
    input:
        instances="results/data/{dataset}/{variant}/instances.parquet",
        summary="results/data/{dataset}/dataset.json",
        embedding="results/data/{dataset}/embedding.safetensors",
    output:
        weights=f"results/models/{CELL}/weights.safetensors",
        history=f"results/models/{CELL}/history.parquet",
        predictions=f"results/models/{CELL}/predictions.parquet",
        manifest=f"results/models/{CELL}/manifest.json",
    log:
        f"results/logs/train/{CELL}.log",
    benchmark:
        f"results/benchmarks/train/{CELL}.tsv"
    retries: 1
    conda:
        ENVIRONMENT
    # One thread: results then are the same to the byte whatever --cores says.
    threads: 1
    resources:
        **COMPUTE,
        gpu=1,
        mem_mb=doubling(4000),
        runtime=doubling(240),
    params:
        object=pointer("model"),
        options=model_options,
        trainable=trainable,
        training=training,
        seeds=seeds,
        code=code("train", "model"),
    script:
        "../workflow/scripts/train.py"
