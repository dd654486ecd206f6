rule train:
    input:
        instances=texts,
        summary=summary_of,
        embedding=vectors,
        pieces=pieces,
        files=checkpoint_files,
        masks=own_masks,
        # Of the model that this one reads, if it does.
        predictions=lambda wildcards: of_base(wildcards, "predictions"),
        attention=lambda wildcards: of_base(wildcards, "attention"),
    output:
        weights=f"results/models/{CELL}/weights.safetensors",
        history=f"results/models/{CELL}/history.parquet",
        predictions=f"results/models/{CELL}/predictions.parquet",
        manifest=f"results/models/{CELL}/manifest.json",
    log:
        f"results/logs/train/{CELL}.log",
    wildcard_constraints:
        variant=f"{WHOLE}|{POSITIONS}",
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
        against=against,
        masking=masking,
        seeds=seeds,
        code=code("train", "model"),
    script:
        "../workflow/scripts/train.py"


rule attend:
    input:
        instances=texts,
        summary=summary_of,
        weights=f"results/models/{CELL}/weights.safetensors",
    output:
        attention=f"results/models/{CELL}/attention.parquet",
        manifest=f"results/models/{CELL}/attention.json",
    log:
        f"results/logs/attend/{CELL}.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **COMPUTE,
        gpu=1,
        mem_mb=doubling(4000),
        runtime=doubling(60),
    params:
        model=pointer("model"),
        options=model_options,
        seeds=lambda wildcards: attended(wildcards)[0],
        splits=lambda wildcards: attended(wildcards)[1],
        code=code("attend", "model"),
    script:
        "../workflow/scripts/attend.py"
