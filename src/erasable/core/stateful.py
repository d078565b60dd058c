"""What a fitted model is, and how it is kept: state, digest, files, pickles, copies.

All of them go through the same two hooks of an estimator, ``_state`` and ``_restore``. What is
not in the state is not kept, so nothing of a deleted record can be left behind by accident.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from erasable.core._admission import records_for, telling_form
from erasable.core._column_choice import Columns
from erasable.core._fit_info import (
    BASE_STATE,
    DetachedAttributeError,
    FitInfo,
    base_state,
    owned_copy,
)
from erasable.core._foreign import check_base, check_learned, read_model
from erasable.core._schema import Part
from erasable.core.artifact import Place, write_artifact
from erasable.core.attachment import Attachment
from erasable.core.digest import state_root
from erasable.core.errors import ArtifactError, DetachedError, ErasableError
from erasable.core.inputs import refuse_records
from erasable.core.mapped import beside
from erasable.core.params import check_params, class_path, decode_param, is_encoded
from erasable.core.protocol import Learner, Transformer
from erasable.core.records import Records
from erasable.core.tape import Tape
from erasable.core.unsettled import refuse_mixed_numbers
from erasable.core.value_hash import ValueHash

__all__ = ["Stateful", "is_learned"]

_SETTINGS = ("__", "_callback", "_metadata_request", "_parent_callback", "_skl")  # scikit-learn's


class Stateful(Learner, Transformer, BaseEstimator):
    """The half of `Erasable` that says what a model is and keeps it.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [4.0]])
    >>> model.state()["n_records"]
    3
    >>> model.digest().partition(":")[0]
    'erasable.preprocessing.MinMaxScaler/1'
    """

    algorithm_version: ClassVar[int] = 1

    seed_: int
    _held: Attachment | None
    _tape: Tape
    _info: FitInfo
    _accelerator: Any

    def _state(self) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__} does not implement _state()")

    def _restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not implement _restore()")

    def _schema(self) -> Part | None:
        """Return what `_state` holds, so that a file is checked; called with parameters known."""
        return None

    @property
    def _needs_seed(self) -> bool:
        return hasattr(self, "random_state")

    def _reattach(self) -> None:
        return None

    def _learns_from(self) -> set[str]:
        return {"X"}

    @property
    def _reads_numbers(self) -> bool:
        """Whether the model is the same for integers as for equal floats as targets."""
        return bool(get_tags(self).estimator_type == "regressor")

    @property
    def _heeds_objects(self) -> bool:
        """Whether numbers in a table of objects make another model than in one of numbers."""
        return False

    def _refuse_mixed_numbers(self, records: Records) -> None:
        """Raise InvalidDataError where a deletion could change of which type targets are."""
        needs_target = get_tags(self).target_tags.required
        if "y" in records.unsettled and needs_target and not self._reads_numbers:
            refuse_mixed_numbers(type(self).__name__)

    def _digest_state(self) -> dict[str, Any]:
        return self._state()

    def _pickled_state(self, held: Attachment | None) -> dict[str, Any]:
        return self._state()  # without what `held` says, which is kept, too

    def _validate_params(self) -> None:
        check_params(self)

    def _at_fit(self, name: str) -> Any:
        """Return a parameter as it was at `fit`; ``set_params`` concerns the next one."""
        book: FitInfo | None = self.__dict__.get("_info")
        return getattr(self, name) if book is None else book.param(name)

    def state(self) -> dict[str, Any]:
        """Copy everything the model is, and nothing that can be derived from it.

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

    def _attached(self) -> Attachment:
        self._check_fitted()
        if self._held is None:
            raise DetachedAttributeError(
                f"this {type(self).__name__} was loaded without its records; "
                "expected them here; load it with load(path, records)"
            )
        return self._held

    def _check_fitted(self) -> None:
        if "_info" not in self.__dict__:
            check_is_fitted(self)

    def _refuse_if_owned(self) -> None:
        self._check_fitted()
        if self._info.owner is not None:
            raise DetachedError(
                f"this {type(self).__name__} is a step of a pipeline or a member of an ensemble, "
                "which holds the records; expected that; ask it instead"
            )

    def _seeds(self) -> dict[str, int]:
        """Return the seeds that were drawn, by the names of the parameters that fix them."""
        parts = {"": self, **self.get_params(deep=True)}
        return {
            f"{name}__random_state".removeprefix("__"): part.seed_
            for name, part in parts.items()
            if isinstance(part, Stateful) and hasattr(part, "seed_")
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

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether `fit` has come to its end."""
        return "_info" in self.__dict__

    # -- keeping -------------------------------------------------------------------------------

    def save(self, path: Place, *, records: bool = False) -> None:
        """Write the model to a file, without pickle, and by default without its records.

        Equal models are equal files. The file is complete or absent, never half-written.

        Parameters
        ----------
        path : path-like, or binary file
            Replaced if it exists; a file is written to, and stays open.
        records : bool, default=False
            Keep the records, too, in a folder ``<path>.records``; see `load`. Only changes are
            written. Without, such a folder is removed.

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
        (beside.settle_records if records else beside.drop_records)(self, path)

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
            What the model holds: the records it was fitted on without those it has deleted.
            True: those that `save` kept, read as far as they are needed.
            Without them the model predicts, but cannot delete. A tuple is (X, y), (X, y, ids) or
            (X, y, ids, groups) where the model learns from targets, and otherwise (X, ids),
            (X, ids, groups) or (X, y, ids, groups), whose y is ignored, as `fit` does.
        vouched : bool, default=False
            Whether the caller answers for the values of the records, of which a hash tells that
            they are unchanged: only their ids are held against the model then, and models that
            would have to learn again for more than that are loaded faster.
        trusted : bool, default=False
            Whether the file is the caller's own: states of scikit-learn's estimators are taken as
            they are. Otherwise they are checked, or fitted again; see `erasable.refit.Refit`.

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
            If the file cannot be read, is damaged, is no model of this class, or does not match
            the records, or if it has to be trusted.

        Notes
        -----
        Records are held against what the file says of them: their ids, and a hash of all their
        values that the model has learned from. Their order does not count; that they are dense or
        sparse, float32 or float64, does. Where the model was fitted on a table of objects, a list
        or an array of objects is read as one, also without text. Files of older
        versions have no such hash: ids are compared, and what can be derived from the state.
        """
        if records is True:
            return cast(Self, beside.load_with_records(cls, path, trusted=trusted))
        model: Self = read_model(cls, path, trusted=trusted, with_records=records is not None)
        if records is not None:
            with telling_form(model, records):
                model._attach_to(records, vouched)
        return model

    def _fits_sooner(self, n_gone: int, n_records: int) -> bool:
        """Tell whether to fit anew is faster than to load a model and to delete so many."""
        return False

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
        # Last: estimators say more closely what is not as it was, where their state tells.
        if self._info.values is None:
            self._info.values = ValueHash.of(self._learns_from(), self._unread_columns())
        elif not vouched:
            self._info.values = self._info.values.check(held)

    def _adopt(
        self, state: dict[str, Any], held: Attachment | None, *, foreign: bool = False
    ) -> None:
        """Become the model that a whole state describes; parameters are already set.

        One that is `foreign` comes from a file, and is checked first.
        """
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
        self._restore(learned)

    @property
    def _n_records(self) -> int:
        """How many records it holds, or is to hold once they are there."""
        return int(self._info.n_records or 0) if self._held is None else self._held.n_live

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

    def __getstate__(self) -> dict[str, Any]:
        """Keep parameters, state and live records: nothing else, so nothing that was deleted."""
        plain: dict[str, Any] = super().__getstate__()
        if "_info" not in self.__dict__:
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
        """Copy deeply: two models must not share one hold on their records."""
        return copy.deepcopy(self)


def is_learned(name: str) -> bool:
    """Tell what `fit` set from parameters, what users set, and scikit-learn's own settings.

    Examples
    --------
    >>> [name for name in ("n_clusters", "sums_", "_info", "_metadata_request") if is_learned(name)]
    ['sums_', '_info']
    """
    if name.startswith(_SETTINGS):
        return False
    return name.startswith("_") or name.endswith("_")
