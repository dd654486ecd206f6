"""A small handmade study for the tests of the report: its tables, its figures, and names that would be markup."""

from html.parser import HTMLParser
from importlib import import_module
from typing import Any

import pandas as pd
import pyarrow as pa

from plumbline.dag.parts import select_pages
from plumbline.protocols.attention.bins import BINS
from plumbline.registry import PACKAGE, Registry
from plumbline.report.content import Content
from plumbline.store import schema_of

HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "\"'&amp;",
    "<img src=x onerror=alert(1)>",
    "שלום",
    "👩‍🔬",
    "a\u2028b",
]
CLASSES = ["negative", "<b>positive</b>"]
MEASURES = ["attention", "gradient"]
WHOLE = ["attefa-violins", "mean-differences", "scorecard", "meta-evaluation", "detection", "faithfulness"]
OF_MODELS = ["correlation-matrices"]
OF_DATASETS = ["attribution-by-region", "rationale-curves", "evidence"]
BY_CELL = [kind for kind in Registry().names("figure") if kind not in {*WHOLE, *OF_MODELS, *OF_DATASETS}]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="300pt" height="200pt"><circle id="a" r="4"/></svg>'
CELL = {"dataset": "sst", "variant": "plain", "model": "bilstm-tanh"}
CURVE = {"dataset": "sst", "model": "bilstm", "strategy": "recursive", "unit": "relative", "measure": "attention"}
LEVELS = (10, 50, 100)


class Elements(HTMLParser):
    """All elements of a page, with their attributes, the text of each script and all other text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.text += data


# So that all kinds of tables are declared.
for _path in sorted(PACKAGE.rglob("schemas.py")):
    import_module(".".join(("plumbline", *_path.relative_to(PACKAGE).with_suffix("").parts)))


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = schema_of(name).schema
    return pa.Table.from_pylist([{field.name: row.get(field.name) for field in schema} for row in rows], schema)


def summary() -> dict[str, Any]:
    split = {"instances": 6, "instances_per_class": dict.fromkeys(CLASSES, 3), "mean_length": 8.0}
    split |= {"shortest": 8, "longest": 8, "unknown_share": 0.125}
    dropped = {"length filter": {"test": 2}, "limit": {"test": 0}}
    return {"dataset": "sst", "classes": CLASSES, "splits": {"test": split, "train": split}, "dropped": dropped}


def agreement_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"seed": seed, "measure_a": "attention", "measure_b": "gradient", "statistic": "kendall", "tokens": "text"}
        | {"predicted_class": label, "n": 3, "dropped": 1, "mean": 0.2 + 0.2 * seed, "std": 0.1}
        | {"significant_fraction": 0.5, "status": "ok"}
        for seed in range(2)
        for label in ("0", "1", "all")
    ]
    return table("agreement", rows).to_pandas()


def permutation_frame() -> pd.DataFrame:
    """Two seeds; the second has three texts of four in the first bin, the first seed one of four."""
    rows = [
        CELL | {"seed": seed, "predicted_class": label, "max_attention_bin": bin_, "n": n, "median_change_mean": mean}
        for label in ("0", "all")
        for seed, one in enumerate((1, 3))
        for bin_, n, mean in (("all", 4, 0.3 + 0.2 * seed), (BINS[0], one, 0.1 + 0.4 * seed), (BINS[3], 4 - one, 0.9))
    ]
    return table("permutation", rows).to_pandas()


def adversarial_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"seed": seed, "predicted_class": label, "max_attention_bin": bin_, "n": 4, "epsilon": epsilon}
        | {"feasible_fraction": 0.5 + 5 * epsilon, "jsd_mean": 0.3 + 0.1 * seed}
        for label in ("0", "all")
        for seed in range(2)
        for bin_ in ("all", BINS[0])
        for epsilon in (0.05, 0.01)
    ]
    return table("adversarial_attention", rows).to_pandas()


def adversary_frame() -> pd.DataFrame:
    """AtteFa's adversary from three seeds, of which the last diverged with selection on dev, and one by strength."""
    line = CELL | {"adversary": "attefa", "objective": "attefa", "base_seed": 0, "epochs": 9, "status": "ok"}
    rows = [
        line
        | {"seed": seed, "selected_on": split, "epoch": 4 + seed, "f1": 0.7 + 0.1 * seed, "tvd": 0.05 + 0.1 * seed}
        | {"jsd": 0.4 + 0.2 * seed, "attefa": 0.2 + 0.4 * seed}
        for split in ("dev", "test")
        for seed in range(2)
    ]
    lost = {"epoch": None, "f1": None, "tvd": None, "jsd": None, "attefa": None, "status": "undefined"}
    rows.append(rows[0] | lost | {"seed": 2, "reason": "training diverged"})
    swept = {"adversary": "<sweep>", "objective": "wiegreffe-pinter", "strength": 0.001, "selected_on": "train"}
    rows += [rows[0] | swept, rows[0] | swept | lost | {"strength": 0.1}]
    return table("adversary", rows).to_pandas()


