# {measures} names the measures that share a job: one costly measure, or all cheap ones, since starting a job takes
# longer than they do. Masking needs one measure, all splits and the gold class.
rule attribute:
    input:
        instances=PATHS.instances,
        summary=PATHS.record_of,
        subwords=PATHS.subwords,
        weights=PATHS.explained_weights,
        masks=PATHS.masks,
        imported=lambda wildcards: PATHS.imported(wildcards, wildcards.measures),
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
        runtime=doubling(240),
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


# A study may save disk space by deleting the importances of retrained models.
if STUDY.roar and not STUDY.compute.keep_retrained:

    use rule attribute as attribute_masked with:
        output:
            importances=temp(f"results/attributions/{CELL}/{{measures}}.parquet"),
            manifest=f"results/attributions/{CELL}/{{measures}}.json",
        wildcard_constraints:
            variant=f"unmasked|{GRAPH.masked_pattern}",

    ruleorder: attribute_masked > attribute
