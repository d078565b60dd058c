"""The methods that an estimator implements to learn and to follow changes, and those it uses."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from erasable.core._column_choice import Columns
from erasable.core._fit_info import (
    DetachedAttributeError,
    FitInfo,
    base_state,
    is_learned,
)
from erasable.core._other_parameters import ignoring_others, without_others
from erasable.core._schema import BASE_STATE, FieldType
from erasable.core.arrays import Values
from erasable.core.attachment import Attachment, HeldRecords
from erasable.core.changes import Affine, Delta
from erasable.core.deletion import Outcome
from erasable.core.digest import state_root
from erasable.core.errors import (
    DetachedError,
    KeyCollisionError,
)
from erasable.core.ids import as_id_array
from erasable.core.inputs import read_matrix
from erasable.core.messages import too_few
from erasable.core.params import check_params, class_path, encode_params
from erasable.core.protocol import Learner, Transformer
from erasable.core.rows import Rows, matrix_of
from erasable.core.seeds import seed_from
from erasable.core.tape import Tape, any_repeats
from erasable.core.undecided_types import refuse_mixed_numbers
from erasable.core.values import refuse_unsuited

__all__ = ["Model"]


class Model(Learner, Transformer, BaseEstimator, ABC):
    """Base of `Erasable` without what users call: what a subclass writes, and what it uses.

    `erasable.core.estimator.Erasable` has the contract.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0]])
    >>> isinstance(model, Model), model._minimum_records(), model._n_records
    (True, 1, 2)
    """

    exactness: ClassVar[str] = "bitwise"
    algorithm_version: ClassVar[int] = 1
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _takes_weights: ClassVar[bool] = False
    _refit_from: ClassVar[tuple[int, float]] = (1000, 0.25)
    """Number and share of records from which on a fit is faster than their deletion.

    Measured: ``python benchmarks/against_fits.py --shares``.
    """
    _sees_storage: ClassVar[bool] = True
    """Whether dense and sparse, float32 and float64 may lead to different models."""
    _fields: ClassVar[tuple[str, ...]] = ()
    """Attributes that hold what was learned; the state names them without underscores around."""
    _attaches_by_learning: ClassVar[bool] = False
    """Whether `_reattach` learns again, and compares; for estimators that learn fast."""
    _adds: ClassVar[bool] = True
    _adds_stored: ClassVar[bool] = True
    _follows_table: ClassVar[bool] = False
    _updates_in_place: ClassVar[bool] = True
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"ids": True, "groups": True}
    """What reaches `fit` through scikit-learn's metadata routing without being asked for."""
    seed_: int
    _held: Attachment | None = None
    _tape: Tape
    _info: FitInfo
    _accelerator: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = ignoring_others(cls.__init__)  # type: ignore[method-assign]

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of parts as ``part__parameter``; they concern the next `fit`.

        Raises
        ------
        InvalidParameterError
            There is no such parameter. Those of scikit-learn's estimator that change nothing here
            are ignored.
        """
        before = self.get_params(deep=True)
        taken = inspect.signature(type(self)).parameters.values()
        known = [each.name for each in taken if each.kind is not each.VAR_KEYWORD]
        own = {name: value for name, value in params.items() if "__" not in name}
        if own.keys() - set(known):
            own = without_others(type(self), known, own, before)
        inner = {name: value for name, value in params.items() if "__" in name}
        try:
            super().set_params(**own, **inner)
        except Exception:  # of a part, after others were set
            super().set_params(**before)
            raise
        return self

    # -- what a subclass implements ----------------------------------------------------------------

    @abstractmethod
    def _fit_rows(self) -> None:
        """Learn from the live rows."""

    @abstractmethod
    def _update(self, delta: Delta) -> Outcome | None:
        """Bring what was learned to what `_fit_rows` would learn now."""

    def _state(self) -> dict[str, Any]:
        """Return what was learned and cannot be derived."""
        if not self._fields:
            raise NotImplementedError(f"{type(self).__name__} has neither _fields nor _state()")
        return {name.strip("_"): getattr(self, name) for name in self._fields}

    def _restore(self, state: dict[str, Any]) -> None:
        """Become what a state describes."""
        for name in self._fields:
            setattr(self, name, state[name.strip("_")])

    def _schema(self) -> FieldType | None:
        """Return what `_state` holds, so that a file is checked; called with parameters known."""
        return None

    def _minimum_records(self) -> int:
        return 1

    def _minimum_parameter(self) -> str | None:
        """Return the name of the parameter that sets `_minimum_records`."""
        return None

    def _follows(self, delta: Delta, n_records: int) -> bool:
        """Tell whether `_update` is to follow a change of so many records, or to learn again."""
        if delta.table is not None and not self._follows_table:
            return False
        n, n_new = delta.leaving.size, delta.arriving.size
        if n_new:
            n = max(n, n_new)
            if not (self._adds and (self._adds_stored or not self._attached().records.is_stored)):
                return False
        least, share = self._refit_from
        return n < least or n < share * n_records

    def _end_change(self) -> None:
        """Do what can wait until a change is done; it may be left out."""

    def _fits_sooner(self, n_gone: int, n_records: int) -> bool:
        """Tell whether a fit is faster than loading a model and deleting so many records."""
        return False

    def _learns_from(self) -> set[str]:
        """Return the parts of records that count, see `erasable.core.value_hash.PARTS`."""
        parts = {"X" if self._sees_storage else "values"}
        if get_tags(self).target_tags.required:
            parts.add("numbers" if self._reads_numbers else "y")
        if self._takes_weights:
            parts.add("sample_weight")
        return parts

    @property
    def _reads_numbers(self) -> bool:
        """Whether integers and equal floats as targets lead to the same model."""
        return bool(get_tags(self).estimator_type == "regressor")

    @property
    def _heeds_objects(self) -> bool:
        """Whether a table of objects leads to another model than one of the same numbers."""
        return False

    @property
    def _needs_seed(self) -> bool:
        return hasattr(self, "random_state")

    def _digest_state(self) -> dict[str, Any]:
        return self._state()

    def _pickled_state(self, held: Attachment | None) -> dict[str, Any]:
        return self._state()  # may leave out what follows from `held`, which is pickled, too

    def _reattach(self) -> None:
        """Make the accelerator from the records and what was restored."""

    # -- what it uses ------------------------------------------------------------------------------

    def _validate_params(self) -> None:
        check_params(self)

    def _refuse_mixed_numbers(self, records: HeldRecords) -> None:
        """Raise InvalidDataError where a deletion could change the type of targets."""
        needs_target = get_tags(self).target_tags.required
        if "y" in records.unsettled and needs_target and not self._reads_numbers:
            refuse_mixed_numbers(type(self).__name__)

    def _draw_seed(self) -> None:
        if hasattr(self, "random_state"):
            self.seed_ = seed_from(self.random_state)
            self._tape = Tape(self.seed_)

    def _begin(self, held: Attachment, before: FitInfo | None = None) -> None:
        """Take an attachment, and the parameters of the fit `before`, or those set now."""
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
        """Learn again, with the tape and the parameters of `fit`, perhaps behind a map."""
        self._begin_again(held, affine)
        self._fit_rows()

    def _begin_again(self, held: Attachment, affine: Affine | None = None) -> None:
        """Do what `_relearn` does before it learns."""
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

    def _at_fit(self, name: str) -> Any:
        """Return a parameter as it was at `fit`; ``set_params`` concerns the next one."""
        return self._info.param(name) if self.__sklearn_is_fitted__() else getattr(self, name)

    @property
    def ids_(self) -> NDArray[Any]:
        """Ids of the records the model holds, in row order.

        Returns
        -------
        ndarray of shape (n_records,), int64, uint64 or object
        """
        ids = self._attached().ids
        # The type is that of the ids that are left: deleted ones may have had another.
        return ids if ids.dtype == np.int64 else as_id_array(ids.tolist())

    @property
    def _n_records(self) -> int:
        """Number of records that it holds, or will hold once they are there."""
        return int(self._info.n_records or 0) if self._held is None else self._held.n_live

    def _attached(self) -> Attachment:
        if self._held is None:
            self._check_fitted()
            raise DetachedAttributeError(
                f"this {type(self).__name__} was loaded without its records; "
                "expected them here; load it with load(path, records)"
            )
        return self._held

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether `fit` has succeeded."""
        return "_info" in self.__dict__

    def _refuse_if_owned(self) -> None:
        self._check_fitted()
        if self._info.owner is not None:
            raise DetachedError(
                f"this {type(self).__name__} is a step of a pipeline or a member of an ensemble, "
                "which holds the records; expected that; ask it instead"
            )

    def _record_keys(self) -> NDArray[np.uint64]:
        """Return the tape's key of every live record, at its row's position; 0 elsewhere."""
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

    def _owner_keys(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the keys by which live rows are shared out: of their groups, or of their ids."""
        groups = self._attached().records.groups
        return self._record_keys()[rows] if groups is None else self._tape.record_keys(groups[rows])

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, where the model was fitted on a frame; a copy."""
        if "feature_names_in_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} has no attribute 'feature_names_in_'")
        names: NDArray[Any] = self.__dict__["feature_names_in_"].copy()
        return names

    @feature_names_in_.setter
    def feature_names_in_(self, names: NDArray[Any]) -> None:
        self.__dict__["feature_names_in_"] = names

    @feature_names_in_.deleter
    def feature_names_in_(self) -> None:
        del self.__dict__["feature_names_in_"]

    @property
    def _column_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else names.tolist()

    def _call_columns(self) -> list[str]:
        """Return names of the columns; x0, x1, ... where they have none."""
        return self._column_names or [f"x{j}" for j in range(self.n_features_in_)]

    def _unread_columns(self) -> list[int]:
        """Return the positions of columns that the fitted model does not look at."""
        return self._unread(Columns(self.n_features_in_, self._column_names))

    def _take_features(self, n_features: int, names: list[str] | None) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _read_matrix(self, X: Any) -> Values:
        """Read what is to be predicted or transformed; see `erasable.core.inputs.read_matrix`."""
        self._check_fitted()
        return matrix_of(X, self) if isinstance(X, Rows) else read_matrix(self, X)

    def _make_ready(self) -> None:
        """Rebuild what a deletion needs, where the model came from a file or a pickle."""
        if self._accelerator is None:
            self._reattach()

    def _abandon(self) -> None:
        """Become unfitted, as an incomplete model has to."""
        self._forget_learned()

    def state(self) -> dict[str, Any]:
        """Copy what the model has learned, and nothing that can be derived from it.

        Returns
        -------
        dict of str to ndarray, int, float, str, None, list or dict
            What the estimator learned, ``algorithm_version``, ``feature_names``, ``n_features``,
            ``n_records``, ``params``, ``record_set`` (a hash of the set of ids), and ``seed``.
        """
        self._check_fitted()
        return copy.deepcopy(self._whole_state(self._state()))

    def digest(self) -> str:
        """Hash the model: two models with equal digests are equal.

        Returns
        -------
        str
            ``"<class>/<algorithm version>:<64 hexadecimal digits>"``.
        """
        self._check_fitted()
        if self._info.digest is None:
            whole = self._whole_state(self._digest_state())
            root = state_root({**whole, **self._info.hash_constants(whole)})
            self._info.digest = f"{class_path(type(self))}/{self.algorithm_version}:{root.hex()}"
        return self._info.digest

    def _whole_state(self, learned: dict[str, Any]) -> dict[str, Any]:
        taken = BASE_STATE & learned.keys()
        if taken:
            raise TypeError(f"_state() of {type(self).__name__} uses reserved names: {taken}")
        return {**base_state(self), **learned}