def seed_variance_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"base_seed": 10, "seed": seed, "max_attention_bin": bin_, "n": 4}
        | {"tvd_mean": 0.1 * seed, "jsd_mean": 0.2 * seed + (bin_ != "all")}
        for seed in (1, 2)
        for bin_ in ("all", BINS[0])
    ]
    return table("seed_variance", rows).to_pandas()


def faithfulness_frame() -> pd.DataFrame:
    line = CURVE | {"metric": "macro_f1", "n_seeds": 5, "n_levels": 11, "status": "ok", "floor": 0.36}
    line |= {"faithfulness": 0.3, "ci_low": 0.2, "ci_high": 0.34, "floor_ci_low": 0.35, "floor_ci_high": 0.38}
    line |= {"unclipped": 0.3, "unclipped_ci_low": 0.2, "unclipped_ci_high": 0.34}
    below = {"faithfulness": -1.0, "ci_low": -1.0, "ci_high": -0.9, "unclipped": -1.4, "unclipped_ci_low": -1.9}
    lost = dict.fromkeys(["faithfulness", "ci_low", "ci_high", "unclipped", "unclipped_ci_low", "unclipped_ci_high"])
    lost |= {"measure": "random-<b>", "status": "undefined", "reason": "no <seed> has a floor", "n_seeds": 0}
    single = {"ci_low": None, "ci_high": None, "n_seeds": 1, "strategy": "roar"}
    rows = [line, line | below | {"measure": "gradient"}, line | lost, line | single]
    return table("faithfulness", rows).to_pandas()


def roar_frame(leakage: bool = True) -> pd.DataFrame:
    """Two seeds; the masks of attention are most informative at 50 %, by .2 and .3 above chance."""
    rows = [
        CURVE
        | {"measure": measure, "level": level, "trained_on": seen, "variant": "v", "seed": seed, "metric": metric}
        | {"value": 0.5 + (0.2 + 0.1 * seed) * (level == 50 and measure == "attention"), "status": "ok"}
        for measure in ("attention", "random")
        for level in (0, *LEVELS)
        for seen in (("words", "positions") if leakage else ("words",))
        for seed in range(2)
        for metric in ("macro_f1", "accuracy")
    ]
    return table("roar", rows).to_pandas()


def timings_frame() -> pd.DataFrame:
    """Attention has two levels, the first in two blocks of seeds; only the first level was explained."""
    keys = {"dataset": "sst", "model": "bilstm", "measure": "attention", "device": "cpu"}
    work = [
        ("retrain", "roar/relative/attention/10", "0-1", 10.0),
        ("retrain", "roar/relative/attention/10", "2-3", 20.0),
    ]
    work += [("retrain", "recursive/relative/attention/20", "0-3", 50.0), ("train", "plain", "0-3", 999.0)]
    work += [("attribute", "unmasked", "0-3", 4.0), ("attribute", "plain", "0-3", 99.0)]
    rows = [keys | {"rule": rule, "variant": v, "seeds": seeds, "seconds": s} for rule, v, seeds, s in work]
    rows += [rows[0] | {"measure": "random", "seconds": 7.0}, rows[0] | {"seconds": None, "event": "out of memory"}]
    return table("timings", rows).to_pandas()


