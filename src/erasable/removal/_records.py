"""The rows and the ids of a forget set and a retain set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from erasable.core.errors import InvalidDataError, InvalidIdsError, InvalidInputError
from erasable.core.frames import as_frame, index_of, refuse_missing_column, refuse_other_index
from erasable.core.ids import as_id_array, name_some, refuse_repeats
from erasable.core.inputs import refuse_masked
from erasable.core.values import Accepts, read_values
from erasable.removal._sets import Sets


class _Reader(BaseEstimator):
    """Stands in for the estimator, of which nothing is to change before everything is checked."""


_Reader.__name__ = "DomainRemoval"


def read_sets(forget: Any, retain: Any, ids: Any) -> tuple[Sets, NDArray[Any], dict[str, Any]]:
    """Read and check both sets; arrays of floats, memory-mapped ones too, are not copied.

    `retain` may be None.

    Returns
    -------
    sets : Sets
    ids : ndarray of shape (n_forget,)
    features : dict
        `n_features_in_`, and `feature_names_in_` where there are names.
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
            _refuse_other_width(name, X, reader)
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
    names = _labels(own, forget, read["forget"].shape[0], "forget")
    if other is not None:
        others = _labels(other, given["retain"], read["retain"].shape[0], "retain")
        shared = set(names.tolist()) & set(others.tolist()) if own is not None else set()
        if shared:
            some = name_some(sorted(shared, key=str))
            raise InvalidIdsError(
                f"{len(shared)} ids are in forget and in retain: {some}; expected each record in "
                "one of them; take them out of one"
            )
    both = {name: _uniform(X, read) for name, X in read.items()}
    sets = Sets(both["forget"], both.get("retain"))
    _ = sets.grid  # refuses magnitudes that no sum of squares can hold
    features = {k: v for k, v in vars(reader).items() if k.endswith("_in_")}
    return sets, names, features


def _uniform(matrix: Any, read: dict[str, Any]) -> Any:
    """Give both sets one dtype, so that one kernel serves them."""
    wide = any(X.dtype == np.float64 for X in read.values())
    return matrix.astype(np.float64, copy=False) if wide else matrix


def _pair(ids: Any) -> tuple[Any, Any]:
    """Tell ids of forget, or a column of both sets, from a pair of ids of forget and of retain."""
    if isinstance(ids, str):
        return ids, ids
    if isinstance(ids, tuple) and len(ids) == 2 and not any(np.isscalar(part) for part in ids):
        return ids
    return ids, None


def _split_ids(X: Any, ids: Any, name: str) -> tuple[Any, Any]:
    """Return X without a column of ids, and the ids: from there, as given, or from an index."""
    frame = as_frame(X)
    if isinstance(ids, str):
        try:
            refuse_missing_column(X, frame, ids, "ids")
        except InvalidIdsError as error:
            raise InvalidIdsError(f"in {name}: {error}") from None
        return frame.drop(ids).to_native(), frame[ids]
    refuse_other_index(frame, ids, "ids")
    return X, index_of(frame) if ids is None and frame is not None else ids


def _labels(values: Any, X: Any, n: int, name: str) -> NDArray[Any]:
    if values is None:
        return np.arange(n, dtype=np.int64)
    read = as_id_array(values, name=f"ids of {name}")
    if len(read) != n:
        raise InvalidIdsError(
            f"{len(read)} ids for the {n} rows of {name}; expected one for each row; pass them in "
            "the order of the rows"
        )
    refuse_repeats(read, name=f"ids of {name}")
    return read


def _refuse_other_width(name: str, X: Any, reader: Any) -> None:
    expected = getattr(reader, "n_features_in_", None)
    shape: tuple[Any, ...] = getattr(X, "shape", ())
    if expected is not None and len(shape) == 2 and shape[1] != expected:
        raise InvalidDataError(
            f"{shape[1]} columns, and forget has {expected}; expected the same; pass the same "
            "features of both"
        )
