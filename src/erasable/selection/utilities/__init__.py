"""Utilities: the values of selections, which objectives maximise."""

from erasable.selection._functions import SetFunction
from erasable.selection._sampled import Samples
from erasable.selection.utilities._custom import Custom, StateUtility
from erasable.selection.utilities._gaussian import MutualInformation, VarianceReduction
from erasable.selection.utilities._naive_bayes import NaiveBayes
from erasable.selection.utilities._nearest_neighbor import NearestNeighbor
from erasable.selection.utilities._neural import NeuralVariance
from erasable.selection.utilities._utility import Problem, Utility

__all__ = [
    "Custom",
    "MutualInformation",
    "NaiveBayes",
    "NearestNeighbor",
    "NeuralVariance",
    "Problem",
    "Samples",
    "SetFunction",
    "StateUtility",
    "Utility",
    "VarianceReduction",
]
