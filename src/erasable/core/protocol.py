"""What a pipeline asks of the estimators that are its steps: all of it has defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from erasable.core.arrays import Floats, Ints
from erasable.core.changes import VALUES, Affine, TableChange
from erasable.core.rows import Rows
from erasable.core.sparse import by_column, canonical

if TYPE_CHECKING:
    from erasable.core._column_choice import Columns
    from erasable.core.deletion import Outcome
    from erasable.core.values import Values

__all__ = ["Learner", "Transformer"]


class Learner:
    """The half of a step that learns from a table, and deletes.

    A pipeline calls `_relearn`, and later `_check_deletion` of every step before it changes any.
    Then a step whose table has only lost rows is told so by ``_delete_rows(rows)``; one whose
    table has other values, too, by `_update_rows` or `_resume`. Where these return None it learns
    again. The table is ``self._held.records.matrix`` and is as it is after the deletion.

    A step with `_takes_map` learns from a table that steps before it did not scale yet: it reads
    ``self._map`` and learns what it would have learned from scaled values. The pipeline sets
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
    """Whether the file's fitted values were not taken over, so that the step learns as soon as it
    has records."""
    _checks_gaps: bool = False
    """Whether the step refuses NaN itself, in the columns where its parts take none, although its
    tags say that it takes none at all."""

    _as_if_dense: ClassVar[bool] = False
    """Whether the model of a sparse table is that of the same values in a dense one."""

    _reads_blocks: ClassVar[bool] = False
    """Whether estimators of this class learn from features block by block, see `passes.Stored`."""

    _instead_of_memory: ClassVar[str] = ""
    """What to do where an estimator that reads no blocks is given more than fits in memory."""

    _reads_remote_blocks: ClassVar[bool] = True
    """Whether those that learn block by block do so where the blocks are in other processes."""

    def _not_by_blocks(self, *, remote: bool) -> list[Learner]:
        """Return the parts of it, or itself, that do not learn block by block."""
        return [] if self._reads_blocks and (self._reads_remote_blocks or not remote) else [self]

    def _can_read_blocks(self, *, remote: bool = False) -> bool:
        """Tell whether it learns from records whose features lie in files, or on a cluster."""
        return not self._not_by_blocks(remote=remote)

    @property
    def _n_jobs(self) -> int | None:
        """In how many threads it works: what the parameter says now, and not what it did at fit."""
        return getattr(self, "n_jobs", None)

    def _check_deletion(self, rows: Ints) -> None:
        """Raise TooFewRecordsError if what is left without rows cannot be learned from.

        Nothing is changed, and nothing is learned. The rows are still live.
        """

    @property
    def _marks_unread_text(self) -> bool:
        """Whether text stands in columns of text that are not read: as `Records` have it there."""
        return True

    def _unread(self, columns: Columns) -> list[int]:
        """Return the positions of columns of X that no part of it looks at.

        Once it is fitted, those of the fit. What stands in them is neither read nor kept.
        """
        return []

    def _check_targets(self, y: Any) -> None:
        """Raise InvalidDataError where targets are none that parameters let the model learn.

        It need not be fitted: so a correction is refused before anything waits for it.
        """

    def _update_rows(self, rows: Ints, changed: Ints, before: Any) -> Outcome | None:
        """Delete `rows`; the rows `changed` of the table had the values `before`.

        None, before anything is changed: the step has to learn again.
        """
        return None

    def _resume(self, rows: Ints, origin: Ints, *, come: bool = False) -> Outcome | None:
        """Delete `rows`, or take those in that `come`, where the whole table is another.

        Any value may be another one, and column j is what ``origin[j]`` was, or new if that is -1.

        None, before anything is changed: the step has to learn again.
        """
        return None

    def _leave_one_out_predictions(self, rows: Ints) -> Floats | None:
        """Predict each of `rows` by the model without it, shape (n_rows, n_targets).

        Bit for bit what a copy of the model predicts for a record after it has deleted that record
        alone. None: the step has no faster way than to delete one record after another.
        """
        return None

    def _map_state(self) -> dict[str, Any]:
        """Return what the state says of the map behind which the step has learned."""
        if self._map is None:
            return {}
        return {"map": {"shift": self._map.shift, "scale": self._map.scale}}

    def _restore_map(self, state: dict[str, Any]) -> None:
        if "map" in state:
            self._map = Affine(state["map"]["shift"], state["map"]["scale"])

    def _comes_mapped(self, X: Any) -> bool:
        """Tell whether rows that a method is given have passed a map behind which it learned."""
        return self._map is not None and not (isinstance(X, Rows) and X.unmapped)

    def _mapped(self, values: Values) -> Values:
        """Return what the steps before make of values of each column."""
        if self._map is None:
            return values
        shift, scale = self._map
        if issparse(values) and not shift.any():
            return by_column(np.divide, values, scale)
        mapped = ((values.toarray() if issparse(values) else values) - shift) / scale
        return canonical(mapped) if issparse(values) else mapped

    def _unmapped(self, values: Values) -> Values:
        """Return values of each column from which the steps before make these."""
        return values if self._map is None else values * self._map.scale + self._map.shift


class Transformer:
    """The half of a step that makes a table for the next one.

    Its ``transform`` is a function of each row alone, to the last bit. For rows that the pipeline
    has read it is given `erasable.core.rows.Rows`.

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

    @property
    def _is_map(self) -> bool:
        """Whether it maps each column on its own by ``(x - shift) / scale``, and does no more."""
        return False

    def _affine(self) -> Affine:
        """Return that map."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _affine()")

    def _output_change(self) -> TableChange:
        """Return what the last ``_delete_rows`` changed in its output for records that stay.

        By default any value may be another one: the next step resumes, or learns again, at every
        deletion.
        """
        return self._change

    @property
    def _changes_all(self) -> bool:
        """Whether every deletion changes its output for all records.

        After loading, a table is not made then before it is asked for.
        """
        return False

    def _transform_held(self, rows: Ints) -> Values | None:
        """Return its output for live records at these positions from a cache, as a new array.

        None: there is no cache; transform them.
        """
        return None
