"""From a table to what a selection is made of: ids, features, classes, costs.

What is a feature goes by the rule of `erasable model fit`: those columns that are named, or every
numeric one but the id, the target, and others that have a meaning of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from erasable.cli.frame import fail
from erasable.core.ids import name_some

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Columns", "Given", "read"]

_NUMBERS = ("int64", "uint64", "double", "bool")
_MANY = 50
"""Values from which on a target is rather a number than a class, and a text no category."""
_FEW = 20
"""Records of which each may have a class of its own."""


@dataclass(frozen=True)
class Columns:
    """Which columns mean what.

    Attributes
    ----------
    id, subject, target, cost, stays : str or None
    features : sequence of str or None
        None: every numeric one that is left.

    Examples
    --------
    >>> Columns("visit", target="sick").named
    ['visit', 'sick']
    """

    id: str | None = None
    subject: str | None = None
    target: str | None = None
    cost: str | None = None
    stays: str | None = None
    features: Sequence[str] | None = None

    @property
    def named(self) -> list[str]:
        """All but the features."""
        named = (self.id, self.subject, self.target, self.cost, self.stays)
        return [name for name in named if name is not None]


@dataclass(frozen=True)
class Given:
    """The records that are chosen from.

    Attributes
    ----------
    ids : list of str
    X : ndarray of shape (n_records, n_columns)
        Numbers; a column of 0 and 1 for each value of a text, but texts for naive Bayes.
    y : list of str or None
        Classes.
    subjects : list of str or None
        Whose record each is; one of nobody is on its own.
    costs, stays : ndarray of shape (n_records,), float64, or None
    features, texts, left_out : tuple of str
        Columns: those in X, those of them that hold text, and texts that are not in X.
    scaled : bool
    told : list of str
        Which gaps were filled in.
    """

    ids: list[str]
    X: Any
    y: list[str] | None
    subjects: list[str] | None
    costs: Any
    stays: Any
    features: tuple[str, ...]
    texts: tuple[str, ...]
    left_out: tuple[str, ...]
    scaled: bool
    told: list[str]


def read(
    source: str, columns: Columns, *, categories: bool, scaled: bool, fill: str | None = None
) -> Given:
    """Read a table.

    Parameters
    ----------
    source : str
        As for `erasable dataset add`.
    columns : Columns
    categories : bool
        Take features as categories, for naive Bayes: texts and whole numbers.
    scaled : bool
        Bring numbers to mean 0 and standard deviation 1.
    fill : {"mean", "median", "most_frequent"}, default=None
        What gaps in features are filled in with, before.

    Raises
    ------
    SourceError, WorkspaceError
        It cannot be read, or lacks something.
    """
    from erasable.workspace.data.admission import plain
    from erasable.workspace.data.filling import filled
    from erasable.workspace.data.sources import Source

    _refuse_twice([*columns.named, *(columns.features or ())])
    as_text = [name for name in (columns.id, columns.subject, columns.target) if name is not None]
    table = plain(Source.parse(source).read(as_text))
    _refuse_missing([*columns.named, *(columns.features or ())], table.column_names)
    features, left_out = _features(table, columns, categories)
    table, told = filled(table, features, fill)
    meant = [name for name in columns.named if name != columns.subject]
    _refuse_gaps(table, meant, features)
    texts = tuple(name for name in features if str(table[name].type) == "string")
    costs = _numbers(table, columns.cost, "--cost")
    stays = _numbers(table, columns.stays, "--staying")
    _refuse_outside(costs, columns.cost, 0.0, None)
    _refuse_outside(stays, columns.stays, 0.0, 1.0)
    X = _categories(table, features) if categories else _matrix(table, features, texts, scaled)
    return Given(
        _ids(table, columns.id), X, _labels(table, columns.target),
        _subjects(table, columns.subject), costs, stays, tuple(features), texts,
        tuple(left_out), scaled and not categories, told,
    )  # fmt: skip


def _features(table: pa.Table, columns: Columns, categories: bool) -> tuple[list[str], list[str]]:
    types = {field.name: str(field.type) for field in table.schema}
    if columns.features is not None:
        strange = [name for name in columns.features if types[name] not in (*_NUMBERS, "string")]
        if strange:
            fail(
                f"the columns {name_some(strange)} hold {types[strange[0]]}; expected numbers or "
                "text; convert them, or choose others with --features"
            )
        return list(columns.features), []
    free = [name for name in types if name not in columns.named]
    suit = (*_NUMBERS, "string") if categories else _NUMBERS
    chosen = [name for name in free if types[name] in suit]
    if not chosen:
        fail(
            f"none of the {len(free)} columns beside those named holds numbers; expected features "
            "to compare records by; name columns of text with --features, which are then "
            "categories"
        )
    return chosen, [name for name in free if name not in chosen]


def _matrix(table: pa.Table, features: Sequence[str], texts: Sequence[str], scaled: bool) -> Any:
    import numpy as np

    parts = []
    numbers = [name for name in features if name not in texts]
    if numbers:
        matrix = np.column_stack([_floats(table[name]) for name in numbers])
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = matrix.std(axis=0)
        strange = [n for n, d in zip(numbers, deviation, strict=True) if not np.isfinite(d)]
        if strange:
            fail(
                f"the columns {name_some(strange)} hold infinity, or numbers too large to compute "
                "with; expected finite numbers; correct them, or choose others with --features"
            )
        if scaled:
            matrix = (matrix - matrix.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        parts.append(matrix)
    for name in texts:
        values, codes = np.unique(table[name].to_numpy(), return_inverse=True)
        if _is_many(len(values), len(codes)):
            fail(
                f"the column {name!r} has {len(values)} different texts in {len(codes)} records; "
                "expected categories; leave it out of --features, or make numbers of it"
            )
        parts.append((codes[:, None] == np.arange(len(values))).astype(np.float64))
    return np.column_stack(parts)


def _categories(table: pa.Table, features: Sequence[str]) -> Any:
    import numpy as np

    found = []
    for name in features:
        values = table[name].to_numpy()
        if values.dtype.kind == "f" and (values != np.floor(values)).any():
            fail(
                f"the column {name!r} holds decimal numbers, and naive Bayes counts how often a "
                "value occurs; expected text or whole numbers; bin it, or choose other columns "
                "with --features"
            )
        found.append(np.unique(values, return_inverse=True)[1])
    return np.column_stack(found)


def _floats(column: pa.ChunkedArray) -> Any:
    import numpy as np

    return column.to_numpy().astype(np.float64)


def _numbers(table: pa.Table, name: str | None, option: str) -> Any:
    if name is None:
        return None
    if str(table[name].type) not in _NUMBERS:
        fail(
            f"the column {name!r} of {option} holds {table[name].type}; expected numbers; "
            "convert it, or name another"
        )
    return _floats(table[name])


def _refuse_outside(values: Any, name: str | None, low: float, high: float | None) -> None:
    if values is None:
        return
    bad = ~((values > low) & (abs(values) < float("inf"))) if high is None else None
    if bad is None:
        bad = ~((values >= low) & (values <= (high or 0.0)))
    if bad.any():
        expected = "a number above 0" if high is None else "a probability from 0 to 1"
        fail(
            f"the column {name!r} holds {int(bad.sum())} values that are not {expected}; expected "
            f"{expected} in each row; correct them"
        )


def _ids(table: pa.Table, name: str | None) -> list[str]:
    import pyarrow as pa

    if name is None:
        return [str(row) for row in range(table.num_rows)]
    column = table[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
        fail(
            f"the column {name!r} holds {column.type}; expected integers or text, which name each "
            "record; choose another with --id"
        )
    ids: list[str] = column.cast(pa.string()).to_pylist()
    repeated = len(ids) - len(set(ids))
    if repeated:
        fail(
            f"the column {name!r} repeats {repeated} of its {len(ids)} values; expected each "
            "once; remove the copies, or choose another with --id"
        )
    return ids


def _labels(table: pa.Table, name: str | None) -> list[str] | None:
    import pyarrow as pa

    if name is None:
        return None
    labels: list[str] = table[name].cast(pa.string()).to_pylist()
    n = len(set(labels))
    if _are_decimals(labels):
        fail(
            f"the target {name!r} holds decimal numbers; expected classes; bin it, or leave "
            "--target out, which takes all records for one class"
        )
    if _is_many(n, len(labels)):
        fail(
            f"the target {name!r} has {n} different values in {len(labels)} records; expected "
            "classes; bin it, or leave --target out, which takes all records for one class"
        )
    return labels


def _subjects(table: pa.Table, name: str | None) -> list[str] | None:
    import pyarrow as pa

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


def _refuse_twice(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        fail(
            f"{name_some(twice)} is named twice; expected each column for one thing: id, "
            "subject, target, cost, staying or feature; name each once"
        )


def _refuse_missing(wanted: Sequence[str], there: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in there]
    if missing:
        fail(
            f"there is no column {name_some(missing)}; expected some of "
            f"{', '.join(map(repr, there[:20]))}{', ...' if len(there) > 20 else ''}; correct the "
            "name"
        )


def _refuse_gaps(table: pa.Table, meant: Sequence[str], features: Sequence[str]) -> None:
    import pyarrow.compute as pc

    from erasable.workspace.data.filling import with_gaps

    gaps = with_gaps(table, [*meant, *features])
    if not gaps:
        return
    anywhere = reduce(pc.or_, (pc.is_null(table[name], nan_is_null=True) for name in gaps))
    texts = [name for name in gaps if str(table[name].type) == "string"]
    advice = "leave the records out, or choose other columns"
    if gaps.keys() <= set(features):
        how = "most_frequent" if texts else "median"
        advice = (
            f"fill them in with --fill {how}, as preprocessing.SimpleImputer does before a model, "
            "leave the records out, or choose other columns with --features"
        )
    fail(
        f"{pc.sum(anywhere).as_py()} of {table.num_rows} records have gaps, in "
        f"{name_some(list(gaps))}; expected a value everywhere; {advice}"
    )
