# Every table: a protocol's summary of the scores of all cells, or a declared table from its sources.
rule table:
    input:
        unpack(lambda wildcards: named_inputs(GRAPH.parts.table_reads(wildcards.table))),
    output:
        parquet="results/tables/{table}.parquet",
        csv="results/tables/{table}.csv",
        latex="results/tables/{table}.tex",
    log:
        "results/logs/table/{table}.log",
    conda:
        ENVIRONMENT
    params:
        table=lambda wildcards: GRAPH.table_params(wildcards.table),
        code=lambda wildcards: GRAPH.table_code(wildcards.table),
    script:
        "../workflow/scripts/table.py"
