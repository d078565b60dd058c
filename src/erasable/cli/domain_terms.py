"""Read the options of `erasable remove-domain` that are text: a budget and keywords."""

from __future__ import annotations

import math
from typing import Any

from erasable.cli import show
from erasable.cli.frame import fail

_FORMS = (
    "expected a number of records (100), a share of the domain (20% or 0.2), coverage:SHARE, "
    "min-removal:ALPHA, max-shift:EPSILON, or cost:COLUMN:AMOUNT"
)


def budget(text: str | None) -> tuple[Any, str | None]:
    """Return a budget and, where records cost differently, the column that says what they do.

    Raises
    ------
    WorkspaceError
        The text is none; whether it is in range, the budget says.

    Examples
    --------
    >>> budget("100"), budget("20%"), budget("min-removal:0.5")
    ((100, None), (Share(share=0.2), None), (MinRemoval(alpha=0.5), None))
    >>> budget("cost:minutes:90")
    (90.0, 'minutes')
    """
    from erasable.removal import Coverage, MaxShift, MinRemoval, Share

    if text is None:
        return None, None
    given = text.strip()
    digits = given.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 100:
        return int(given), None
    kind, colon, rest = given.partition(":")
    if not colon:
        return Share(_number(text, given)), None
    if kind == "cost":
        column, _, amount = rest.rpartition(":")
        if not column:
            _refuse(text)
        return _number(text, amount, percent=False), column
    kinds = {"coverage": Coverage, "min-removal": MinRemoval, "max-shift": MaxShift}
    if kind not in kinds:
        _refuse(text)
    return kinds[kind](_number(text, rest, percent=kind == "coverage")), None


def keywords(path: str | None) -> list[str] | None:
    """Read keywords from a file, one a line; empty lines are skipped.

    Raises
    ------
    WorkspaceError, NotInWorkspaceError
        There is no such file, it is no text, or has none.

    Examples
    --------
    >>> keywords(None) is None
    True
    """
    if path is None:
        return None
    from erasable.cli.files import as_text, load

    text = as_text(load(path, "keywords, one a line"), repr(path), "keywords, one a line")
    found = [each.strip() for each in text.splitlines() if each.strip()]
    if not found:
        fail(f"{path!r} is empty; expected keywords, one a line")
    return found


def _number(text: str, part: str, *, percent: bool = True) -> float:
    percent = percent and part.endswith("%")
    try:
        value = float(part.removesuffix("%") if percent else part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        _refuse(text)
    return value / 100 if percent else value


def _refuse(text: str) -> None:
    fail(f"--budget is {show.one_line(text)[:60]!r}; {_FORMS}")
