"""Which columns a part of a `ColumnTransformer` is given, and in which form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.ids import name_some
from erasable.core.values import Accepts, Values
from erasable.pipeline._stages import Stage, as_numbers, plan

__all__ = ["Selection", "is_empty", "plan_part", "positions"]


class Selection(TransformerMixin, BaseEstimator):
    """Take some columns; a stateless step, which learns nothing.

    Parameters
    ----------
    columns : list of int
        Their positions.
    names : list of str
        Their names, for messages.
    text, missing : bool
        Whether whatever reads them takes text, and NaN. If not, they have to be numbers.
    named : bool
        Whether the names are those of a frame, by which the part may ask for columns in turn.
    documents : bool
        Whether whatever reads them takes a column of texts, and nothing else.

    Attributes
    ----------
    numeric : ndarray of bool, or None
        Which of the columns a frame declares to hold numbers, where others hold text.
    """

    _is_selection = True

    def __init__(
        self,
        columns: Sequence[int],
        names: Sequence[str],
        *,
        text: bool,
        missing: bool,
        named: bool,
        documents: bool,
    ) -> None:
        self.columns = columns
        self.names = names
        self.text = text
        self.missing = missing
        self.named = named
        self.documents = documents
        self.numeric: NDArray[np.bool_] | None = None

    def fit(self, X: Any, y: Any = None) -> Selection:
        """Do nothing."""
        return self

    def declare(self, numeric: NDArray[np.bool_] | None) -> None:
        """Learn which columns of the whole table a frame declares to hold numbers."""
        own = None if numeric is None else numeric[list(self.columns)]
        self.text &= own is None or not own.all()
        self.numeric = own if self.text else None

    def transform(self, X: Values) -> Values:
        """Copy the columns; a table of objects becomes one of numbers where text is not taken."""
        part = X[:, list(self.columns)]
        if self.documents:
            wrong = sum(not isinstance(cell, str) for cell in part.ravel().tolist())
            if wrong:
                raise InvalidDataError(
                    f"{wrong} of {part.shape[0]} documents in {self.names[0]!r} are not strings; "
                    "expected one text for each record; fill or drop what is missing"
                )
        if issparse(part) or (part.dtype == object and self.text):
            return part
        part = as_numbers(part, "the transformer", self.names)
        gaps = np.zeros(0, dtype=bool) if self.missing else np.isnan(part).any(axis=0)
        if gaps.any():
            told = [self.names[place] for place in np.flatnonzero(gaps).tolist()]
            raise InvalidDataError(
                f"X contains NaN in {len(told)} columns: {name_some(told)}; expected finite "
                "numbers for the transformer they are given to; fill them in with SimpleImputer"
            )
        return part

    def get_feature_names_out(self, input_features: Any) -> NDArray[Any]:
        """Return the names of the columns."""
        return np.asarray(input_features, dtype=object)[list(self.columns)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def is_empty(columns: Any) -> bool:
    """Tell whether a choice of columns is none, before it is known which there are."""
    if isinstance(columns, str | int | slice) or callable(columns):
        return False
    values = np.asarray(columns)
    return values.size == 0 or (values.dtype == bool and not values.any())


def has_names(columns: Any) -> bool:
    """Tell whether a choice of columns is made by name.

    Examples
    --------
    >>> has_names(["age"]), has_names(slice("age", None)), has_names([0, 1])
    (True, True, False)
    """
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    wanted = [columns] if isinstance(columns, str | int) else np.asarray(columns).tolist()
    return any(isinstance(column, str) for column in wanted)


def plan_part(
    name: str, part: Any, places: list[int], known: list[str], *, named: bool
) -> list[Stage]:
    """Lay out the chain of one part: its columns are selected, then it transforms them."""
    if not places:
        raise InvalidInputError(
            f"{name!r} has no columns; expected at least one; leave it out, or pass an empty list"
        )
    accepts = Accepts(sparse=True, missing=True, objects=True)
    if not isinstance(part, str):
        accepts = Accepts.of(part)
    if accepts.documents and len(places) > 1:
        raise InvalidInputError(
            f"{name!r} reads texts and is given {len(places)} columns; expected one; "
            "make one transformer for each column"
        )
    selection = Selection(
        places,
        [known[place] for place in places],
        text=accepts.objects or accepts.documents,
        missing=accepts.missing,
        named=named,
        documents=accepts.documents,
    )
    return plan([("columns", selection), (name, part)])


def positions(columns: Any, n_features: int, names: Sequence[str] | None, part: str) -> list[int]:
    """Find where columns are.

    Parameters
    ----------
    columns : str, int, slice, or array-like of str, int or bool
        A slice of names includes both ends.
    n_features : int
    names : sequence of str or None
        Of all columns, if they have any.
    part : str
        Name of the transformer, for messages.

    Returns
    -------
    list of int

    Raises
    ------
    InvalidInputError
        If there are no such columns.

    Examples
    --------
    >>> positions(["city", "age"], 3, ["age", "bmi", "city"], "numbers")
    [2, 0]
    >>> positions(slice(1, None), 3, None, "numbers"), positions(-1, 3, None, "last")
    ([1, 2], [2])
    """
    if isinstance(columns, slice):
        ends = [
            end if end is None or not isinstance(end, str) else _place(end, names, part)
            for end in (columns.start, columns.stop)
        ]
        if isinstance(columns.stop, str):
            ends[1] = int(ends[1]) + 1  # type: ignore[arg-type]
        return list(range(n_features))[slice(ends[0], ends[1], columns.step)]
    if callable(columns):
        raise InvalidInputError(
            f"the columns of {part!r} are a function; expected names or positions, which a file "
            "can hold; pass what it returns for your frame"
        )
    wanted = [columns] if isinstance(columns, str | int) else np.asarray(columns).tolist()
    if wanted and all(isinstance(column, bool) for column in wanted):
        if len(wanted) != n_features:
            raise InvalidInputError(
                f"the mask of the columns of {part!r} has {len(wanted)} entries; expected one for "
                f"each of {n_features} columns; pass names or positions"
            )
        return np.flatnonzero(wanted).tolist()
    found = []
    for column in wanted:
        if isinstance(column, str):
            found.append(_place(column, names, part))
        elif isinstance(column, int) and -n_features <= column < n_features:
            found.append(column % n_features)
        else:
            raise InvalidInputError(
                f"{part!r} asks for column {column!r} of {n_features}; expected names, or "
                f"positions from 0 to {n_features - 1}; check the columns"
            )
    return found


def _place(name: str, names: Sequence[str] | None, part: str) -> int:
    if names is None:
        raise InvalidInputError(
            f"{part!r} asks for the column {name!r}, but X has no names; expected a frame; "
            "pass one, or positions of columns"
        )
    if name not in names:
        raise InvalidInputError(
            f"{part!r} asks for the column {name!r}, which X does not have; expected some of "
            f"{name_some(list(names))}; check the spelling"
        )
    return list(names).index(name)