def truth_frame() -> pd.DataFrame:
    """Two variants of one manipulation."""
    keys = {"dataset": "birds", "manipulation": "blur", "model": "m", "measure": "gradient", "status": "ok", "seed": 0}
    rows = [
        keys
        | {"variant": variant, "truth": truth, "class": class_, "attributed_fraction": share, "region_fraction": 0.25}
        | {"above_region": (share - 0.25) / 0.75}
        | {"found": 0.5, "auc": 0.75, "accuracy": 0.99, "chance_bound": share - 0.4, "undefined": 1}
        for variant, share in (("blur-0", 0.4), ("blur-1", 0.6))
        for truth in (True, False)
        for class_ in ("all", "1")
    ]
    return table("ground_truth", rows).to_pandas()


def rationales_frame() -> pd.DataFrame:
    rates = {"target_rate": 0.1, "selection_rate": 0.09, "accuracy": 0.98}
    found = {"precision": 0.8, "optimum_precision": 0.9, "recall": 0.7, "optimum_recall": 1.0}
    return pd.DataFrame([{"dataset": "beer", "variant": "articles", "model": "rl", **rates, **found}])


def evidence_frame() -> pd.DataFrame:
    """Two seeds of two measures, and a text that has no evidence."""
    means = {
        "auprc": 0.6,
        "auprc_chance": 0.4,
        "token_f1": 0.5,
        "iou": 0.4,
        "evidence_share": 0.3,
        "above_random": 1 / 3,
    }
    rows = [
        CELL | means | {"seed": seed, "measure": measure, "source": "human", "n": 5, "undefined": 1, "status": "ok"}
        for seed in range(2)
        for measure in MEASURES
    ]
    return table("evidence", rows).to_pandas()


def masked_erasure_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"measure": measure, "seed": seed, "level": level, "metric": metric, "value": 0.5, "n": 9, "status": "ok"}
        for measure in MEASURES
        for seed in range(2)
        for level in (0, *LEVELS)
        for metric in ("macro_f1", "out_of_distribution")
    ]
    return table("masked_erasure", rows).to_pandas()


def erasure_frame() -> pd.DataFrame:
    """Two seeds of two measures; comprehensiveness at two ratios and as a whole."""
    values = [("comprehensiveness", 10.0, 0.1), ("comprehensiveness", 50.0, 0.3), ("comprehensiveness", None, 0.2)]
    values += [("sufficiency", None, -0.05)]
    rows = [
        CELL
        | {"seed": seed, "measure": measure, "metric": metric, "ratio": ratio, "n": 5, "dropped": 1, "std": 0.1}
        | {"mean": value + 0.02 * seed, "status": "ok"}
        for seed in range(2)
        for measure in MEASURES
        for metric, ratio, value in values
    ]
    return table("erasure", rows).to_pandas()


def randomised_weights_frame() -> pd.DataFrame:
    """The second layer matters more than the first, for every measure but the last."""
    rows = [
        CELL
        | {"seed": seed, "measure": measure, "mode": "cascading", "stage": stage, "depth": depth, "n": 20, "dropped": 1}
        | {"kendall": tau, "kendall_std": 0.1, "spearman": tau, "status": "ok"}
        for seed in range(2)
        for measure, taus in {**dict.fromkeys(MEASURES, (0.5, -0.1)), "random": (1.0, 1.0)}.items()
        for depth, (stage, tau) in enumerate(zip(("head", "<embedding>"), taus, strict=True), start=1)
    ]
    return table("randomised_weights", rows).to_pandas()


def reliability_frame() -> pd.DataFrame:
    rows = [
        CELL
        | {"seed": seed, "measure": measure, "stochastic": tau < 1, "n": 20, "dropped": 0, "kendall": tau}
        | {"kendall_std": 0.1, "spearman": tau, "status": "ok"}
        for seed in range(2)
        for measure, tau in {MEASURES[0]: 1.0, "lime": 0.6 + 0.1 * seed, "random": 0.0}.items()
    ]
    return table("reliability", rows).to_pandas()


