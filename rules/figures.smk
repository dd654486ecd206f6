# One job draws all figures of a protocol, since starting a job takes longer than drawing. The number of outputs of a
# rule cannot depend on a wildcard, so each protocol has a rule of its own.
for protocol, figures in GRAPH.parts.figure_groups.items():

    rule:
        name:
            f"draw_{protocol}"
        input:
            **named_inputs(GRAPH.parts.reads(figures)),
        output:
            [
                path
                for figure in figures
                for plot in GRAPH.parts.plots([figure])
                for path in figure_outputs(plot, figure.summary, figure.experiment)
            ],
        log:
            f"results/logs/draw/{protocol}.log",
        conda:
            ENVIRONMENT
        resources:
            mem_mb=doubling(8000),
        params:
            figures=GRAPH.figure_params(protocol),
            code=GRAPH.figure_code(protocol),
        script:
            "../workflow/scripts/figures.py"
