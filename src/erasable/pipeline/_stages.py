"""From steps to stages: which table each step reads, and what lies between the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import get_tags

from erasable.core.errors import InvalidDataError, InvalidInputError, UnsupportedStepError
from erasable.core.estimator import Erasable
from erasable.core.ids import name_some
from erasable.core.sparse import canonical
from erasable.core.steps import Rows
from erasable.core.values import Accepts, Values

__all__ = [
    "Link",
    "Stage",
    "active",
    "as_numbers",
    "as_table",
    "carry",
    "check_steps",
    "compose",
    "hands_on",
    "lead",
    "names_after",
    "plan",
    "split",
]

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A transformer on the way from a table to a step, or one of its two parts.

    Attributes
    ----------
    name : str
    step : transformer
    learns : bool
        Whether it is an estimator of erasable; otherwise it is stateless.
    part : {"whole", "raw", "map"}
        A transformer that ends in a map of columns is cut in two: what it does before ("raw"),
        and the map itself ("map"), which is applied to what the first part has made.
    """

    name: str
    step: Any
    learns: bool
    part: Literal["whole", "raw", "map"] = "whole"

    def selects(self) -> bool:
        """Tell whether it only takes some columns, as a part of a `ColumnTransformer` does."""
        return bool(getattr(self.step, "_is_selection", False))

    def maps(self) -> bool:
        """Tell whether it is a map of each column, and nothing else."""
        return self.part == "map" or (self.learns and bool(self.step._is_affine))

    def changes_all(self) -> bool:
        """Tell whether every deletion changes the rows of all records that stay."""
        return self.learns and bool(getattr(self.step, "_changes_all", False))

    def ends_in_map(self) -> bool:
        """Tell whether it ends in such a map, and does something else before."""
        whole = self.part == "whole" and self.learns
        return whole and not self.step._is_affine and bool(self.step._ends_in_map)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One step of a pipeline, and where its input comes from.

    Attributes
    ----------
    name : str
    step : estimator
    learns : bool
        Whether it is an estimator of erasable; otherwise it is stateless.
    table : tuple of Link
        What has to be made into a table for this step to learn from, out of the table that was
        made last (at first, the records).
    maps : tuple of Link
        A chain of maps of columns between that table and this step, which takes it as one map.
    after : tuple of Link
        What lies between the table that was made last and the output of this step.
    """

    name: str
    step: Any
    learns: bool
    table: tuple[Link, ...]
    maps: tuple[Link, ...]
    after: tuple[Link, ...]

    def read(self, rows: Values) -> Values:
        """Make the table that this step learns from, out of rows of the one before."""
        rows = carry(rows, self.table)
        if rows.dtype != object or self._takes_objects():
            return rows
        return as_numbers(rows, f"step {self.name!r}")

    def declared(self) -> tuple[list[str] | None, Flags | None]:
        """Say what a frame declares of the columns of its table, where it only takes some.

        Returns
        -------
        names : list of str, or None
            Where the step asks for columns by name.
        numeric : ndarray of bool, or None
            Which of them hold numbers.
        """
        if len(self.table) > 1 or not self.table[0].selects():
            return None, None
        taken = self.table[0].step
        asked = taken.named and getattr(self.step, "_asks_by_name", False)
        return list(taken.names) if asked else None, taken.numeric

    def _takes_objects(self) -> bool:
        accepts = Accepts.of(self.step)
        return accepts.objects or accepts.documents

    @property
    def tabled(self) -> bool:
        """Whether a table has to be made for this step to learn from."""
        return self.learns and bool(self.table)

    @property
    def mapped(self) -> bool:
        """Whether the step learns behind a map of columns."""
        return self.learns and bool(self.maps)


def active(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that do anything."""
    return [(name, step) for name, step in steps if not (step is None or isinstance(step, str))]


def hands_on(step: Any) -> bool:
    """Tell whether a step hands on what it is given: a pipeline without active steps."""
    return bool(getattr(step, "_hands_on", False))


def split(links: Sequence[Link]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
    """Cut a path in two: what has to be done to rows, and a chain of maps of columns at its end.

    A transformer that ends in a map is cut itself: its raw part is the last of the first path,
    and its map the first of the second.
    """
    cut = len(links)
    while cut and links[cut - 1].maps():
        cut -= 1
    before, maps = tuple(links[:cut]), tuple(links[cut:])
    if before and before[-1].ends_in_map():
        last = before[-1]
        before = (*before[:-1], replace(last, part="raw"))
        maps = (replace(last, part="map"), *maps)
    return before, maps


def plan(steps: Iterable[tuple[str, Any]]) -> list[Stage]:
    """Lay out the active steps."""
    stages: list[Stage] = []
    path: tuple[Link, ...] = ()
    for name, step in active(steps):
        learns = isinstance(step, Erasable)
        table, maps = split(path) if learns and step._takes_affine else (path, ())
        own = Link(name, step, learns)
        path = (*maps, own) if learns and table else (*path, own)
        stages.append(Stage(name, step, learns, table, maps, path))
    return stages


def check_steps(steps: Sequence[tuple[str, Any]]) -> None:
    """Refuse steps that cannot be part of a pipeline.

    Raises
    ------
    InvalidInputError
        There are none.
    UnsupportedStepError
        One that learns but cannot delete, or is no estimator, or hands nothing on.
    """
    if not steps:
        raise InvalidInputError("The pipeline is empty; expected steps. Please add steps.")
    for place, (name, step) in enumerate(steps):
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if isinstance(step, type) or not hasattr(step, "fit"):
            raise UnsupportedStepError(
                f"step {name!r} is {step!r}; expected an estimator or the string 'passthrough' "
                "(Last step of Pipeline should implement fit); pass an instance"
            )
        learns = isinstance(step, Erasable)
        if not learns and get_tags(step).requires_fit:
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which learns from records and cannot "
                "delete them; expected an estimator of erasable, or a stateless transformer; use "
                "its counterpart in erasable, or erasable.Refit as the last step"
            )
        if not hasattr(step, "transform") and (place < len(steps) - 1 or not learns):
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which has no transform; "
                "All intermediate steps should be transformers; put it last, or leave it out"
            )


