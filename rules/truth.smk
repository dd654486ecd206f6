# Datasets with a known truth: what models say of it while they learn, and the figures of the study.
rule trace:
    input:
        instances=texts,
        summary=summary_of,
        pieces=pieces,
        weights=f"results/models/{CELL}/weights.safetensors",
        history=f"results/models/{CELL}/history.parquet",
    output:
        trace=f"results/scores/trace/{CELL}.parquet",
        manifest=f"results/scores/trace/{CELL}.json",
    log:
        f"results/logs/trace/{CELL}.log",
    wildcard_constraints:
        variant=one_of(MANIPULATED),
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
        measures=lambda wildcards: asked(RUNS.measures[wildcards.model], own_options)(wildcards),
        seeds=seeds,
        splits=STUDY.explain,
        sample=STUDY.sample,
        code=lambda wildcards: code("trace", "model", measures=RUNS.measures[wildcards.model])(wildcards),
    script:
        "../workflow/scripts/trace.py"


rule traces:
    input:
        traces=cells("results/scores/trace/{cell}.parquet", traced()),
    output:
        parquet="results/tables/trace.parquet",
        csv="results/tables/trace.csv",
        latex="results/tables/trace.tex",
    log:
        "results/logs/traces.log",
    conda:
        ENVIRONMENT
    params:
        cells=[vars(cell) for cell in traced()],
        code=code("traces"),
    script:
        "../workflow/scripts/traces.py"


rule truth_figures:
    input:
        truth=f"results/tables/{TRUTH}.parquet" if TRUTH else [],
        trace="results/tables/trace.parquet" if traced() else [],
        rationales=f"results/tables/{RATIONALES}.parquet" if RATIONALES else [],
        # What can be reached at best depends on the texts alone.
        selections=cells(f"results/scores/{RATIONALES}/{{cell}}.parquet", RUNS.scored.get(RATIONALES, [])),
        instances=[texts(cell) for cell in drawn_cells()],
        summaries=[summary_of(cell) for cell in drawn_cells()],
        predictions=cells("results/models/{cell}/predictions.parquet", drawn_cells()),
        importances=[path for cell in drawn_cells() for path in importances(cell)],
    output:
        drawn(truth_plots()),
    log:
        "results/logs/truth_figures.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(8000),
    params:
        plots=truth_plots(),
        cells=[{**vars(cell), "measures": RUNS.measures[cell.model]} for cell in drawn_cells()],
        chosen=[vars(cell) for cell in RUNS.scored.get(RATIONALES, [])],
        kinds=kinds("model"),
        splits=STUDY.explain,
        code=code("truth_figures"),
    script:
        "../workflow/scripts/truth_figures.py"
