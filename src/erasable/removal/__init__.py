"""Removing a domain by its most telling records, and what that can and does reach."""

from erasable.removal.frontiers import exponential_family_frontier, gaussian_frontier

__all__ = [
    "exponential_family_frontier",
    "gaussian_frontier",
]
