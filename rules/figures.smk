# All figures of a protocol in one job, since starting one would take longer than drawing. A rule cannot have as many
# outputs as a wildcard says, so that each protocol has a rule with the same text.
for protocol, figures in GRAPH.parts.drawn_together.items():

    rule:
        name:
            f"draw_{protocol}"
        input:
            **named(GRAPH.parts.reads(figures)),
        output:
            [
                path
                for figure in figures
                for plot in GRAPH.parts.plots([figure])
                for path in reported(plot, figure.caption, figure.experiment)
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
