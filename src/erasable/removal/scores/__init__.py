"""Scores of the forget set by name; records of higher scores leave first.

Ties go to the earlier record, and a score by moments is the same in any order of the rows and any
sharding.
"""

from __future__ import annotations

from erasable.removal._sets import Sets
from erasable.removal.scores._density import DensityRatio
from erasable.removal.scores._distances import Coreset, MeanDistance, MeanMargin, Norm
from erasable.removal.scores._drawn import CCS, Random
from erasable.removal.scores._greedy import Craig, GradMatch, KCenter
from erasable.removal.scores._named import SCORES, as_score
from erasable.removal.scores._neighbors import NeighborRatio
from erasable.removal.scores._score import Custom, Ranking, RowScore, Score, by_score

__all__ = [
    "CCS",
    "SCORES",
    "Coreset",
    "Craig",
    "Custom",
    "DensityRatio",
    "GradMatch",
    "KCenter",
    "MeanDistance",
    "MeanMargin",
    "NeighborRatio",
    "Norm",
    "Random",
    "Ranking",
    "RowScore",
    "Score",
    "Sets",
    "as_score",
    "by_score",
]
