"""Importance measures, one short module for each family.

Options:
    target: Class to explain: the `predicted` one, the `gold` one, or the class with this number, from 0.
    function: Output to explain: the class's probability, its logit, or its logit minus that of the likeliest other
        class (`difference`).
    baseline: Vectors that stand for an absent token: those of padding (`pad`) or zeros (`zero`).
    texts: Texts of a pair whose tokens are scored, the `first` or `both`; other tokens are never perturbed.
    specials: Whether special tokens, such as `[CLS]`, are scored too; otherwise they are never perturbed.
    sign: `absolute` takes magnitudes; `signed` scores words that speak against the explained output below 0.
    steps: Points on the path from the baseline to the text; more are slower and more exact.
    tolerance: Largest error of the sum of scores, in units of the output, above which more points are used; 0 never
        uses more.
    samples: Random samples per text or image; more are slower and less noisy.
"""
