"""Models: their logits, their weights and whether they learn."""

from collections.abc import Iterator
from typing import Any

import torch

from plumbline.config.recipes import Training
from plumbline.conformance.declarations import TASKS, check_documentation, check_recipe
from plumbline.conformance.examples import (
    ANSWERS,
    CLASSES,
    TOLERANCE,
    example_images,
    example_instances,
    example_model,
    example_options,
    whole_batch,
)
from plumbline.conformance.notes import Tried, type_name
from plumbline.conformance.parts import check_model_parts
from plumbline.data.instances import Instances
from plumbline.errors import nearest
from plumbline.models.batch import Batch
from plumbline.models.block import build_model
from plumbline.registry import IMAGES, PAIRED, Declaration, Registry


def check_model(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A model gives finite logits that do not depend on padding, and keeps what it says it provides."""
    yield from check_documentation(declaration, "provides")
    for task in declaration.tasks:
        if task not in TASKS:
            yield f"one of its tasks is '{task}'; {nearest(task, TASKS)}"
    wanted = _wanted(registry)
    for part in declaration.provides:
        if part not in wanted:
            yield f"it provides '{part}', which no measure or protocol needs; {nearest(part, wanted)}"
    yield from check_recipe(Training, declaration, "training")
    tried = []
    if {"classification", IMAGES} & set(declaration.tasks):
        yield from _check_model(declaration, False)
        tried.append("pictures" if declaration.reads == "pixels" else "texts")
    if set(PAIRED) & set(declaration.tasks):
        yield from (f"with questions, {fault}" for fault in _check_model(declaration, True))
        tried.append("texts with questions")
    yield Tried(" and ".join(tried))


def _wanted(registry: Registry) -> set[str]:
    """All that a measure or protocol may need of a model, and what says which models are of a kind."""
    declared = [*registry.all("measure"), *registry.all("protocol")]
    provided = {part for model in Registry().all("model") for part in model.provides}
    return provided | {entry.rpartition(":")[2] for one in declared for entry in one.needs}


def _check_model(declaration: Declaration, paired: bool) -> Iterator[str]:
    instances = example_images() if declaration.reads == "pixels" else example_instances(paired=paired)
    model = example_model(declaration, paired=paired).eval()
    batch = whole_batch(instances)
    singles = [whole_batch(instances.take([i])) for i in range(len(instances))]
    with torch.no_grad():
        together = model(batch)
    if not isinstance(getattr(together, "logits", None), torch.Tensor):
        yield f"its forward returns {type_name(together)}; end with `return Output(logits)`."
        return
    expected = len(instances), ANSWERS if paired else CLASSES
    if together.logits.shape != expected:
        yield f"its logits have shape {tuple(together.logits.shape)}, not {expected}, which is [instances, classes]."
        return
    if not _same_batch(batch, whole_batch(instances)):
        yield "it writes into the batch that it is given; clone a tensor before you change it."
        return
    with torch.no_grad():
        again = model(batch).logits
        alone = [model(single).logits[0] for single in singles]
    if not torch.equal(again.nan_to_num(), together.logits.nan_to_num()):
        yield "its logits differ when it is run again; draw at random only `if self.training`."
        return
    allowed = torch.ones_like(together.logits, dtype=torch.bool)
    if instances.answers is not None:
        allowed = torch.stack([torch.isin(torch.arange(ANSWERS), torch.from_numpy(a)) for a in instances.answers])
    if not together.logits[allowed].isfinite().all():
        yield "its logits are not finite."
        return
    if (together.logits.softmax(-1)[~allowed] > 0).any():
        yield "it gives probability to classes that cannot be the answer."
    if not torch.allclose(together.logits.softmax(-1), torch.stack(alone).softmax(-1), atol=TOLERANCE):
        yield (
            "its logits depend on the padding or on the other texts of the batch; leave out what `batch.present` says "
            "is padding."
        )
    yield from _check_stored(declaration, model, whole_batch(instances), together.logits)
    yield from _check_learning(declaration, instances, paired)
    yield from check_model_parts(declaration, model, batch, singles, together)


def _same_batch(one: Batch, other: Batch) -> bool:
    tensors = all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("ids", "present", "attendable"))
    return tensors and (one.pair is None or other.pair is None or _same_batch(one.pair, other.pair))


def _check_stored(declaration: Declaration, model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """A model that is built anew with the weights of another gives what that one gives."""
    state = model.state_dict()
    vectors = state["embedding.weight"], logits.shape[1], state.get("pair_embedding.weight")
    torch.manual_seed(1)
    twin = build_model(declaration.pointer, example_options(declaration), *vectors).to(logits.dtype).eval()
    try:
        twin.load_state_dict(state)
    except RuntimeError as error:
        yield f"its weights cannot be loaded into a new one: {' '.join(str(error).split())}"
        return
    with torch.no_grad():
        if not torch.allclose(twin(batch).logits, logits, atol=TOLERANCE):
            yield (
                "its logits differ once its weights are stored and loaded; keep all that it draws as parameters or "
                "buffers."
            )


def _check_learning(declaration: Declaration, instances: Instances, paired: bool) -> Iterator[str]:
    """In training, some of its parameters get a gradient."""
    model = example_model(declaration, paired=paired).train()
    logits = model(whole_batch(instances)).logits
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(instances.label).long())
    if not loss.requires_grad or not learned:
        yield "it cannot learn: no gradient of the loss reaches its parameters."
        return
    slopes = torch.autograd.grad(loss, learned, allow_unused=True)
    if not any(slope is not None and slope.abs().sum() > 0 for slope in slopes):
        yield "it cannot learn: the gradient of the loss is zero for all of its parameters."
