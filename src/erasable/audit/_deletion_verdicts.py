"""Verdicts of audits of a deletion, in sentences for readers without statistics."""

from __future__ import annotations

import numpy as np

from erasable.audit._data import Sample
from erasable.audit._report import Exposed
from erasable.core.arrays import Floats

__all__ = [
    "ELSEWHERE", "UNSAID_OF_METHOD", "UNSAID_OF_MODEL", "count", "equal_sentence", "most_exposed",
    "reaches", "verdict_of_method", "verdict_of_model",
]  # fmt: skip

POWER = 0.8
"""The share of models that have not deleted which an audit has to find, or it cannot tell."""
ELSEWHERE = "It says nothing of copies of the records elsewhere: backups, logs, other models."
UNSAID_OF_MODEL = (
    "The models were asked only how sure they are of these records; another attack, or one that "
    f"reads the parameters of the model, may find more. {ELSEWHERE}"
)
UNSAID_OF_METHOD = (
    "It judges the method on these records, not one model that it made; another attack, or one "
    "that reads the parameters of models, may find more, and a request for other records may end "
    f"otherwise. {ELSEWHERE}"
)


def count(n: int) -> str:
    """Return a phrase for the number of deleted records."""
    return "the one record" if n == 1 else f"the {n} records"


def reaches(p_value: float, level: float) -> bool:
    """Tell whether a p-value is at most a level, up to rounding."""
    return p_value <= level * (1.0 + 1e-9)


def most_exposed(sample: Sample, scores: Floats) -> tuple[Exposed, ...]:
    """Return the records with the largest scores."""
    worst = np.argsort(-scores, kind="stable")[:10]
    ids = sample.ids[worst].tolist()
    return tuple(Exposed(each, float(scores[row])) for each, row in zip(ids, worst, strict=True))


def equal_sentence(n_kept: int, n_deleted: int) -> str:
    """Return the sentence that a digest proves a deletion."""
    return (
        f"The model is the same, bit for bit, as one trained on the {n_kept} kept records alone: "
        f"nothing is left in it of {count(n_deleted)}."
    )


def verdict_of_model(
    n_deleted: int, found: bool, p_value: float, ranks: Floats, n_refits: int, n_found: int,
    n_controls: int,
) -> tuple[str, str]:  # fmt: skip
    """Return the verdict on one model, and its sentence."""
    records = count(n_deleted)
    if found:
        surer = "surer" if ranks.mean() > 0.5 else "less sure"
        return "found", (
            f"The model is not like the {n_refits} models that were trained again without "
            f"{records}: it is {surer} of them than chance allows (p = {p_value:.3g}), so it still "
            "shows that it once had them."
        )
    if n_controls == 0:
        return "cannot tell", (
            "Nothing was found, but the audit did not test whether it would find a model that has "
            f"not deleted {records} (n_controls=0), so it cannot tell."
        )
    if n_found < POWER * n_controls:
        return "cannot tell", (
            f"This audit cannot tell whether the model has deleted {records}: of {n_controls} "
            f"models that had not deleted them it found only {n_found}."
        )
    return "not found", (
        f"The audit found no trace of {records} in the model; of {n_controls} models that had not "
        f"deleted them it found {n_found}."
    )


def verdict_of_method(
    n_deleted: int, p_value: float, control: float | None, level: float
) -> tuple[str, str]:
    """Return the verdict on a method, and its sentence."""
    records = count(n_deleted)
    if reaches(p_value, level):
        return "found", (
            f"Models that deleted {records} by this method can be distinguished from models that "
            f"never had them (p = {p_value:.3g}): the method does not delete completely."
        )
    if control is None:
        return "cannot tell", (
            "Nothing was found, but the audit did not test whether it would find a method that "
            f"deletes nothing of {records} (control=False), so it cannot tell."
        )
    if not reaches(control, level):
        return "cannot tell", (
            f"This audit cannot tell whether the method deletes {records}: even models that had "
            "not deleted them could not be distinguished from models that never had them "
            f"(p = {control:.3g})."
        )
    return "not found", (
        f"Models that deleted {records} by this method could not be distinguished from models that "
        f"never had them; models that had not deleted them could (p = {control:.3g})."
    )
