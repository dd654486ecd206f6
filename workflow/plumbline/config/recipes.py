"""The recipes of a study: how a dataset is prepared and how a model is trained.

The declaration of a dataset or model holds the recipe of its paper; the config overrides single values.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Recipe(BaseModel):
    """A section without unknown keys."""

    model_config = ConfigDict(extra="forbid")


class Embedding(Recipe):
    """The word vectors."""

    kind: Literal["random", "file", "word2vec"] = Field(
        "random", description="Random, read from a text file of vectors, or trained on the training split."
    )
    path: str = Field("", description="File of word vectors (GloVe, fastText or word2vec text format), under `raw`.")
    dimensions: int = Field(300, gt=0, description="Dimension of the vectors.")
    missing: Literal["zeros", "normal", "uniform", "like-found"] = Field(
        "zeros",
        description="Vectors of words without one: zeros, N(0, 1), uniform in [-0.05, 0.05] or `like-found`, normal "
        "with the mean and standard deviation of all found vectors. Jain & Wallace's code: zeros; A Song of "
        "(Dis)agreement: like-found.",
    )
    scale: float = Field(
        1.0, gt=0, description="Factor on every vector; small vectors slow down the beginning of training."
    )
    trainable: bool = Field(True, description="Whether training updates the vectors.")
    seed: int = Field(0, ge=0, description="Seed of everything random about the vectors.")


class Preparation(Recipe):
    """How a dataset is prepared: vocabulary, length filter, size and word vectors."""

    minimum_document_frequency: int = Field(
        1,
        ge=1,
        description="A word is in the vocabulary if at least this many texts of `vocabulary_of` contain it; other "
        "words are UNK.",
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
        description="What a missing bound means. `drop-extreme` is Jain & Wallace's code: the shortest or longest text "
        "of each split is the strict bound, and so is dropped.",
    )
    limit: int | None = Field(
        None, ge=1, description="Keep at most this many instances of each split, sampled with `seed`."
    )
    seed: int = Field(0, ge=0, description="Seed of splits, samples and generated texts.")
    embedding: Embedding = Field(default_factory=lambda: Embedding(), description="The word vectors.")


class Training(Recipe):
    """How a model is trained."""

    epochs: int = Field(
        8, ge=0, description="Passes over the training split; 0 leaves a checkpoint with `head: own` unchanged."
    )
    batch_size: int = Field(32, ge=1, description="Instances per step.")
    optimiser: Literal["amsgrad", "adam", "adamw"] = Field(
        "amsgrad",
        description="Adam with or without AMSGrad, with weight decay as a term of the gradient, or AdamW, with "
        "decoupled weight decay.",
    )
    learning_rate: float = Field(1e-3, gt=0, description="Learning rate of Adam; its peak under a schedule.")
    beta2: float = Field(0.999, ge=0, lt=1, description="Decay rate of Adam's running mean of squared gradients.")
    schedule: Literal["constant", "linear", "plateau"] = Field(
        "constant",
        description="Whether the learning rate is constant, decays linearly to 0 after the last epoch, or is "
        "multiplied by `plateau_factor` once `select_by` on `select_on` no longer improves.",
    )
    warmup: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of all steps in which a `linear` learning rate first rises from 0 to its peak.",
    )
    plateau_patience: int = Field(
        30,
        ge=0,
        description="Number of consecutive epochs without an improvement by a ten-thousandth of the best value before "
        "a `plateau` learning rate falls (PyTorch's ReduceLROnPlateau).",
    )
    plateau_factor: float = Field(0.1, gt=0, lt=1, description="Factor on a `plateau` learning rate.")
    clip_norm: float | None = Field(
        None,
        gt=0,
        description="Clip the norm of the gradient of all parameters to this value; by default gradients are not "
        "clipped.",
    )
    weight_decay: float = Field(1e-5, ge=0, description="Weight decay of all parameters except those of `no_decay`.")
    no_decay: list[str] = Field(
        ["attention"],
        description="Parameters without weight decay: prefixes of their names, or patterns with `*` (Jain & Wallace: "
        "the attention).",
    )
    class_weights: Literal["balanced", "none"] = Field(
        "balanced", description="`balanced` weighs a class by the size of class 0 over its own (Jain & Wallace's code)."
    )
    reduction: Literal["sum", "mean"] = Field(
        "sum",
        description="How the losses of a batch are reduced. Jain & Wallace use the sum for classification and the mean "
        "for question answering and inference; under Adam, a sum weakens weight decay by the batch size.",
    )
    batching: Literal["length-noise", "shuffle"] = Field(
        "length-noise",
        description="Batch texts sorted by length with 10% noise, or shuffle; batches are in random order.",
    )
    masking: Literal["none", "uniform"] = Field(
        "none",
        description="`uniform` masks words in half of each batch, of each text a share that is uniform in 0 … 1, so "
        "that texts with masked words are in the training distribution (Madsen et al. 2024).",
    )
    select_on: Literal["dev", "test", "train"] = Field(
        "dev",
        description="The split on which the epoch is selected. The published tables use `test`, which is optimistic.",
    )
    also_select_on: list[Literal["dev", "test", "train"]] = Field(
        [],
        description="Further splits on which an epoch is selected; the table of adversaries reports each of them, and "
        "the model of `select_on` is kept.",
    )
    select_by: Literal["roc_auc", "accuracy", "loss"] = Field(
        "roc_auc", description="The metric by which the epoch is selected; `train` supports only `loss`."
    )
    patience: int | None = Field(
        None,
        ge=1,
        description="Stop after this many epochs without improvement on any selection split; by default never.",
    )
    stop_at: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Stop once `select_by` reaches this value on every selection split; by default never.",
    )
    checkpoint_gain: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="Also keep the parameters of the first epoch, and of each epoch whose accuracy on `select_on` "
        "exceeds that of the last kept one by more than this; by default only the selected epoch is kept.",
    )
    first_eligible_epoch: int = Field(2, ge=1, description="The first epoch that may be selected (Jain & Wallace: 2).")
    precision: Literal["tf32", "float32", "bfloat16"] = Field(
        "tf32",
        description="Arithmetic of training on a GPU; a CPU computes in float32. `tf32` rounds the factors of matrix "
        "products, `bfloat16` is mixed precision, and `float32` is exact. The page *Engine* has the effect on "
        "speed and scores.",
    )

    @model_validator(mode="after")
    def _values_agree(self) -> Self:
        if self.epochs and self.first_eligible_epoch > self.epochs:
            raise ValueError(
                f"`first_eligible_epoch` is {self.first_eligible_epoch}, but `epochs` is {self.epochs}; lower "
                "`first_eligible_epoch`"
            )
        if self.masking != "none" and not self.epochs:
            raise ValueError(
                f"`masking` is {self.masking}, but `epochs` is 0, so the model is not trained; remove `masking` or "
                "raise `epochs`"
            )
        if self.select_by != "loss" and "train" in (self.select_on, *self.also_select_on):
            raise ValueError(
                f"`select_by` is {self.select_by}, but only loss is computed on the training split; set `select_by` to "
                "loss, or select on dev"
            )
        if self.warmup and self.schedule != "linear":
            raise ValueError(
                f"`warmup` is {self.warmup:g}, but `schedule` is {self.schedule}; set `schedule` to linear or `warmup` "
                "to 0"
            )
        for name in ("plateau_patience", "plateau_factor"):
            value = getattr(self, name)
            if value != type(self).model_fields[name].default and self.schedule != "plateau":
                raise ValueError(
                    f"`{name}` is {value:g}, but `schedule` is {self.schedule}; set `schedule` to plateau or remove "
                    f"`{name}`"
                )
        if self.stop_at is not None and self.select_by == "loss":
            raise ValueError(
                f"`stop_at` is {self.stop_at:g}, but `select_by` is loss; set `select_by` to accuracy or roc_auc, or "
                "remove `stop_at`"
            )
        if self.checkpoint_gain is not None and self.select_on == "train":
            raise ValueError(
                "`checkpoint_gain` needs the accuracy on `select_on`, which is not computed for the training split; "
                "set `select_on` to dev or remove `checkpoint_gain`"
            )
        return self

    @property
    def larger_is_better(self) -> bool:
        """Whether an epoch with a larger value of `select_by` is better."""
        return self.select_by != "loss"


# Jain & Wallace's training for question answering and inference, where it differs from that for single texts. Models,
# datasets and the config override it.
PAIRED_TRAINING = {
    "epochs": 25,
    "class_weights": "none",
    "no_decay": [],
    "reduction": "mean",
    "select_by": "accuracy",
}

# Where the training of an adversary differs from that of its base model, by objective.
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
    # The outputs of the base model that an adversary imitates are those of unmasked texts.
    "masking": "none",
}
OBJECTIVE_TRAINING: dict[str, dict[str, object]] = {
    "attefa": ADVERSARY_TRAINING,
    "wiegreffe-pinter": {**ADVERSARY_TRAINING, "select_on": "train", "also_select_on": []},
}
