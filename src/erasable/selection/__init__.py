"""Selection of records to acquire: those whose value survives the deletions to come.

An expected utility is exact, as in the paper, wherever a closed form is known; where it was
sampled, it has a standard error.
"""

from erasable.selection._balance import GroupBalance, balance
from erasable.selection._evaluation import (
    ExpectedUtility,
    expected_utility,
    utility_distribution,
)
from erasable.selection._objectives import Expected
from erasable.selection._selector import SubsetSelector
from erasable.selection._semivalues import semivalues
from erasable.selection._tradeoff import Tradeoff, plot_tradeoff, tradeoff
from erasable.selection._warning import SelectionWarning
from erasable.selection._worst_cases import CVaR
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
from erasable.selection.utilities import (
    Custom,
    MutualInformation,
    NaiveBayes,
    NearestNeighbor,
    NeuralVariance,
    VarianceReduction,
)

__all__ = [
    "BetaBinomial",
    "CVaR",
    "Certain",
    "Custom",
    "Exchangeable",
    "Expected",
    "ExpectedUtility",
    "GroupBalance",
    "Groups",
    "Independent",
    "MutualInformation",
    "NaiveBayes",
    "NearestNeighbor",
    "NeuralVariance",
    "PerClass",
    "PointMass",
    "SelectionWarning",
    "SubsetSelector",
    "Tradeoff",
    "Uniform",
    "VarianceReduction",
    "balance",
    "expected_utility",
    "from_history",
    "plot_tradeoff",
    "semivalues",
    "tradeoff",
    "utility_distribution",
]
