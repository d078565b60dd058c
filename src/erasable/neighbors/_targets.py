"""Targets of records: numbers, or labels of classes, one or several for each.

The law kept here: targets are a function of the live records. When the last record of a class
goes, so does the class; what is kept of a deleted record is overwritten.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core._schema import Array, Fields, Labels, ListOf, OneOf, Sizes, join, refuse
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.classes import Classes
from erasable.core.errors import MagnitudeError

from ._row_hash import label_bytes

LARGEST = 2.0**500
"""No value may exceed it: squares of differences, and sums of them, stay finite."""


def refuse_beyond(beyond: Flags) -> None:
    """Raise MagnitudeError if there are columns with numbers beyond `LARGEST`."""
    if beyond.any():
        raise MagnitudeError(
            f"X holds numbers beyond 2**500 in {np.count_nonzero(beyond)} columns; expected "
            "smaller ones, so that squared distances are finite; divide those columns by a power "
            "of ten"
        )


def _have_outputs(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    if sizes.get("n_outputs", 1) == 0:
        refuse(join(at, "y"), value["y"], "an output or more")


def _weigh_something(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    if not value["weights"].any():
        refuse(join(at, "weights"), "zeros", "a weight above 0")


def _know_every_code(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    """Refuse codes without a label, and labels without a record."""
    codes, labels = value["codes"], value["classes"]
    columns = codes.reshape(codes.shape[0], -1).T
    if len(columns) == 0 or len(labels) != len(columns):
        refuse(join(at, "classes"), labels, f"labels of {len(columns)} outputs")
    for place, (known, column) in enumerate(zip(labels, columns, strict=True)):
        if int(column.max()) >= known.size or not np.bincount(column, minlength=known.size).all():
            held = f"codes up to {column.max()}, not all of them"
            refuse(f"{join(at, 'codes')}.{place}", held, f"each from 0 to {known.size - 1}")


_SHAPES = ("n_records", "n_outputs"), ("n_records",)


class StoredNumbers:
    """Targets that are numbers; `flat`: one output, without a column of its own."""

    schema: ClassVar[Fields] = Fields(
        {"y": OneOf(tuple(Array("float64", shape, -LARGEST, LARGEST) for shape in _SHAPES))},
        relations=(_have_outputs,),
    )
    _source: ClassVar[str] = "y"
    _field: ClassVar[str] = "y"

    def __init__(self, values: Floats, flat: bool) -> None:
        # the model's own, shape (n_rows, n_outputs); 0 in rows that are not live
        self.values, self.flat = values, flat

    @classmethod
    def fit(cls, y: NDArray[Any], rows: Ints) -> Self:
        """Copy the targets of live rows; raise MagnitudeError for one beyond ``2**500``."""
        shape = y.shape[0], y.size // max(1, y.shape[0])
        if rows.size == y.shape[0]:
            values = np.array(y, dtype=np.float64, order="C").reshape(shape)
        else:
            values = np.zeros(shape)
            values[rows] = y[rows].reshape(rows.size, -1)
        cls._refuse_large(values)
        return cls(values, y.ndim == 1)

    def bytes_of(self, rows: Ints) -> list[bytes]:
        """Write those of some rows as bytes."""
        width, data = 8 * self.values.shape[1], self.values[rows].astype("<f8").tobytes()
        return [data[i : i + width] for i in range(0, len(data), width)]

    def counted(self, rows: Ints) -> Ints:
        """Return those of the rows that can be neighbours: all of them."""
        return rows

    def add(self, y: NDArray[Any], rows: Ints) -> bool:
        """Copy those of new rows."""
        added = y[rows].reshape(rows.size, -1).astype(np.float64)
        self._refuse_large(added)
        if self.values.shape[0] < y.shape[0]:
            more = np.zeros((y.shape[0] - self.values.shape[0], added.shape[1]))
            self.values = np.concatenate([self.values, more])
        self.values[rows] = added
        return True

    def remove(self, rows: Ints) -> None:
        """Overwrite those of some rows."""
        self.values[rows] = 0.0

    def take(self, rows: Ints) -> Self:
        """Keep some rows."""
        return type(self)(self.values[rows], self.flat)

    def state(self, order: Ints) -> dict[str, Any]:
        """Return the targets."""
        values = self.values[order]
        return {self._field: values[:, 0].copy() if self.flat else values}

    def summary(self) -> dict[str, Any]:
        """Return how many there are for each row, None where they are one without a column."""
        return {"n_outputs": None if self.flat else self.values.shape[1]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Bring back what `state` returned, by place."""
        values = state[cls._field]
        return cls.fit(values, np.arange(values.shape[0]))

    @classmethod
    def _refuse_large(cls, values: Floats) -> None:
        if max(values.max(initial=0.0), -values.min(initial=0.0)) > LARGEST:
            raise MagnitudeError(
                f"{cls._source} holds numbers beyond 2**500; expected smaller ones, so that sums "
                f"of them are finite; divide {cls._source} by a power of ten"
            )