def compose(maps: Sequence[Link]) -> tuple[Floats, Floats]:
    """Return (shift, scale) of a chain of maps as one map."""
    shift, scale = maps[0].step._affine()
    for link in maps[1:]:
        then_shift, then_scale = link.step._affine()
        shift, scale = shift + scale * then_shift, scale * then_scale
    return shift, scale


def names_after(stages: Iterable[Stage], names: NDArray[Any]) -> NDArray[Any]:
    """Return the names of the columns that steps make of columns of these names.

    Raises
    ------
    InvalidInputError
        A step takes another number of columns, or others.
    """
    for stage in stages:
        try:
            names = stage.step.get_feature_names_out(names)
        except ValueError as error:
            told = f"step {stage.name!r} cannot name its output: {error}"
            raise InvalidInputError(told) from None
    return names


def carry(rows: Values, path: Iterable[Link]) -> Values:
    """Send rows, of which a dense one is float64 and C-contiguous, through transformers.

    Raises
    ------
    InvalidDataError
        A stateless step made something else than a table of finite numbers of them.
    """
    for link in path:
        if link.selects():
            rows = as_table(link.step.transform(rows))
        elif not link.learns:
            rows = _checked(link, link.step.transform(rows), rows)
        elif link.part == "raw":
            rows = as_table(link.step._transform_raw(Rows(rows)))
        elif link.part == "map":
            rows = as_table(link.step._transform_mapped(rows))
        else:
            rows = as_table(link.step.transform(Rows(rows)))
    return rows


def as_table(out: Any, *, fresh: bool = False) -> Values:
    """Bring what a transformer of erasable made into the form in which steps read it.

    What is `fresh` is nobody else's, and need not be copied.
    """
    if issparse(out):
        return canonical(out.astype(np.float64, copy=False), copy=not fresh)
    table = np.asarray(out)
    if table.dtype == object:
        return table
    return np.ascontiguousarray(table, dtype=np.float64)


def as_numbers(table: Values, reader: str, names: Sequence[str] | None = None) -> Values:
    """Turn a table of objects that holds numbers alone into one of numbers.

    Columns of numbers come as objects where the frame that they are from holds text, too.

    Parameters
    ----------
    table : ndarray or csr_array of shape (n_rows, n_columns)
    reader : str
        What it is given to, for messages.
    names : sequence of str, default=None
        Of the columns.

    Raises
    ------
    InvalidDataError
        It holds text.
    """
    if table.dtype != object:
        return table
    try:
        return np.ascontiguousarray(table, dtype=np.float64)
    except ValueError:
        known = [f"x{place}" for place in range(table.shape[1])] if names is None else names
        told = [
            name
            for name, column in zip(known, table.T.tolist(), strict=True)
            if any(isinstance(cell, str) for cell in column)
        ]
        raise InvalidDataError(
            f"{len(told)} columns hold text: {name_some(told)}; expected numbers for {reader}, "
            "which they are given to; give them to an encoder"
        ) from None


def _checked(link: Link, out: Any, rows: Values) -> Values:
    what, n_rows = f"step {link.name!r} made", rows.shape[0]
    if issparse(out):
        raise InvalidDataError(f"{what} a sparse matrix; expected an array; let it make one")
    try:
        matrix = np.ascontiguousarray(out, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"{what} something that is not a table of numbers; expected numbers; change the step"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != n_rows:
        raise InvalidDataError(
            f"{what} an array of shape {matrix.shape} of {n_rows} rows; expected 2 dimensions and "
            "a row for each; change the step"
        )
    strange = ~np.isfinite(matrix)
    if strange.any() and _has_gaps(rows):  # which may pass
        strange &= ~np.isnan(matrix)
    if strange.any():
        raise InvalidDataError(
            f"{what} NaN or infinity in {int(strange.any(axis=0).sum())} columns; "
            "expected finite numbers; change the step, or the values it is given"
        )
    return matrix


def _has_gaps(rows: Values) -> bool:
    cells: Any = rows.data if issparse(rows) else rows
    return bool((cells != cells).any())


def lead(rows: Values, stages: Sequence[Stage]) -> Any:
    """Send rows through all steps but the last; return what the last one is to be given."""
    for stage in stages:
        if stage.tabled:
            rows = stage.read(rows)
    last = stages[-1]
    if last.mapped:
        return Rows(rows, unmapped=True)
    if not last.learns:
        return carry(rows, last.table)
    return Rows(rows)