def scorecard_frame() -> pd.DataFrame:
    """Three measures by one criterion for all, one where lower is better, and one for attention only."""
    line = CELL | {"direction": "higher", "faithfulness": True, "n_seeds": 3, "status": "ok"}
    lost = {"n_seeds": 0, "status": "missing", "reason": "it applies to <attention> only"}
    rows = []
    for index, measure in enumerate((*MEASURES, "random")):
        value: dict[str, Any] = {"value": 0.1 * index, "ci_low": 0.1 * index - 0.05, "ci_high": 0.1 * index + 0.05}
        value["per_seed"] = [value["value"] + shift for shift in (-0.01, 0.0, 0.01)]
        once = value | {"direction": "lower", "n_seeds": 1, "per_seed": [value["value"]]}
        rows += [line | value | {"measure": measure, "criterion": "agreement"}]
        rows += [line | once | {"measure": measure, "criterion": "sufficiency"}]
        rows += [line | (value if not index else lost) | {"measure": measure, "criterion": "permutation"}]
    return table("scorecard", rows).to_pandas()


def meta_frame() -> pd.DataFrame:
    pairs = {"criterion_a": "agreement", "criterion_b": "sufficiency", "matched": "variant", "n_cells": 4}
    known = pairs | {"tau": -0.5, "ci_low": -0.8, "ci_high": 0.1, "status": "ok"}
    lost = {"criterion_b": "permutation", "n_cells": 0, "status": "missing", "reason": "no <cell> has 3 measures"}
    return table("meta_evaluation", [known, pairs | lost]).to_pandas()


def trust_frame() -> pd.DataFrame:
    """A criterion that agrees with one kind of truth and contradicts another."""
    line = {"criterion": "agreement", "matched": "variant", "n_cells": 3, "n_datasets": 1, "n_models": 3}
    line |= {"resampled": "model, seed", "status": "ok"}
    rows = [
        line | {"truth": truth, "tau": tau, "ci_low": tau - 0.2, "ci_high": tau + 0.2, "p_value": 0.01}
        for truth, tau in {"every manipulation": 0.0, "planted": 0.5, "<ordered>": -0.5, "unless": 0.1}.items()
    ]
    lost = {"criterion": "permutation", "truth": "planted", "n_cells": 0, "status": "missing", "reason": "no <cell>"}
    return table("trust", [*rows, line | lost]).to_pandas()


def trust_common_frame() -> pd.DataFrame:
    """A criterion that agrees with a truth over three measures, together with another model, but not alone."""
    line = {"criterion": "agreement", "truth": "planted", "matched": "dataset", "n_measures": 3, "status": "ok"}
    line |= {"n_datasets": 1, "resampled": "seed"}
    both = {"model": "every model", "n_cells": 2, "n_models": 2, "tau": 0.5, "ci_low": 0.3, "ci_high": 0.7} | {
        "p_value": 0.03
    }
    alone = {"model": "<net>", "n_cells": 1, "n_models": 1, "tau": 0.1, "ci_low": -0.1, "ci_high": 0.3} | {
        "p_value": 0.6
    }
    return table("trust_common", [line | both, line | alone]).to_pandas()


def sensitivity_frame() -> pd.DataFrame:
    """A criterion that sees all of a ladder and one that sees none of it."""
    line = CELL | {"measure": "gradient", "direction": "higher", "n_seeds": 3, "status": "ok"}
    rows = [
        line
        | {"criterion": criterion, "share": share, "value": 0.5 - slope * share, "difference": slope * share}
        | {"power": float(slope > 0 and share > 0), "tau": float(slope > 0), "in_order": slope > 0}
        for criterion, slope in (("agreement", 0.2), ("<sufficiency>", 0.0))
        for share in (0.0, 0.5, 1.0)
    ]
    return table("sensitivity", rows).to_pandas()


def reproduction_frame() -> pd.DataFrame:
    line = {"study": "J&W", "table": "T2", "dataset": "sst", "model": "bilstm-tanh", "measure_a": "attention"}
    line |= {"measure_b": "gradient", "predicted_class": "1", "metric": "kendall_tau", "published": 0.40, "n_seeds": 2}
    rows = [
        line | {"ours": 0.3, "ours_spread": 0.1, "tolerance": 0.11, "within": True, "note": "<i>fine</i>"},
        line | {"ours": 0.9, "ours_spread": 0.1, "tolerance": 0.11, "within": False},
        line | {"metric": "vocab_size", "model": None, "published": 13686.0, "predicted_class": None},
    ]
    return table("reproduction", rows).to_pandas()


