"""Before training: choose the records to acquire whose value survives the deletions to come.

The room obeys one law: an expected utility is that of the paper, exactly, wherever a closed form
is known, and says its standard error where it was sampled.
"""

from erasable.selection._selector import SelectionWarning, SubsetSelector
from erasable.selection.objectives import CVaR, Expected
from erasable.selection.staying import (
    BetaBinomial,
    Certain,
    Exchangeable,
    Groups,
    Independent,
    PerClass,
    PointMass,
    Uniform,
    from_history,
)
from erasable.selection.utilities import NaiveBayes, NearestNeighbor

__all__ = [
    "BetaBinomial",
    "CVaR",
    "Certain",
    "Exchangeable",
    "Expected",
    "Groups",
    "Independent",
    "NaiveBayes",
    "NearestNeighbor",
    "PerClass",
    "PointMass",
    "SelectionWarning",
    "SubsetSelector",
    "Uniform",
    "from_history",
]
