"""All Python helpers of the rules: the study, its paths, and what each rule's params hold."""

import os
import re
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

LIBRARY = Path(workflow.basedir, "workflow")
sys.path.insert(0, str(LIBRARY))
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(LIBRARY), os.environ.get("PYTHONPATH")])))

from plumbline.config.external import CAPTUM, IMPORTED, located, method_file, with_files_located
from plumbline.config.masking import PLAIN, UNMASKED, baseline, measure_options
from plumbline.config.runs import Cell, list_runs
from plumbline.config.study import parse_seeds, resolve
from plumbline.data.raw import FETCHED, check_raw, downloads, raw_files, vectors_of
from plumbline.runtime.corruption import ASIDE, set_aside_noted
from plumbline.errors import PlumblineError
from plumbline.runtime.failures import failures, tell
from plumbline.runtime.fork_server import FEWEST_JOBS, ForkServer
from plumbline.runtime.orphans import comment, mark_processes, stop_leftovers
from plumbline.runtime.live import Live
from plumbline.planning.absent import absent_files
from plumbline.runtime.progress import forget, job_key, job_name
from plumbline.runtime.provenance import code_hash, text_hash
from plumbline.registry import PAIRED, PICTURES
from plumbline.report.pictures import CAPTIONS, KINDS as KINDS_OF_FIGURES
from plumbline.report.pages import pages_of
from plumbline.runtime.run_log import make_brief
from plumbline.runtime.scheduling import remove_default_rate_limit, retry_only_what_may_be_cured

# Where a study's own files may lie: as they are named, beside its config file, or in the project.
PLACES = [Path(), *(Path(file).resolve().parent for file in workflow.configfiles), Path(workflow.basedir)]

PLANNING = "PLUMBLINE_PLAN" in os.environ

try:
    config.update(with_files_located(config, PLACES))
    RESOLVED = resolve(config)
    RUNS = list_runs(RESOLVED)
    STUDY = RESOLVED.study
    RAW = Path(os.environ.get("PLUMBLINE_DATA") or located(STUDY.raw, PLACES))
    # A plan may be made before the files are there: those that a person has yet to bring are then a job's outputs.
    BROUGHT = absent_files(RESOLVED, RAW) if PLANNING else []
    if not PLANNING:
        check_raw(RESOLVED, RAW)
    DOWNLOADS = downloads(RESOLVED, RAW)
except PlumblineError as error:
    raise WorkflowError(str(error)) from None

ENVIRONMENT = "../envs/plumbline.yaml"
CELL = "{dataset}/{variant}/{model}/{seeds}"
FORMATS = ["svg", "pdf", "png"]


def stop_what_was_left():
    """Before the first job: stop what an earlier run of the same jobs left behind when it was killed."""
    jobs = {comment(job.rule.name, job.wildcards) for job in workflow.dag.needrun_jobs()}
    try:
        told = stop_leftovers(Path.cwd(), jobs)
    except PlumblineError as error:
        raise WorkflowError(str(error)) from None
    if told:
        print(f"plumbline: {told}", file=sys.stderr)


# The running jobs, on the terminal if there is one, and the process that local jobs are forked from.
RESULTS, FORKS = Path("results"), ForkServer()
LIVE = Live(RESULTS, lambda: dict(map(named_job, list(workflow.scheduler.running))))


@cache
def named_job(job):
    """A job's key and name, as it gives them itself."""
    return job_key(job.output), job_name(job.rule.name, job.wildcards)


def begin():
    """Before the first job: nothing of an earlier run is left, and from now on running jobs are shown."""
    stop_what_was_left()
    mark_processes()
    forget(RESULTS)
    remove_default_rate_limit(workflow.scheduler)
    retry_only_what_may_be_cured(workflow.scheduler)
    jobs = len(list(workflow.dag.needrun_jobs()))
    if workflow.local_exec and jobs >= FEWEST_JOBS:
        FORKS.start()
    if not LIVE.start() and not workflow.output_settings.verbose:
        make_brief(logger, jobs)


