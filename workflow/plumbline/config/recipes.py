"""The two recipes that a study may adjust: how a dataset is prepared and how a model is trained.

A dataset's or model's declaration states the recipe of its study; the config overrides single values.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Recipe(BaseModel):
    """Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class Embedding(Recipe):
    """Where word vectors come from."""

    kind: Literal["random", "file", "word2vec"] = Field(
        "random", description="Drawn at random, read from a text file of vectors, or trained on the training split."
    )
    path: str = Field("", description="File of word vectors (GloVe, fastText or word2vec text form), under `raw`.")
    dimensions: int = Field(300, gt=0, description="Numbers per word.")
    missing: Literal["zeros", "normal", "uniform", "like-found"] = Field(
        "zeros",
        description="Words without a vector: zeros, N(0, 1), uniform in [-0.05, 0.05] or `like-found`, normal with the "
        "mean and standard deviation of all numbers of the vectors that are found. Jain & Wallace's code: zeros; A "
        "Song of (Dis)agreement: like-found.",
    )
    scale: float = Field(
        1.0, gt=0, description="Factor on every vector; small vectors make a small signal, and learning slow to begin."
    )
    trainable: bool = Field(True, description="Whether training updates the vectors.")
    seed: int = Field(0, ge=0, description="Seed of everything random about the vectors.")


class Preparation(Recipe):
    """From a publisher's text to instances: vocabulary, length filter, size and word vectors."""

    minimum_document_frequency: int = Field(
        1,
        ge=1,
        description="A word is in the vocabulary if that many of the texts of `vocabulary_of` hold it; other words are "
        "UNK.",
    )
    vocabulary_of: Literal["train", "all"] = Field(
        "train",
        description="The texts whose words are counted: those of the training split before the length filter (Jain & "
        "Wallace), or `all` instances of every split (A Song of (Dis)agreement, by AllenNLP's default).",
    )
    longer_than: int | None = Field(None, ge=0, description="Keep texts with strictly more words than this.")
    shorter_than: int | None = Field(None, ge=1, description="Keep texts with strictly fewer words than this.")
    together_shorter_than: int | None = Field(
        None, ge=1, description="Keep pairs whose two texts together have strictly fewer words than this."
    )
    open_bound: Literal["keep", "drop-extreme"] = Field(
        "keep",
        description="What a bound that is not given does. `drop-extreme` is Jain & Wallace's code: it takes the "
        "shortest or longest text of each split as a strict bound, and so drops it.",
    )
    limit: int | None = Field(
        None, ge=1, description="Keep at most this many instances of each split, drawn by `seed`."
    )
    seed: int = Field(0, ge=0, description="Seed of splits, samples and generated texts.")
    embedding: Embedding = Field(default_factory=lambda: Embedding(), description="Where word vectors come from.")


