"""The interface of estimators that are steps of a pipeline; all of it has defaults."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from erasable.core._column_choice import Columns
from erasable.core.arrays import Floats, Ints, Values
from erasable.core.changes import VALUES, Affine, TableChange
from erasable.core.matrices import to_dense
from erasable.core.rows import Rows
from erasable.core.sparse import by_column, canonical

__all__ = ["Learner", "Transformer"]


class Learner:
    """A step as it learns from a table, and deletes.

    A pipeline calls `_relearn`, and later `_check_deletion` of every step before it changes any.
    Then it calls `_update`, whose `erasable.core.changes.Delta` says what has changed in the table;
    where it returns None, the step learns again. The table is ``self._held.records.matrix``, as it
    is after the change.

    A step with `_takes_map` learns from a table that the steps before have not scaled: it reads
    ``self._map``, and learns what it would have learned from scaled values. The pipeline sets
    ``_map`` before it learns and before each deletion. The public methods take scaled rows, except
    for `erasable.core.rows.Rows` that say otherwise.

    Examples
    --------
    >>> from erasable.linear_model import LogisticRegression
    >>> from erasable.pipeline import make_pipeline
    >>> from erasable.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model.fit([[1.0], [3.0]], [0, 1])[-1]._map
    Affine(shift=array([2.]), scale=array([1.]))
    """

    _takes_map: ClassVar[bool] = False
    _map: Affine | None = None
    _has_to_fit_again: bool = False
    """Whether the values in a file were not taken over: the step learns once it has records."""
    _checks_gaps: bool = False
    """Whether the step itself refuses NaN, by column, although its tags do not allow NaN."""

    _as_if_dense: ClassVar[bool] = False
    """Whether the model of a sparse table is that of the same values in a dense one."""

    _rounds_numbers: ClassVar[bool] = False
    """Whether whole numbers among objects may be rounded to floats."""

    _reads_blocks: ClassVar[bool] = False
    """Whether estimators of this class learn from features block by block, see `passes.Stored`."""

    _instead_of_memory: ClassVar[str] = ""
    """Advice, in an error, where an estimator that reads no blocks gets stored features."""

    _reads_remote_blocks: ClassVar[bool] = True
    """Whether those that learn block by block do so where the blocks are in other processes."""

    def _not_by_blocks(self, *, remote: bool) -> list[Learner]:
        """Return its parts, or itself, that do not learn block by block."""
        return [] if self._reads_blocks and (self._reads_remote_blocks or not remote) else [self]

    def _can_read_blocks(self, *, remote: bool = False) -> bool:
        """Tell whether it learns from records whose features lie in files, or on a cluster."""
        return not self._not_by_blocks(remote=remote)

    @property
    def _n_jobs(self) -> int | None:
        """The number of threads: what the parameter is now, and not what it was at `fit`."""
        return getattr(self, "n_jobs", None)

    def _check_deletion(self, rows: Ints) -> None:
        """Raise TooFewRecordsError if what is left without live rows cannot be learned from.

        Nothing is changed, and nothing is learned.
        """

    @property
    def _marks_unread_text(self) -> bool:
        """Whether columns of text that are not read still hold text, as in `Records`."""
        return True

    def _unread(self, columns: Columns) -> list[int]:
        """Return the positions of columns of X that it does not read; once fitted, of the fit."""
        return []

    def _check_targets(self, y: Any) -> None:
        """Raise InvalidDataError for targets that parameters forbid; it need not be fitted.

        So a correction is refused before anything waits for it.
        """

    def _leave_one_out_predictions(self, rows: Ints) -> Floats | None:
        """Predict each of `rows` by the model without it, shape (n_rows, n_targets).

        Bit for bit what a copy of the model predicts for a record after it has deleted that record
        alone. None: the step has no faster way than to delete one record after another.
        """
        return None

    def _comes_mapped(self, X: Any) -> bool:
        """Tell whether the rows that a method gets have passed the map before the step."""
        return self._map is not None and not (isinstance(X, Rows) and X.unmapped)

    def _mapped(self, values: Values) -> Values:
        """Apply the map of the steps before to values of each column."""
        if self._map is None:
            return values
        shift, scale = self._map
        if issparse(values) and not shift.any():
            return by_column(np.divide, values, scale)
        mapped = (to_dense(values) - shift) / scale
        return canonical(mapped) if issparse(values) else mapped

    def _unmapped(self, values: Values) -> Values:
        """Invert the map of the steps before for values of each column."""
        return values if self._map is None else values * self._map.scale + self._map.shift


class Transformer:
    """A step as it makes a table for the next one.

    Its ``transform`` is a function of each row alone, to the last bit. It gets rows that the
    pipeline has read as `erasable.core.rows.Rows`.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> scaler = MinMaxScaler().fit([[1.0], [2.0], [3.0]])
    >>> scaler.delete([1]).action, bool(scaler._output_change())
    ('updated', False)
    >>> scaler.delete([2]).action, bool(scaler._output_change())
    ('updated', True)
    """

    _change: TableChange = VALUES
    _makes_dense: ClassVar[bool] = False
    """Whether its output is always dense, so that later steps of a pipeline take sparse records."""

    @property
    def _is_map(self) -> bool:
        """Whether it does no more than map each column by ``(x - shift) / scale``."""
        return False

    def _affine(self) -> Affine:
        """Return that map."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _affine()")

    def _output_change(self) -> TableChange:
        """Return what the last `_update` changed in its output for records that stay.

        By default any value may have changed: the next step resumes, or learns again.
        """
        return self._change

    @property
    def _changes_all(self) -> bool:
        """Whether every deletion changes its output for all records.

        After loading, such a table is made only when it is read.
        """
        return False

    def _transform_held(self, rows: Ints) -> Values | None:
        """Return its output for live rows from a cache, as a new array; None without a cache."""
        return None
