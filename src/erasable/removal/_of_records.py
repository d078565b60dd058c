"""A forget set and a retain set that are `Records`, read where they lie."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidDataError, InvalidIdsError, InvalidInputError
from erasable.core.ids import name_some, shorten
from erasable.core.lookup import counts_up
from erasable.core.mapped.texts import as_array
from erasable.core.record_rows import RecordRows
from erasable.core.records import Records
from erasable.removal._gaussians import Moments
from erasable.removal._reading import read_mask
from erasable.removal._sets import Sets

_WHY = "scores are of numbers"


def read_records(
    forget: Any, retain: Any, ids: Any, mask: Any
) -> tuple[Sets, NDArray[Any], dict[str, Any]]:
    """Take both sets as rows of `Records`, or of the same `Records` where there is a mask.

    Returns
    -------
    sets : Sets
    ids : ndarray of shape (n_forget,)
    features : dict
        `n_features_in_`, and `feature_names_in_` where there are names.

    Raises
    ------
    InvalidInputError
        Records of one and an array of the other, ids beside them, a mask and a retain set, other
        features in one than in the other, or fewer than two records.
    """
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
    sets = Sets(own, other)
    _ = sets.grid  # refuses magnitudes that no sum of squares can hold
    features: dict[str, Any] = {"n_features_in_": own.shape[1]}
    if forget.feature_names is not None:
        features["feature_names_in_"] = np.array(forget.feature_names, dtype=object)
    return sets, as_array(forget.ids[own.rows]), features


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
            "rows and retain came; expected one of them: rows where forget has the records of both "
            "domains"
        )
    leaving = read_mask(mask, len(every))
    return every.some(leaving), every.some(~leaving)


def _refuse_others(forget: Records, retain: Records) -> None:
    """Refuse sets of other features, and records that are in both."""
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
    """Return a certificate of deleting some rows of forget, by moments that passes find."""
    certificates = import_module("erasable.removal.certificates")  # imports much of scipy
    kept = np.ones(len(sets.forget), dtype=np.bool_)
    kept[selected] = False
    forget, retain = Moments.of_rows(sets.forget), Moments.of_rows(sets.retain)
    refit = Moments.of_rows(sets.forget.some(kept)) + retain if kept.any() else retain
    return certificates.certificate_from_moments(forget, retain, refit, delta)
