rule train:
    input:
        instances=PATHS.instances,
        summary=PATHS.record_of,
        embedding=PATHS.vectors,
        subwords=PATHS.subwords,
        # A dependency only: the model reads its checkpoint by name.
        files=lambda wildcards: external(PATHS.checkpoint_files(wildcards)),
        # Of the same level, for a model that sees only the positions of masks.
        masks=PATHS.masks,
        # Of the base model, if this model has one.
        predictions=lambda wildcards: PATHS.of_base(wildcards, "predictions"),
        attention=lambda wildcards: PATHS.of_base(wildcards, "attention"),
    output:
        weights=f"results/models/{CELL}/weights.safetensors",
        history=f"results/models/{CELL}/history.parquet",
        predictions=f"results/models/{CELL}/predictions.parquet",
        manifest=f"results/models/{CELL}/manifest.json",
    log:
        f"results/logs/train/{CELL}.log",
    wildcard_constraints:
        variant=f"{GRAPH.stored_pattern}|{GRAPH.positions_pattern}",
    conda:
        ENVIRONMENT
    # One thread, so that results are identical to the byte for any --cores.
    threads: 1
    resources:
        **COMPUTE,
        gpu=1,
        mem_mb=doubling(4000),
        runtime=time_limit(240),
    params:
        object=lambda wildcards: PARAMS.declaration("model", wildcards.model).pointer,
        options=PATHS.model_options,
        trainable=PARAMS.trainable,
        training=PARAMS.training,
        base=PARAMS.base,
        masking=PARAMS.masking,
        seeds=lambda wildcards: parse_seeds(wildcards.seeds),
        code=lambda wildcards: PARAMS.code("train", ("model", wildcards.model)),
    script:
        "../workflow/scripts/train.py"


# Level by level: the importances of models trained at the level below determine which words are masked, and models
# retrained on the masked texts are explained in turn. The lowest level is the study's own models.
use rule train as retrain with:
    input:
        instances=PATHS.instances,
        summary=PATHS.record_of,
        embedding=PATHS.vectors,
        subwords=PATHS.subwords,
        files=lambda wildcards: external(PATHS.checkpoint_files(wildcards)),
        predictions=[],
        attention=[],
        importances=PATHS.importances_below,
        masks=PATHS.masks_below,
    output:
        masks=f"results/models/{CELL}/masks.parquet",
        weights=kept(f"results/models/{CELL}/weights.safetensors", STUDY.compute.keep_retrained),
        history=f"results/models/{CELL}/history.parquet",
        predictions=f"results/models/{CELL}/predictions.parquet",
        manifest=f"results/models/{CELL}/manifest.json",
    log:
        f"results/logs/retrain/{CELL}.log",
    wildcard_constraints:
        variant=GRAPH.masked_pattern,


# Attention weights for downstream jobs: the training of derived models, and the report.
rule extract_attention:
    input:
        instances=PATHS.instances,
        summary=PATHS.record_of,
        weights=f"results/models/{CELL}/weights.safetensors",
    output:
        attention=f"results/models/{CELL}/attention.parquet",
        manifest=f"results/models/{CELL}/attention.json",
    log:
        f"results/logs/extract_attention/{CELL}.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **COMPUTE,
        gpu=1,
        mem_mb=doubling(4000),
        runtime=time_limit(60),
    params:
        model=lambda wildcards: PARAMS.declaration("model", wildcards.model).pointer,
        options=PATHS.model_options,
        seeds=lambda wildcards: PARAMS.attention(wildcards)[0],
        splits=lambda wildcards: PARAMS.attention(wildcards)[1],
        code=lambda wildcards: PARAMS.code("extract_attention", ("model", wildcards.model)),
    script:
        "../workflow/scripts/extract_attention.py"
