"""Erasure of people from one target: found, erased, compacted, looked for again, and judged.

The law kept here: no better word is said than what was looked at. "Purged" says that nothing of
these records was found in any file, by a search that finds the records of others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from erasable.core.errors import SourceError
from erasable.workspace.targets.inner_texts import Longer
from erasable.workspace.targets.protocol import People, Plan, Subject, Target
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED

_ROUNDS = 5  # records may come in while others leave
_MANY = 10  # records; a smaller place may be of one person


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
    `plan.n_rounds` says how often records have left when an error is raised.
    """
    reasons = erase_records(target, people, plan, keep)
    if plan.changed:
        reasons += plan.reasons + target.compact()
        reasons += _left(target, plan)
    return Verdict(NOT_PROVED, "; ".join(reasons)) if reasons else Verdict(PURGED)


def erase_records(
    target: Target, people: People, plan: Plan, keep: Callable[[Plan], None] = lambda plan: None
) -> list[str]:
    """Do the first part of `erase`: until no record is found; return why there may be more."""
    was_cut_off = bool(plan.changed) and not plan.n_rounds
    for number in range(_ROUNDS):
        longer = Longer(plan.marks.texts())
        found = find(target, _Watched(people, longer))
        if not found:
            plan.marks.longer = longer.found
            return []
        plan.add(found, again=was_cut_off and number == 0)
        keep(plan)
        target.erase(found)
        plan.n_rounds += 1
    plan.marks.longer = longer.found
    return ["records of these people come in while others leave"]


def find(target: Target, people: People) -> Plan:
    """Find the records of people; refuse an identity that all have: it is hardly a person's."""
    found = target.find(people)
    n = max(found.n_records.values(), default=0)
    if n == found.n_seen and n >= _MANY and not target.settings.may_empty:
        raise SourceError(
            f"all {n:,} records of {target.shown!r} are of one person; expected records of others, "
            "too; nothing was changed: name another field with --subject, or pass --all to "
            "`target add`"
        )
    return found


class _Watched:
    """People, and what others have besides; see `protocol.People`."""

    def __init__(self, people: People, longer: Longer) -> None:
        self._people, self._longer = people, longer

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name a person, each with the person's name."""
        found = self._people.among(values, subject)
        self._longer.look_at(value for value in values if value not in found)
        return found


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
