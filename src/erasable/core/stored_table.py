"""Columns of a table, and their uses in records whose features are read block by block."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.frames import index_columns, is_index
from erasable.core.ids import as_id_array, name_some, refuse_repeats, shorten
from erasable.core.inputs import Table
from erasable.core.mapped.texts import as_texts
from erasable.core.passes import Stored
from erasable.core.stored_columns import is_number, is_text, kinds_of, numbers_of
from erasable.core.surrogates import refuse_surrogates
from erasable.core.targets import read_target, read_weights

__all__ = ["Uses", "joint_type", "refuse_others"]


class Uses(NamedTuple):
    """Names of the columns that have a use of their own, and of the features, if they are named.

    Examples
    --------
    >>> uses = Uses("visit", "ill", None, None, None)
    >>> columns = [("visit", pa.string()), ("age", pa.int8()), ("ill", pa.int8())]
    >>> uses.others, uses.chosen(pa.schema(columns), "the files")
    (['visit', 'ill'], ['age'])
    """

    ids: str | None
    target: str | None
    groups: str | None
    sample_weight: str | None
    features: list[str] | None

    @property
    def others(self) -> list[str]:
        """Columns that are not features."""
        return [name for name in self[:4] if isinstance(name, str)]

    def chosen(self, schema: pa.Schema, source: str) -> list[str]:
        """Return the features; refuse columns that are not there or cannot be used so."""
        missing = [n for n in [*self.others, *(self.features or ())] if n not in schema.names]
        if missing:
            raise InvalidInputError(
                f"{source} have no column {name_some(missing)}; expected some of "
                f"{name_some(schema.names)}"
            )
        weight = self.sample_weight
        if weight is not None and not is_number(schema.field(weight).type):
            raise InvalidDataError(
                f"the column {shorten(weight)} of weights has no numbers; expected numbers"
            )
        chosen = self.features
        if chosen is None:
            taken = {*self.others, *index_columns(schema)}
            numbers = [f.name for f in schema if is_number(f.type) and f.name not in taken]
            chosen = [name for name in numbers if not is_index(name)]
            if left := [name for name in numbers if is_index(name)]:
                warnings.warn(
                    f"the columns {name_some(left)} are taken for an index, and left out; name "
                    "them in features= to learn from them",
                    stacklevel=3,
                )
        _refuse_features(chosen, schema, self.others, source)
        return chosen

    def table(
        self,
        matrix: Stored,
        schema: pa.Schema,
        chosen: list[str],
        read: Callable[[str], pa.ChunkedArray],
        source: str,
    ) -> Table:
        """Make a table of a stored matrix and of other columns, which are read."""
        n = matrix.shape[0]
        if n == 0:
            raise InvalidDataError(f"{source} hold no rows; expected one or more")
        id_array = np.arange(n) if self.ids is None else _labels(read(self.ids), "ids")
        refuse_repeats(id_array)
        weight = self.sample_weight
        numeric = None
        if matrix.dtype == object:
            numeric = np.array([kind != "t" for kind in kinds_of(schema, chosen)])
        return Table(
            matrix=matrix,
            numeric=numeric,
            y=None if self.target is None else _target(read(self.target), n),
            ids=as_texts(id_array),
            groups=None if self.groups is None else as_texts(_labels(read(self.groups), "groups")),
            feature_names=chosen,
            weights=None if weight is None else read_weights(numbers_of(read(weight)), n),
        )


def joint_type(schema: pa.Schema, names: Iterable[str]) -> Any:
    """Return the type of a table of columns: float32 where pandas and NumPy come to that.

    It is object where there is text.

    Examples
    --------
    >>> schema = pa.schema([("a", pa.float32()), ("b", pa.int16()), ("c", pa.int64())])
    >>> joint_type(schema, ["a", "b"]), joint_type(schema, ["a", "c"])
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    kinds = {schema.field(name).type for name in names}
    if any(map(is_text, kinds)):
        return np.object_
    no_type = (pa.types.is_decimal, pa.types.is_null)
    own = [
        np.float64 if any(is_one(kind) for is_one in no_type) else kind.to_pandas_dtype()
        for kind in kinds
    ]
    return np.float32 if np.result_type(*own) == np.float32 else np.float64


def refuse_others(schema: pa.Schema, own: pa.Schema, source: str, hint: str) -> None:
    """Refuse columns or types that differ from those of the first part of a table.

    Examples
    --------
    >>> one, other = (pa.schema([("age", kind)]) for kind in (pa.int64(), pa.string()))
    >>> refuse_others(one, other, "partition 2", "convert them")
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: partition 2 has another type in 'age'; expected ...
    """
    differing = sorted(set(schema.names) ^ set(own.names))
    if not differing:
        differing = [
            name for name in schema.names if schema.field(name).type != own.field(name).type
        ]
        if not differing:
            return
        told = f"has another type in {name_some(differing)}"
    else:
        told = f"differs in the columns {name_some(differing)}"
    raise InvalidDataError(f"{source} {told}; expected the columns and types of the first; {hint}")


def _refuse_features(
    chosen: Sequence[str], schema: pa.Schema, others: Sequence[str], source: str
) -> None:
    if not chosen:
        raise InvalidDataError(
            f"no column of {source} is left to learn from; expected one or more of numbers; name "
            "them: features=[...]"
        )
    if repeated := sorted({name for name in chosen if list(chosen).count(name) > 1}):
        raise InvalidInputError(f"features= names {name_some(repeated)} twice; expected each once")
    if both := [name for name in chosen if name in others]:
        raise InvalidInputError(
            f"{name_some(both)} is named as a feature and for another use; expected one of these"
        )
    kinds = {name: schema.field(name).type for name in chosen}
    if others := [name for name, kind in kinds.items() if not (is_number(kind) or is_text(kind))]:
        found = ", ".join(sorted({str(kinds[name]) for name in others}))
        raise InvalidDataError(
            f"the columns {name_some(others)} are neither numbers nor text ({found}); expected "
            "these; convert or drop them"
        )


def _labels(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    if pa.types.is_integer(column.type) and not column.null_count:
        return as_id_array(column.to_numpy(), name=name)
    return as_id_array(column.to_pylist(), name=name)


def _target(column: pa.ChunkedArray, n: int) -> NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not column.null_count and is_number(column.type):
        return read_target(numbers_of(column), n)
    values = column.to_pylist()
    refuse_surrogates([value for value in values if isinstance(value, str)], "y holds")
    return read_target(values, n)
