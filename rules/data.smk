rule fetch_vader:
    output:
        [str(RAW / path) for path in FETCHED],
    log:
        "results/logs/fetch_vader.log",
    conda:
        ENVIRONMENT
    script:
        "../workflow/scripts/fetch_vader.py"


# Only for what a study needs and does not have: an output would be removed before it is made, so no file that is there
# may be one. They run where Snakemake does, as compute nodes often have no network.
for archive, absent in DOWNLOADS:

    rule:
        name:
            f"download_{archive.name}"
        output:
            [directory(str(RAW / path)) if archive.is_folder(path) else str(RAW / path) for path in absent],
        log:
            f"results/logs/download_{archive.name}.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            raw=lambda wildcards: str(RAW),
            archive=archive.name,
        script:
            "../workflow/scripts/download.py"


# Only in a plan: what a person has yet to bring.
if BROUGHT:

    rule bring:
        output:
            BROUGHT,


rule prepare:
    input:
        raw=lambda wildcards: raw_files(RESOLVED, wildcards.dataset, RAW),
    output:
        instances="results/data/{dataset}/plain/instances.parquet",
        vocabulary="results/data/{dataset}/vocabulary.parquet",
        summary="results/data/{dataset}/dataset.json",
        manifest="results/data/{dataset}/manifest.json",
    log:
        "results/logs/prepare/{dataset}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=data_memory,
        runtime=doubling(60),
    params:
        raw=str(RAW),
        object=pointer("dataset"),
        options=options("dataset"),
        preparation=preparation,
        counts=lambda wildcards: RESOLVED.declarations["dataset", wildcards.dataset].counts,
        task=lambda wildcards: RESOLVED.declarations["dataset", wildcards.dataset].task,
        words=lambda wildcards: RESOLVED.words_put(wildcards.dataset),
        code=code("prepare", "dataset"),
    script:
        "../workflow/scripts/prepare.py"


rule manipulate:
    input:
        instances=f"results/data/{{dataset}}/{PLAIN}/instances.parquet",
        vocabulary="results/data/{dataset}/vocabulary.parquet",
        summary="results/data/{dataset}/dataset.json",
    output:
        instances=kept("results/data/{dataset}/{variant}/instances.parquet", STUDY.compute.keep_variants),
        summary="results/data/{dataset}/{variant}/dataset.json",
        manifest="results/data/{dataset}/{variant}/manifest.json",
    log:
        "results/logs/manipulate/{dataset}/{variant}.log",
    wildcard_constraints:
        variant=one_of(MANIPULATED),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=data_memory,
        runtime=doubling(60),
    params:
        object=lambda wildcards: manipulation_of(wildcards).pointer,
        facts=lambda wildcards: manipulation_of(wildcards).facts,
        manipulation=manipulation,
        code=lambda wildcards: code_hash(LIBRARY / "scripts" / "manipulate.py", manipulation_of(wildcards).path),
    script:
        "../workflow/scripts/manipulate.py"


rule embed:
    input:
        instances="results/data/{dataset}/plain/instances.parquet",
        vocabulary="results/data/{dataset}/vocabulary.parquet",
        summary="results/data/{dataset}/dataset.json",
        vectors=lambda wildcards: vectors_of(RESOLVED, wildcards.dataset, RAW),
    output:
        embedding="results/data/{dataset}/embedding.safetensors",
        summary="results/data/{dataset}/embedding.json",
    log:
        "results/logs/embed/{dataset}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(60),
    params:
        raw=str(RAW),
        embedding=embedding,
        code=code("embed"),
    script:
        "../workflow/scripts/embed.py"


rule cut_into_pieces:
    input:
        instances="results/data/{dataset}/{variant}/instances.parquet",
        files=checkpoint_files,
    output:
        instances="results/data/{dataset}/{variant}/pieces/{model}/instances.parquet",
        summary="results/data/{dataset}/{variant}/pieces/{model}/pieces.json",
        manifest="results/data/{dataset}/{variant}/pieces/{model}/manifest.json",
    log:
        "results/logs/cut_into_pieces/{dataset}/{variant}/{model}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(60),
    params:
        checkpoint=lambda wildcards: model_options(wildcards)["checkpoint"],
        code=code("cut_into_pieces"),
    script:
        "../workflow/scripts/cut_into_pieces.py"
