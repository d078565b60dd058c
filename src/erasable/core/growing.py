"""The half of an estimator that learns of records later: `add`, `correct` and `replace`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from erasable.core._adding import RecordsChange
from erasable.core.deletion import Addition, Correction, Outcome, Replacement
from erasable.core.stateful import Stateful

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Growing"]


class Growing(Stateful):
    """The half of `Erasable` that learns of records that arrive after `fit`, or change.

    The law: ``fit(D).add(T)`` is the model ``fit(D + T)``, and a correction is the model of a fit
    on the corrected records, bit for bit, in any order and any batches, with deletions between.

    A subclass need not do anything: it learns again (`Report.action` is "refit"). One that can do
    better implements `_add_rows` and says so by `_can_add`.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0]])
    >>> digest = model.add([[5.0]], ids=[2]).digest_after
    >>> digest == MinMaxScaler().fit([[1.0], [2.0], [5.0]]).digest()
    True
    """

    def _can_add(self) -> bool:
        """Tell whether `_add_rows` is worth calling, from parameters and what is learned."""
        return False

    def _adds_throughout(self) -> bool:
        """Tell whether all parts can add, where `_can_add` says yes.

        Otherwise nothing is deleted and added in one go: a part that learns again when records come
        has no room for them while others leave.
        """
        return True

    def _take_arrays(self) -> None:
        """Know that the arrays of ``self._held.records`` are others, with room for new rows.

        Called before `_add_rows`, and before `_delete_rows` where rows are exchanged: what refers
        to the arrays is to refer to those that are there now. Rows are where they were.
        """

    def _can_exchange(self) -> bool:
        """Tell whether `_exchange_rows` is worth calling, where `_can_add` says yes."""
        return False

    def _exchange_rows(self, leaving: NDArray[Any], rows: NDArray[Any]) -> Outcome | None:
        """Forget rows and take others in: what `_delete_rows` and `_add_rows` do, in one go.

        Those that leave are not live any more, and can be read; the others are live. None: see
        `_add_rows`.
        """
        return None

    def _add_rows(self, rows: NDArray[Any]) -> Outcome | None:
        """Bring what was learned to what `_fit_rows` would learn now.

        `rows` are positions, ascending, live from now on; they may be those of rows that were
        deleted before. None: it has to learn again; anything may be half-done.
        """
        return None

    def add(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any],
        groups: str | Iterable[Any] | None = None,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> Addition:
        """Add records: the model becomes what it would be had it been fitted on them, too.

        Parameters
        ----------
        X : array-like or frame of shape (n_new, n_features)
            As in `fit`: a frame with the same columns, if that was given a frame.
        y : array-like of shape (n_new,), default=None
            Targets, where the model learns from them.
        ids : array-like of int or str, or the name of a column
            Which record each row is; none of them there already. An id that was deleted may come
            back: that it must not, only you can know.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together, if `fit` was told.
        sample_weight : array-like of shape (n_new,), default=None
            How much each record counts, where the model takes weights; 1 by default.
        digest : bool, default=True
            Report the digests before and after. Without them an addition may be much faster.

        Returns
        -------
        Addition

        Raises
        ------
        InvalidDataError, InvalidIdsError
            Rows with other columns or of another kind, ids that are there already or repeat.
        InvalidInputError
            Other models share the records: call `Records.add`, which all of them follow.
        MagnitudeError
            Values beyond what the model can hold.
        DetachedError
            The model was loaded without its records, or is a step of a pipeline.

        Notes
        -----
        All or nothing, as `delete` is. float32 and float64 values, integers and floats as targets,
        become what they would be in one array. A list takes the type of the records.
        """
        return self._changing(digest=digest).add(X, y, sample_weight, ids, groups)[0]

    def correct(
        self,
        ids: Iterable[Any],
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> Correction:
        """Correct records: the model becomes what it would be had it been fitted on them so.

        Parameters
        ----------
        ids : array-like of int or str
            Records to correct.
        X : array-like or frame of shape (n_ids, n_features), default=None
            What they are, in the order of `ids`; by default what they were.
        y : array-like of shape (n_ids,), default=None
            Targets, by default what they were.
        sample_weight : array-like of shape (n_ids,), default=None
            Weights, by default what they were.
        digest : bool, default=True
            Report the digests before and after.

        Returns
        -------
        Correction
            Its `ids` are those of records that have other values now. If there are none, its
            `action` is "none".

        Raises
        ------
        UnknownIdError
            Ids that were never there, or are deleted.
        InvalidDataError, InvalidIdsError, InvalidInputError, MagnitudeError, DetachedError
            See `add`.

        Notes
        -----
        What was wrong is overwritten, as by a deletion. Corrected records may be at other places
        of ``ids_``.
        """
        return self._changing(digest=digest).correct(ids, X, y, sample_weight)[0]

    def replace(
        self,
        delete: Iterable[Any],
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any],
        groups: str | Iterable[Any] | None = None,
        sample_weight: Any = None,
        digest: bool = True,
    ) -> Replacement:
        """Delete records and add others in one update: a window that moves.

        Parameters
        ----------
        delete : array-like of int or str
            Ids of the records to delete.
        X, y, ids, groups, sample_weight, digest
            See `add`. An id that is deleted here may be among `ids`.

        Returns
        -------
        Replacement

        Raises
        ------
        TooFewRecordsError
            Fewer records would be there than the model needs.
        UnknownIdError, InvalidDataError, InvalidIdsError, InvalidInputError, MagnitudeError
            See `add`.
        """
        change = self._changing(digest=digest)
        return change.replace(delete, X, y, sample_weight, ids, groups)[0]

    def _changing(self, *, digest: bool) -> RecordsChange:
        self._refuse_if_owned()
        return RecordsChange(self._attached().records, self, digest=digest)
