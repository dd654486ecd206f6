# {measures} names the measures that share a job: one costly measure, or all cheap ones, since starting a job takes
# longer than they do. Masking needs one measure, all splits and the gold class.
rule attribute:
    input:
        instances=PATHS.instances,
        summary=PATHS.record_of,
        subwords=PATHS.subwords,
        weights=PATHS.explained_weights,
        masks=PATHS.masks,
        imported=lambda wildcards: external(PATHS.imported(wildcards, wildcards.measures)),
    output:
        importances=f"results/attributions/{CELL}/{{measures}}.parquet",
        manifest=f"results/attributions/{CELL}/{{measures}}.json",
    log:
        f"results/logs/attribute/{CELL}/{{measures}}.log",
    wildcard_constraints:
        variant=GRAPH.explained_pattern,
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
        measures=lambda wildcards: PARAMS.measures(wildcards, wildcards.measures),
        seeds=lambda wildcards: parse_seeds(wildcards.seeds),
        splits=PARAMS.explained_splits,
        sample=PARAMS.sample,
        code=lambda wildcards: PARAMS.code_of_measures("attribute", wildcards, wildcards.measures),
    script:
        "../workflow/scripts/attribute.py"


# A study may split the instances of a costly measure over several jobs.
if GRAPH.split_wildcards:

    use rule attribute as attribute_part with:
        output:
            importances=temp(f"results/attributions/{CELL}/{{measures}}.{{part}}.parquet"),
            manifest=f"results/attributions/{CELL}/{{measures}}.{{part}}.json",
        log:
            f"results/logs/attribute/{CELL}/{{measures}}.{{part}}.log",

    rule join_importances:
        input:
            parts=lambda wildcards: PATHS.parts(wildcards, wildcards.measures),
        output:
            importances=f"results/attributions/{CELL}/{{measures}}.parquet",
        log:
            f"results/logs/join_importances/{CELL}/{{measures}}.log",
        wildcard_constraints:
            **GRAPH.split_wildcards,
            variant=GRAPH.explained_pattern,
        conda:
            ENVIRONMENT
        resources:
            mem_mb=doubling(4000),
            runtime=time_limit(60),
        params:
            measures=lambda wildcards: list(PARAMS.measures(wildcards, wildcards.measures)),
            seeds=lambda wildcards: parse_seeds(wildcards.seeds),
            code=PARAMS.code("join_importances"),
        script:
            "../workflow/scripts/join_importances.py"

    ruleorder: join_importances > attribute


# A study may save disk space by deleting the importances of retrained models.
if STUDY.roar and not STUDY.compute.keep_retrained:

    use rule attribute as attribute_masked with:
        output:
            importances=temp(f"results/attributions/{CELL}/{{measures}}.parquet"),
            manifest=f"results/attributions/{CELL}/{{measures}}.json",
        wildcard_constraints:
            variant=f"unmasked|{GRAPH.masked_pattern}",

    ruleorder: attribute_masked > attribute

    if GRAPH.split_wildcards:

        use rule join_importances as join_masked_importances with:
            output:
                importances=temp(f"results/attributions/{CELL}/{{measures}}.parquet"),
            wildcard_constraints:
                **GRAPH.split_wildcards,
                variant=f"unmasked|{GRAPH.masked_pattern}",

        ruleorder: join_masked_importances > join_importances > attribute_masked > attribute
