if is_new(RAW / path for path in FETCHED):

    rule fetch_vader:
        output:
            external(RAW / path for path in FETCHED),
        log:
            "results/logs/fetch_vader.log",
        localrule: True
        conda:
            ENVIRONMENT
        script:
            "../workflow/scripts/fetch_vader.py"


# Only for missing files that a study needs: Snakemake removes outputs before a job runs, so no existing file may be
# one. These rules run on the submit host, as compute nodes often have no network.
for archive, absent in DOWNLOADS:
    if not is_new(RAW / name for name in absent):
        continue

    rule:
        name:
            f"download_{archive.name}"
        output:
            [
                directory(path) if archive.is_folder(name) else path
                for name, path in zip(absent, external(RAW / name for name in absent))
            ],
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


# Only in a plan: files that the user has yet to supply.
if ABSENT:

    rule bring:
        output:
            external(ABSENT),


rule prepare:
    input:
        raw=lambda wildcards: raw_inputs(wildcards.dataset),
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
        mem_mb=lambda wildcards, attempt: PARAMS.data_memory(wildcards.dataset) * 2 ** (attempt - 1),
        runtime=time_limit(60),
    params:
        raw=str(RAW),
        object=lambda wildcards: PARAMS.declaration("dataset", wildcards.dataset).pointer,
        options=lambda wildcards: PARAMS.options("dataset", wildcards.dataset),
        preparation=lambda wildcards: PARAMS.preparation(wildcards.dataset),
        counts=lambda wildcards: PARAMS.declaration("dataset", wildcards.dataset).counts,
        task=lambda wildcards: PARAMS.declaration("dataset", wildcards.dataset).task,
        evidence=lambda wildcards: PARAMS.declaration("dataset", wildcards.dataset).evidence,
        words=lambda wildcards: RESOLVED.inserted_words(wildcards.dataset),
        content=lambda wildcards: PARAMS.content(wildcards.dataset),
        code=lambda wildcards: PARAMS.code("prepare", ("dataset", wildcards.dataset)),
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
        variant=one_of(RESOLVED.manipulated),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=lambda wildcards, attempt: PARAMS.data_memory(wildcards.dataset) * 2 ** (attempt - 1),
        runtime=time_limit(60),
    params:
        object=lambda wildcards: PARAMS.declaration("manipulation", wildcards.variant).pointer,
        facts=lambda wildcards: PARAMS.declaration("manipulation", wildcards.variant).facts,
        manipulation=lambda wildcards: PARAMS.manipulation(wildcards.variant),
        code=lambda wildcards: PARAMS.code("manipulate", ("manipulation", wildcards.variant)),
    script:
        "../workflow/scripts/manipulate.py"


rule embed:
    input:
        instances="results/data/{dataset}/plain/instances.parquet",
        vocabulary="results/data/{dataset}/vocabulary.parquet",
        summary="results/data/{dataset}/dataset.json",
        vectors=lambda wildcards: external(vector_file(RESOLVED, wildcards.dataset, RAW)),
    output:
        embedding="results/data/{dataset}/embedding.safetensors",
        summary="results/data/{dataset}/embedding.json",
    log:
        "results/logs/embed/{dataset}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
        runtime=time_limit(60),
    params:
        raw=str(RAW),
        embedding=lambda wildcards: PARAMS.embedding(wildcards.dataset),
        code=PARAMS.code("embed"),
    script:
        "../workflow/scripts/embed.py"


rule tokenize_subwords:
    input:
        instances="results/data/{dataset}/{variant}/instances.parquet",
        files=lambda wildcards: external(PATHS.checkpoint_files(wildcards)),
    output:
        instances="results/data/{dataset}/{variant}/subwords/{model}/instances.parquet",
        summary="results/data/{dataset}/{variant}/subwords/{model}/subwords.json",
        manifest="results/data/{dataset}/{variant}/subwords/{model}/manifest.json",
    log:
        "results/logs/tokenize_subwords/{dataset}/{variant}/{model}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
        runtime=time_limit(60),
    params:
        checkpoint=lambda wildcards: PATHS.model_options(wildcards)["checkpoint"],
        prompt=lambda wildcards: PATHS.model_options(wildcards).get("prompt", ""),
        code=PARAMS.code("tokenize_subwords"),
    script:
        "../workflow/scripts/tokenize_subwords.py"


# Only if a study reads the notes of MIMIC-III.
NOTE_VECTORS = RAW / "mimic3/discharge_summaries.300d.vec"
READERS = {"diabetes", "anemia"} & {PARAMS.declaration("dataset", name).name for name in STUDY.datasets}
if READERS and is_new([NOTE_VECTORS]):

    rule mimic_vectors:
        input:
            notes=local(str(RAW / "mimic3/NOTEEVENTS.csv")),
        output:
            vectors=local(str(NOTE_VECTORS)),
        log:
            "results/logs/mimic_vectors.log",
        conda:
            ENVIRONMENT
        resources:
            mem_mb=doubling(8000),
            runtime=doubling(480),
        params:
            code=PARAMS.code("mimic_vectors"),
        script:
            "../workflow/scripts/mimic_vectors.py"
