# The instances, what models predict of them and what measures, adversaries and masks say, in parts that a page loads.
rule explorer:
    input:
        instances=["results/data/{}/{}/instances.parquet".format(*pair) for pair in explored()],
        summaries=["results/data/{}/dataset.json".format(known_as(*pair)) for pair in explored()],
        pieces=["results/data/{}/{}/pieces/{}/instances.parquet".format(*cut) for cut in explored_pieces()],
        masks=cells("results/models/{cell}/masks.parquet", map(cell_of, shown_masked())),
        predictions=cells("results/models/{cell}/predictions.parquet", explored_cells()),
        importances=[path for cell in explored_cells() for path in importances(cell)],
        adversaries=cells(
            f"results/scores/{PROTOCOLS.get('adversarial_attention')}/{{cell}}.parquet",
            [cell for cell in explored_cells() if cell in ATTACKED],
        ),
        attention=[
            path
            for cell in explored_cells()
            if rivals(cell)
            for path in cells("results/models/{cell}/attention.parquet", [cell, *rivals(cell)])
        ],
        rivals=[
            path
            for cell in explored_cells()
            for path in cells("results/models/{cell}/predictions.parquet", rivals(cell))
        ],
    output:
        directory("results/report/explorer"),
    log:
        "results/logs/explorer.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=doubling(4000),
    params:
        name=STUDY.name,
        examples=STUDY.report.examples,
        splits=STUDY.explain or ["test"],
        sample=STUDY.sample,
        random=baseline(RESOLVED),
        specials="all" in (RESOLVED.options["protocol", AGREEMENT]["tokens"] if AGREEMENT else []),
        sets=[(*pair, tasks()[pair[0]]) for pair in explored()],
        cells=[
            {
                **vars(cell),
                "measures": RUNS.measures[cell.model],
                "attacked": cell in ATTACKED,
                "rivals": [told_of(rival) for rival in rivals(cell)],
            }
            for cell in explored_cells()
        ],
        pieces=explored_pieces(),
        masked=shown_masked(),
        code=code("explorer"),
    script:
        "../workflow/scripts/explorer.py"
