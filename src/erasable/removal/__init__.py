"""Removal of a domain by its most telling records: scores, budgets, and what a removal reaches.

Scores by moments are functions of the set of records, bit for bit, in any order and any sharding;
everything that is drawn is drawn from `random_state`.
"""

from erasable.removal._domain import DomainRemoval, RemovalWarning
from erasable.removal._frontier import Frontier
from erasable.removal._gaussians import Moments
from erasable.removal._removal import remove_domain
from erasable.removal.budgets import Cost, Count, Coverage, MaxShift, MinRemoval, Share
from erasable.removal.certificates import (
    Certificate,
    RandomRemovalLaw,
    certificate,
    certificate_from_moments,
    random_removal_law,
)
from erasable.removal.divergences import Divergence, divergence, gaussian_divergence
from erasable.removal.evaluation import RefitMetric, RemovalReport, measure, removal_report
from erasable.removal.frontiers import exponential_family_frontier, gaussian_frontier
from erasable.removal.identification import IdentifiedDomain, identify_domain
from erasable.removal.influence import InfluenceRemoval, influence_removal
from erasable.removal.scores import SCORES, DensityRatio
from erasable.removal.sweeps import (
    DeletionsNeeded,
    Sweep,
    SweepPoint,
    deletions_needed,
    sweep,
)

__all__ = [
    "SCORES",
    "Certificate",
    "Cost",
    "Count",
    "Coverage",
    "DeletionsNeeded",
    "DensityRatio",
    "Divergence",
    "DomainRemoval",
    "Frontier",
    "IdentifiedDomain",
    "InfluenceRemoval",
    "MaxShift",
    "MinRemoval",
    "Moments",
    "RandomRemovalLaw",
    "RefitMetric",
    "RemovalReport",
    "RemovalWarning",
    "Share",
    "Sweep",
    "SweepPoint",
    "certificate",
    "certificate_from_moments",
    "deletions_needed",
    "divergence",
    "exponential_family_frontier",
    "gaussian_divergence",
    "gaussian_frontier",
    "identify_domain",
    "influence_removal",
    "measure",
    "random_removal_law",
    "removal_report",
    "remove_domain",
    "sweep",
]
