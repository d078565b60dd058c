"""What every estimator of erasable is: fitted on records keyed by id, and able to forget them.

The law (``bitwise`` exactness): ``fit(D).delete(S)`` and ``fit(D without S)`` are the same model.
Every component of ``state()``, ``digest()`` and the bytes of ``save()`` are equal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from erasable.core._admission import read_records
from erasable.core._all_or_nothing import AllOrNothing
from erasable.core._deleting import delete_or_undo
from erasable.core._fit_info import FitInfo
from erasable.core.artifact import Place
from erasable.core.attachment import Attachment
from erasable.core.changes import Affine
from erasable.core.deletion import Deletion, Outcome
from erasable.core.errors import InvalidIdsError, KeyCollisionError
from erasable.core.growing import Growing
from erasable.core.ids import as_id_array
from erasable.core.inputs import read_matrix
from erasable.core.messages import refuse_parameters, too_few
from erasable.core.params import encode_params
from erasable.core.passes import Stored
from erasable.core.records import Records
from erasable.core.rows import Rows, matrix_of
from erasable.core.seeds import seed_from
from erasable.core.stateful import is_learned
from erasable.core.tape import Tape, any_repeats
from erasable.core.value_hash import ValueHash
from erasable.core.values import Values, refuse_unsuited

__all__ = ["NEVER", "Erasable", "load"]

NEVER = (2**62, 1.0)
"""Of estimators whose deletions decide themselves what learns again: see `_refit_from`."""


class Erasable(Growing):
    """Base of every estimator that can delete records exactly.

    A subclass keeps the law: what it learns is a pure function of its parameters, its tape, and
    the set of live records keyed by id. It must not depend on row order, on rows that are not
    live, or on how many deletions came before. It implements

    - ``_fit_rows()``: learn from ``self._held``: ``.records.matrix[.live]``, drawing only from
      ``self._tape``.
    - ``_delete_rows(rows) -> Outcome``: bring what was learned to what `_fit_rows` would learn now.
      `rows` are positions, ascending and no longer live; they can be read until the call returns,
      and are overwritten after. Everything that can go wrong with the request has been checked: it
      must not raise.
    - ``_state() -> dict``: what was learned and is not derivable: arrays, numbers, strings, and
      dicts of these. Names in ``BASE_STATE`` are taken. Views are fine, `state` copies.
    - ``_restore(state)``: set every attribute that ``_state`` reads and that predicting needs. This
      is how a model comes back from a pickle or a file: *nothing else that was learned is kept*.

    and where it needs to (see also `erasable.core.protocol`)

    - ``_minimum_records() -> int``: fewest records the model can exist with; 1 by default.
    - ``_check_deletion(rows)``: raise TooFewRecordsError if what would be left without these rows,
      all of them still live, cannot be learned from for another reason. It learns nothing.
    - ``_prepare_deletion(rows)``: learn what `_delete_rows` will need, where that may raise; not
      called for steps.
    - ``_reattach()``: make ``self._accelerator`` from ``self._held`` and what was restored. Called
      before the first deletion of a model that came from a pickle or a file, whenever the
      accelerator is None, and by ``load(path, records)``. Raises ArtifactError if the records do
      not fit.
    - ``_learns_from() -> set of str``: which parts of the records what is learned depends on: "X",
      or "values" where `_sees_storage` is False; "y", "numbers" and "sample_weight" by the
      estimator's tags and `_takes_weights`; "groups" where draws are keyed by them.
    - ``_digest_state() -> dict``: ``_state`` with `LeafHash` values in the place of large
      components that did not change.
    - ``_reads_numbers``, ``_heeds_objects``: whether the model is the same for integers as for
      equal floats as targets, so that they may come mixed (that of every regressor by default), and
      whether numbers in a table of objects make another one than in a table of numbers (False).

    A parameter is read with ``_at_fit(name)``: what `set_params` says concerns the next `fit`.

    What depends on the history of deletions (bounds, caches over rows) belongs in the one object
    ``self._accelerator``: it enters neither the state, nor a pickle, nor a file.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if fitted on a frame
    ids_ : ndarray of shape (n_records,)
    seed_ : int, only if the estimator has a parameter `random_state`

    Examples
    --------
    >>> class Counter(Erasable):
    ...     def _fit_rows(self):
    ...         self.count_ = self._held.n_live
    ...     def _delete_rows(self, rows):
    ...         self.count_ -= rows.size
    ...         return Outcome("updated")
    ...     def _state(self):
    ...         return {"count": self.count_}
    ...     def _restore(self, state):
    ...         self.count_ = state["count"]
    >>> counter = Counter().fit([[1.0], [2.0], [3.0]], ids=["a", "b", "c"])
    >>> counter.delete(["b"]).action
    'updated'
    >>> counter.digest() == Counter().fit([[1.0], [3.0]], ids=["a", "c"]).digest()
    True
    """

    exactness: ClassVar[str] = "bitwise"
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _takes_weights: ClassVar[bool] = False
    _refit_from: ClassVar[tuple[int, float]] = (1000, 0.25)
    """How many records, and which share of them, have to go for a fit to be faster than a deletion.

    Measured: ``python benchmarks/against_fits.py --shares``.
    """
    _sees_storage: ClassVar[bool] = True
    """Whether dense and sparse, float32 and float64 may lead to different models."""

    # -- what a subclass implements ------------------------------------------------------------

    def _fit_rows(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not implement _fit_rows()")

    def _delete_rows(self, rows: NDArray[np.int64]) -> Outcome:
        raise NotImplementedError(f"{type(self).__name__} does not implement _delete_rows()")

    def _learns_sooner(self, n_gone: int) -> bool:
        """Tell whether to learn again is faster than to delete so many records."""
        least, share = self._refit_from
        return n_gone >= max(least, share * (self._attached().n_live + n_gone))

    def _minimum_records(self) -> int:
        return 1

    def _minimum_parameter(self) -> str | None:
        """Return the name of the parameter by which it needs that many."""
        return None

    def _prepare_deletion(self, rows: NDArray[np.int64]) -> None:
        return None

    # -- learning ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        ids: str | Iterable[Any] | None = None,
        groups: str | Iterable[Any] | None = None,
        **params: Any,
    ) -> Self:
        """Learn from records.

        Parameters
        ----------
        X : array-like, frame or Records of shape (n_records, n_features)
            Finite numbers, copied; `Records` are shared instead.
        y : array-like of shape (n_records,), default=None
            Targets, where the estimator has any use for them.
        ids : array-like of int or str, or the name of a column, default=None
            Which record each row is. By default a pandas frame's index, or 0..n-1.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together.
        **params : none
            What else scikit-learn's estimators take is refused, and what to do is said.

        Returns
        -------
        self
            The fitted estimator. If anything raises, it is what it was before.

        Raises
        ------
        InvalidDataError, InvalidIdsError
            See `erasable.core.inputs.read_table`.
        TooFewRecordsError
            Fewer records than the model needs.
        """
        refuse_parameters(self, "fit", params)
        return self._fit(X, y, None, ids, groups)

    def _fit(self, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any) -> Self:
        unchanged = AllOrNothing([self])
        with unchanged, unchanged:
            self._forget_learned()
            self._validate_params()
            records = self._read_records(X, y, sample_weight, ids, groups)
            self._draw_seed()
            self._begin(records.attach().of(self))
            self._fit_rows()
            self._info.values = ValueHash.of(self._learns_from(), self._unread_columns())
        return self

    def _read_records(self, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any) -> Records:
        return read_records(self, X, y, sample_weight, ids, groups)

    def _learns_from(self) -> set[str]:
        """Return which parts of records count, see `erasable.core.value_hash.PARTS`."""
        parts = {"X" if self._sees_storage else "values"}
        if get_tags(self).target_tags.required:
            parts.add("numbers" if self._reads_numbers else "y")
        if self._takes_weights:
            parts.add("sample_weight")
        return parts

    def _draw_seed(self) -> None:
        if hasattr(self, "random_state"):
            self.seed_ = seed_from(self.random_state)
            self._tape = Tape(self.seed_)

    def _begin(self, held: Attachment, before: FitInfo | None = None) -> None:
        """Take what is held, and the parameters of the book `before`, or those set now."""
        self._held = held
        self._accelerator = None
        if before is None:
            self._info = FitInfo.of(self, encode_params(self))
        else:
            values = None if before.values is None else before.values.unknown()
            self._info = FitInfo(before.params, decoded=before.decoded, values=values)
        if held.n_live < (least := self._minimum_records()):
            raise too_few(type(self).__name__, least, self._minimum_parameter(), held.n_live)

    def _relearn(self, held: Attachment, affine: Affine | None = None) -> None:
        """Learn again, from the same tape and with the parameters of `fit`.

        `affine` is the map of the steps before, where the model is behind one.
        """
        self._begin_again(held, affine)
        self._fit_rows()

    def _begin_again(self, held: Attachment, affine: Affine | None = None) -> None:
        """Become a model that has not learned yet from what is held; see `_relearn`."""
        before = self.__dict__.get("_info")
        self._forget_learned(but=("_info", "_tape", "feature_names_in_", "n_features_in_", "seed_"))
        names = held.records.feature_names
        refuse_unsuited(self, held.records.matrix, held.live, names)
        self._take_features(held.records.n_features, names)
        if affine is not None:
            self._map = affine
        self._begin(held, before)

    def _forget_learned(self, but: tuple[str, ...] = ()) -> None:
        self.__dict__ = {
            name: value
            for name, value in self.__dict__.items()
            if name in but or not is_learned(name)
        }

    # -- forgetting ----------------------------------------------------------------------------

    def delete(
        self,
        ids: Iterable[Any] | None = None,
        *,
        groups: Iterable[Any] | None = None,
        digest: bool = True,
    ) -> Deletion:
        """Delete records: the model becomes what it would be had it never seen them.

        Parameters
        ----------
        ids : array-like of int or str, default=None
            Records to delete. An empty sequence does nothing.
        groups : array-like of int or str, default=None
            Groups whose records are to be deleted, beside those of `ids`.
        digest : bool, default=True
            Report the digests before and after. Without them a deletion may be much faster.

        Returns
        -------
        Deletion

        Raises
        ------
        UnknownIdError
            Ids that were never there, or are already deleted.
        InvalidIdsError
            Ids that repeat or have a wrong type; a single id that is not in a list.
        TooFewRecordsError
            Fewer records would be left than the model needs.
        DetachedError
            The model was loaded without its records, or is a step of a pipeline.

        Notes
        -----
        All or nothing: an error has changed nothing, and after an interruption (Ctrl-C, no memory)
        `ids_` says which. A second one, as the model learns again, may leave it unfitted.
        """
        began = time.perf_counter()
        self._refuse_if_owned()
        held = self._attached()
        if ids is None and groups is None:
            raise InvalidIdsError(
                "delete was given neither ids nor groups; expected one or both; "
                "pass an empty list to delete nothing"
            )
        rows = held.select(ids, groups)
        least, n = self._minimum_records(), held.n_live
        if rows.size and n - rows.size < least:
            parameter = self._minimum_parameter()
            raise too_few(type(self).__name__, least, parameter, n - rows.size, n)
        before, deleted = self.digest() if digest else None, held.records.ids[rows]
        if rows.size == 0:
            seconds = time.perf_counter() - began
            return Deletion(deleted, self.exactness, "none", {}, 0, before, before, seconds)
        if isinstance(matrix := held.records.matrix, Stored):
            matrix.prepare(rows)
        self._make_ready()
        self._check_deletion(rows)
        self._prepare_deletion(rows)
        outcome = self._delete_checked(held, rows)
        return Deletion(
            deleted,
            self.exactness,
            outcome.action,
            outcome.counts,
            outcome.rows_touched,
            before,
            self.digest() if digest else None,
            time.perf_counter() - began,
        )

    def _make_ready(self) -> None:
        """Rebuild what a deletion needs, where the model came from a file or a pickle."""
        if self._accelerator is None:
            self._reattach()

    def _delete_checked(self, held: Attachment, rows: NDArray[np.int64]) -> Outcome:
        return delete_or_undo(self, held, rows)

    def _abandon(self) -> None:  # once it is half a model
        self._forget_learned()

    # -- what the model is ---------------------------------------------------------------------

    @property
    def ids_(self) -> NDArray[Any]:
        """Ids of the records the model holds, in row order.

        Returns
        -------
        ndarray of shape (n_records,), int64, uint64 or object
        """
        ids = self._attached().ids
        # Of ids that are left: those that are deleted may be of other types, or larger.
        return ids if ids.dtype == np.int64 else as_id_array(ids.tolist())

    def _record_keys(self) -> NDArray[np.uint64]:
        """Return the tape's key of every live record, at its row's position; 0 elsewhere.

        Raises
        ------
        KeyCollisionError
            Two live records share a key.
        """
        if self._info.keys is None:
            held = self._attached()
            live = self._tape.record_keys(held.ids)
            keys = np.zeros(held.records.n_rows, dtype=np.uint64)
            keys[held.live] = live
            if any_repeats(live, self._n_jobs):
                raise KeyCollisionError(
                    f"two of {live.size} ids share a 64-bit record key under seed {self.seed_}; "
                    "expected different keys; choose another random_state"
                )
            self._info.keys = keys
        return self._info.keys

    def _read_matrix(self, X: Any) -> Values:
        """Read what is to be predicted or transformed; see `erasable.core.inputs.read_matrix`."""
        self._check_fitted()
        return matrix_of(X, self) if isinstance(X, Rows) else read_matrix(self, X)


def load(
    path: Place, records: Records | tuple[Any, ...] | Literal[True] | None = None, *,
    vouched: bool = False, trusted: bool = False,
) -> Erasable:  # fmt: skip
    """Read any model of erasable from a file; see `Erasable.load`.

    Examples
    --------
    >>> import tempfile
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [5.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     again = load(f"{folder}/model", ([[1.0], [2.0], [5.0]], [0, 1, 2]))
    >>> again.delete([2]).action, again.ids_.tolist()
    ('updated', [0, 1])
    """
    return Erasable.load(path, records, vouched=vouched, trusted=trusted)
