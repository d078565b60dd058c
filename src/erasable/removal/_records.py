"""The rows and the ids of a forget set and a retain set."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidDataError, InvalidIdsError, InvalidInputError
from erasable.core.frames import as_frame, ids_of_rows, split_ids
from erasable.core.ids import name_some, shorten
from erasable.core.inputs import refuse_masked
from erasable.core.lookup import counts_up
from erasable.core.mapped.texts import as_array
from erasable.core.records import Records
from erasable.core.tables import RecordRows
from erasable.core.values import Accepts, read_values
from erasable.removal._gaussians import Moments
from erasable.removal._inputs import read_mask
from erasable.removal._sets import Sets

_WHY = "scores are of numbers"


def read_records(
    forget: Any, retain: Any, ids: Any, mask: Any
) -> tuple[Sets, NDArray[Any], dict[str, Any]]:
    """Take both sets as rows of `Records`, or of the same `Records` by a mask; see `read_sets`."""
    own, other = _rows(forget, retain, ids, mask)
    given = {"forget": own} | ({} if other is None else {"retain": other})
    for name, each in given.items():
        if len(each) < 2:
            raise InvalidInputError(
                f"{name} has {len(each)} records; expected 2 or more, which make a distribution; "
                "pass more, or delete a single record from a model with delete"
            )
    if retain is not None:
        _refuse_others(forget, retain)
    if other is not None and own.dtype != other.dtype:
        own, other = own.astype(np.float64), other.astype(np.float64)
    names = as_array(forget.ids[own.rows])
    sets = Sets(own, other, names)
    _ = sets.grid  # refuses magnitudes that no sum of squares can hold
    features: dict[str, Any] = {"n_features_in_": own.shape[1]}
    if forget.feature_names is not None:
        features["feature_names_in_"] = np.array(forget.feature_names, dtype=object)
    return sets, names, features


def _rows(forget: Any, retain: Any, ids: Any, mask: Any) -> tuple[RecordRows, RecordRows | None]:
    if not isinstance(forget, Records) or not isinstance(retain, Records | None):
        kinds = f"{type(forget).__name__} and {type(retain).__name__}"
        raise InvalidInputError(
            f"forget and retain are {kinds}{'' if mask is None else ', with rows'}; expected "
            "Records of both; pass Records(X) of the other"
        )
    if ids is not None:
        raise InvalidInputError(
            "ids came beside Records, which have their own; expected None; pass ids where the "
            "records are made"
        )
    every = RecordRows.of(forget, _WHY)
    if mask is None:
        return every, None if retain is None else RecordRows.of(retain, _WHY)
    if retain is not None:
        raise InvalidInputError(
            "both rows and retain are given; expected one of them: rows where forget has the "
            "records of both domains"
        )
    leaving = read_mask(mask, len(every))
    return every.some(leaving), every.some(~leaving)


def _refuse_others(forget: Records, retain: Records) -> None:
    """Refuse sets of different features, and records that are in both."""
    both = [records.feature_names or records.n_features for records in (forget, retain)]
    if both[0] != both[1]:
        raise InvalidDataError(
            f"forget has the features {shorten(both[0])} and retain {shorten(both[1])}; expected "
            "the same; pass the same features of both"
        )
    own, other = (as_array(records.attach().ids) for records in (forget, retain))
    if counts_up(own) and counts_up(other):
        return  # positions, which name other records in each
    shared = sorted(set(own.tolist()) & set(other.tolist()), key=str)
    if shared:
        raise InvalidIdsError(
            f"{len(shared)} ids are in forget and in retain: {name_some(shared)}; expected each "
            "record in one of them; take them out of one"
        )


def certificate_of(sets: Sets, selected: Ints, delta: float) -> Any:
    """Return a certificate of deleting some rows of forget, from moments computed by passes."""
    certificates = import_module("erasable.removal.certificates")  # imports much of scipy
    kept = np.ones(len(sets.forget), dtype=np.bool_)
    kept[selected] = False
    forget, retain = Moments.of_rows(sets.forget), Moments.of_rows(sets.retain)
    refit = Moments.of_rows(sets.forget.some(kept)) + retain if kept.any() else retain
    return certificates.certificate_from_moments(forget, retain, refit, delta)


class _Reader(BaseEstimator):
    """Stands in for the estimator, which must not change before everything is checked."""


_Reader.__name__ = "DomainRemoval"


def read_sets(forget: Any, retain: Any, ids: Any) -> tuple[Sets, NDArray[Any], dict[str, Any]]:
    """Read and check both sets; arrays of floats, memory-mapped ones too, are not copied.

    `retain` may be None. Returns the sets, the ids of forget, and `n_features_in_` and, where there
    are names, `feature_names_in_`.
    """
    reader = _Reader()
    own_ids, other_ids = _pair(ids)
    forget, own = _split_ids(forget, own_ids, "forget")
    given, other = {"forget": forget}, None
    if retain is not None:
        given["retain"], other = _split_ids(retain, other_ids, "retain")
    elif other_ids is not None and not isinstance(ids, str):
        raise InvalidIdsError(
            "ids are those of forget and of retain, and there is no retain; expected ids of forget"
        )
    read = {}
    for name, X in given.items():
        try:
            frame = as_frame(X)
            refuse_masked(X)
            accepts = Accepts(sparse=True)
            _refuse_other_width(X, reader)
            read[name] = read_values(reader, X, frame, accepts, reset=name == "forget", copy=False)
        except InvalidInputError as error:
            raise type(error)(f"in {name}: {error}") from None
    if len({issparse(X) for X in read.values()}) > 1:
        kinds = [f"{name} is {'sparse' if issparse(X) else 'dense'}" for name, X in read.items()]
        raise InvalidDataError(
            f"{' and '.join(kinds)}; expected both of one kind; convert one, for instance with "
            ".toarray()"
        )
    for name, X in read.items():
        if X.shape[0] < 2:
            raise InvalidInputError(
                f"{name} has 1 record; expected 2 or more, which make a distribution; pass more, "
                "or delete a single record from a model with delete"
            )
    names = ids_of_rows(own, read["forget"].shape[0], " of forget")
    if other is not None:
        others = ids_of_rows(other, read["retain"].shape[0], " of retain")
        shared = set(names.tolist()) & set(others.tolist()) if own is not None else set()
        if shared:
            some = name_some(sorted(shared, key=str))
            raise InvalidIdsError(
                f"{len(shared)} ids are in forget and in retain: {some}; expected each record in "
                "one of them; take them out of one"
            )
    both = {name: _uniform(X, read) for name, X in read.items()}
    sets = Sets(both["forget"], both.get("retain"), names)
    _ = sets.grid  # refuses magnitudes that no sum of squares can hold
    features = {k: v for k, v in vars(reader).items() if k.endswith("_in_")}
    return sets, names, features


def _uniform(matrix: Any, read: dict[str, Any]) -> Any:
    """Convert both sets to one dtype, so that one kernel serves them."""
    wide = any(X.dtype == np.float64 for X in read.values())
    return matrix.astype(np.float64, copy=False) if wide else matrix


def _pair(ids: Any) -> tuple[Any, Any]:
    """Return ids of forget and retain, from a pair, ids of forget, or a column of both."""
    if isinstance(ids, str):
        return ids, ids
    if isinstance(ids, tuple) and len(ids) == 2 and not any(np.isscalar(part) for part in ids):
        return ids
    return ids, None


def _split_ids(X: Any, ids: Any, name: str) -> tuple[Any, Any]:
    """Split off ids; see `split_ids`."""
    try:
        return split_ids(X, ids)
    except InvalidIdsError as error:
        raise InvalidIdsError(f"in {name}: {error}") from None


def _refuse_other_width(X: Any, reader: Any) -> None:
    expected = getattr(reader, "n_features_in_", None)
    shape: tuple[Any, ...] = getattr(X, "shape", ())
    if expected is not None and len(shape) == 2 and shape[1] != expected:
        raise InvalidDataError(
            f"{shape[1]} columns, and forget has {expected}; expected the same; pass the same "
            "features of both"
        )
