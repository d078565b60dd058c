"""The base of all estimators: fitted on records keyed by id, and able to delete, add and correct.

The law (``bitwise`` exactness): ``fit(D).delete(S)`` and ``fit(D without S)`` are the same model.
Every component of ``state()``, ``digest()`` and the bytes of ``save()`` are equal.
"""

from __future__ import annotations

import copy
import importlib
import time
from collections.abc import Iterable
from typing import Any, Literal, Self, cast

from sklearn.base import clone

from erasable.core._adding import RecordsChange
from erasable.core._admission import read_records, records_for, refuse_records, telling_form
from erasable.core._changing import AllOrNothing, Exclusion, carry_out, learn_and_compare
from erasable.core._fit_info import (
    FitInfo,
    is_learned,
    owned_copy,
)
from erasable.core._schema import BASE_STATE
from erasable.core._untrusted_models import check_base, check_learned, read_model
from erasable.core.artifact import Place, write_artifact
from erasable.core.attachment import Attachment
from erasable.core.changes import Affine
from erasable.core.deletion import Addition, Correction, Deletion, Outcome, Replacement
from erasable.core.errors import (
    ArtifactError,
    ErasableError,
    InvalidIdsError,
)
from erasable.core.mapped import beside
from erasable.core.messages import refuse_parameters, too_few
from erasable.core.model import Model
from erasable.core.params import class_path, decode_param, is_encoded
from erasable.core.records import Records
from erasable.core.tape import Tape
from erasable.core.value_hash import ValueHash

__all__ = ["NEVER", "Erasable", "load"]

NEVER = (2**62, 1.0)
"""`_refit_from` of estimators that decide in a deletion what learns again."""


