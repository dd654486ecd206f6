"""The token budget: how many tokens one forward pass may hold, which bounds memory."""

import warnings
from collections.abc import Callable
from typing import Any

import psutil
import torch

from plumbline.errors import PlumblineError
from plumbline.models.batch import Batch, output_of

# More tokens than this make a pass no faster; models with cheaper tokens override it.
USEFUL_TOKENS = {"cpu": 16384, "cuda": 262144}
# A pass may take this share of the free memory: other jobs may need the rest. The memory that a pass retains is counted
# once more for gradients and once for the kernels' workspace.
SHARE, COPIES = 0.5, 3
# Rows of the probe batch: several, because kernels also take workspace that does not grow with the batch.
ROWS = 8


def tokens_of(batch: Batch) -> int:
    """Tokens of a batch, padding and second texts included."""
    return batch.ids.numel() + (batch.pair.ids.numel() if batch.pair else 0)


def bytes_per_token(model: Any, example: Batch) -> float:
    """Bytes per token that a forward pass over the example retains for the backward pass."""
    saved: dict[int, torch.UntypedStorage] = {}

    def save(tensor: torch.Tensor) -> None:
        # Detached: an operation that saves its own output would otherwise form a reference cycle and never be freed.
        storage = tensor.detach().untyped_storage()
        saved[storage.data_ptr()] = storage

    own = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    weight = model.embedding.weight
    requires_grad, training = weight.requires_grad, model.training
    weight.requires_grad_(True)
    model.eval()  # Dropout would advance the random state, on which later draws depend.
    try:
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(save, lambda nothing: nothing):
            save(output_of(model, example).logits)
    finally:
        weight.requires_grad_(requires_grad)
        model.train(training)
    return max(1, sum(storage.nbytes() for ptr, storage in saved.items() if ptr not in own)) / tokens_of(example)


def free_bytes(device: torch.device | str, memory_mb: int | None, sharing: int = 1) -> int:
    """Free memory: on a GPU at most 1/`sharing` of its total, on the host at most the job's `memory_mb`."""
    if torch.device(device).type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return int(min(free, total / sharing))
    available = int(psutil.virtual_memory().available)
    return min(available, memory_mb * 2**20) if memory_mb else available


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is an out-of-memory error of a GPU or the host."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


class Budget:
    """The tokens that a pass may hold, padding included. By default chosen from the free memory when the first pass is
    planned; `sharing` is the number of jobs on a GPU. The models of a job share one budget: when memory runs out it is
    halved for all of them."""

    def __init__(self, tokens: int | None = None, memory_mb: int | None = None, sharing: int = 1) -> None:
        self._fixed = bool(tokens)
        self._memory_mb = memory_mb
        self._sharing = sharing
        self.tokens = tokens or 0
        self.events: list[str] = []

    @classmethod
    def of(cls, budget: "Budget | int | None") -> "Budget":
        """The given budget, or a budget of the given number of tokens."""
        return budget if isinstance(budget, Budget) else cls(budget)

    def settle(self, model: Any, longest: int, make_example: Callable[[], Batch]) -> int:
        """The budget for rows of up to `longest` tokens; the example, made only if needed, is a batch of ROWS."""
        if not self._fixed and longest > self.tokens:
            example = make_example()
            device = example.ids.device
            free = free_bytes(device, self._memory_mb, self._sharing)
            fitting = int(SHARE * free / (COPIES * bytes_per_token(model, example)))
            useful = getattr(model, "useful_tokens", USEFUL_TOKENS)
            most = self.tokens if self.events else useful[device.type]
            self.tokens = max(longest, min(most, fitting))
        return self.tokens

    def halve(self, longest: int, device: torch.device | str) -> None:
        """Halve the budget, but keep enough for one row; an error if that changes nothing."""
        if torch.device(device).type == "cuda":
            torch.cuda.empty_cache()
        halved = max(self.tokens // 2, longest)
        if halved >= self.tokens:
            raise PlumblineError(
                f"A text of {longest} tokens does not fit into the memory of device '{device}', even in a batch of its "
                "own; shorten it, or use a device with more memory."
            )
        self.tokens = halved
        self.note(f"out of memory: token budget halved to {halved}")

    def note(self, event: str) -> None:
        """Warn, and record the event for the timings."""
        self.events.append(event)
        warnings.warn(f"plumbline: {event}.", stacklevel=3)
