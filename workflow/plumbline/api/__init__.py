"""The Python API: explain and evaluate a model in memory, and read the results of a finished study."""

from plumbline.api.evaluation import Evaluation, evaluate, explain
from plumbline.api.heat_map import HeatMap
from plumbline.api.results import Results
from plumbline.api.results import load_results as load
from plumbline.api.trained import TrainedModel
from plumbline.errors import PlumblineError

__all__ = ["Evaluation", "HeatMap", "PlumblineError", "Results", "TrainedModel", "evaluate", "explain", "load"]
