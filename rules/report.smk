rule report:
    input:
        tables=[path for path in GRAPH.table_files() if path.endswith(".parquet")],
        figures=[path for path in GRAPH.figure_files() if path.endswith(".svg")],
        summaries=[file.path for file in GRAPH.sources.files("datasets")],
        variants=[PATHS.record(*pair) for pair in GRAPH.sources.manipulated_variants],
    output:
        report="results/report/index.html",
        pages=GRAPH.page_files()[1:],
        assets=directory("results/report/assets"),
        figures=directory("results/report/figures"),
        manifest="results/manifest.json",
    log:
        "results/logs/report.log",
    conda:
        ENVIRONMENT
    params:
        **GRAPH.report_params(),
        site=text_hash(PACKAGE, "report/assets/*", "report/templates/*"),
        code=GRAPH.report_code(),
    script:
        "../workflow/scripts/report.py"


# Instances, predictions, importances, adversaries and masks, in chunks that a page loads.
rule explorer:
    input:
        **GRAPH.explorer.inputs(),
    output:
        directory("results/report/explorer"),
    log:
        "results/logs/explorer.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
    params:
        **GRAPH.explorer.params(),
        name=STUDY.name,
        examples=STUDY.report.examples,
        splits=STUDY.explain or ["test"],
        sample=STUDY.sample,
        random=baseline(RESOLVED),
        code=PARAMS.code("explorer"),
    script:
        "../workflow/scripts/explorer.py"
