"""Erasure of people from one target: found, erased, compacted, looked for again, and judged.

The law kept here: no better word is said than what was looked at. "Purged" says that nothing of
these records was found in any file, by a search that finds the records of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from erasable.workspace.targets.protocol import People, Plan, Target

PURGED = "purged"
NOT_PROVED = "deleted, not proved gone"
NOT_COVERED = "not covered"

_ROUNDS = 5  # records may come in while others leave


@dataclass(frozen=True, slots=True)
class Verdict:
    """What can be said after an erasure."""

    word: str  # PURGED or NOT_PROVED
    reason: str | None = None  # why it is not proved


def erase(
    target: Target, people: People, plan: Plan, keep: Callable[[Plan], None] = lambda plan: None
) -> Verdict:
    """Erase the records of people, and judge what is left.

    `plan` is what an earlier attempt has found, or an empty one; what is found now is added to it.
    `keep` writes the plan down, before its records leave: their values are needed for the search.
    """
    reasons = []
    for _ in range(_ROUNDS):
        found = target.find(people)
        if not found:
            break
        plan.add(found)
        keep(plan)
        target.erase(found)
    else:
        reasons.append("records of these people come in while others leave")
    if plan.changed:
        reasons += target.compact()
        reasons += _left(target, plan)
    return Verdict(NOT_PROVED, "; ".join(reasons)) if reasons else Verdict(PURGED)


def _left(target: Target, plan: Plan) -> list[str]:
    """Say what a search of the files does not prove."""
    found = target.scan(plan.marks, plan.living)
    reasons = list(found.reasons)
    if found.n_left:
        n, where = len(plan.marks), ", ".join(sorted(set(found.where))[:3])
        reasons.append(f"{found.n_left} of {n} values of these records are still in {where}")
    if plan.marks.n_short and not found.compared:
        reasons.append(f"{plan.marks.n_short} of their values are too short to be looked for")
    elif not plan.marks and not plan.marks.n_short and not reasons:
        reasons.append("these records have no value that could be looked for")
    if len(plan.living) and not found.n_living and not found.reasons:
        reasons.append("the search does not find the records of others either")
    return reasons
