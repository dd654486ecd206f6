"""plumbline measures how faithful explanations of neural models are."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.api import Evaluation, HeatMap, PlumblineError, Results, TrainedModel, evaluate, explain, load

__version__ = "1.0.0"
__all__ = [
    "Evaluation",
    "HeatMap",
    "PlumblineError",
    "Results",
    "TrainedModel",
    "__version__",
    "evaluate",
    "explain",
    "load",
]


def __getattr__(name: str) -> Any:
    """The Python API, imported when it is first used: jobs and commands import this package too."""
    if name in __all__:
        return getattr(import_module("plumbline.api"), name)
    raise AttributeError(f"module 'plumbline' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
