"""Staying models: the probabilities with which owners stay."""

from erasable.selection.staying._alike import BetaBinomial, Exchangeable, PointMass, Uniform
from erasable.selection.staying._history import from_history
from erasable.selection.staying._independent import (
    Certain,
    Groups,
    Independent,
    PerClass,
    as_staying,
)
from erasable.selection.staying._model import Bound, Sampler, Staying
from erasable.selection.staying._sizes import BetaBinomialSizes, GivenSizes, Sizes

__all__ = [
    "BetaBinomial",
    "BetaBinomialSizes",
    "Bound",
    "Certain",
    "Exchangeable",
    "GivenSizes",
    "Groups",
    "Independent",
    "PerClass",
    "PointMass",
    "Sampler",
    "Sizes",
    "Staying",
    "Uniform",
    "as_staying",
    "from_history",
]
