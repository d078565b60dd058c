"""Tables in HTML, as notebooks show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any, TypeVar

from erasable.core._pages import visible

__all__ = ["Listing", "facts", "table"]

_Row = TypeVar("_Row")
_MOST_ROWS = 60


class Listing(list[_Row]):
    """A list of rows, dicts or objects with fields, which a notebook shows as a table.

    Examples
    --------
    >>> Listing([{"name": "risk", "state": "ready"}])._repr_html_()
    '<table><tr><th>name</th><th>state</th></tr><tr><td>risk</td><td>ready</td></tr></table>'
    """

    def _repr_html_(self) -> str:
        rows = [_as_mapping(each) for each in self[:_MOST_ROWS]]
        rest = len(self) - len(rows)
        return table(rows) + (f"<p>... {rest:,} more</p>" if rest else "")


def _as_mapping(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    return {name: getattr(row, name) for name in type(row).__dataclass_fields__}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table; the columns are those in which any row has something.

    >>> table([])
    '<p>none</p>'
    """
    if not rows:
        return "<p>none</p>"
    columns = [name for name in rows[0] if any(row.get(name) is not None for row in rows)]
    head = "".join(f"<th>{_cell(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in columns) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def facts(title: str, values: Mapping[str, Any]) -> str:
    """Return a title, and names with their values; those without a value are left out.

    >>> facts("a model", {"state": "ready", "due": None})
    '<p><b>a model</b></p><table><tr><th>state</th><td>ready</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{_cell(name.replace('_', ' '))}</th><td>{_cell(value)}</td></tr>"
        for name, value in values.items()
        if value is not None
    )
    return f"<p><b>{_cell(title)}</b></p><table>{rows}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_cell(name)} {_cell(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return escape(visible(value))
