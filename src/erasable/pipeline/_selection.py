"""The columns that a part of a column transformer is given, and in which form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from erasable.core.arrays import Flags
from erasable.core.errors import InvalidDataError
from erasable.core.ids import name_some
from erasable.core.messages import refuse_no_texts
from erasable.core.values import Accepts, Values
from erasable.pipeline._reading import as_numbers, as_table


@dataclass
class Selection:
    """Some columns of a table.

    Attributes
    ----------
    columns : list of int
        Their positions.
    names : list of str
        Their names, for messages.
    accepts : Accepts
        What the part takes that reads them. If it takes no text, they have to be numbers.
    named : bool
        Whether the names are those of a frame, by which the part may ask for columns in turn.
    n_features : int
        Of the whole table.
    numeric : ndarray of bool, or None
        Which of the columns a frame declares to hold numbers, where others hold text.
    """

    columns: list[int]
    names: list[str]
    accepts: Accepts
    named: bool
    n_features: int
    numeric: Flags | None = None

    def __post_init__(self) -> None:
        self._text = self.accepts.objects or self.accepts.documents

    def declare(self, numeric: Flags | None) -> None:
        """Learn which columns of the whole table a frame declares to hold numbers."""
        own = None if numeric is None else numeric[self.columns]
        self._text &= own is None or not bool(own.all())
        self.numeric = own if self._text else None

    def take(self, X: Values) -> Values:
        """Copy the columns; a table of objects becomes one of numbers where text is not taken."""
        if X.shape[1] != self.n_features:
            raise InvalidDataError(
                f"ColumnTransformer is given {X.shape[1]} columns by the steps before; expected "
                f"{self.n_features}"
            )
        part = X[:, self.columns]
        if self.accepts.documents:
            refuse_no_texts(part.ravel().tolist(), f" in {self.names[0]!r}")
        if issparse(part) or (part.dtype == object and self._text):
            return as_table(part)
        part = as_numbers(part, "the transformer", self.names)
        missing = self.accepts.missing
        gaps = np.zeros(0, dtype=bool) if missing else np.isnan(part).any(axis=0)
        if gaps.any():
            told = [self.names[place] for place in np.flatnonzero(gaps).tolist()]
            raise InvalidDataError(
                f"X contains NaN in {len(told)} columns: {name_some(told)}; expected finite "
                "numbers for the transformer they are given to; fill them in with SimpleImputer"
            )
        return as_table(part)

    def names_out(self, names: NDArray[Any]) -> NDArray[Any]:
        """Return the names of the columns, out of those of the whole table."""
        return np.asarray(names, dtype=object)[self.columns]
