rule mimic_vectors:
    input:
        notes=RAW / "mimic3/NOTEEVENTS.csv",
    output:
        vectors=RAW / "mimic3/discharge_summaries.300d.vec",
    log:
        "results/logs/mimic_vectors.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(8000),
        runtime=doubling(480),
    params:
        code=code("mimic_vectors"),
    script:
        "../workflow/scripts/mimic_vectors.py"
