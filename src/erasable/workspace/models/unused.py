"""Unused columns of a model, and its features that other models predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from erasable.core.frames import is_index
from erasable.workspace.models import catalogue

if TYPE_CHECKING:
    from erasable.workspace.data.catalogue import DataSet

_SHOWN = 20


def left_out(
    datasets: Sequence[DataSet], features: Iterable[str] | None, target: str | None
) -> dict[str, str]:
    """Return the columns of data sets that a model does not learn from, with their types.

    Columns that name records or people are left out. A program of the user, which has no list of
    features, gets all columns.

    >>> from erasable.workspace.data.catalogue import DataSet
    >>> columns = (("id", "int64"), ("age", "int64"), ("name", "string"), ("sick", "bool"))
    >>> visits = DataSet(1, "visits", {}, "id", (), columns, 1, 1, None)
    >>> left_out([visits], ["age"], "sick")
    {'name': 'string'}
    """
    if features is None:
        return {}
    taken = {*features, target}
    for each in datasets:
        taken |= {each.id_column, *each.subject_columns}
    return {name: kind for each in datasets for name, kind in each.columns if name not in taken}


def targets_of_others(
    connection: Connection, name: str, datasets: Sequence[DataSet], features: Iterable[str] | None
) -> dict[str, list[str]]:
    """Return the features of a model that others on the same data predict, with who does."""
    own = {each.id for each in datasets}
    found: dict[str, list[str]] = {}
    for other in catalogue.every(connection):
        if other.target is None or other.name == name or other.state == "retired":
            continue
        if other.target in (features or ()) and own & set(other.datasets):
            found.setdefault(other.target, []).append(other.name)
    return found


def remarks(
    connection: Connection,
    name: str,
    datasets: Sequence[DataSet],
    features: Sequence[str],
    target: str | None,
    why: Mapping[str, str],
) -> list[str]:
    """Say what was decided about columns where none was named, a line each; why, where known."""
    messages = []
    unused = left_out(datasets, features, target)
    if unused:
        some = [
            f"{column!r} ({why.get(column) or _kind(column, kind)})"
            for column, kind in unused.items()
        ]
        shown = ", ".join(some[:_SHOWN]) + (", ..." if len(some) > _SHOWN else "")
        messages.append(
            f"{name!r} does not learn from {shown}; name the features with --features to choose "
            "others, or make numbers of them in the source"
        )
    for column, models in targets_of_others(connection, name, datasets, features).items():
        messages.append(
            f"{name!r} learns from {column!r}, which is the target of "
            f"{', '.join(map(repr, models))}; name the features with --features to leave it out"
        )
    return messages


def _kind(column: str, kind: str) -> str:
    if is_index(column):
        return "an index"
    return {"string": "text", "double": "numbers", "int64": "numbers", "uint64": "numbers"}.get(
        kind, kind
    )