def end(logs, failed):
    """After the last job: what ran and what failed. The run's log may be several files."""
    from plumbline.runtime.summary import ran, summary  # Only here: it would slow the start of every job.

    LIVE.stop()
    FORKS.stop()
    if workflow.touch:
        return
    files = [logs] if isinstance(logs, str) else logs
    told = "".join(Path(file).read_text(encoding="utf-8", errors="replace") for file in files)
    dag = workflow.dag
    done = sum(not dag.needrun(job) for job in dag.jobs)
    lines = [summary(told, done, [one.reason for one in RUNS.excluded], RESULTS)]
    # Jobs found these to be damaged; they are missing from now on, and so the next run makes them anew.
    aside = [f"plumbline: '{path}' is damaged and set aside as '{path}{ASIDE}'." for path in set_aside_noted()]
    if failed:
        lines = [*ran(told, done), *([tell(found)] if (found := failures(told, Path.cwd())) else [])]
    print("", *lines, *aside, "", sep="\n", file=sys.stderr)


def one_of(names):
    return "|".join(sorted(map(re.escape, names))) or "none"


# The variants whose words are masked, and those of which nothing is left but which words are.
MASKED = rf"(roar|recursive)/(relative|absolute)/({one_of(STUDY.measures)})/\d+"
POSITIONS = rf"positions/({PLAIN}|{MASKED})"


# What is trained on as it stands: datasets as they are, and those with a known truth.
MANIPULATED = RESOLVED.manipulated
WHOLE = one_of([PLAIN, *MANIPULATED])


wildcard_constraints:
    dataset=one_of(STUDY.datasets),
    variant=WHOLE,
    model=one_of([*STUDY.models, *RESOLVED.derived]),
    seeds=one_of({cell.seeds for cell in [*RUNS.cells, *RUNS.adversaries]}),
    measure=one_of(STUDY.measures),
    protocol=one_of(STUDY.protocols),


# What a rule's params hold. Each returns a function of the wildcards, and plain sorted values.


def pointer(kind):
    return lambda wildcards: RESOLVED.declarations[kind, getattr(wildcards, kind)].pointer


def options(kind):
    return lambda wildcards: RESOLVED.options[kind, getattr(wildcards, kind)]


def kinds(kind):
    """The registered name behind each name of the study."""
    return {name: declaration.name for (k, name), declaration in RESOLVED.declarations.items() if k == kind}


# The study's name for each registered protocol that it has; if it has one twice, for the first.
PROTOCOLS = {kind: name for name, kind in reversed(kinds("protocol").items())}
# The figures of agreement and the published correlations hang on it.
AGREEMENT = PROTOCOLS.get("agreement")
# Those whose tables the scorecard reads.
JUDGES = ("agreement", "permutation", "adversarial_attention", "ground_truth", "rationales", "erasure")
# The cells whose attention is set against adversaries.
ATTACKED = RUNS.scored.get(PROTOCOLS.get("adversarial_attention"), [])
# What is known of the truth, and what rationale models select, by the study's names.
TRUTH, RATIONALES = PROTOCOLS.get("ground_truth"), PROTOCOLS.get("rationales")
COUNTERFACTUAL = [kind for kind in ("permutation", "adversarial_attention", "seed_variance") if kind in PROTOCOLS]


def preparation(wildcards):
    return RESOLVED.preparations[wildcards.dataset].model_dump(exclude={"embedding"})


def embedding(wildcards):
    return RESOLVED.preparations[wildcards.dataset].embedding.model_dump(exclude={"trainable"})


def trainable(wildcards):
    return RESOLVED.preparations[wildcards.dataset].embedding.trainable and reads(wildcards.model) != "pixels"


def training(wildcards):
    return RESOLVED.trainings[wildcards.dataset, wildcards.model].model_dump()


def model_options(wildcards):
    """A model's options; a checkpoint that lies beside the study or in the project is named by its place."""
    found = RESOLVED.model_options[wildcards.dataset, wildcards.model]
    if any((place / found.get("checkpoint", "")).is_dir() for place in PLACES if found.get("checkpoint")):
        found = {**found, "checkpoint": located(found["checkpoint"], PLACES)}
    return found


