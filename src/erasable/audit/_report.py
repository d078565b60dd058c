"""What an audit found: one object for all audits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from erasable.audit._statistics import Separation
from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten

__all__ = ["AuditReport", "Exposed", "Group"]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """What was measured of a group of records.

    Attributes
    ----------
    name : str
        Such as "deleted", "retained", "fresh".
    separation : Separation or None
        How well the attack tells its two sides apart; None where nothing was attacked.
    measures : dict of str to float
        Other numbers, by name.

    Examples
    --------
    >>> print(Group("fresh", None, {"distance": 0.25}))
    fresh: distance 0.25
    """

    name: str
    separation: Separation | None = None
    measures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say it in one line, and one more for each rate."""
        told = [f"{name} {value:.3g}" for name, value in self.measures.items()]
        lines = []
        if self.separation is not None:
            of = self.separation
            told.insert(0, f"AUC {of.area:.3f} ({of.low:.3f} to {of.high:.3f})")
            lines = [f"  {'' if isnan(rate.estimate) else 'finds '}{rate}" for rate in of.rates]
        return "\n".join([f"{self.name}: {', '.join(told)}", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        found = None if self.separation is None else self.separation.to_dict()
        return {"name": self.name, "separation": found, "measures": _plain(dict(self.measures))}


@dataclass(frozen=True, slots=True)
class Exposed:
    """A record that the model reveals more than others.

    Attributes
    ----------
    id : int or str
    score : float
        Of the attack; the meaning is in its documentation.

    Examples
    --------
    >>> Exposed("ann", 0.9).id
    'ann'
    """

    id: int | str
    score: float


@dataclass(frozen=True, slots=True, eq=False)
class AuditReport:
    """What an audit found, with what it does not say.

    Attributes
    ----------
    question : str
        "membership", "deletion", "canaries" or "influence".
    verdict : {"found", "not found", "cannot tell", "equal"}
        "equal" where the digest is that of a refit, which proves it.
    sentence : str
        The verdict, for somebody who knows no statistics.
    unsaid : str
        What must not be concluded from it.
    judged : str
        "model" for the artifact at hand, or "method" for the way in which models delete.
    access : str
        What the audit used: "recipe and data", "data and black box", or "black box".
    attack : str
        Such as "RMIA, 4 references".
    level : float
        The error that a false alarm may have.
    plan : tuple of str
        What was said before it started: what so many records or models can show.
    groups : tuple of Group
    exposed : tuple of Exposed
        The most exposed records, the worst first.
    notes : tuple of str
        What a reader has to know beside it.
    parameters : dict
    seconds : float

    Examples
    --------
    >>> report = AuditReport(
    ...     "membership", "not found", "Nothing was found.", "Other attacks may find more.",
    ...     judged="model", access="recipe and data", attack="RMIA, 4 references", level=0.05)
    >>> print(report)
    Nothing was found.
    Other attacks may find more.
    <BLANKLINE>
    membership of a model, RMIA, 4 references, with recipe and data; error 0.05
    """

    question: str
    verdict: str
    sentence: str
    unsaid: str
    judged: str
    access: str
    attack: str
    level: float
    plan: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    exposed: tuple[Exposed, ...] = ()
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        """Say it in a few lines, the verdict first."""
        what = f"{self.question} of a {self.judged}, {self.attack}, with {self.access}"
        lines = [self.sentence, self.unsaid, "", f"{what}; error {self.level:g}"]
        lines += [str(group) for group in self.groups]
        if self.exposed:
            worst = ", ".join(f"{shorten(each.id)} ({each.score:.3g})" for each in self.exposed[:5])
            lines.append(f"most exposed: {worst}")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"before it started: {line}" for line in self.plan]
        return "\n".join(lines)

    def __getitem__(self, group: str) -> Group:
        """Return a group by its name."""
        for each in self.groups:
            if each.name == group:
                return each
        names = ", ".join(each.name for each in self.groups)
        raise InvalidInputError(f"there is no group {shorten(group)}; expected one of {names}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: all but the curves."""
        return {
            "question": self.question, "verdict": self.verdict, "sentence": self.sentence,
            "unsaid": self.unsaid, "judged": self.judged, "access": self.access,
            "attack": self.attack, "level": self.level, "plan": list(self.plan),
            "groups": [group.to_dict() for group in self.groups],
            "exposed": [
                {"id": _named(each.id), "score": _plain(each.score)} for each in self.exposed
            ],
            "notes": list(self.notes), "parameters": _plain(dict(self.parameters)),
            "seconds": self.seconds,
        }  # fmt: skip

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the report as JSON, and write it to a file if one is named."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as a page, complete in itself, and write it to a file if one is named.

        The page has no script and refers to nothing outside. It names the most exposed records.
        """
        from erasable.audit._page import page_of

        page = page_of(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


def _named(id: Any) -> int | str:
    """Return an id as JSON has it: of one that is no number and no text, its text."""
    return id if isinstance(id, int | str) else str(id)


def _plain(values: Any) -> Any:
    """Return values that JSON has: no NaN, no NumPy."""
    if isinstance(values, Mapping):
        return {str(name): _plain(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    if isinstance(values, np.generic):
        values = values.item()
    if isinstance(values, float) and not np.isfinite(values):
        return None
    if values is None or isinstance(values, bool | int | float | str):
        return values
    return repr(values)
