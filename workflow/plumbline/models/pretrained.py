"""Loading of transformers checkpoints with their own classification head or a new one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.functional import pad
from torch.utils._python_dispatch import TorchDispatchMode

from plumbline.config.checkpoints import CLASSIFIER
from plumbline.errors import PlumblineError, nearest

# Rounding of a pass in single precision.
CLOSE = 1e-4
# Pickled weights can execute arbitrary code, so only safetensors are read.
LOADING: dict[str, Any] = {"use_safetensors": True, "output_loading_info": True}


class PlaceholderWeights(TorchDispatchMode):
    """Large weights repeat a few random numbers: a model whose weights are then loaded is tried before that, for which
    they must be neither zero nor infinite. To draw all weights of a RoBERTa would take two seconds."""

    DRAWN = 2**14

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        drawing = function in (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default)
        if not drawing or args[0].numel() <= self.DRAWN:
            return function(*args, **kwargs)
        weights, *others = args
        drawn = function(weights.new_empty(self.DRAWN), *others, **kwargs)
        flat = weights.view(-1)
        rest = flat.numel() % self.DRAWN
        flat[: flat.numel() - rest].view(-1, self.DRAWN).copy_(drawn)
        flat[flat.numel() - rest :].copy_(drawn[:rest])
        return weights


def has_classification_head(config: Any) -> bool:
    """Whether a checkpoint was saved with a sequence classification head."""
    return any(name.endswith(CLASSIFIER) for name in config.architectures or ())


def output_of_each_class(checkpoint: str, config: Any, labels: Sequence[int | str], classes: int) -> list[int]:
    """The index of the checkpoint's output for each class: the outputs that `labels` names, or all in order."""
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    if not has_classification_head(config):
        raise PlumblineError(f"The checkpoint '{checkpoint}' has no classification head; leave out `head: own`.")
    for label in labels:
        if label not in (*names, *range(len(names))):
            raise PlumblineError(
                f"`labels` names {label!r}, which is not an output of the checkpoint '{checkpoint}'; "
                f"{nearest(str(label), names)}"
            )
    indices = [names.index(label) if isinstance(label, str) else label for label in labels or range(len(names))]
    if len(names) < classes:
        count = "one output" if len(names) == 1 else f"{len(names)} outputs"
        raise PlumblineError(
            f"The classification head of the checkpoint '{checkpoint}' has {count}, but the dataset has {classes} "
            "classes, and each needs an output; leave out `head: own`."
        )
    if len(indices) != classes:
        raise PlumblineError(
            f"The checkpoint '{checkpoint}' has the outputs {', '.join(names)}, but the dataset has {classes} classes; "
            "name the output of each class with `labels`, in the order of the classes."
        )
    return indices


def _check_loaded(path: str, encoder: Any, info: Any, whole: bool) -> None:
    """Refuse a checkpoint whose weights do not fit its config: transformers would initialise missing ones at random."""
    inside = f"{encoder.base_model_prefix}."
    wrong = [*info["missing_keys"], *(key[0] for key in info["mismatched_keys"])]
    # Not every checkpoint has the pooling layer that models classifying by the first token add.
    wrong = [key for key in wrong if whole or (key.startswith(inside) and ".pooler." not in key)]
    if wrong:
        raise PlumblineError(
            f"The weights of the checkpoint '{path}' do not fit its config: {len(wrong)} are missing or have another "
            f"shape, such as '{sorted(wrong)[0]}'; save the model again with `save_pretrained`."
        )


def load_with_own_head(path: str, config: Any, indices: list[int], options: dict[str, Any]) -> Any:
    """A checkpoint with its own classification head, reduced to the outputs at `indices`, in this order."""
    from transformers import AutoModelForSequenceClassification

    encoder, info = AutoModelForSequenceClassification.from_pretrained(path, config=config, **options, **LOADING)
    _check_loaded(path, encoder, info, whole=True)
    body = {*encoder.base_model.modules()}
    last = [part for part in encoder.modules() if isinstance(part, nn.Linear) and part not in body][-1]
    last.weight, last.bias = (nn.Parameter(part.detach()[indices]) for part in (last.weight, last.bias))
    last.out_features = encoder.num_labels = encoder.config.num_labels = len(indices)
    return encoder


