"""Candidates of a selection, read from a table: ids, features, classes, owners, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.core.errors import WorkspaceError
from erasable.workspace.data.admission import plain_columns
from erasable.workspace.data.dialects import UNSAID, Dialect
from erasable.workspace.data.features import (
    NUMBERS,
    TEXT,
    check_columns,
    default_columns,
    fill_gaps,
    matrix,
    positive_column,
    refuse_gaps,
)
from erasable.workspace.data.sources import Source

_MANY = 50
"""Values from which on a target is rather a number than a class, and a text no category."""
_FEW = 20
"""Records of which each may have a class of its own."""


@dataclass(frozen=True)
class ColumnRoles:
    """Columns of a table by their roles."""

    id: str | None = None
    subject: str | None = None
    target: str | None = None
    cost: str | None = None
    stays: str | None = None
    features: Sequence[str] | None = None  # None: every numeric column without another role

    @property
    def named(self) -> list[str]:
        """All but the features."""
        named = (self.id, self.subject, self.target, self.cost, self.stays)
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class SelectionCandidates:
    """The records to choose from."""

    ids: list[str]
    # float64, of shape (n_records, n_columns): numbers, and a column of 0 and 1 for each
    # value of a text; for naive Bayes, codes of values
    X: Any
    y: list[str] | None  # classes
    subjects: list[str] | None  # a record without a person is a group of its own
    costs: Any
    stays: Any
    features: tuple[str, ...]  # columns in X
    texts: tuple[str, ...]  # those of them that hold text
    left_out: tuple[str, ...]  # other columns that are not in X
    scaled: bool
    filled_in: list[str]  # a line for each column with replaced missing values


def read_candidates(
    source: str,
    roles: ColumnRoles,
    *,
    categories: bool,
    scaled: bool,
    fill: str | None = None,
    dialect: Dialect = UNSAID,
) -> SelectionCandidates:
    """Read a table of candidates.

    `categories` takes texts and whole numbers as categories, for naive Bayes; `scaled` brings
    numbers to mean 0 and standard deviation 1.
    """
    as_text = [name for name in (roles.id, roles.subject, roles.target) if name is not None]
    table = plain_columns(Source.parse(source, dialect=dialect).read(as_text))
    types = {field.name: str(field.type) for field in table.schema}
    check_columns(types, [*roles.named, *(roles.features or ())], kinds=None)
    features, left_out = _features(types, roles, categories)
    table, filled_in = fill_gaps(table, features, fill)
    meant = [name for name in roles.named if name != roles.subject]
    refuse_gaps(table, meant, "leave the records out, or choose other columns")
    refuse_gaps(table, features)
    texts = tuple(name for name in features if str(table[name].type) == TEXT)
    for name, option in ((roles.cost, "--cost"), (roles.stays, "--staying")):
        if name is not None and types[name] not in NUMBERS:
            raise WorkspaceError(
                f"the column {name!r} of {option} holds {types[name]}; expected numbers"
            )
    costs = None if roles.cost is None else positive_column(table, roles.cost)
    stays = None if roles.stays is None else _probabilities(table, roles.stays)
    X = _categories(table, features) if categories else _matrix(table, features, texts, scaled)
    return SelectionCandidates(
        _ids(table, roles.id), X, _labels(table, roles.target), _subjects(table, roles.subject),
        costs, stays, tuple(features), texts, tuple(left_out), scaled and not categories, filled_in,
    )  # fmt: skip


def _features(
    types: dict[str, str], roles: ColumnRoles, categories: bool
) -> tuple[list[str], list[str]]:
    if roles.features is not None:
        check_columns(types, roles.features)
        return list(roles.features), []
    free = [name for name in types if name not in roles.named]
    chosen = default_columns(types, roles.named, (*NUMBERS, TEXT) if categories else NUMBERS)
    if not chosen:
        raise WorkspaceError(
            f"none of the {len(free)} columns beside those named holds numbers; expected features "
            "to compare records by; name columns of text with --features, which are then "
            "categories"
        )
    return chosen, [name for name in free if name not in chosen]


def _matrix(table: pa.Table, features: Sequence[str], texts: Sequence[str], scaled: bool) -> Any:
    numbers = [name for name in features if name not in texts]
    parts = [matrix(table, numbers, scaled=scaled)] if numbers else []
    for name in texts:
        values, codes = np.unique(table[name].to_numpy(), return_inverse=True)
        if _is_many(len(values), len(codes)):
            raise WorkspaceError(
                f"the column {name!r} has {len(values)} different texts in {len(codes)} records; "
                "expected categories; leave it out of --features, or make numbers of it"
            )
        parts.append((codes[:, None] == np.arange(len(values))).astype(np.float64))
    return np.column_stack(parts)


def _categories(table: pa.Table, features: Sequence[str]) -> Any:
    found = []
    for name in features:
        values = table[name].to_numpy()
        if values.dtype.kind == "f" and (values != np.floor(values)).any():
            raise WorkspaceError(
                f"the column {name!r} holds decimal numbers, and naive Bayes counts how often a "
                "value occurs; expected text or whole numbers; bin it, or choose other columns "
                "with --features"
            )
        found.append(np.unique(values, return_inverse=True)[1])
    return np.column_stack(found)


def _probabilities(table: pa.Table, name: str) -> Any:
    values = table[name].to_numpy().astype(np.float64)
    bad = int((~((values >= 0.0) & (values <= 1.0))).sum())
    if bad:
        raise WorkspaceError(
            f"the column {name!r} holds {bad} values that are not a probability from 0 to 1; "
            "expected a probability from 0 to 1 in each row"
        )
    return values


def _ids(table: pa.Table, name: str | None) -> list[str]:

    if name is None:
        return [str(row) for row in range(table.num_rows)]
    column = table[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
        raise WorkspaceError(
            f"the column {name!r} holds {column.type}; expected integers or text, which name each "
            "record; choose another with --id"
        )
    ids: list[str] = column.cast(pa.string()).to_pylist()
    repeated = len(ids) - len(set(ids))
    if repeated:
        raise WorkspaceError(
            f"the column {name!r} repeats {repeated} of its {len(ids)} values; expected each "
            "once; remove the copies, or choose another with --id"
        )
    return ids


def _labels(table: pa.Table, name: str | None) -> list[str] | None:

    if name is None:
        return None
    labels: list[str] = table[name].cast(pa.string()).to_pylist()
    n = len(set(labels))
    if _are_decimals(labels):
        raise WorkspaceError(
            f"the target {name!r} holds decimal numbers; expected classes; bin it, or leave "
            "--target out, which takes all records for one class"
        )
    if _is_many(n, len(labels)):
        raise WorkspaceError(
            f"the target {name!r} has {n} different values in {len(labels)} records; expected "
            "classes; bin it, or leave --target out, which takes all records for one class"
        )
    return labels


def _subjects(table: pa.Table, name: str | None) -> list[str] | None:

    if name is None:
        return None
    values = table[name].cast(pa.string()).to_pylist()
    return [f"row {row}" if v is None else f"of {v}" for row, v in enumerate(values)]


def _are_decimals(labels: Sequence[str]) -> bool:
    try:
        numbers = [float(each) for each in labels]
    except ValueError:
        return False
    return any(not each.is_integer() for each in numbers)


def _is_many(n_values: int, n_records: int) -> bool:
    alone = n_records > _FEW and n_values > n_records / 2
    return alone or (n_values > _MANY and n_values > n_records / 10)
