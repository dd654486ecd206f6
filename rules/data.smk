rule fetch_vader:
    output:
        [str(RAW / path) for path in FETCHED],
    log:
        "results/logs/fetch_vader.log",
    conda:
        ENVIRONMENT
    script:
        "../workflow/scripts/fetch_vader.py"


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
    benchmark:
        "results/benchmarks/prepare/{dataset}.tsv"
    retries: 1
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
        runtime=doubling(60),
    params:
        raw=str(RAW),
        object=pointer("dataset"),
        options=options("dataset"),
        preparation=preparation,
        code=code("prepare", "dataset"),
    script:
        "../workflow/scripts/prepare.py"


rule embed:
    input:
        instances="results/data/{dataset}/plain/instances.parquet",
        vocabulary="results/data/{dataset}/vocabulary.parquet",
        vectors=lambda wildcards: vectors_of(RESOLVED, wildcards.dataset, RAW),
    output:
        embedding="results/data/{dataset}/embedding.safetensors",
        summary="results/data/{dataset}/embedding.json",
    log:
        "results/logs/embed/{dataset}.log",
    benchmark:
        "results/benchmarks/embed/{dataset}.tsv"
    retries: 1
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
