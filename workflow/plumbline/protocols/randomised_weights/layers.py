"""The layers of a model from its output to its input, and their randomisation."""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch import nn

# The word vectors of a model, and the prefix of parts that read second texts.
EMBEDDING, PAIR = "embedding", "pair_"
# Lists of layers that follow each other have one of these names; others, such as parallel heads, are one layer.
STACKS = ("layer", "layers", "blocks", "h")


def layer_groups(model: nn.Module) -> dict[str, list[str]]:
    """The names of the parameters of each layer, from the output to the input, each parameter in one layer.

    Layers are the parts of a model in reverse order of definition; a part with a list of layers is divided into these
    and its other parts. `pair_NAME` is part of the layer NAME. The word vectors, `embedding`, come last. Parameters of
    modules with `learned = False` are left out.
    """
    constant = {id(p) for part in model.modules() if not getattr(part, "learned", True) for p in part.parameters()}
    paths = {
        name: list(accumulate(name.removeprefix(PAIR).split("."), "{}.{}".format))
        for name, parameter in model.named_parameters()
        if id(parameter) not in constant
    }
    divided = {path for of_parameter in paths.values() for path in _with_layers(of_parameter)}
    groups: dict[str, list[str]] = {}
    for name, of_parameter in paths.items():
        groups.setdefault(next(path for path in of_parameter if path not in divided), []).append(name)
    return {group: groups[group] for group in sorted(reversed(groups), key=lambda group: group == EMBEDDING)}


def _with_layers(paths: list[str]) -> list[str]:
    """The paths of a parameter's modules down to the first list of layers; empty without one."""
    for depth, path in enumerate(paths[:-1], start=1):
        if path.rpartition(".")[2] in STACKS and paths[depth].rpartition(".")[2].isdigit():
            return paths[:depth]
    return []


@contextmanager
def randomised(model: nn.Module, names: Iterable[str], seed: int) -> Iterator[None]:
    """Replace parameters by random ones in place, and restore them afterwards.

    Each is drawn from a normal distribution with the mean and standard deviation of its trained values, by the seed and
    its name alone. Vectors of padding stay, as do buffers, such as the statistics of batch normalisation.
    """
    padding = {
        f"{name}.weight": part.padding_idx for name, part in model.named_modules() if isinstance(part, nn.Embedding)
    }
    parameters = {name: model.get_parameter(name) for name in names}
    trained = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    try:
        for name, weights in trained.items():
            generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))
            noise = torch.randn(weights.shape, generator=generator).to(weights)
            drawn = weights.mean() + weights.std(correction=0) * noise
            if (row := padding.get(name)) is not None:
                drawn[row] = weights[row]
            parameters[name].data.copy_(drawn)
        yield
    finally:
        for name, weights in trained.items():
            parameters[name].data.copy_(weights)
