rule rule_graph:
    output:
        expand("results/figures/rule-graph.{format}", format=FORMATS),
    log:
        "results/logs/rule_graph.log",
    conda:
        ENVIRONMENT
    params:
        protocols=sorted(STUDY.protocols),
        rules=text_hash(Path(workflow.basedir), "Snakefile", "rules/*.smk"),
        code=code("rule_graph"),
    script:
        "../workflow/scripts/rule_graph.py"


rule report:
    input:
        tables=[path for path in tables_of_study() if path.endswith(".parquet")],
        figures=[path for path in figures_of_study() if path.endswith(".svg")],
        summaries=expand("results/data/{dataset}/dataset.json", dataset=STUDY.datasets),
        variants=["results/data/{}/{}/dataset.json".format(*pair) for pair in in_variants()],
    output:
        report="results/report/index.html",
        pages=report_pages()[1:],
        assets=directory("results/report/assets"),
        figures=directory("results/report/figures"),
        manifest="results/manifest.json",
    log:
        "results/logs/report.log",
    conda:
        ENVIRONMENT
    params:
        study=STUDY.model_dump(),
        cells=[
            {
                **vars(cell),
                "measures": RUNS.measures[cell.model],
                "masked_by": list(dict.fromkeys(point.measure for point in RUNS.curves.get(cell, []))),
            }
            for cell in RUNS.cells
        ],
        parts=parts(),
        excluded=[vars(excluded) for excluded in RUNS.excluded],
        site=text_hash(LIBRARY, "plumbline/report/assets/*", "plumbline/report/templates/*"),
        code=code("report"),
    script:
        "../workflow/scripts/report.py"
