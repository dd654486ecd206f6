# Protocols read a cell's importances and may query its models. Those that query models need a GPU and have a rule of
# their own, which a cluster can send to another partition.
for name, protocols in GRAPH.scoring.items():

    rule:
        name:
            name
        input:
            importances=lambda wildcards: [
                PATHS.importances(wildcards, measure)
                for measure in PARAMS.compared(wildcards.protocol, wildcards.model)
            ],
            instances=PATHS.instances,
            summary=PATHS.record_of,
            subwords=PATHS.subwords,
            predictions=f"results/models/{CELL}/predictions.parquet",
            weights=f"results/models/{CELL}/weights.safetensors",
        output:
            scores=f"results/scores/{{protocol}}/{CELL}.parquet",
            manifest=f"results/scores/{{protocol}}/{CELL}.json",
        log:
            f"results/logs/score/{{protocol}}/{CELL}.log",
        wildcard_constraints:
            protocol=protocols,
        conda:
            ENVIRONMENT
        threads: 1
        resources:
            **COMPUTE,
            gpu=int(name == "score_models"),
            mem_mb=doubling(4000),
            runtime=time_limit(120),
        params:
            model=lambda wildcards: PARAMS.declaration("model", wildcards.model).pointer,
            model_options=PATHS.model_options,
            object=lambda wildcards: PARAMS.declaration("protocol", wildcards.protocol).pointer,
            options=lambda wildcards: PARAMS.options("protocol", wildcards.protocol),
            measures=lambda wildcards: PARAMS.compared(wildcards.protocol, wildcards.model),
            seeds=lambda wildcards: parse_seeds(wildcards.seeds),
            splits=STUDY.explain,
            sample=STUDY.sample,
            masking=lambda wildcards: PARAMS.training(wildcards)["masking"],
            recomputed=lambda wildcards: PARAMS.recomputed(wildcards.protocol, wildcards),
            code=lambda wildcards: PARAMS.code_of_protocol(wildcards.protocol, wildcards),
        script:
            "../workflow/scripts/score.py"


# For manipulated datasets: importances at several epochs of training, scored against the known truth.
rule trace:
    input:
        instances=PATHS.instances,
        summary=PATHS.record_of,
        subwords=PATHS.subwords,
        weights=f"results/models/{CELL}/weights.safetensors",
        history=f"results/models/{CELL}/history.parquet",
    output:
        trace=f"results/scores/trace/{CELL}.parquet",
        manifest=f"results/scores/trace/{CELL}.json",
    log:
        f"results/logs/trace/{CELL}.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        **COMPUTE,
        gpu=1,
        mem_mb=doubling(4000),
        runtime=time_limit(240),
    params:
        model=lambda wildcards: PARAMS.declaration("model", wildcards.model).pointer,
        model_options=PATHS.model_options,
        measures=PARAMS.measures,
        seeds=lambda wildcards: parse_seeds(wildcards.seeds),
        splits=STUDY.explain,
        sample=STUDY.sample,
        code=lambda wildcards: PARAMS.code_of_measures("trace", wildcards),
    script:
        "../workflow/scripts/trace.py"
