"""Regulations, one row each, and the due dates of requests.

Times are UTC and keep their time of day: a deadline at the end of a day is met earlier, never
later. For the same reason a period that ends on a holiday is not moved to the next working day.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised


@dataclass(frozen=True, slots=True)
class Period:
    """A number of units, "month" or "day".

    A month ends on the same date of the next one, or on its last day if there is no such date, as
    in Regulation 1182/71 Art. 3.

    >>> Period(1, "month").after(datetime(2026, 1, 31)).day, Period(45, "day").words("further ")
    (28, '45 further days')
    """

    n: int
    unit: str

    def after(self, start: datetime) -> datetime:
        """Return the end of the period."""
        if self.unit == "day":
            return start + timedelta(self.n)
        year, month = divmod(start.year * 12 + start.month - 1 + self.n, 12)
        last = monthrange(year, month + 1)[1]
        return start.replace(year=year, month=month + 1, day=min(start.day, last))

    def words(self, which: str = "") -> str:
        """Write the period, with `which` after the number."""
        number = {1: "one", 2: "two", 3: "three"}.get(self.n, self.n)
        return f"{number} {which}{self.unit}{'' if self.n == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Regulation:
    """A law about requests, or none; `docs/workspace.md` has a sentence about each."""

    name: str  # at most 8 characters, as the ledger keeps it
    title: str  # for people
    due: Period | None = None  # None: requests have no due date
    extension: Period | None = None  # once
    law: str = ""  # of the extension, for the notice of one
    remedy: str = ""  # a sentence of that notice

    def __str__(self) -> str:
        """Return the name with the period, for the command line's help."""
        return self.name if self.due is None else f"{self.name} ({self.due.words()})"


_COMPLAINT = "You may complain to the supervisory authority, or go to court."
_MONTH, _TWO_MONTHS, _45_DAYS = Period(1, "month"), Period(2, "month"), Period(45, "day")

REGULATIONS = {
    each.name: each
    for each in (
        Regulation("gdpr", "GDPR", _MONTH, _TWO_MONTHS, "Article 12(3) GDPR", _COMPLAINT),
        Regulation("uk-gdpr", "UK GDPR", _MONTH, _TWO_MONTHS, "the UK GDPR", _COMPLAINT),
        # California Civil Code 1798.130 (a)(2)(A)
        Regulation(
            "ccpa", "CCPA", _45_DAYS, _45_DAYS, "section 7021(b) of the CCPA regulations"
        ),
        Regulation("none", "none"),
    )
}  # fmt: skip
"""All regulations, by name."""


def due(regulation: str, received_at: datetime) -> datetime | None:
    """Return the time by which a request is to be answered, or None if no law sets one.

    >>> due("gdpr", datetime(2026, 1, 31, 9, tzinfo=UTC)).isoformat()
    '2026-02-28T09:00:00+00:00'
    """
    period = _known(regulation, received_at).due
    return None if period is None else period.after(received_at.astimezone(UTC))


def extended(regulation: str, due_at: datetime) -> datetime:
    """Return a due date, extended once."""
    period = _known(regulation, due_at).extension
    if period is None:
        raise errors.InvalidParameterError(
            f"the regulation is {regulation!r}, which sets no period; expected another; there is "
            "nothing to extend"
        )
    return period.after(due_at.astimezone(UTC))


def _known(regulation: str, moment: datetime) -> Regulation:
    """Return a regulation; refuse an unknown one, and a time without a zone."""
    if regulation not in REGULATIONS:
        raise errors.InvalidParameterError(
            f"regulation={regulation!r:.40} is not known; expected one of {', '.join(REGULATIONS)}"
        )
    if moment.tzinfo is None:
        raise errors.InvalidParameterError(
            "the time has no zone; expected one, as in 2026-03-01T09:00+00:00"
        )
    return REGULATIONS[regulation]
