"""Approximate methods by which a network forgets, in less time than training again; none is exact.

Each is called with a network, the records to forget and the records that are left, and returns
another network and a report. `Retrain` is the reference for the others.
"""

from erasable.neural.approximate._descent import FineTune, NegGradPlus, Retrain, WeightedFineTune
from erasable.neural.approximate._method import ApproximateReport, Method
from erasable.neural.approximate._newton import NewtonReport, NewtonStep
from erasable.neural.approximate._saliency import SaliencyReset, SalUn
from erasable.neural.approximate._scrub import Scrub

__all__ = [
    "ApproximateReport",
    "FineTune",
    "Method",
    "NegGradPlus",
    "NewtonReport",
    "NewtonStep",
    "Retrain",
    "SalUn",
    "SaliencyReset",
    "Scrub",
    "WeightedFineTune",
]
