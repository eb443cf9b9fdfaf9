"""
Pictures of trainings and models, in the manner of scikit-learn's displays.

Pictures need matplotlib: ``pip install matplotlib``. `GraphDisplay` needs the program
``dot`` of Graphviz.
"""

from skort.plotting.graph import GraphDisplay
from skort.plotting.loss_curve import LossCurveDisplay
from skort.plotting.schedule import ScheduleDisplay
from skort.plotting.weights import WeightsDisplay

__all__ = ["GraphDisplay", "LossCurveDisplay", "ScheduleDisplay", "WeightsDisplay"]