def checkpoint_files(wildcards):
    """The files of the checkpoint that a model starts from, where it is a folder."""
    folder = Path(model_options(wildcards).get("checkpoint") or os.devnull)
    return sorted(str(path) for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []


def reads(model):
    """What a model reads: words, word pieces of its own, or pixels."""
    return RESOLVED.declarations["model", model].reads


def data_of(wildcards):
    """The folder of the variant that a model reads, before anything is masked."""
    return f"results/data/{wildcards.dataset}/{wildcards.variant if wildcards.variant in MANIPULATED else PLAIN}"


def texts(wildcards):
    """The texts that a model reads, without anything masked."""
    own = f"pieces/{wildcards.model}/" if reads(wildcards.model) == "pieces" else ""
    return f"{data_of(wildcards)}/{own}instances.parquet"


def summary_of(wildcards):
    """The record of the variant that a model reads: its classes, and how it was manipulated."""
    manipulated = wildcards.variant in MANIPULATED
    return f"{data_of(wildcards)}/dataset.json" if manipulated else f"results/data/{wildcards.dataset}/dataset.json"


def pieces(wildcards):
    """The record of a model's word pieces, if it has some of its own."""
    own = f"{data_of(wildcards)}/pieces/{wildcards.model}/pieces.json"
    return own if reads(wildcards.model) == "pieces" else []


def vectors(wildcards):
    """The word vectors that a model begins with, if it does not bring its own."""
    own = f"results/data/{wildcards.dataset}/embedding.safetensors"
    return own if reads(wildcards.model) == "words" else []


def manipulation(wildcards):
    """What the making of a variant's params hold."""
    found = MANIPULATED[wildcards.variant]
    return {key: value for key, value in sorted(vars(found).items()) if key != "datasets"}


def manipulation_of(wildcards):
    """The declaration of the manipulation that makes a variant."""
    return RESOLVED.declarations["manipulation", MANIPULATED[wildcards.variant].name]


def against(wildcards):
    """What a model's training reads of another: the objective with its strength, and the other's seed."""
    derived = RESOLVED.derived.get(wildcards.model)
    if derived is None:
        return {}
    return dict(base_seed=derived.base_seed, objective=derived.objective, strength=derived.strength)


def changed_options(kind, name):
    """The options of an object that the config sets otherwise than they are registered."""
    usual = RESOLVED.declarations[kind, name].options
    return {option: value for option, value in RESOLVED.options[kind, name].items() if value != usual[option].default}


def seeds(wildcards):
    return parse_seeds(wildcards.seeds)


def own_method(measure):
    """The study's own file with the method of a measure of Captum's kind, if there is one."""
    captum = RESOLVED.declarations["measure", measure].name == CAPTUM
    return method_file(RESOLVED.options["measure", measure]["method"]) if captum else None


def imported(measures):
    """The files of importances that a job reads, which were computed elsewhere."""

    def of(wildcards):
        names = [measure.format(**wildcards) for measure in measures]
        own = [name for name in names if RESOLVED.declarations["measure", name].name == IMPORTED]
        return [RESOLVED.options["measure", name]["path"] for name in own]

    return of


def code(script, *kinds, measures=()):
    """The hash of all code that a script can reach, with that of the registered objects it uses."""

    def of(wildcards):
        names = [*((kind, getattr(wildcards, kind)) for kind in kinds)]
        names += [("measure", measure.format(**wildcards)) for measure in measures]
        used = [RESOLVED.declarations[name].path for name in names]
        used += [file for kind, name in names if kind == "measure" and (file := own_method(name))]
        return code_hash(LIBRARY / "scripts" / f"{script}.py", *used)

    return of


# Which measures a job computes: each costly one by itself, the cheap ones of a model together.

COSTLY = [name for name in STUDY.measures if not RESOLVED.declarations["measure", name].cheap]


# The rule that attributes what masking asks.
MASKING = "attribute_masked"


def attribution():
    """The rules that attribute: their names, the measures of one job and the models they are for.

    A job that fails loses all its results, so a plug-in's measures share no job with the library's.
    """
    together = {}
    for model, measures in RUNS.measures.items():
        cheap = {}
        for measure in measures:
            path = RESOLVED.declarations["measure", measure].path
            if measure not in COSTLY:
                cheap.setdefault(None if path.is_relative_to(LIBRARY) else path, []).append(measure)
        for shared in cheap.values():
            together.setdefault(tuple(shared), []).append(model)
    rules = [(f"attribute_together_{i + 1}", *found) for i, found in enumerate(together.items())]
    alone = [*(["attribute"] if COSTLY else []), *([MASKING] if STUDY.roar else [])]
    return [*((name, ["{measure}"], STUDY.models) for name in alone), *rules]


def own_options(measure):
    return RESOLVED.options["measure", measure]


def masking_options(measure):
    return measure_options(RESOLVED, measure)


def asked(measures, options):
    """Object and options of each measure of a job."""

    def of(wildcards):
        names = [measure.format(**wildcards) for measure in measures]
        return {
            name: dict(
                object=RESOLVED.declarations["measure", name].pointer,
                options=options(name),
                splits=RESOLVED.declarations["measure", name].splits,
            )
            for name in names
        }

    return of


ATTRIBUTION = attribution()

# Protocols that need no GPU and those that ask the models, by the name under which they score.
_ASK = {name: RESOLVED.declarations["protocol", name].gpu for name in STUDY.protocols}
SCORING = {
    named: [name for name, asks in _ASK.items() if asks == wanted]
    for named, wanted in (("score", False), ("score_models", True))
    if wanted in _ASK.values()
}

# How work is cut and shared: resources, because a change of them must rerun nothing.
COMPUTE = dict(
    token_budget=0 if STUDY.compute.token_budget == "auto" else STUDY.compute.token_budget,
    slots_per_gpu=STUDY.compute.slots_per_gpu,
)


# Twice as much on each retry: a job that ran out of memory or time needs more.


def doubling(first):
    return lambda wildcards, attempt: first * 2 ** (attempt - 1)


def data_memory(wildcards, attempt):
    """MiB that the making of a dataset may take; pictures are held whole."""
    return doubling(12000 if of_pictures(wildcards.dataset) else 4000)(wildcards, attempt)


# Paths of the study's artefacts.


def folder(cell):
    """The folder of a cell, or of a job's wildcards."""
    return f"{cell.dataset}/{cell.variant}/{cell.model}/{cell.seeds}"


def cells(path, of=RUNS.cells):
    """A path for each cell, which stands for {cell} in it."""
    return [path.replace("{cell}", folder(cell)) for cell in of]


# The adversaries by the config's names of them, and their cells with what the tables tell of each.
ADVERSARIES = list(STUDY.adversaries)


def of_base(wildcards, table):
    """A table of the model that a model's training reads, if it reads one."""
    derived = RESOLVED.derived.get(wildcards.model)
    if derived is None:
        return []
    return f"results/models/{wildcards.dataset}/{wildcards.variant}/{derived.base}/{derived.base_block}/{table}.parquet"


def attended(wildcards):
    """The seeds and splits whose attention is told: all that a derived model reads, and of an adversary what the report
    shows, which is its first seed."""
    readers = [derived for derived in RESOLVED.derived.values() if derived.base == wildcards.model]
    reading = [derived.base_seed for derived in readers if derived.base_block == wildcards.seeds]
    shown = parse_seeds(wildcards.seeds)[:1] if wildcards.model in RESOLVED.derived else []
    return sorted({*reading, *shown}), ["train", "dev", "test"] if reading else STUDY.explain or ["test"]


def adversary_cells():
    """Each cell of adversaries as the table names it: the base model, its seed and the objective are columns."""
    told = []
    for cell in RUNS.adversaries:
        derived = RESOLVED.derived[cell.model]
        training = RESOLVED.trainings[cell.dataset, cell.model]
        told.append(
            dict(
                dataset=cell.dataset,
                variant=cell.variant,
                model=derived.base,
                adversary=derived.adversary,
                objective=derived.objective,
                strength=derived.strength,
                base_seed=derived.base_seed,
                selected_on=[training.select_on, *training.also_select_on],
                first=training.first_eligible_epoch,
                patience=training.patience,
            )
        )
    return told


def rivals(cell):
    """The adversaries that the report sets beside a cell's model: of each name the strongest, with its first seeds."""
    strongest = {}
    for derived in RESOLVED.derived.values():
        if derived.adversary and (derived.base, derived.base_block) == (cell.model, cell.seeds):
            before = strongest.setdefault(derived.adversary, derived)
            strongest[derived.adversary] = max(before, derived, key=lambda one: one.strength or 0)
    found = [Cell(cell.dataset, cell.variant, derived.name, derived.seeds[0]) for derived in strongest.values()]
    return [rival for rival in found if rival in RUNS.adversaries]


def told_of(rival):
    """What the report's params hold of an adversary."""
    derived = RESOLVED.derived[rival.model]
    return dict(
        adversary=derived.adversary,
        objective=derived.objective,
        strength=derived.strength,
        base_seed=derived.base_seed,
        seed=seeds(rival)[0],
    )


# Words masked by importance and models trained anew.
ROAR = bool(STUDY.roar)
ROAR_TABLES = ["roar", "faithfulness", "sparsity", "synthetic_roar"]
HEADLINES = {
    dataset: "accuracy" if RESOLVED.declarations["dataset", dataset].task in PAIRED else "macro_f1"
    for dataset in STUDY.datasets
}


def masked(wildcards):
    """How the words of a variant are masked; None of a plain one."""
    return RUNS.masked.get(Cell(wildcards.dataset, wildcards.variant, wildcards.model, wildcards.seeds))


def masking(wildcards):
    """What a training's params hold of the words that are masked."""
    found = masked(wildcards)
    if found is None:
        return {}
    return dict(level=found.level, unit=found.unit, measure=found.measure, positions=found.positions)


def of_variant(wildcards, variant, file):
    """A file of the same models trained on another variant."""
    return f"results/models/{wildcards.dataset}/{variant}/{wildcards.model}/{wildcards.seeds}/{file}"


def own_masks(wildcards):
    """The masks of the texts that a model is trained on or explained by; none if nothing is masked."""
    found = masked(wildcards)
    return [] if found is None or found.masks == PLAIN else of_variant(wildcards, found.masks, "masks.parquet")


def masks_below(wildcards):
    """The masks to which a level adds; none at the first."""
    below = masked(wildcards).below
    return [] if below == PLAIN else of_variant(wildcards, below, "masks.parquet")


def importances_below(wildcards):
    """The importances by which a level masks."""
    found = masked(wildcards)
    below = UNMASKED if found.below == PLAIN else found.below
    return (
        f"results/attributions/{wildcards.dataset}/{below}/{wildcards.model}/{wildcards.seeds}/{found.measure}.parquet"
    )


def explained_weights(wildcards):
    """The weights of the models that are explained; nothing is masked for those of the plain texts."""
    variant = PLAIN if wildcards.variant == UNMASKED else wildcards.variant
    return of_variant(wildcards, variant, "weights.safetensors")


def masking_by():
    """Every file of importances by which some level masks, once."""
    return sorted({importances_below(cell) for cell, found in RUNS.masked.items() if not found.positions})


def explained_unmasked():
    """Each plain cell that is masked, with each measure that masks it."""
    return sorted({(cell, point.measure) for cell, points in RUNS.curves.items() for point in points})


def unmasked():
    """The importances with which masking begins, in that order."""
    return [
        f"results/attributions/{cell.dataset}/{UNMASKED}/{cell.model}/{cell.seeds}/{measure}.parquet"
        for cell, measure in explained_unmasked()
    ]


def kept(path, wanted=STUDY.compute.keep_retrained):
    """An output that stays, unless the study would rather have the room; by default one of models trained anew."""
    return path if wanted else temp(path)


def curve_points():
    """Each point of the curves with the cell whose models it is about."""
    return [
        dict(
            dataset=cell.dataset,
            model=cell.model,
            strategy=point.strategy,
            unit=point.unit,
            measure=point.measure,
            level=point.level,
            trained_on="positions" if point.positions else "words",
            variant=point.variant,
            seeds=cell.seeds,
        )
        for cell, points in RUNS.curves.items()
        for point in points
    ]


def cell_of(point):
    return Cell(point["dataset"], point["variant"], point["model"], point["seeds"])


def curve_cells():
    """The cells of all points, each once."""
    return sorted({cell_of(point) for point in curve_points()})


def shown_masked():
    """The points whose texts the report shows: of each dataset and model those of the first block."""
    return [
        {**vars(point), "dataset": cell.dataset, "model": cell.model, "seeds": cell.seeds}
        for cell, points in RUNS.curves.items()
        for point in points
        if cell.seeds == STUDY.blocks(cell.model)[0] and not point.positions and point.variant != PLAIN
    ]


def scores(wildcards):
    """Files of all cells that a protocol scores."""
    return cells(f"results/scores/{wildcards.protocol}/{{cell}}.parquet", RUNS.scored[wildcards.protocol])


def importances(cell, measures=None):
    """Files of measures that explain a cell's model, by default of all."""
    named = RUNS.measures[cell.model] if measures is None else measures
    return [f"results/attributions/{folder(cell)}/{measure}.parquet" for measure in named]


def compared(wildcards):
    """The measures that a protocol reads: all of a model, or none if it asks the model alone."""
    asks = RESOLVED.declarations["protocol", wildcards.protocol].least_measures
    return RUNS.measures[wildcards.model] if asks else []


def in_pieces():
    """The datasets and variants, each with a model that cuts them into word pieces of its own."""
    return sorted({(c.dataset, c.variant, c.model) for c in RUNS.cells if reads(c.model) == "pieces"})


def in_variants():
    """The manipulated variants of datasets that models are trained on, each once."""
    return sorted({(cell.dataset, cell.variant) for cell in RUNS.cells if cell.variant in MANIPULATED})


def looking():
    """The cells whose attention is told, each once: those that a derived model reads, and those that the report shows."""
    read = [
        Cell(cell.dataset, cell.variant, RESOLVED.derived[cell.model].base, RESOLVED.derived[cell.model].base_block)
        for cell in [*RUNS.cells, *RUNS.adversaries]
        if cell.model in RESOLVED.derived
    ]
    return sorted({*read, *(rival for cell in RUNS.cells for rival in rivals(cell))})


def explored_cells():
    """The cells whose instances the report shows; of variants that do not stay those that figures show too."""
    drawn = {(cell.dataset, cell.variant) for cell in drawn_cells()}
    passing = [] if STUDY.compute.keep_variants else MANIPULATED
    return [cell for cell in RUNS.cells if cell.variant not in passing or (cell.dataset, cell.variant) in drawn]


def explored():
    """The variants of datasets whose instances the report shows, in the order of the study."""
    found = {(cell.dataset, cell.variant) for cell in explored_cells()}
    return sorted(found, key=lambda pair: (list(STUDY.datasets).index(pair[0]), pair[1] != PLAIN, pair[1]))


def explored_pieces():
    """The same, each with a model that cuts it into word pieces of its own."""
    return [cut for cut in in_pieces() if cut[:2] in explored()]


def known_as(dataset, variant):
    """The folder, below that of all data, with the record of a variant."""
    return f"{dataset}/{variant}" if variant in MANIPULATED else dataset


def manifests():
    """The manifest of every heavy job of the study."""
    return [
        *(f"results/data/{dataset}/manifest.json" for dataset in STUDY.datasets),
        *cells("results/models/{cell}/manifest.json", [*RUNS.cells, *RUNS.adversaries]),
        *cells("results/models/{cell}/attention.json", looking()),
        *(path.replace(".parquet", ".json") for cell in RUNS.cells for path in importances(cell)),
        *cells("results/models/{cell}/manifest.json", RUNS.masked),
        *(["results/benchmarks/synthetic_roar.json"] if ROAR else []),
        *(path.replace(".parquet", ".json") for path in masking_by()),
        *("results/data/{}/{}/pieces/{}/manifest.json".format(*pair) for pair in in_pieces()),
        *("results/data/{}/{}/manifest.json".format(*pair) for pair in in_variants()),
        *cells("results/scores/trace/{cell}.json", traced()),
        *(
            path
            for protocol in STUDY.protocols
            for path in cells(f"results/scores/{protocol}/{{cell}}.json", RUNS.scored[protocol])
        ),
    ]


def judged_by():
    """The tables of the study that the scorecard reads, by their kind."""
    found = {kind: name for kind, name in PROTOCOLS.items() if kind in JUDGES}
    found |= {"adversary": "adversary"} if ADVERSARIES else {}
    found |= {"faithfulness": "faithfulness"} if ROAR else {}
    return {kind: f"results/tables/{name}.parquet" for kind, name in sorted(found.items())}


def scorecard_plots():
    """The scorecard of the whole study and of each dataset and model, and whether protocols agree."""
    pairs = sorted({(cell.dataset, cell.model) for cell in RUNS.cells if RUNS.measures[cell.model]})
    whole = [dict(kind=kind, stem=kind) for kind in ("scorecard", "meta-evaluation")]
    return whole + [
        dict(kind="scorecard", dataset=dataset, model=model, stem=f"scorecard/{dataset}/{model}")
        for dataset, model in pairs
    ]


def names_compared():
    """The registered names and changed options behind the study's own, by which published numbers find ours."""
    return dict(
        datasets=kinds("dataset"),
        # Published numbers are about models that read no other.
        models={model: kind for model, kind in kinds("model").items() if model not in RESOLVED.derived},
        measures=kinds("measure"),
        dataset_options={dataset: RESOLVED.options["dataset", dataset] for dataset in STUDY.datasets},
        model_options={model: changed_options("model", model) for model in STUDY.models},
        measure_options={measure: changed_options("measure", measure) for measure in STUDY.measures},
        masking_target=next((entry.target for entry in STUDY.roar.values()), "gold"),
    )


def tables_of_study():
    names = ["performance", *(["adversary"] if ADVERSARIES else []), *(ROAR_TABLES if ROAR else [])]
    names += ["timings", "reproduction", "quirks", *STUDY.protocols, *(["trace"] if traced() else [])]
    names += ["scorecard", "meta_evaluation"] if judged_by() else []
    return [f"results/tables/{name}.{suffix}" for name in names for suffix in ("parquet", "csv")]


def report_pages():
    """The pages of the report, the overview first."""
    kinds_of_tables = {*PROTOCOLS, *(["adversary"] if ADVERSARIES else []), *(ROAR_TABLES if ROAR else [])}
    kinds_of_tables |= {"scorecard", "meta_evaluation"} if judged_by() else set()
    return [f"results/report/{page.name}.html" for page in pages_of(kinds_of_tables, "attention" in STUDY.measures)]


# The figures of a protocol that each dataset and model has, by their kind, which is also their folder.
KINDS_OF_PLOTS = {
    "agreement": ["tau-histogram", "tau-matrix"],
    "permutation": ["permutation"],
    "adversarial_attention": ["jsd-histogram", "jsd-violins", "adversarial-texts"],
    "seed_variance": ["seed-variance"],
}


def plots(protocol):
    """What is drawn of a registered protocol for each dataset and model that it scores."""
    scored = RUNS.scored[PROTOCOLS[protocol]] if protocol in PROTOCOLS else []
    pairs = sorted({(cell.dataset, cell.model) for cell in scored})
    return [
        dict(kind=kind, dataset=dataset, model=model, stem=f"{kind}/{dataset}/{model}")
        for kind in KINDS_OF_PLOTS[protocol]
        for dataset, model in pairs
    ]


def datasets_scored(protocol):
    """The datasets that a registered protocol scores."""
    return sorted({cell.dataset for cell in RUNS.scored[PROTOCOLS[protocol]]})


def agreement_plots():
    """Jain & Wallace's histograms and the matrix of all pairs per dataset and model, and their bars of differences;
    Neely et al.'s matrices, all datasets of a model side by side."""
    whole = [dict(kind="mean-differences", stem="mean-differences")] if AGREEMENT else []
    kind, scored = "correlation-matrices", RUNS.scored[AGREEMENT] if AGREEMENT else []
    of_models = [
        dict(kind=kind, model=model, stem=f"{kind}/{model}") for model in sorted({cell.model for cell in scored})
    ]
    return [*plots("agreement"), *of_models, *whole]


def adversary_plots():
    """AtteFa's scores of the whole study, and the plane of attention against output per dataset and base model."""
    pairs = sorted({(cell.dataset, RESOLVED.derived[cell.model].base) for cell in RUNS.adversaries})
    kind = "jsd-tvd-plane"
    planes = [
        dict(kind=kind, dataset=dataset, model=model, stem=f"{kind}/{dataset}/{model}") for dataset, model in pairs
    ]
    return [dict(kind="attefa-violins", stem="attefa-violins"), *planes] if ADVERSARIES else []


def roar_plots():
    """Curves and sparsity of each dataset and model whose words are masked, and all faithfulness at a glance."""
    pairs = sorted({(cell.dataset, cell.model) for cell in RUNS.curves})
    found = [
        dict(kind=kind, dataset=dataset, model=model, stem=f"{kind}/{dataset}/{model}")
        for kind in ("roar-curves", "sparsity")
        for dataset, model in pairs
    ]
    return [*found, dict(kind="faithfulness", stem="faithfulness")] if ROAR else []


def traced():
    """The cells of known truth whose models are explained while they learn: those that keep epochs on the way."""
    kept = RESOLVED.trainings
    cells = RUNS.scored[TRUTH] if TRUTH else []
    return [cell for cell in cells if kept[cell.dataset, cell.model].checkpoint_gain is not None]


def of_pictures(dataset):
    """Whether a dataset's instances are pictures."""
    return RESOLVED.declarations["dataset", dataset].task == PICTURES


def truth_plots():
    """Zhou et al.'s figures: those of all models of a dataset, and those of single models."""
    scored = RUNS.scored[TRUTH] if TRUTH else []
    found = []
    for dataset in dict.fromkeys(cell.dataset for cell in scored):
        here = [MANIPULATED[cell.variant] for cell in scored if cell.dataset == dataset]
        kept = {variant.name: {other.r for other in here if other.name == variant.name} for variant in here}
        kinds = ["attribution-by-region"] if of_pictures(dataset) else []
        kinds += ["attribution-by-accuracy"] if any(cell.dataset == dataset for cell in traced()) else []
        kinds += ["attribution-by-visibility"] if any(variant.level for variant in here) else []
        kinds += ["attribution-by-reassignment"] if any(len(some) > 1 for some in kept.values()) else []
        found += [dict(kind=kind, dataset=dataset, stem=f"{kind}/{dataset}") for kind in kinds]
    for dataset, model in sorted({(cell.dataset, cell.model) for cell in scored}):
        kinds = ["saliency"] if of_pictures(dataset) else ["attribution-by-group", "word-attribution"]
        found += [
            dict(kind=kind, dataset=dataset, model=model, stem=f"{kind}/{dataset}/{model}")
            for kind in kinds
            if kind != "word-attribution" or shown_truth(dataset, model)
        ]
    chosen = RUNS.scored[RATIONALES] if RATIONALES else []
    kind = "rationale-curves"
    found += [
        dict(kind=kind, dataset=dataset, stem=f"{kind}/{dataset}") for dataset in sorted({c.dataset for c in chosen})
    ]
    return [*found, *([dict(kind="truth-found", stem="truth-found")] if TRUTH else [])]


def shown_truth(dataset, model):
    """The cells of a model whose texts or pictures are drawn: of each manipulation the first block of the most visible
    variant."""
    found = {}
    for cell in RUNS.scored[TRUTH] if TRUTH else []:
        if (cell.dataset, cell.model) == (dataset, model) and RUNS.measures[model] != ["selection"]:
            made = MANIPULATED[cell.variant]
            best = found.setdefault(made.name, cell)
            if (made.visibility or 0) > (MANIPULATED[best.variant].visibility or 0):
                found[made.name] = cell
    return list(found.values())


def drawn_cells():
    """All cells whose texts or pictures are drawn."""
    pairs = sorted({(cell.dataset, cell.model) for cell in RUNS.scored[TRUTH]}) if TRUTH else []
    return [cell for pair in pairs for cell in shown_truth(*pair)]


def drawn(plots):
    """The files of figures as a rule's outputs; those of several datasets and models also go into Snakemake's own
    report, under their experiment."""
    return [
        reported(path) if path.endswith(".svg") and "dataset" not in plot else path
        for plot in plots
        for path in files_of([plot])
    ]


def reported(path):
    """A figure in Snakemake's own report, with its caption."""
    kind, *about = Path(path).relative_to("results/figures").with_suffix("").parts
    caption = Path(workflow.basedir, CAPTIONS, f"{kind}.rst")
    labels = {"figure": kind.replace("-", " "), "about": ", ".join(about) or "whole study"}
    return report(
        path, caption=str(caption), category="Figures", subcategory=KINDS_OF_FIGURES[kind].experiment, labels=labels
    )


def files_of(plots):
    return expand("results/figures/{stem}.{format}", stem=[plot["stem"] for plot in plots], format=FORMATS)


def agreement_figures():
    return files_of(agreement_plots())


def figures_of_study():
    others = [
        *adversary_plots(),
        *roar_plots(),
        *truth_plots(),
        *(plot for kind in COUNTERFACTUAL for plot in plots(kind)),
    ]
    others += [dict(stem="synthetic-roar")] if ROAR else []
    others += scorecard_plots() if judged_by() else []
    return [*agreement_figures(), *files_of(others), "results/figures/rule-graph.svg"]


def parts():
    """Encoder and attention of each model that has these options."""
    of = {model: RESOLVED.options["model", model] for model in STUDY.models}
    return {model: {key: of[model][key] for key in ("encoder", "attention") if key in of[model]} for model in of}


def tasks():
    return {dataset: RESOLVED.declarations["dataset", dataset].task for dataset in STUDY.datasets}