class Training(Recipe):
    """How a model is trained."""

    epochs: int = Field(
        8, ge=0, description="Passes over the training split; 0 keeps a checkpoint with `head: own` as it is."
    )
    batch_size: int = Field(32, ge=1, description="Instances per step.")
    optimiser: Literal["amsgrad", "adam", "adamw"] = Field(
        "amsgrad",
        description="Adam with AMSGrad or without, whose weight decay is a term of the gradient, or AdamW, whose is "
        "not.",
    )
    learning_rate: float = Field(1e-3, gt=0, description="Step size of Adam; its peak, where a schedule changes it.")
    beta2: float = Field(
        0.999, ge=0, lt=1, description="How much of its mean of squared gradients Adam keeps at each step."
    )
    schedule: Literal["constant", "linear", "plateau"] = Field(
        "constant",
        description="Whether the step size stays, falls by the same amount each step, to 0 after the last epoch, or is "
        "multiplied by `plateau_factor` once `select_by` on `select_on` no longer improves.",
    )
    warmup: float = Field(
        0.0, ge=0, lt=1, description="Share of all steps in which a `linear` step size first grows from 0 to its peak."
    )
    plateau_patience: int = Field(
        30,
        ge=0,
        description="How many epochs in a row may be no better than the best, by a ten-thousandth of it, before a "
        "`plateau` step size falls (PyTorch's ReduceLROnPlateau).",
    )
    plateau_factor: float = Field(0.1, gt=0, lt=1, description="What a `plateau` step size is multiplied by.")
    clip_norm: float | None = Field(
        None,
        gt=0,
        description="Before each step the gradient of all parameters together is shortened to this norm if it is "
        "longer; by default it is left as it is.",
    )
    weight_decay: float = Field(1e-5, ge=0, description="Weight decay of all parameters but those of `no_decay`.")
    no_decay: list[str] = Field(
        ["attention"],
        description="Parameters whose name starts so, or matches a pattern with `*`, get no weight decay (Jain & "
        "Wallace: the attention).",
    )
    class_weights: Literal["balanced", "none"] = Field(
        "balanced", description="`balanced` weighs a class by the size of class 0 over its own (Jain & Wallace's code)."
    )
    reduction: Literal["sum", "mean"] = Field(
        "sum",
        description="How a batch's losses are joined. Jain & Wallace sum for classification and take the mean for "
        "questions and inference; under Adam a sum makes the weight decay that much weaker.",
    )
    batching: Literal["length-noise", "shuffle"] = Field(
        "length-noise", description="Sort by length with 10% noise and cut, or shuffle; batches come in random order."
    )
    select_on: Literal["dev", "test", "train"] = Field(
        "dev",
        description="The split that chooses the epoch. `test` is how the published tables were made; it is optimistic.",
    )
    also_select_on: list[Literal["dev", "test", "train"]] = Field(
        [],
        description="Other splits that choose an epoch each; the table of adversaries tells of every choice, the model "
        "that is kept is that of `select_on`.",
    )
    select_by: Literal["roc_auc", "accuracy", "loss"] = Field(
        "roc_auc", description="The metric that chooses the epoch; `train` can only choose by its `loss`."
    )
    patience: int | None = Field(
        None,
        ge=1,
        description="Stop once so many epochs brought nothing better, on each split that chooses; by default never.",
    )
    stop_at: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Stop once `select_by` reaches this, on each split that chooses; by default training goes on.",
    )
    checkpoint_gain: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Keep also the parameters of the first epoch, and of each whose accuracy on `select_on` exceeds "
        "that of the last one kept so by more than this; by default only the chosen epoch is kept.",
    )
    first_eligible_epoch: int = Field(
        2, ge=1, description="Epochs before this one are never chosen (Jain & Wallace: 2)."
    )
    precision: Literal["tf32", "float32", "bfloat16"] = Field(
        "tf32",
        description="Arithmetic of training. `tf32` is PyTorch's default on a GPU and float32 on a CPU; `float32` is "
        "exact on both; `bfloat16` is mixed precision. docs/engine.md states what each does to speed and scores. "
        "Explanations are always computed in float32.",
    )

    @model_validator(mode="after")
    def _values_agree(self) -> Self:
        if self.epochs and self.first_eligible_epoch > self.epochs:
            raise ValueError(
                f"`first_eligible_epoch` is {self.first_eligible_epoch}, but `epochs` is {self.epochs}; lower it"
            )
        if self.select_by != "loss" and "train" in (self.select_on, *self.also_select_on):
            raise ValueError(
                f"the training split chooses by its loss, and `select_by` is {self.select_by}; set it to loss"
            )
        if self.warmup and self.schedule != "linear":
            raise ValueError(
                f"`warmup` is {self.warmup:g}, but `schedule` is {self.schedule}; set it to linear or `warmup` to 0"
            )
        for name in ("plateau_patience", "plateau_factor"):
            value, usual = getattr(self, name), type(self).model_fields[name].default
            if value != usual and self.schedule != "plateau":
                raise ValueError(
                    f"`{name}` is {value:g}, but `schedule` is {self.schedule}; set it to plateau or leave `{name}` out"
                )
        if self.stop_at is not None and self.select_by == "loss":
            raise ValueError(
                f"`stop_at` is {self.stop_at:g}, but `select_by` is loss; set it to accuracy or roc_auc or leave "
                "`stop_at` out"
            )
        if self.checkpoint_gain is not None and self.select_on == "train":
            raise ValueError(
                "`checkpoint_gain` reads the accuracy of `select_on`, and that of the training split is not told; set "
                "`select_on` to dev or leave `checkpoint_gain` out"
            )
        return self

    @property
    def larger_is_better(self) -> bool:
        """Whether an epoch with a larger value of `select_by` is better."""
        return self.select_by != "loss"


# What Jain & Wallace do otherwise for questions and inference than for one text. What a model, a dataset or the config
# says goes before it.
PAIRED_TRAINING = {
    "epochs": 25,
    "class_weights": "none",
    "no_decay": [],
    "reduction": "mean",
    "select_by": "accuracy",
}

# What an adversary's training does otherwise than its base model's, by its objective.
ADVERSARY_TRAINING = {
    "epochs": 80,
    "patience": 10,
    "class_weights": "none",
    "reduction": "mean",
    "select_by": "loss",
    "select_on": "dev",
    "also_select_on": ["test"],
    "first_eligible_epoch": 1,
    "stop_at": None,
    "checkpoint_gain": None,
}
OBJECTIVE_TRAINING: dict[str, dict[str, object]] = {
    "attefa": ADVERSARY_TRAINING,
    "wiegreffe-pinter": {**ADVERSARY_TRAINING, "select_on": "train", "also_select_on": []},
}
