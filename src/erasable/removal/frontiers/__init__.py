"""Frontiers between removal and preservation, in closed form.

A frontier is the least ``KL(p2, p)`` over *every* p of the family with ``KL(p1, p) >= alpha``.
"""

from erasable.removal.frontiers._exponential import exponential_family_frontier, gaussian_frontier

__all__ = ["exponential_family_frontier", "gaussian_frontier"]
