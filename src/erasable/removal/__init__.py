"""Remove a domain by its most telling records: rank them, choose by a budget, see what it does.

The law of the room: scores by moments are functions of the set of records, bit for bit, in any
order and any sharding; everything that is drawn is drawn from `random_state`; and an estimate says
what it estimates.
"""

from erasable.removal._domain import DomainRemoval, RemovalWarning
from erasable.removal._frontier import Frontier
from erasable.removal.budgets import Cost, Count, Coverage, MaxShift, MinRemoval, Share
from erasable.removal.scores import SCORES, DensityRatio

__all__ = [
    "SCORES",
    "Cost",
    "Count",
    "Coverage",
    "DensityRatio",
    "DomainRemoval",
    "Frontier",
    "MaxShift",
    "MinRemoval",
    "RemovalWarning",
    "Share",
]
