"""The results of a study as pandas tables, figures and heat maps."""

import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from plumbline.api.config import DATASET, MODEL
from plumbline.api.heat_map import HeatMap
from plumbline.api.places import place, sources_of
from plumbline.api.tables import CELL_KEYS, StoredTables
from plumbline.api.trained import TrainedModel, find_trained
from plumbline.attribution.files import read_importances
from plumbline.config.external import locate_files
from plumbline.config.resolve import read_config, resolve
from plumbline.config.runs import Cell
from plumbline.dag.paths import cell_folder
from plumbline.dag.study import StudyDag
from plumbline.data.schemas import INSTANCES
from plumbline.errors import PlumblineError, nearest
from plumbline.project import PROJECT, SCRIPTS, find_study
from plumbline.registry import IMAGES, load
from plumbline.report.manifest import MANIFEST, study_of
from plumbline.store import read_json, read_record, read_table
from plumbline.training.schemas import PREDICTIONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT_KEYS = ["split", "instance"]
# The columns of `importances`.
IMPORTANCES = ["instance", "tokens", "measure", "scores", "target", "seed", "split", "pair_tokens", "pair_scores"]
IMPORTANCES += CELL_KEYS
# Dots per inch of a figure in a notebook.
SCREEN = 100


class Results(StoredTables):
    """A folder of results: those of a finished study, or of `plumbline.evaluate`.

    Tables are read when they are asked for; `importances`, `instances` and `predictions` are read once. `study` is the
    config file of the study, by default that in the manifest of the results.
    """

    def __init__(self, folder: str | Path, study: str | Path | None = None) -> None:
        super().__init__(Path(folder))
        self._study = study

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.folder}'): tables {', '.join(self.tables) or 'none'}"

    # Texts and their explanations.

    @cached_property
    def _dag(self) -> StudyDag:
        """The study that made the results."""
        folders = [Path(), self.folder.parent, PROJECT]
        if self._study is not None:
            file = find_study(self._study)
            config, folders = read_config(file), [*folders, file.parent]
        elif (self.folder / MANIFEST).is_file():
            config = study_of(read_json(self.folder / MANIFEST))
        else:
            raise PlumblineError(
                f"'{self.folder}' has no {MANIFEST}, which the last job of a study writes: finish the run, or give the "
                "config, `plumbline.load(folder, study='my.yaml')`; `table` reads the tables that already exist."
            )
        return StudyDag(resolve(locate_files(config, folders), external=False), folders, SCRIPTS)

    def _cells(self) -> Iterator[Cell]:
        """The cells of texts; images have no tokens to show."""
        if not (self.folder / "models").is_dir():
            raise PlumblineError(
                f"'{self.folder}' has only tables, like a recorded run, but no texts or importances; load the results "
                "folder of the run itself."
            )
        for cell in self._dag.runs.cells:
            if self._dag.resolved.declarations["dataset", cell.dataset].task != IMAGES:
                yield cell

    def _texts(self, cell: Cell) -> pd.DataFrame:
        """The explained instances of a cell, with the tokens of each that have scores."""
        columns = [*TEXT_KEYS, "label", "tokens", "maskable", "tokens_b", "maskable_b"]
        table = read_table(place(self.folder, self._dag.paths.instances(cell)), INSTANCES, columns).to_pandas()
        table = table[table["split"].isin(self._dag.study.explain)].astype({"split": str})
        classes = read_record(place(self.folder, self._dag.paths.record_of(cell)))["classes"]
        tokens = [_scored(*row) for row in zip(table["tokens"], table["maskable"], strict=True)]
        pairs = [_scored(*row) for row in zip(table["tokens_b"], table["maskable_b"], strict=True)]
        keys = {key: getattr(cell, key) for key in CELL_KEYS}
        return table[TEXT_KEYS].assign(
            **keys, label=[classes[label] for label in table["label"]], tokens=tokens, pair_tokens=pairs
        )[[*CELL_KEYS, *TEXT_KEYS, "label", "tokens", "pair_tokens"]]

    @cached_property
    def instances(self) -> pd.DataFrame:
        """The explained texts as every model reads them: the class of each, its tokens, and those of its second text.

        These are words, or subwords for a transformer, without special tokens and the words of a prompt.
        """
        cells = {tuple(getattr(cell, key) for key in CELL_KEYS): cell for cell in self._cells()}
        return _joined([self._texts(cell) for cell in cells.values()])

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The predictions of every seed: the class of each instance, the predicted one and the probabilities."""
        frames = []
        for cell in self._cells():
            table = read_table(
                place(self.folder, f"results/models/{cell_folder(cell)}/predictions.parquet"), PREDICTIONS
            )
            classes = read_record(place(self.folder, self._dag.paths.record_of(cell)))["classes"]
            frame = table.to_pandas().astype({"split": str})
            frame["label"] = [classes[label] for label in frame["label"]]
            frame["predicted"] = [classes[row.argmax()] for row in frame["probabilities"]]
            frames.append(frame.assign(**{key: getattr(cell, key) for key in CELL_KEYS}))
        columns = [*CELL_KEYS, "seed", *TEXT_KEYS, "label", "predicted", "probabilities"]
        return _joined(frames)[columns]

    @cached_property
    def importances(self) -> pd.DataFrame:
        """The importances of every measure and seed: the explained class, if any, and a score for each of `tokens`.

        `pair_scores` are those of the tokens of a second text, where a measure has them.
        """
        texts, frames = self.instances.drop(columns="label"), []
        for keys, path in self._dag.sources.files("importances") or []:
            if keys["dataset"] not in self._datasets:
                continue
            columns = ["seed", *TEXT_KEYS, "target", "scores", "pair"]
            table = read_importances(place(self.folder, path), keys["measure"], columns).to_pandas()
            of_cell = {key: keys[key] for key in (*CELL_KEYS, "measure")}
            frames.append(table.astype({"split": str}).rename(columns={"pair": "pair_scores"}).assign(**of_cell))
        joined = _joined(frames).merge(texts, on=[*CELL_KEYS, *TEXT_KEYS], how="left", validate="many_to_one")
        return joined[IMPORTANCES]

    @property
    def _datasets(self) -> set[str]:
        return {cell.dataset for cell in self._cells()}

    def show(
        self,
        instance: int,
        *,
        dataset: str | None = None,
        model: str | None = None,
        variant: str = "plain",
        seed: int | None = None,
        split: str | None = None,
    ) -> HeatMap:
        """The tokens of a text, shaded by the scores of each measure; by default of the first dataset and model."""
        rows = self.importances
        wanted = {"variant": variant, "dataset": dataset, "model": model, "split": split, "seed": seed}
        for key, value in wanted.items():
            known = rows[key].unique().tolist()
            if value is not None and value not in known:
                raise PlumblineError(f"There is no {key} '{value}'; {nearest(str(value), map(str, known))}")
            rows = rows[rows[key] == (known[0] if value is None else value)]
        rows = rows[rows["instance"] == instance]
        if rows.empty:
            raise PlumblineError(f"There is no explained instance {instance}; `instances` lists them.")
        first = rows.iloc[0]
        keys = [*CELL_KEYS, "seed", *TEXT_KEYS]
        predicted = self.predictions.merge(rows[keys].head(1), on=keys).iloc[0]
        probability = max(predicted["probabilities"])
        title = f"instance {instance}: {predicted['label']}, predicted {predicted['predicted']} ({probability:.2f})"
        if first["pair_tokens"] is not None:
            title += f"; second text: {' '.join(first['pair_tokens'])}"
        scores = dict(zip(rows["measure"], rows["scores"], strict=True))
        return HeatMap(title, first["tokens"], scores)

    def model(self, dataset: str | None = None, model: str | None = None, variant: str = "plain") -> TrainedModel:
        """A model that the study has trained, for `plumbline.evaluate`; by default of the first dataset and model.

        The first are those by name. Adversaries, such as `bilstm-tanh.attefa`, are models as well.
        """
        return find_trained(self.folder, self._dag, dataset, model, variant)

    # Figures.

    @property
    def figures(self) -> list[str]:
        """The names of the figures that can be drawn."""
        return [figure.name for figure in self._dag.parts.figures if not self._absent(figure)]

    def _absent(self, figure: Any) -> list[str]:
        """The files that a figure reads and that the results lack."""
        reads = self._dag.parts.reads([figure])
        paths = [place(self.folder, file.path) for files in reads.values() for file in files]
        return [str(path) for path in paths if not path.is_file()]

    def plot(self, figure: str = "scorecard", *, dataset: str = "", model: str = "") -> "Figure":
        """Draw a figure of the report again; one that has a plot for each dataset and model draws the first, unless
        these are given."""
        if figure not in self.figures:
            raise PlumblineError(f"There is no figure '{figure}' in these results; {nearest(figure, self.figures)}")
        declaration = next(part for part in self._dag.parts.figures if part.name == figure)
        plots = self._dag.parts.plots([declaration])
        matching = [
            plot for plot in plots if (not dataset or plot.dataset == dataset) and (not model or plot.model == model)
        ]
        if not matching:
            known = "; ".join(", ".join(filter(None, (plot.dataset, plot.model))) for plot in plots)
            raise PlumblineError(f"There is no figure '{figure}' of '{dataset or model}'; it exists for: {known}.")
        from plumbline.figures.drawing import Drawing

        facts = self._dag.facts.requested_by([declaration])
        sources = sources_of(self.folder, self._dag.parts.reads([declaration]), facts)
        plot = matching[0]
        return _displayed(load(declaration.pointer)(Drawing(sources, plot.dataset, plot.model, self._title)))

    @property
    def _title(self) -> str:
        """The title of the figures of an evaluation, whose dataset and model have no names of their own."""
        study = self._dag.study
        return study.name if ([*study.datasets], [*study.models]) == ([DATASET], [MODEL]) else ""

    def save(self, folder: str | Path) -> Path:
        """Copy the results to a new folder, which `plumbline.load` opens."""
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise PlumblineError(f"'{target}' exists and is not empty; give a new folder.")
        shutil.copytree(self.folder, target, dirs_exist_ok=True)
        return target


def load_results(folder: str | Path = "results", study: str | Path | None = None) -> Results:
    """Open the results of a finished study, or those that `save` wrote.

    `folder` is the folder `results` of a run, or the one in which the study ran. `study` is the config file of a study
    that is not finished, or the name of a published one.
    """
    path = Path(folder)
    if not path.is_dir():
        raise PlumblineError(f"There is no folder '{folder}'; give the results folder of a study.")
    found = next((place for place in (path, path / "results") if (place / "tables").is_dir()), None)
    if found is None:
        raise PlumblineError(f"'{folder}' is not the results folder of a study: it has no folder `tables`.")
    return Results(found, study)


def _scored(tokens: Any, maskable: Any) -> list[str] | None:
    """The tokens that have scores: those of the text, which may be masked."""
    return None if tokens is None else [token for token, own in zip(tokens, maskable, strict=True) if own]


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    if not frames:
        raise PlumblineError("These results have no texts, as for a study of images; use `table` to read their tables.")
    return pd.concat(frames, ignore_index=True)


def _displayed(figure: "Figure") -> "Figure":
    """The figure, which a notebook displays as an image even if pyplot, which would register that, is not imported."""
    from io import BytesIO

    from plumbline.figures.style import theme

    def png() -> bytes:
        image = BytesIO()
        with theme():
            figure.savefig(image, format="png", dpi=SCREEN)
        return image.getvalue()

    figure._repr_png_ = png  # type: ignore[attr-defined]
    return figure
