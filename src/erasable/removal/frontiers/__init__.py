"""How much removal costs at least: the frontier between removal and preservation, in closed form.

The room obeys one law: a frontier is the least ``KL(p2, p)`` over *every* p of the family with
``KL(p1, p) >= alpha``, as brute force finds it.
"""

from erasable.removal.frontiers._exponential import exponential_family_frontier
from erasable.removal.frontiers._gaussian import gaussian_frontier

__all__ = ["exponential_family_frontier", "gaussian_frontier"]
