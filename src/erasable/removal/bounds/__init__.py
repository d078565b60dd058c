"""The paper's own bounds, each named after what it bounds, and when it says nothing.

They are those of *Distributional Machine Unlearning via Selective Data Removal* (Allouah,
Guerraoui, Koyejo), for Gaussians in one dimension whose variance is known. They never
certify more than half of ``KL(p1, p2)``, and for most budgets promise less than deleting nothing
gives. They take it as given, so that where records are too few to tell it they may promise more
than data can prove. What data prove is `erasable.removal.certificate`, which is tighter whenever
the paper's bounds are given no more than the same data.
"""

from erasable.removal.bounds._bound import (
    Bound,
    RemovalBounds,
    random_removal_bounds,
    selective_removal_bounds,
)
from erasable.removal.bounds._deletions import (
    random_removal_deletions,
    selective_removal_deletions,
    simplified_deletions,
)
from erasable.removal.bounds._loss import calibrate, forget_loss_bound, retain_loss_bound

__all__ = [
    "Bound",
    "RemovalBounds",
    "calibrate",
    "forget_loss_bound",
    "random_removal_bounds",
    "random_removal_deletions",
    "retain_loss_bound",
    "selective_removal_bounds",
    "selective_removal_deletions",
    "simplified_deletions",
]
