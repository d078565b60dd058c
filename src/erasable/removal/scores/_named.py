"""Names of scores."""

from __future__ import annotations

from typing import Any

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal.scores._density import DensityRatio
from erasable.removal.scores._distances import Coreset, MeanDistance, MeanMargin, Norm
from erasable.removal.scores._drawn import CCS, Random
from erasable.removal.scores._greedy import Craig, GradMatch, KCenter
from erasable.removal.scores._neighbors import NeighborRatio
from erasable.removal.scores._score import Custom, Score

SCORES: dict[str, Score] = {
    "density-ratio": DensityRatio(),
    "mu2-distance": MeanDistance("euclidean"),
    "cos-mu2": MeanDistance("cosine"),
    "maha-mu2": MeanDistance("mahalanobis"),
    "lr-cos": MeanMargin("cosine"),
    "lr-maha": MeanMargin("mahalanobis"),
    "knn-ratio": NeighborRatio(),
    "norm": Norm(),
    "coreset": Coreset(),
    "k-center": KCenter(),
    "random": Random(),
    "craig": Craig(),
    "gradmatch": GradMatch(),
    "ccs": CCS(),
}
"""Every score that has a name."""


def as_score(score: Any) -> Score:
    """Read a score: a name, a score, or a callable.

    Raises
    ------
    InvalidParameterError
        Something else.

    Examples
    --------
    >>> as_score("lr-cos")
    MeanMargin(metric='cosine')
    """
    if isinstance(score, Score):
        return score
    if isinstance(score, str) and score in SCORES:
        return SCORES[score]
    if callable(score) and not isinstance(score, type):
        return Custom(score)
    given = f"the class {score.__name__}" if isinstance(score, type) else shorten(score)
    raise InvalidParameterError(
        f"score={given}; expected one of {', '.join(SCORES)}, a score, or a callable; "
        "pass one of them"
    )
