"""The report of an audit, of all kinds, and its page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from erasable.audit._curves import FRAME, TICKS, place_curves
from erasable.audit._statistics import Rate, Separation
from erasable.core._pages import render
from erasable.core.display import facts
from erasable.core.errors import InvalidInputError
from erasable.core.ids import shorten

__all__ = ["AuditReport", "Exposed", "ReportGroup", "page_of"]

_PAGE = Path(__file__).with_name("page.html")
_NONE = "–"  # noqa: RUF001
_TONES = {"found": "bad", "not found": "good", "equal": "good"}


def page_of(report: AuditReport) -> str:
    """Return the HTML page of a report."""
    heads, rows = _measured(report.groups)
    facts = {
        "attack": report.attack, "with": report.access, "error": f"{report.level:g}",
        **report.parameters, "seconds": f"{report.seconds:.3g}",
    }  # fmt: skip
    attacked = [
        (each.name, each.separation) for each in report.groups if each.separation is not None
    ]
    return render(
        _PAGE,
        "the page of an audit",
        {"number": _number, "short": lambda value: f"{value:g}"},
        report=report, tone=_TONES.get(report.verdict, "warn"), heads=heads, rows=rows,
        curves=place_curves(attacked), frame=FRAME, ticks=TICKS, facts=facts,
    )  # fmt: skip


class _Cell(NamedTuple):
    """A cell of a table: a value, and what stands in brackets behind it."""

    text: str
    small: str = ""


def _measured(groups: tuple[ReportGroup, ...]) -> tuple[list[str], list[list[_Cell]]]:
    """Return heads and rows of a table: the area, the rates and other measures of each group."""
    attacks = [each.separation for each in groups if each.separation is not None]
    rates = list(dict.fromkeys(rate.false_positives for each in attacks for rate in each.rates))
    measured = list(dict.fromkeys(name for group in groups for name in group.measures))
    heads = [
        "group", *(["AUC"] if attacks else []),
        *(f"found at {100 * rate:g} % false positives" for rate in rates), *measured,
    ]  # fmt: skip
    rows = []
    for group in groups:
        found = group.separation
        of = {} if found is None else {each.false_positives: each for each in found.rates}
        rows.append(
            [
                _Cell(group.name), *([_area(found)] if attacks else []),
                *(_rate(of.get(rate)) for rate in rates),
                *(_Cell(_number(group.measures.get(name))) for name in measured),
            ]
        )  # fmt: skip
    return heads, rows


def _area(found: Separation | None) -> _Cell:
    if found is None or isnan(found.area):
        return _Cell(_NONE)
    return _Cell(f"{found.area:.3f}", f"{found.low:.3f} to {found.high:.3f}")


def _rate(rate: Rate | None) -> _Cell:
    if rate is None:
        return _Cell(_NONE)
    if isnan(rate.estimate):
        return _Cell("not measured", f"needs {rate.n_needed} other records")
    low, high = 100 * rate.low, 100 * rate.high
    return _Cell(f"{100 * rate.estimate:.1f} %", f"{low:.1f} to {high:.1f}")


def _number(value: float | None) -> str:
    return _NONE if value is None or not isfinite(value) else f"{value:.3g}"


@dataclass(frozen=True, slots=True, eq=False)
class ReportGroup:
    """Measures of a group of records.

    Attributes
    ----------
    name : str
        Such as "deleted", "retained", "fresh".
    separation : Separation or None
        How well the attack distinguishes its two sides; None without an attack.
    measures : dict of str to float
        Other numbers, by name.

    Examples
    --------
    >>> print(ReportGroup("fresh", None, {"distance": 0.25}))
    fresh: distance 0.25
    """

    name: str
    separation: Separation | None = None
    measures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return one line, and one more for each rate."""
        parts = [f"{name} {value:.3g}" for name, value in self.measures.items()]
        lines = []
        if self.separation is not None:
            of = self.separation
            parts.insert(0, f"AUC {of.area:.3f} ({of.low:.3f} to {of.high:.3f})")
            lines = [f"  {'' if isnan(rate.estimate) else 'finds '}{rate}" for rate in of.rates]
        return "\n".join([f"{self.name}: {', '.join(parts)}", *lines])

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
    """The result of an audit, with its limits.

    Attributes
    ----------
    question : str
        "membership", "deletion", "canaries" or "influence".
    verdict : {"found", "not found", "cannot tell", "equal"}
        "equal" where the digest is that of a refit, which proves it.
    sentence : str
        The verdict, for readers without statistics.
    unsaid : str
        Conclusions that it does not allow.
    judged : str
        "model" for one model, or "method" for the way in which models delete.
    access : str
        What the audit used: "recipe and data", "data and black box", or "black box".
    attack : str
        Such as "RMIA, 4 references".
    level : float
        The probability of a false alarm.
    plan : tuple of str
        Statements made before it started: what so many records or models can show.
    groups : tuple of ReportGroup
    exposed : tuple of Exposed
        The most exposed records, the worst first.
    notes : tuple of str
        Further information for the reader.
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
    groups: tuple[ReportGroup, ...] = ()
    exposed: tuple[Exposed, ...] = ()
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return a few lines, the verdict first."""
        what = f"{self.question} of a {self.judged}, {self.attack}, with {self.access}"
        lines = [self.sentence, self.unsaid, "", f"{what}; error {self.level:g}"]
        lines += [str(group) for group in self.groups]
        if self.exposed:
            worst = ", ".join(f"{shorten(each.id)} ({each.score:.3g})" for each in self.exposed[:5])
            lines.append(f"most exposed: {worst}")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"before it started: {line}" for line in self.plan]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        what = {
            "not_concluded": self.unsaid,
            "question": f"{self.question} of a {self.judged}",
            "attack": self.attack,
            "access": self.access,
            "level": self.level,
            **{group.name: str(group).partition(": ")[2] for group in self.groups},
            "most_exposed": [f"{each.id} ({each.score:.3g})" for each in self.exposed[:5]] or None,
            "notes": list(self.notes) or None,
        }
        return facts(self.sentence, what)

    def __getitem__(self, group: str) -> ReportGroup:
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
        It needs ``pip install 'erasable[workspace]'``.
        """
        page = page_of(self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


def _named(id: Any) -> int | str:
    """Return an id for JSON: numbers and texts as they are, others as text."""
    return id if isinstance(id, int | str) else str(id)


def _plain(values: Any) -> Any:
    """Return values for JSON: without NaN and NumPy types."""
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
