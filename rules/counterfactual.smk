# The figures of each experiment that replaces attention, or sets it beside that of other seeds.
for kind in COUNTERFACTUAL:

    rule:
        name:
            f"{kind}_figures"
        input:
            scores=cells(f"results/scores/{PROTOCOLS[kind]}/{{cell}}.parquet", RUNS.scored[PROTOCOLS[kind]]),
            summaries=expand("results/data/{dataset}/dataset.json", dataset=datasets_scored(kind)),
            # Only the adversaries are drawn word by word.
            instances=(
                expand("results/data/{dataset}/plain/instances.parquet", dataset=datasets_scored(kind))
                if kind == "adversarial_attention"
                else []
            ),
        output:
            drawn(plots(kind)),
        log:
            f"results/logs/{kind}_figures.log",
        conda:
            ENVIRONMENT
        params:
            cells=[vars(cell) for cell in RUNS.scored[PROTOCOLS[kind]]],
            protocol=kind,
            plots=plots(kind),
            tasks=tasks(),
            code=code("counterfactual_figures"),
        script:
            "../workflow/scripts/counterfactual_figures.py"
