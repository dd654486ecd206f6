"""How many tokens one forward pass may hold, so that memory stays bounded whatever is computed."""

import warnings
from collections.abc import Callable
from typing import Any

import psutil
import torch

from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch, output_of

# More tokens than this make a pass no faster, unless a model, for which a token is less, says otherwise.
USEFUL_TOKENS = {"cpu": 16384, "cuda": 262144}
# A pass may take this share of the free memory: other jobs may want the rest. What a pass keeps is counted once more
# for gradients and once for the kernels' own workspace.
SHARE, COPIES = 0.5, 3
# Rows of the batch that is tried: several, because kernels also take workspace that does not grow with the batch.
ROWS = 8


def tokens_of(batch: Batch) -> int:
    """Tokens of a batch, padding and second texts included."""
    return batch.ids.numel() + (batch.pair.ids.numel() if batch.pair else 0)


def bytes_per_token(model: Any, example: Batch) -> float:
    """What a token costs when such a batch goes through the model and all that a gradient needs is kept."""
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> None:
        # Not as part of the graph: a step that kept its own output in this way would never be forgotten.
        storage = tensor.detach().untyped_storage()
        kept[storage.data_ptr()] = storage

    own = {storage.untyped_storage().data_ptr() for storage in (*model.parameters(), *model.buffers())}
    weight = model.embedding.weight
    asked, training = weight.requires_grad, model.training
    weight.requires_grad_(True)
    model.eval()  # Dropout would draw, and what is drawn next must not depend on this.
    try:
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda nothing: nothing):
            keep(output_of(model, example).logits)
    finally:
        weight.requires_grad_(asked)
        model.train(training)
    return max(1, sum(held.nbytes() for place, held in kept.items() if place not in own)) / tokens_of(example)


def free_bytes(device: torch.device | str, memory_mb: int | None, sharing: int = 1) -> int:
    """Free memory: the GPU's, within the part of it that is one of `sharing` jobs', or the machine's within what the
    job may take."""
    if torch.device(device).type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return int(min(free, total / sharing))
    available = int(psutil.virtual_memory().available)
    return min(available, memory_mb * 2**20) if memory_mb else available


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the host."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


class Budget:
    """The tokens that a pass may hold, padding included. Without a number it is chosen from the free memory when the
    first pass is planned; `sharing` jobs may take a GPU's together. Shared by the models of a job: when memory runs out
    it is halved for all of them."""

    def __init__(self, tokens: int | None = None, memory_mb: int | None = None, sharing: int = 1) -> None:
        self._asked = tokens or None
        self._memory_mb = memory_mb
        self._sharing = sharing
        self.tokens = tokens or 0
        self.events: list[str] = []

    @classmethod
    def of(cls, budget: "Budget | int | None") -> "Budget":
        """A budget as it is, or one of so many tokens."""
        return budget if isinstance(budget, Budget) else cls(budget)

    def settle(self, model: Any, longest: int, make_example: Callable[[], Batch]) -> int:
        """The budget for rows of up to `longest` tokens; the example, made if it must be tried, holds ROWS of them."""
        if self._asked is None and longest > self.tokens:
            example = make_example()
            device = example.ids.device
            free = free_bytes(device, self._memory_mb, self._sharing)
            fitting = int(SHARE * free / (COPIES * bytes_per_token(model, example)))
            useful = getattr(model, "useful_tokens", USEFUL_TOKENS)
            wanted = useful[device.type] if not self.events else self.tokens
            self.tokens = max(longest, min(wanted, fitting))
        return self.tokens

    def halve(self, longest: int, device: torch.device | str) -> None:
        """Half the tokens, but enough for one row; refused if that changes nothing."""
        if torch.device(device).type == "cuda":
            torch.cuda.empty_cache()
        halved = max(self.tokens // 2, longest)
        if halved >= self.tokens:
            raise PlumblineError(
                f"A text of {longest} tokens does not fit into the memory of device '{device}', even alone in a pass."
            )
        self.tokens = halved
        self.note(f"out of memory: token budget halved to {halved}")

    def note(self, event: str) -> None:
        """Warn, and keep the event for the timings."""
        self.events.append(event)
        warnings.warn(f"plumbline: {event}.", stacklevel=3)
