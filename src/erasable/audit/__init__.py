"""After: prove that a model has forgotten, or measure how much it still shows.

`refit` learns again from what is left, `equality` compares. Anybody can run them, and they need
nothing but the model and its records. `audit_deletion` and `audit_deletion_method` test
deletions of any model, exact or not.
"""

from erasable.audit._deletion import audit_deletion
from erasable.audit._deletion_method import audit_deletion_method
from erasable.audit._equality import Difference, Equality, equality
from erasable.audit._refitting import refit
from erasable.audit._report import AuditReport, Exposed, Group

__all__ = [
    "AuditReport",
    "Difference",
    "Equality",
    "Exposed",
    "Group",
    "audit_deletion",
    "audit_deletion_method",
    "equality",
    "refit",
]
