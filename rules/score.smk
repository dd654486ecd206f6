# Protocols that read a cell's models and importances; protocols of another shape have their own file. Those that ask the
# models take a GPU, and so have a rule of their own, which a cluster can send to another partition.
for name, protocols in SCORING.items():

    rule:
        name:
            name
        input:
            importances=lambda wildcards: importances(wildcards, compared(wildcards)),
            instances=texts,
            summary=summary_of,
            predictions=f"results/models/{CELL}/predictions.parquet",
            weights=f"results/models/{CELL}/weights.safetensors",
        output:
            scores=f"results/scores/{{protocol}}/{CELL}.parquet",
            manifest=f"results/scores/{{protocol}}/{CELL}.json",
        log:
            f"results/logs/score/{{protocol}}/{CELL}.log",
        wildcard_constraints:
            protocol=one_of(protocols),
        conda:
            ENVIRONMENT
        threads: 1
        resources:
            **COMPUTE,
            gpu=int(name == "score_models"),
            mem_mb=doubling(4000),
            runtime=doubling(120),
        params:
            model=pointer("model"),
            model_options=model_options,
            object=pointer("protocol"),
            options=options("protocol"),
            measures=compared,
            seeds=seeds,
            splits=STUDY.explain,
            sample=STUDY.sample,
            code=code("score", "model", "protocol"),
        script:
            "../workflow/scripts/score.py"
