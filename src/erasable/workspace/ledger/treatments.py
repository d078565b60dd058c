"""Treatments of data sets and models, one row each: what a fit, a request or an update does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Treatment:
    """A treatment of a data set or a model."""

    name: str  # as tasks and receipts keep it, and people read it
    measured_as: str = ""  # kind of its measurements; "" without any
    exactness: str = ""  # where no estimator says it
    is_change: bool = False  # of single records; the others are not read again
    tells_erasures: bool = False  # how long it takes says how long an erasure will take
    ends_model: bool = False  # no version is left
    is_covered: bool = True  # False: the model stays as it was, and every receipt says so


FITTED = Treatment("fitted", "fit")
REWRITTEN = Treatment("rewritten", "rewrite", "bitwise", is_change=True)  # of a data set
DELETED = Treatment("deleted", "delete", is_change=True, tells_erasures=True)
REFITTED = Treatment("refitted", "refit", "trained again", tells_erasures=True)
RETRAINED = Treatment("retrained", "retrain", "trained again", tells_erasures=True)  # by a command
RETIRED = Treatment("retired", "delete", "gone", tells_erasures=True, ends_model=True)
CORRECTED = Treatment("corrected", "correct", is_change=True)  # also of a data set
UPDATED = Treatment("updated", "update")  # to a newer version of its data sets
NOT_COVERED = Treatment("not covered", exactness="unknown", is_covered=False)

TREATMENTS = {
    each.name: each
    for each in (
        FITTED, REWRITTEN, DELETED, REFITTED, RETRAINED, RETIRED, CORRECTED, UPDATED, NOT_COVERED,
    )
}  # fmt: skip
"""All treatments, by name."""

ERASING = tuple(
    dict.fromkeys(each.measured_as for each in TREATMENTS.values() if each.tells_erasures)
)
"""Kinds of measurements of erasures from models."""
UNCOVERED = tuple(name for name, each in TREATMENTS.items() if not each.is_covered)
"""Names of treatments that leave a model as it was."""


def of_request(treatment: Treatment, *, corrects: bool) -> Treatment:
    """Return how one request of a batch is treated: the same change may erase and correct."""
    if not treatment.is_change:
        return treatment
    if corrects:
        return CORRECTED
    return DELETED if treatment is CORRECTED else treatment
