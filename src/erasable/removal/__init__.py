"""Removing a domain by its most telling records, and what that can and does reach."""

from erasable.removal._gaussians import Moments
from erasable.removal.certificates import (
    Certificate,
    RandomRemovalLaw,
    certificate,
    certificate_from_moments,
    random_removal_law,
)
from erasable.removal.divergences import Divergence, divergence
from erasable.removal.frontiers import exponential_family_frontier, gaussian_frontier
from erasable.removal.influence import InfluenceRemoval, influence_removal

__all__ = [
    "Certificate",
    "Divergence",
    "InfluenceRemoval",
    "Moments",
    "RandomRemovalLaw",
    "certificate",
    "certificate_from_moments",
    "divergence",
    "exponential_family_frontier",
    "gaussian_frontier",
    "influence_removal",
    "random_removal_law",
]