class StoredWeights(StoredNumbers):
    """Weights of records, in the place of targets."""

    schema: ClassVar[Fields] = Fields(
        {"weights": Array("float64", ("n_records",), least=0.0, most=LARGEST)},
        relations=(_weigh_something,),
    )
    _source: ClassVar[str] = "sample_weight"
    _field: ClassVar[str] = "weights"

    def counted(self, rows: Ints) -> Ints:
        """Return those of the rows that can be neighbours: they have a weight above 0."""
        counted: Ints = rows[self.values[rows, 0] > 0.0]
        return counted

    def summary(self) -> dict[str, Any]:
        """Return nothing: there is one for each row."""
        return {}


class StoredLabels:
    """Targets that are labels, by output; `flat`: one output, without a column of its own."""

    schema: ClassVar[Fields] = Fields(
        {
            "classes": ListOf(Labels(None)),
            "codes": OneOf(tuple(Array("int32", shape, least=0) for shape in _SHAPES)),
        },
        relations=(_know_every_code,),
    )

    def __init__(self, outputs: list[Classes], flat: bool) -> None:
        self.outputs, self.flat = outputs, flat

    @classmethod
    def fit(cls, y: NDArray[Any], rows: Ints) -> Self:
        """Find the labels of live rows."""
        columns = y.reshape(y.shape[0], -1).T
        return cls([Classes.fit(column, rows) for column in columns], len(columns) == 1)

    def bytes_of(self, rows: Ints) -> list[bytes]:
        """Write those of some rows as bytes."""
        data = [b""] * rows.size
        for each in self.outputs:
            codes, labels = each.codes[rows].tolist(), each.labels
            # Only of those that occur: there may be as many classes as records.
            known = {code: label_bytes(labels[code : code + 1].tolist()[0]) for code in set(codes)}
            data = [one + known[code] for one, code in zip(data, codes, strict=True)]
        return data

    def counted(self, rows: Ints) -> Ints:
        """Return those of the rows that can be neighbours: all of them."""
        return rows

    def add(self, y: NDArray[Any], rows: Ints) -> bool:
        """Know those of new rows, unless one is new; then anything may be half-done."""
        columns = y.reshape(y.shape[0], -1).T
        return all(
            each.add(column, rows) for each, column in zip(self.outputs, columns, strict=True)
        )

    def remove(self, rows: Ints) -> None:
        """Forget those of some rows, and classes that have no others."""
        for each in self.outputs:
            each.remove(rows)

    def take(self, rows: Ints) -> Self:
        """Keep some rows, all that are live among them."""
        kept = [
            Classes(each.labels, each.counts, each.codes[rows], each.fixed) for each in self.outputs
        ]
        return type(self)(kept, self.flat)

    def state(self, order: Ints) -> dict[str, Any]:
        """Return labels, and their codes by row."""
        codes = np.column_stack([each.codes[order] for each in self.outputs])
        labels = [each.labels for each in self.outputs]
        return {"classes": labels, "codes": codes[:, 0].copy() if self.flat else codes}

    def summary(self) -> dict[str, Any]:
        """Return the labels, and whether they come in columns."""
        return {"classes": [each.labels for each in self.outputs], "flat": self.flat}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Bring back what `state` returned, by place."""
        codes = state["codes"]
        columns = codes.reshape(codes.shape[0], -1).T
        outputs = [
            Classes(
                labels,
                np.bincount(column, minlength=labels.size).astype(np.int64),
                np.ascontiguousarray(column),
                False,
            )
            for labels, column in zip(state["classes"], columns, strict=True)
        ]
        return cls(outputs, codes.ndim == 1)


StoredTargets: TypeAlias = StoredLabels | StoredNumbers
"""Targets by row."""
