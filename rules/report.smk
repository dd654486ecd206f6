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
        instances=["results/data/{}/{}/instances.parquet".format(*pair) for pair in shown_texts()],
        pieces=["results/data/{}/{}/pieces/{}/instances.parquet".format(*cut) for cut in in_pieces()],
        masks=cells("results/models/{cell}/masks.parquet", map(cell_of, shown_masked())),
        predictions=cells("results/models/{cell}/predictions.parquet", shown_cells()),
        importances=[path for cell in shown_cells() for path in importances(cell)],
        adversaries=cells(f"results/scores/{PROTOCOLS.get('adversarial_attention')}/{{cell}}.parquet", ATTACKED),
        attention=[
            path
            for cell in RUNS.cells
            if rivals(cell)
            for path in cells("results/models/{cell}/attention.parquet", [cell, *rivals(cell)])
        ],
        rivals=[
            path for cell in RUNS.cells for path in cells("results/models/{cell}/predictions.parquet", rivals(cell))
        ],
    output:
        report="results/report/index.html",
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
                "attacked": cell in ATTACKED,
                "rivals": [told_of(rival) for rival in rivals(cell)],
                "shown": cell in shown_cells(),
            }
            for cell in RUNS.cells
        ],
        texts=shown_texts(),
        pieces=in_pieces(),
        masked=shown_masked(),
        parts=parts(),
        tasks=tasks(),
        excluded=[vars(excluded) for excluded in RUNS.excluded],
        page=text_hash(LIBRARY, "plumbline/report/page.*"),
        code=code("report"),
    script:
        "../workflow/scripts/report.py"
