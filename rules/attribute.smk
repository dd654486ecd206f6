# Measures that take a few passes share a job, since starting one would take longer than they do. Models that have other
# such measures get a rule of their own, and so does what masking asks: one measure, every split and the gold class.
for name, measures, models in ATTRIBUTION:

    rule:
        name:
            name
        input:
            instances=texts,
            summary=summary_of,
            pieces=pieces,
            weights=explained_weights,
            masks=own_masks,
            imported=imported(measures),
        output:
            importances=[
                kept(f"results/attributions/{CELL}/{measure}.parquet", name != MASKING or STUDY.compute.keep_retrained)
                for measure in measures
            ],
            manifests=[f"results/attributions/{CELL}/{measure}.json" for measure in measures],
        log:
            f"results/logs/attribute/{CELL}/{measures[0]}.log",
        wildcard_constraints:
            variant=f"{UNMASKED}|{MASKED}" if name == MASKING else WHOLE,
            model=one_of(models),
            measure=one_of(STUDY.measures if name == MASKING else COSTLY),
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
            measures=asked(measures, masking_options if name == MASKING else own_options),
            seeds=seeds,
            splits=["train", "dev", "test"] if name == MASKING else STUDY.explain,
            sample=None if name == MASKING else STUDY.sample,
            code=code("attribute", "model", measures=measures),
        script:
            "../workflow/scripts/attribute.py"
