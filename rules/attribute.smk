# Measures that take a few passes share a job, since starting one would take longer than they do. Models that have other
# such measures get a rule of their own.
for name, measures, models in ATTRIBUTION:

    rule:
        name:
            name
        input:
            instances=texts,
            summary="results/data/{dataset}/dataset.json",
            weights=f"results/models/{CELL}/weights.safetensors",
        output:
            importances=[f"results/attributions/{CELL}/{measure}.parquet" for measure in measures],
            manifests=[f"results/attributions/{CELL}/{measure}.json" for measure in measures],
        log:
            f"results/logs/attribute/{CELL}/{measures[0]}.log",
        benchmark:
            f"results/benchmarks/attribute/{CELL}/{measures[0]}.tsv"
        wildcard_constraints:
            model=one_of(models),
            measure=one_of(COSTLY),
        retries: 1
        conda:
            ENVIRONMENT
        threads: 1
        resources:
            **COMPUTE,
            gpu=1,
            mem_mb=doubling(4000),
            runtime=doubling(240),
        params:
            model=pointer("model"),
            model_options=model_options,
            measures=asked(measures),
            seeds=seeds,
            splits=STUDY.explain,
            code=code("attribute", "model", measures=measures),
        script:
            "../workflow/scripts/attribute.py"
