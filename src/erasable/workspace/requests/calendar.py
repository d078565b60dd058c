"""Due dates of requests.

Times are UTC and keep their time of day: a deadline at the end of a day is met earlier, never
later. For the same reason a period that ends on a holiday is not moved to the next working day.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised

REGULATIONS = ("gdpr", "ccpa", "none")

_CCPA = timedelta(days=45)  # California Civil Code 1798.130 (a)(2)(A), also for the extension


def due(regulation: str, received_at: datetime) -> datetime | None:
    """Return the time by which a request is to be answered, or None if no law sets one.

    "gdpr" gives one month (Art. 12(3)), counted as in Regulation 1182/71 Art. 3: to the same date
    of the next month, or to its last day if there is no such date. "ccpa" gives 45 days.
    `received_at` needs a time zone.

    >>> due("gdpr", datetime(2026, 1, 31, 9, tzinfo=UTC)).isoformat()
    '2026-02-28T09:00:00+00:00'
    >>> due("ccpa", datetime(2026, 1, 31, 9, tzinfo=UTC)).isoformat()
    '2026-03-17T09:00:00+00:00'
    """
    _check(regulation, received_at)
    if regulation == "gdpr":
        return _months_later(received_at.astimezone(UTC), 1)
    return received_at.astimezone(UTC) + _CCPA if regulation == "ccpa" else None


def extended(regulation: str, due_at: datetime) -> datetime:
    """Return a due date extended once: by two months ("gdpr", Art. 12(3)) or by 45 days ("ccpa").

    >>> extended("gdpr", datetime(2026, 2, 28, 9, tzinfo=UTC)).isoformat()
    '2026-04-28T09:00:00+00:00'
    """
    _check(regulation, due_at)
    if regulation == "none":
        raise errors.InvalidParameterError(
            "the regulation is 'none', which sets no period; expected 'gdpr' or 'ccpa'; "
            "there is nothing to extend"
        )
    due_at = due_at.astimezone(UTC)
    return _months_later(due_at, 2) if regulation == "gdpr" else due_at + _CCPA


def _months_later(start: datetime, months: int) -> datetime:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))


def _check(regulation: str, moment: datetime) -> None:
    if regulation not in REGULATIONS:
        raise errors.InvalidParameterError(
            f"regulation={regulation!r:.40} is not known; expected one of {', '.join(REGULATIONS)}"
        )
    if moment.tzinfo is None:
        raise errors.InvalidParameterError(
            "the time has no zone; expected one, as in 2026-03-01T09:00+00:00"
        )
