"""Display of results: one JSON object for programs, aligned tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from erasable.workspace.ledger.treatments import UNCOVERED

NONE = "-"
_GAP = "   "  # between columns
_NAMED = 10  # columns


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object: dates as ISO 8601, data classes as objects, NaN and infinity as null.

    >>> print_json({"at": datetime(2026, 3, 1, tzinfo=UTC), "loss": float("nan")})
    {
      "at": "2026-03-01T00:00:00+00:00",
      "loss": null
    }
    """
    try:
        text = json.dumps(value, indent=2, default=_plain, allow_nan=False)
    except ValueError:
        text = json.dumps(
            json.loads(json.dumps(value, default=_plain), parse_constant=_null), indent=2
        )
    sys.stdout.write(text + "\n")


def printed(as_json: bool, value: Mapping[str, Any]) -> bool:
    """Print one object if JSON was asked for; tell whether it was."""
    if as_json:
        print_json(value)
    return as_json


def answer(as_json: bool, value: Mapping[str, Any], text: str) -> None:
    """Print the result: as one object for programs, or as a line for people."""
    if not printed(as_json, value):
        line(text)


def picked(thing: Any, *names: str) -> dict[str, Any]:
    """Return some attributes, for an object that is printed for programs."""
    return {name: getattr(thing, name) for name in names}


def warn(messages: Iterable[str]) -> None:
    """Print warnings to standard error, a line each."""
    for each in messages:
        sys.stderr.write(f"warning: {one_line(each)}\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: str = "") -> None:
    """Print rows under headings.

    Control characters are left out. `right` has the names of right-aligned columns (numbers),
    separated by commas.

    >>> table(["name", "records"], [("visits", 12)], right="records")
    name     records
    ────────────────
    visits        12
    """
    from rich.cells import cell_len

    numbers = set(right.split(","))
    head = [one_line(column) for column in columns]
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(head, *cells, strict=True)]
    styled = _styler()

    def aligned(row: Sequence[str], styles: Iterable[str]) -> str:
        parts = []
        for column, text, width, style in zip(columns, row, widths, styles, strict=True):
            gap = " " * (width - (len(text) if text.isascii() else cell_len(text)))
            shown = styled(text, style) if style else text
            parts.append(gap + shown if column in numbers else shown + gap)
        return _GAP.join(parts) + "\n"

    sys.stdout.write(aligned(head, ["bold"] * len(head)))
    sys.stdout.write("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)) + "\n")
    sys.stdout.writelines(aligned(row, map(_style, row)) for row in cells)


def treatments(found: Iterable[dict[str, Any]]) -> None:
    """Print what was done to each model."""
    rows = [
        (
            each["model"], each["treatment"], each["exactness"] or NONE,
            count(each["n_records"]), seconds(each["seconds"]),
        )
        for each in found
    ]  # fmt: skip
    head = ["model", "treatment", "exactness", "records", "time"]
    table(head, rows, right="records,time")


def verdicts(found: Iterable[Any]) -> None:
    """Print the verdict on each model."""
    rows = [(each.model, each.verdict, each.detail) for each in found]
    table(["model", "verdict", "detail"], rows)


def effects(found: Iterable[Any]) -> None:
    """Print the effects on each data set and model."""
    table(
        ["", "name", "records", "treatment", "exactness", "about"],
        [
            (
                "data set" if each.target == "dataset" else each.target, each.name,
                count(each.n_records), each.treatment + others(each.n_others),
                each.exactness or NONE, seconds(each.seconds),
            )
            for each in found
        ],
        right="records,about",
    )  # fmt: skip


def others(n: int) -> str:
    """Say how many rows leave with the records that they refer to; nothing without any."""
    return f" and {n:,} that refer to them" if n else ""


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, aligned.

    >>> facts([("name", "visits"), ("id", "visit")])
    name  visits
    id    visit
    """
    shown = [(name, one_line(str(value))) for name, value in pairs]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        line(f"{name:<{width}}  {value}")


def line(text: str = "") -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def names(columns: Sequence[str]) -> str:
    """Return the names of columns, up to ten of them."""
    more = f" and {len(columns) - _NAMED:,} more" if len(columns) > _NAMED else ""
    return f"{', '.join(columns[:_NAMED])}{more}"


def one_line(text: str) -> str:
    r"""Return a text on one line, with control characters written as escapes.

    >>> print(one_line("two\nlines, and \x1b[2J"))
    two lines, and \x1b[2J
    """
    joined = " ".join(text.split())
    if joined.isprintable():
        return joined
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def day(at: Any) -> str:
    """Write a date.

    >>> day(datetime(2026, 3, 1, 9, 30, tzinfo=UTC)), day(None)
    ('2026-03-01', '-')
    """
    return NONE if at is None else _date(at).isoformat()


def due(at: Any, now: datetime, *, done: Any = None) -> str:
    """Write a due date, and how many days are left, or late.

    >>> due(datetime(2026, 3, 31, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
    '2026-03-31 (30 days left)'
    >>> due(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, 1, tzinfo=UTC))
    '2026-03-01 (LATE: 1 day)'
    """
    if at is None:
        return NONE
    if done is not None:
        return f"{day(at)} (LATE)" if done > at else day(at)
    days = (_date(at) - _date(now)).days
    if at < now:
        return f"{day(at)} (LATE: {words(-days, 'day')})"
    return f"{day(at)} ({words(days, 'day')} left)"


def words(n: int, noun: str, several: str | None = None) -> str:
    """Write a number of things.

    >>> words(1, "record"), words(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{n:,} {noun if n == 1 else several or f'{noun}s'}"


def count(n: int | None) -> str:
    """Write a number, or "-" for None.

    >>> count(1200), count(None)
    ('1,200', '-')
    """
    return NONE if n is None else f"{n:,}"


def seconds(value: float | None) -> str:
    """Write a time with its unit.

    >>> seconds(0.0421), seconds(3.25), seconds(130), seconds(None)
    ('42 ms', '3.2 s', '2 min 10 s', '-')
    """
    if value is None:
        return NONE
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def _date(at: Any) -> date:
    if isinstance(at, str):
        at = datetime.fromisoformat(at)
    found: date = at.astimezone(UTC).date()
    return found


def _null(constant: str) -> None:
    """Replace NaN and infinity by null."""


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _style(cell: str) -> str:
    if "(LATE" in cell or cell in ("different", "damaged"):
        return "bold red"
    if cell in ("stale", "other version", "on hold", "approximate", *UNCOVERED):
        return "yellow"
    return ""


def _styler() -> Callable[[str, str], str]:
    """Return a function that styles a text on a terminal; Rich is slow for many texts."""
    if not sys.stdout.isatty():
        return lambda text, style: text
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=10_000)

    @cache
    def styled(text: str, style: str) -> str:
        with console.capture() as captured:
            console.print(Text(text, style=style), end="")
        return captured.get()

    return styled
