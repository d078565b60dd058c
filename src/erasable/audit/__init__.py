"""Audits of deletions: proofs that a model has forgotten, and measures of how much it still knows.

`refit` learns again from what is left, and `equality` compares: the proof for exact deletions,
which needs nothing but the model and its records.

`audit_membership` tells whether a model reveals which records it has learned from, by the attacks
`RMIA` and `LiRA`; `leave_one_out_influence` how much a record changes what its model says of it.
`audit_deletion` tests whether a model that claims to have deleted records is like one trained
without them, and `audit_deletion_method` tests the method by which models delete; both take any
model, exact or not. `make_canaries` and `audit_canaries` insert marked records, and look for them
after their deletion. All audits return an `AuditReport`.
"""

from erasable.audit._attacks import RMIA, LiRA
from erasable.audit._black_box import BlackBox
from erasable.audit._canaries import Canaries, audit_canaries, make_canaries
from erasable.audit._deletion import audit_deletion
from erasable.audit._deletion_method import audit_deletion_method
from erasable.audit._equality import Difference, Equality, equality, refit
from erasable.audit._influence import Influence, leave_one_out_influence
from erasable.audit._membership import audit_membership, plan_membership
from erasable.audit._report import AuditReport, Exposed, ReportGroup
from erasable.audit._statistics import Rate, Separation

__all__ = [
    "RMIA",
    "AuditReport",
    "BlackBox",
    "Canaries",
    "Difference",
    "Equality",
    "Exposed",
    "Influence",
    "LiRA",
    "Rate",
    "ReportGroup",
    "Separation",
    "audit_canaries",
    "audit_deletion",
    "audit_deletion_method",
    "audit_membership",
    "equality",
    "leave_one_out_influence",
    "make_canaries",
    "plan_membership",
    "refit",
]