def load_with_new_head(path: str, config: Any, options: dict[str, Any]) -> Any:
    """A checkpoint with a randomly initialised classification head, which replaces its own if it has one."""
    from transformers import AutoModelForSequenceClassification

    encoder, info = AutoModelForSequenceClassification.from_pretrained(
        path, config=config, ignore_mismatched_sizes=True, **options, **LOADING
    )
    _check_loaded(path, encoder, info, whole=False)
    if has_classification_head(config):
        _draw_head(encoder)
    return encoder


def _draw_head(encoder: Any) -> None:
    """Draw the weights of a classification head anew, as transformers does for a checkpoint without one."""
    body = {*encoder.base_model.modules()}
    for part in (part for part in encoder.modules() if part is not encoder and part not in body):
        # transformers does not draw parameters that it has marked as loaded.
        for name, weights in list(part.named_parameters(recurse=False)):
            setattr(part, name, nn.Parameter(torch.zeros_like(weights)))
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
        encoder._init_weights(part)


def new_classifier(config: Any, options: dict[str, Any]) -> Any:
    """The architecture of a checkpoint with a classification head, whose weights are then loaded."""
    from transformers import AutoModelForSequenceClassification

    with PlaceholderWeights():
        return AutoModelForSequenceClassification.from_config(config, **options)


def load_causal(path: str, vocabulary: int | None = None) -> Any:
    """A causal language model with its weights or, with the size of its vocabulary, its architecture alone."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(path)
    if vocabulary is not None:
        config.vocab_size = vocabulary
        with PlaceholderWeights():
            return AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    encoder, info = AutoModelForCausalLM.from_pretrained(path, config=config, dtype=torch.float32, **LOADING)
    _check_loaded(path, encoder, info, whole=True)
    return encoder


class Probe(NamedTuple):
    """What a transformers model does with a few vectors: whether no token affects the hidden states before it, whether
    its logits depend on padding, and why it cannot be tried, if so."""

    causal: bool = False
    padding: bool = False
    error: str = ""


@contextmanager
def trial(encoder: Any) -> Iterator[None]:
    """Evaluation mode without gradients, for a try of a model; afterwards the mode is as before."""
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        encoder.train(training)


def probe(encoder: Any) -> Probe:
    """Try a model on three vectors, which say more than the name of its type."""
    try:
        with trial(encoder):
            return _probe(encoder)
    # Whatever a model of unknown code raises.
    except Exception as error:
        return Probe(error=(str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".: "))


def _probe(encoder: Any) -> Probe:
    weight = encoder.get_input_embeddings().weight
    # Of different directions, or normalisation would make them equal.
    vectors = torch.sin(torch.arange(3 * weight.shape[1]).float()).view(1, 3, -1).to(weight)
    changed = vectors * torch.tensor([1.0, 1.0, -1.0])[:, None].to(weight)
    padded, mask = pad(vectors, (0, 0, 0, 2)), torch.tensor([[1, 1, 1, 0, 0]], device=weight.device)
    one, other = (encoder.base_model(inputs_embeds=rows)[0][:, :2] for rows in (vectors, changed))
    logits = encoder(inputs_embeds=vectors, attention_mask=mask[:, :3]).logits
    beside = encoder(inputs_embeds=padded, attention_mask=mask).logits
    same = torch.allclose(beside[:, : logits.shape[1]], logits, atol=CLOSE, rtol=CLOSE)
    return Probe(torch.allclose(one, other, atol=CLOSE, rtol=CLOSE), not same)
