"""Before training: choose the records to acquire whose value survives the deletions to come.

The room obeys one law: an expected utility is that of the paper, exactly, wherever a closed form
is known, and says its standard error where it was sampled.
"""

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

__all__ = [
    "BetaBinomial",
    "Certain",
    "Exchangeable",
    "Groups",
    "Independent",
    "PerClass",
    "PointMass",
    "Uniform",
    "from_history",
]
