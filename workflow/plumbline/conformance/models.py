"""Checks of models: their logits, their weights and whether they learn."""

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
from plumbline.conformance.notes import Checked, type_name
from plumbline.conformance.parts import check_model_parts
from plumbline.data.instances import Instances
from plumbline.errors import nearest
from plumbline.models.batch import Batch
from plumbline.models.block import build_model
from plumbline.registry import IMAGES, PAIRED, Declaration, Registry


def check_model(declaration: Declaration, registry: Registry) -> Iterator[str]:
    """A model returns finite logits that do not depend on padding, and has the parts that it declares."""
    yield from check_documentation(declaration, "provides")
    for task in declaration.tasks:
        if task not in TASKS:
            yield f"one of its tasks is '{task}'; {nearest(task, TASKS)}"
    known = _known_parts(registry)
    for part in declaration.provides:
        if part not in known:
            yield f"it provides '{part}', which no measure or protocol needs; {nearest(part, known)}"
    yield from check_recipe(Training, declaration, "training")
    checked = []
    if {"classification", IMAGES} & set(declaration.tasks):
        yield from _check_model(declaration, False)
        checked.append("images" if declaration.reads == "pixels" else "texts")
    if set(PAIRED) & set(declaration.tasks):
        yield from (f"with questions, {fault}" for fault in _check_model(declaration, True))
        checked.append("texts with questions")
    yield Checked(" and ".join(checked))


def _known_parts(registry: Registry) -> set[str]:
    """All that measures and protocols need of a model or that models of the library provide."""
    users = [*registry.all("measure"), *registry.all("protocol")]
    provided = {part for model in Registry().all("model") for part in model.provides}
    return provided | {
        part for user in users for entry in user.needs for part in entry.rpartition(":")[2].split(" or ")
    }


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
        yield "it modifies its input batch; clone a tensor before you change it."
        return
    with torch.no_grad():
        again = model(batch).logits
        alone = [model(single).logits[0] for single in singles]
    if not torch.equal(again.nan_to_num(), together.logits.nan_to_num()):
        yield "its logits differ between runs; use random numbers only `if self.training`."
        return
    allowed = torch.ones_like(together.logits, dtype=torch.bool)
    if instances.answers is not None:
        allowed = torch.stack([torch.isin(torch.arange(ANSWERS), torch.from_numpy(a)) for a in instances.answers])
    if not together.logits[allowed].isfinite().all():
        yield "its logits are not finite."
        return
    if (together.logits.softmax(-1)[~allowed] > 0).any():
        yield "it gives probability to classes that are not possible answers."
    if not torch.allclose(together.logits.softmax(-1), torch.stack(alone).softmax(-1), atol=TOLERANCE):
        yield (
            "its logits depend on the padding or on the other texts of the batch; ignore tokens that are not "
            "`batch.present`."
        )
    yield from _check_stored(declaration, model, whole_batch(instances), together.logits)
    yield from _check_learning(declaration, instances, paired)
    yield from check_model_parts(declaration, model, batch, singles, together)


def _same_batch(first: Batch, second: Batch) -> bool:
    names = ("ids", "present", "attendable")
    same = all(torch.equal(getattr(first, name), getattr(second, name)) for name in names)
    return same and (first.pair is None or second.pair is None or _same_batch(first.pair, second.pair))


def _check_stored(declaration: Declaration, model: Any, batch: Batch, logits: torch.Tensor) -> Iterator[str]:
    """A new model with loaded weights has the same logits."""
    state = model.state_dict()
    vectors = state["embedding.weight"], logits.shape[1], state.get("pair_embedding.weight")
    torch.manual_seed(1)
    options = example_options(declaration, logits.shape[1])
    twin = build_model(declaration.pointer, options, *vectors).to(logits.dtype).eval()
    try:
        twin.load_state_dict(state)
    except RuntimeError as error:
        yield f"its weights cannot be loaded into a new model: {' '.join(str(error).split())}"
        return
    with torch.no_grad():
        if not torch.allclose(twin(batch).logits, logits, atol=TOLERANCE):
            yield "its logits differ after its weights are saved and loaded; make random tensors parameters or buffers."


def _check_learning(declaration: Declaration, instances: Instances, paired: bool) -> Iterator[str]:
    """In training mode, some parameters get a gradient."""
    model = example_model(declaration, paired=paired).train()
    logits = model(whole_batch(instances)).logits
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(instances.label).long())
    if not loss.requires_grad or not learned:
        yield "it cannot learn: no gradient of the loss reaches its parameters."
        return
    gradients = torch.autograd.grad(loss, learned, allow_unused=True)
    if not any(gradient is not None and gradient.abs().sum() > 0 for gradient in gradients):
        yield "it cannot learn: the gradient of the loss is zero for all of its parameters."
