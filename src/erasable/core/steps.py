"""What a pipeline hands from step to step: rows that were read before, and tables it made.

A step of a pipeline is an ordinary estimator that is spoken to in these terms, so that deletions
pass as changes and not as matrices. `erasable.pipeline` says who tells what to whom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from erasable.core.errors import InvalidDataError
from erasable.core.records import Attachment, Records
from erasable.core.values import Values

__all__ = ["Rows", "View", "matrix_of"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a pipeline has read and checked; whoever gets them need not do it again.

    Attributes
    ----------
    matrix : ndarray of shape (n_rows, n_features), float64 or object; or csr_array
    unmapped : bool
        Whether the step, which learned from records before a map was applied to them, is given
        such rows, and not mapped ones as from everybody else.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> MinMaxScaler().fit([[1.0], [3.0]]).transform(Rows(np.array([[2.0]])))
    array([[0.5]])
    """

    matrix: Values
    unmapped: bool = False


def matrix_of(rows: Rows, model: Any) -> Values:
    """Return the matrix of rows that a step is given.

    Raises
    ------
    InvalidDataError
        It has another width than the step: these are steps from a file, which do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.preprocessing import MinMaxScaler
    >>> matrix_of(Rows(np.zeros((1, 2))), MinMaxScaler().fit([[1.0], [3.0]]))
    Traceback (most recent call last):
    erasable.core.errors.InvalidDataError: MinMaxScaler is given 2 columns by the steps before; ...
    """
    if rows.matrix.shape[1] != model.n_features_in_:
        raise InvalidDataError(
            f"{type(model).__name__} is given {rows.matrix.shape[1]} columns by the steps before; "
            f"expected {model.n_features_in_}"
        )
    return rows.matrix


class _Table(Records):
    """Other values for the same records: whose they are, and who holds them, is shared."""

    def __init__(self, records: Records, matrix: Values | Callable[[], Values]) -> None:
        self.__dict__.update(records.__dict__)
        self.__dict__.pop("matrix", None)
        self._matrix = matrix
        self.feature_names = self.numeric = None

    @property
    def matrix(self) -> Values:
        """The values, made by now."""
        if callable(self._matrix):
            self._matrix = self._matrix()
        return self._matrix

    @matrix.setter
    def matrix(self, matrix: Values) -> None:
        self._matrix = matrix


class View(Attachment):
    """A hold on records that shows a table made of them, row by row, in the place of theirs.

    The hold itself is the pipeline's: it alone excludes and releases rows, and overwrites those
    of the table.

    Parameters
    ----------
    held : Attachment
        The pipeline's hold.
    matrix : ndarray of shape (n_rows, n_features_out), or csr_array, or callable
        One row for each of the records, in their order; those not live are blank. A callable
        makes it when somebody asks for it.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.core.records import Records
    >>> held = Records([[1.0], [2.0], [3.0]], ids=["a", "b", "c"]).attach()
    >>> view = View(held, np.array([[1.0, 1.0], [2.0, 4.0], [3.0, 9.0]]))
    >>> held.exclude(np.array([1]))
    >>> view.records.matrix[view.live].tolist(), view.ids.tolist(), view.n_live
    ([[1.0, 1.0], [3.0, 9.0]], ['a', 'c'], 2)
    """

    def __init__(self, held: Attachment, matrix: Values | Callable[[], Values]) -> None:
        self.held = held
        self.records = _Table(held.records, matrix)
        self.live = held.live
        self.vouched = held.vouched

    @property
    def n_live(self) -> int:  # type: ignore[override]
        """Number of live rows."""
        return self.held.n_live