class Erasable(Model):
    """Base of every estimator that can delete records exactly.

    A subclass keeps the law: what it learns is a pure function of its parameters, its tape, and
    the set of live records keyed by id. It must not depend on row order, on rows that are not
    live, or on how many deletions came before. It implements

    - ``_fit_rows()``: learn from the live rows of ``self._attached()``, drawing only from
      ``self._tape``.
    - ``_update(delta) -> Outcome or None``: bring what was learned to what `_fit_rows` would learn
      now, after records have left and others have arrived; see `erasable.core.changes.Delta`. None:
      the model has to learn again; anything may be half-done. Where rows only leave, the request
      has been checked: it must not raise.
    - ``_fields``: names of the attributes that hold what was learned and is not derivable: arrays,
      numbers, strings, and dicts of these. The state has them, without underscores around their
      names. Those in ``BASE_STATE`` are reserved. A model comes back from a pickle or a file with
      these attributes: *nothing else that was learned is kept*.

      Where attributes hold something else, ``_state() -> dict`` returns the state (views are fine,
      `state` copies), and ``_restore(state)`` sets every attribute that ``_state`` reads and that
      predicting needs.

    and where it needs to (see also `erasable.core.protocol`)

    - ``_schema()``: what `_state` holds, so that a damaged or crafted file is refused.
    - ``_minimum_records() -> int``: fewest records the model can exist with; 1 by default.
    - ``_check_deletion(rows)``: raise TooFewRecordsError if what would be left without these rows,
      all of them still live, cannot be learned from for another reason. It learns nothing.
    - ``_reattach()``: make ``self._accelerator`` from the records and what was restored. Called
      before the first deletion of a model that came from a pickle or a file, whenever the
      accelerator is None, and by ``load(path, records)``. Raises ArtifactError if the records do
      not fit. With ``_attaches_by_learning = True`` the model learns again, and compares.
    - ``_adds``, ``_adds_stored``: whether `_update` follows rows that arrive; where they are
      stored.
    - ``_follows_table``: whether `_update` follows other values in rows that stay.
    - ``_updates_in_place``: False where `_update` replaces attributes, and changes nothing that
      they refer to; it is then undone without learning again.
    - ``_learns_from() -> set of str``: the parts of the records that the model depends on: "X", or
      "values" where `_sees_storage` is False; "y", "numbers" and "sample_weight" by the
      estimator's tags and `_takes_weights`; "groups" where draws are keyed by them.
    - ``_reads_numbers``: whether integers and equal floats as targets lead to the same model, so
      that they may be mixed; by default in regressors.
    - ``_heeds_objects``: whether numbers in a table of objects lead to another model than in a
      table of numbers; by default they do not.
    - ``_digest_state() -> dict``: ``_state`` with `LeafHash` values in the place of large
      components that did not change.

    Parameters are read with ``_at_fit(name)``, because `set_params` concerns the next `fit`.

    What depends on the history of deletions (bounds, caches over rows) belongs in the one object
    ``self._accelerator``: it is in neither the state, nor a pickle, nor a file.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, only if fitted on a frame
    ids_ : ndarray of shape (n_records,)
    seed_ : int, only if the estimator has a parameter `random_state`

    Examples
    --------
    >>> class Counter(Erasable):
    ...     _fields = ("count_",)
    ...     def _fit_rows(self):
    ...         self.count_ = self._held.n_live
    ...     def _update(self, delta):
    ...         self.count_ += delta.arriving.size - delta.leaving.size
    ...         return Outcome("updated")
    >>> counter = Counter().fit([[1.0], [2.0], [3.0]], ids=["a", "b", "c"])
    >>> counter.delete(["b"]).action
    'updated'
    >>> counter.digest() == Counter().fit([[1.0], [3.0]], ids=["a", "c"]).digest()
    True
    """

    def _reattach(self) -> None:
        if self._attaches_by_learning:
            learn_and_compare(self)

    # -- learning ----------------------------------------------------------------------------------

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
            Targets, where the estimator learns from them; ignored otherwise.
        ids : array-like of int or str, or the name of a column, default=None
            Which record each row is. By default a pandas frame's index, or 0..n-1.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together.
        **params : none
            Other parameters that scikit-learn's estimators take are refused, with advice.

        Returns
        -------
        self
            The fitted estimator. If anything raises, it is what it was before.

        Raises
        ------
        InvalidDataError
            Values that the estimator does not take, or none.
        InvalidIdsError
            Ids or groups that repeat, have a wrong type, or do not match the rows.
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

    # -- deleting ----------------------------------------------------------------------------------

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
            Report the digests before and after. Without, a deletion may be much faster.

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
        All or nothing: an error has changed nothing. After an interruption (Ctrl-C, no memory)
        `ids_` tells whether the records were deleted. A second interruption, while the model learns
        again, may leave it unfitted.
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
        outcome = Outcome("none", 0, {})
        if rows.size:
            held.records.prepare(rows)
            self._make_ready()
            self._check_deletion(rows)
            (outcome,) = carry_out(Exclusion(held, rows), [(held, self)])
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

    # -- adding and correcting ---------------------------------------------------------------------

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
            Which record each row is; none of them there already. Ids that were deleted are not
            remembered: they may be added again.
        groups : array-like of int or str, or the name of a column, default=None
            Which records leave together; required if `fit` had groups.
        sample_weight : array-like of shape (n_new,), default=None
            How much each record counts, where the model takes weights; 1 by default.
        digest : bool, default=True
            Report the digests before and after. Without, an addition may be much faster.

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
        """Correct records: the model becomes what it would be had it been fitted on the new values.

        Parameters
        ----------
        ids : array-like of int or str
            Records to correct.
        X : array-like or frame of shape (n_ids, n_features), default=None
            New values, in the order of `ids`; by default what they were.
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
        The old values are overwritten, as by a deletion. Corrected records may move in ``ids_``.
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
        """Delete records and add others in one update, as for a moving window.

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

    # -- state and digest --------------------------------------------------------------------------

    def _seeds(self) -> dict[str, int]:
        """Return the seeds that were drawn, by the names of the parameters that fix them."""
        parts = {"": self, **self.get_params(deep=True)}
        return {
            f"{name}__random_state".removeprefix("__"): part.seed_
            for name, part in parts.items()
            if isinstance(part, Erasable) and hasattr(part, "seed_")
        }

    def _seeded_clone(self) -> Self:
        """Make an unfitted copy that will learn as this model did, for `audit.refit`."""
        self._refuse_if_owned()
        fresh: Self = clone(self)
        for name, encoded in self._info.params.items():
            if not is_encoded(getattr(fresh, name), encoded):
                setattr(fresh, name, decode_param(encoded))
        fresh.set_params(**self._seeds())
        return fresh

    # -- files and copies --------------------------------------------------------------------------

    def save(self, path: Place, *, records: bool = False) -> None:
        """Write the model to a file, without pickle, and by default without its records.

        Equal models are equal files. The file is complete or absent, never half-written.

        Parameters
        ----------
        path : path-like, or binary file
            Replaced if it exists; a file is written to, and stays open.
        records : bool, default=False
            Keep the records, too, in a folder ``<path>.records``; see `load`. Only changes are
            written. Otherwise such a folder is removed.

        Raises
        ------
        ArtifactNotFoundError, ArtifactFileError
            No such folder, or nothing can be written there; what was there before still is.
        ArtifactError
            The folder ``<path>.records`` is a symbolic link, or holds what no `save` wrote.
        """
        beside.refuse_others(path, records=records)
        if records:
            beside.save_records(self, path)
        header: dict[str, Any] = {"class": class_path(type(self)), "digest": self.digest()}
        if (told := self._info.written_values(self._held)) is not None:
            header["records"] = told
        write_artifact(path, header, self._whole_state(self._state()))
        (beside.recover_records if records else beside.drop_records)(self, path)

    def to_sklearn(self, *, records: bool = False) -> Any:
        """Make a fitted estimator of scikit-learn that predicts what this model predicts.

        It needs nothing of erasable: it can be pickled, explained, converted and served where
        scikit-learn alone is installed.

        **It is a snapshot.** It holds no ids, and it knows of no deletion that comes after it.
        Export and deploy again after each deletion, and destroy what was exported before, with its
        copies: a deletion that does not reach what is deployed has not been carried out.

        Parameters
        ----------
        records : bool, default=False
            Whether you know that the estimator may hold records. Nearest neighbours and kernel
            densities *are* their records, and so are some estimators behind `Refit`, such as
            support vector machines. Without, an `ExportWarning` says so.

        Returns
        -------
        estimator of scikit-learn
            Of the same name, where there is one, and with the parameters of the fit that it shares.
            k-means of any kind becomes `KMeans`; `RandomFourierRidge` a pipeline of `RBFSampler`
            and `Ridge`; shards become `VotingClassifier` or `VotingRegressor`; `Refit` a copy of
            its fitted estimator; pipelines and column transformers those of scikit-learn.

        Raises
        ------
        ExportError
            scikit-learn has no such estimator, or none that predicts the same.
        DetachedError
            The model was loaded without records, and boosting splits at text, of which it keeps
            hashes.
        NotFittedError
            The model is not fitted.

        Notes
        -----
        Predictions, probabilities and transforms agree to rounding, about 1e-9 of the scale of the
        values, for what this model takes. The estimator may take more, such as sparse data. They
        may differ where scikit-learn computes otherwise:

        - Trees compare values that are rounded to float32 with thresholds in float64. Rows of
          float32 values come to the same leaves. Others may not if a value is within rounding (6e-8
          of itself) of a threshold; behind a scaler of a pipeline, this goes for scaled values.
          Values beyond 3e38 are refused, and those below 1e-45 become 0. The impurity of a
          regression tree's nodes is what the splits below take away; ``n_node_samples`` are
          weights, rounded.
        - Boosting does the same in float64. It splits at a category by comparing it with numbers,
          and does not count records in its nodes.
        - k-means here rounds rows to 26 bits of the records' range, and compares exactly; distances
          agree to 1e-8 of the largest value. Two nearest records or centroids at the same distance
          may come in another order. `KMeans` raises ValueError for rows of float32; pass float64.
        - `NearestCentroid` subtracts squares, and loses the digits of columns that are far from 0,
          such as timestamps; scale them first.
        - Steps of a pipeline keep float32, where rows are float32, and agree to 1e-6.
        - `None` is a gap here; pass NaN to scikit-learn's encoders and imputers.
        - A row that is impossible in every class of a naive Bayes classifier (with ``alpha=0`` or
          ``var_smoothing=0``) gets NaN.
        - What is learned of single records, such as ``labels_``, is left out.

        Examples
        --------
        >>> import numpy as np
        >>> from erasable.linear_model import Ridge
        >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0], [9.0, 1.0]])
        >>> y = np.array([6.0, 8.0, 9.0, 11.0, 90.0])
        >>> model = Ridge(alpha=0.5).fit(X, y, ids=["a", "b", "c", "d", "e"])
        >>> deployed = model.to_sklearn()
        >>> type(deployed).__module__.partition(".")[0]
        'sklearn'
        >>> bool(np.allclose(deployed.predict(X), model.predict(X), rtol=1e-12))
        True

        After a deletion, another one is to be deployed:

        >>> model.delete(["e"]).action
        'updated'
        >>> deployed = model.to_sklearn()
        >>> deployed.coef_.round(3)
        array([0.909, 1.636])
        """
        self._check_fitted()
        # By name, and when it is needed, because it imports all estimators.
        exporters = importlib.import_module("erasable.export._exporters")
        return exporters.export(self, self._at_fit, self._held, records=records)

    @classmethod
    def load(
        cls,
        path: Place,
        records: Records | tuple[Any, ...] | Literal[True] | None = None,
        *,
        vouched: bool = False,
        trusted: bool = False,
    ) -> Self:
        """Read a model from a file.

        Parameters
        ----------
        path : path-like, or binary file
            Written by `save`; a file is read to its end.
        records : Records, a tuple, or True, default=None
            The records it was fitted on without those it has deleted; True: those that `save`
            kept, read as far as they are needed. Without records the model predicts, but cannot
            delete. A tuple is (X, y), (X, y, ids) or (X, y, ids, groups) where the model learns
            from targets, and otherwise (X, ids), (X, ids, groups) or (X, y, ids, groups), whose y
            is ignored.
        vouched : bool, default=False
            Whether the caller answers for the values of the records, for example by a hash of
            them. Then only their ids are compared with the model's, and models that would learn
            again to check the values are loaded faster.
        trusted : bool, default=False
            Whether the file is the caller's own, so that states of scikit-learn's estimators are
            taken as they are. Otherwise they are checked, or fitted again; see
            `erasable.refit.Refit`.

        Returns
        -------
        Erasable
            Its parameters are those of the fit, whatever was set afterwards; its `random_state`,
            if it has one, is the seed of the saved model.

        Raises
        ------
        ArtifactNotFoundError
            There is no such file.
        ArtifactError
            The file cannot be read, is damaged, has no model of this class, does not match the
            records, or has to be trusted.

        Notes
        -----
        Records are compared with the file, which has a hash of their ids, and one of all their
        values that the model has learned from. Their order does not count; whether they are dense
        or sparse, float32 or float64, does. Where the model was fitted on a table of objects, a
        list or an array of objects is read as one, also without text. Files of older versions have
        no hash of values: ids are compared, and what can be derived from the state.
        """
        if records is True:
            return cast(Self, beside.load_with_records(cls, path, trusted=trusted))
        model: Self = read_model(cls, path, trusted=trusted, with_records=records is not None)
        if records is not None:
            with telling_form(model, records):
                model._attach_to(records, vouched)
        return model

    def _attach_to(self, records: Records | tuple[Any, ...], vouched: bool = False) -> None:
        records = records_for(self, records)
        held = records.attach()
        held.vouched = vouched
        if not self._info.matches(held):
            raise ArtifactError(
                f"the {held.n_live} records are not the {self._info.n_records} of the model; "
                "expected those it was fitted on, without those it has deleted; "
                "check their ids, and load again"
            )
        self._held = held.of(self)
        try:
            self._refuse_mixed_numbers(records)
            refuse_records(self, records)
            self._reattach()
        except ArtifactError:
            raise
        except ErasableError as error:  # it could not have learned from such records
            raise ArtifactError(f"the records are not those of the model: {error}") from None
        # Last: `_reattach` raises a more precise error, where the state shows the difference.
        if self._info.values is None:
            self._info.values = ValueHash.of(self._learns_from(), self._unread_columns())
        elif not vouched:
            self._info.values = self._info.values.check(held)

    def _adopt(
        self, state: dict[str, Any], held: Attachment | None, *, foreign: bool = False
    ) -> None:
        """Become the model that a whole state describes; a foreign state is checked first."""
        if foreign:
            check_base(self, state)
        if state["algorithm_version"] != self.algorithm_version:
            raise ArtifactError(
                f"the model was made by version {state['algorithm_version']} of the algorithm of "
                f"{type(self).__name__}; expected {self.algorithm_version}; fit again"
            )
        self._take_features(state["n_features"], state["feature_names"])
        if state["seed"] is not None:
            self.seed_ = state["seed"]
            self._tape = Tape(self.seed_)
        self._held = None if held is None else held.of(self)
        self._accelerator = None
        known = {"n_records": state["n_records"], "id_set": state["record_set"]}
        self._info = FitInfo.of(self, state["params"], foreign=foreign, **known)
        learned = {name: value for name, value in state.items() if name not in BASE_STATE}
        if foreign:
            check_learned(self, learned)
        if self._takes_map and "map" in learned:
            self._map = Affine(**learned.pop("map"))
        self._restore(learned)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle parameters, state and live records, and nothing that was deleted."""
        plain: dict[str, Any] = super().__getstate__()
        if not self.__sklearn_is_fitted__():
            return plain
        kept = {name: value for name, value in plain.items() if not is_learned(name)}
        # The records of a step are its pipeline's: alone it predicts, and cannot delete.
        held = self._held if self._info.owner is None else None
        whole = self._whole_state(self._pickled_state(held))
        return {**kept, "_learned": (whole, held, self._info.values)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Come back from a pickle."""
        learned = state.get("_learned")
        super().__setstate__({name: value for name, value in state.items() if name != "_learned"})
        if learned is not None:
            whole, held, *values = learned
            self._adopt(owned_copy(whole), held)
            self._info.values = values[0] if values else None  # an old pickle has none

    def __copy__(self) -> Self:
        """Copy deeply: two models must not share one attachment to records."""
        return copy.deepcopy(self)


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