def quirks_frame() -> pd.DataFrame:
    """A quirk with two numbers, of which one has a value only with it, and a quirk that is missing in the run."""
    line = {"quirk": "<u>padding</u>", "study": "AtteFa", "where": "Table 3", "what": "It counts.", "with": "a"}
    line |= {"without": "b", "dataset": "sst", "metric": "TVD", "published": 0.5, "status": "ok"}
    line |= {"as_published": 0.51, "as_published_spread": 0.02}
    lost = {"quirk": "swapped", "metric": None, "status": "missing", "reason": "The study has <neither>."}
    return table("quirks", [line | {"corrected": 0.75}, line, line | lost]).to_pandas()


def performance_frame() -> pd.DataFrame:
    """Nine models of a dataset, one of them with a hostile name, and one of another: there is much to filter."""
    models = ("bilstm-tanh", "bag-of-words", *map("model-{}".format, range(6)), HOSTILE[4])
    rows = [
        CELL
        | {"dataset": dataset, "model": model, "seed": seed, "split": split, "metric": "f1", "status": "ok"}
        | {"value": 0.8 + 0.02 * seed - 0.1 * index}
        for dataset, found in (("sst", models), ("imdb", models[:1]))
        for index, model in enumerate(found)
        for seed in range(2)
        for split in ("train", "test")
    ]
    return table("performance", rows).to_pandas()


def study() -> dict[str, Any]:
    config: dict[str, Any] = {"name": "A <study> & more", "datasets": {"sst": {"kind": ""}}, "plugins": []}
    config |= {"seeds": ["0-1"], "explain": ["test"], "sample": 60, "protocols": {"agreement": {}}}
    config["models"] = {"bilstm-tanh": {"kind": "", "training": {"epochs": 6}, "measures": None, "datasets": None}}
    config["models"]["bag-of-words"] = {"kind": ""}
    return config | {"measures": {measure: {"kind": ""} for measure in MEASURES}}


def tables() -> dict[str, pd.DataFrame]:
    """One table of each kind that the report knows, and one of a user's."""
    own = pd.DataFrame({"measure": ["<b>lime</b>"], "share": [0.25], "n": [3], "empty": [None]})
    return {
        "performance": performance_frame(),
        "reproduction": reproduction_frame(),
        "quirks": quirks_frame(),
        "timings": timings_frame(),
        "agreement": agreement_frame(),
        "permutation": permutation_frame(),
        "adversarial_attention": adversarial_frame(),
        "adversary": adversary_frame(),
        "seed_variance": seed_variance_frame(),
        "roar": roar_frame(),
        "faithfulness": faithfulness_frame(),
        "ground_truth": truth_frame(),
        "rationales": rationales_frame(),
        "evidence": evidence_frame(),
        "erasure": erasure_frame(),
        "masked_erasure": masked_erasure_frame(),
        "masked_faithfulness": faithfulness_frame(),
        "randomised_weights": randomised_weights_frame(),
        "reliability": reliability_frame(),
        "scorecard": scorecard_frame(),
        "meta_evaluation": meta_frame(),
        "trust": trust_frame(),
        "trust_common": trust_common_frame(),
        "sensitivity": sensitivity_frame(),
        "my_own": own,
    }


def figures() -> dict[str, str]:
    """A figure of each kind, of those about a cell one for each model."""
    models = ("bilstm-tanh", "bag-of-words")
    found = dict.fromkeys([*WHOLE, *(f"{kind}/sst" for kind in OF_DATASETS)], SVG)
    found |= {f"{kind}/{model}": SVG for kind in OF_MODELS for model in models}
    return found | {f"{kind}/sst/{model}": SVG for kind in BY_CELL for model in models}


def content() -> Content:
    return Content(
        study=study(),
        cells=[CELL | {"seeds": "0-1", "measures": MEASURES}],
        excluded=[{"dataset": "", "model": "bag-of-words", "measure": "attention", "reason": "no <attention> there"}],
        summaries=[summary()],
        tables=tables(),
        figures=figures(),
        parts={"bilstm-tanh": {"encoder": "bilstm", "attention": "tanh"}, "bag-of-words": {}},
        versions={"python": "3.11"},
    )


def page_names(of: Content) -> list[str]:
    return [page.name for page in select_pages(Registry(), of.tables, ["attention"])]
