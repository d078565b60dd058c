"""Removal of a domain from a model: choice of records, deletion, and a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
    InvalidParameterError,
)
from erasable.core.frames import as_frame, refuse_other_index, split_ids
from erasable.core.ids import name_some, shorten
from erasable.removal._domain import DomainRemoval
from erasable.removal._inputs import as_array, length_of, refuse_label
from erasable.removal.evaluation import (
    GROUPS,
    RemovalReport,
    measure,
    removal_report,
)


def remove_domain(
    model: Any,
    removal: DomainRemoval,
    X: Any,
    y: Any,
    *,
    forget: Any,
    ids: Any = None,
    features: Any = None,
    fresh: tuple[Any, Any, Any] | None = None,
    forget_label: Any = None,
    method: Callable[..., tuple[Any, Any]] | None = None,
) -> RemovalReport:
    """Choose records of a domain, delete them from a model, and report the effect.

    Parameters
    ----------
    model : fitted classifier or regressor of erasable, or a network where there is a `method`
        It is changed in place: `selected_ids_` are deleted.
    removal : DomainRemoval
        It is fitted here.
    X, y : records and targets, as `model` was fitted on them
    forget : array-like of bool, shape (n_records,)
        Which rows are of the unwanted domain; the others are to stay.
    ids : array-like or the name of a column, default=None
        As given to the model: by default a pandas frame's index, or 0..n-1.
    features : array-like, frame or sparse matrix of shape (n_records, n_features), default=None
        Features for scores, where these are not X: vectors of documents, for example.
    fresh : tuple of (X, y, forget), default=None
        Records that the model was *not* fitted on, and which of them are of the domain. Without
        them the report has no fresh records, because no record of X is one.
    forget_label : class label, default=None
        See `erasable.removal.evaluation.measure`.
    method : callable, default=None
        How a `NetworkClassifier` forgets: one of `erasable.neural.approximate`, or any that takes
        the model, the pair of deleted records and that of all others, and returns another model and
        a report. By default the model deletes, exactly.

    Returns
    -------
    RemovalReport
        On deleted forget, kept forget, retain, fresh forget and fresh retain; with the report of
        the method.

    Raises
    ------
    InvalidInputError, InvalidIdsError, InvalidParameterError
        Input that cannot be used, or a target that cannot be reached; the model is not changed.
    UnknownIdError, TooFewRecordsError
        The model does not know a chosen record, or cannot be without them; it is not changed.

    Examples
    --------
    >>> from erasable.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (200, 2)), rng.normal(2, 1, (200, 2))])
    >>> y = np.repeat(["spam", "ham"], 200)
    >>> model, removal = GaussianNB().fit(X, y), DomainRemoval(budget=0.5, random_state=0)
    >>> report = remove_domain(model, removal, X, y, forget=y == "spam", forget_label="spam")
    >>> [each.n_records for each in report.groups], len(model.ids_)
    ([100, 100, 200, 0, 0], 300)
    """
    if not isinstance(removal, DomainRemoval):
        raise InvalidInputError(
            f"removal is {shorten(removal)}; expected a DomainRemoval; pass DomainRemoval()"
        )
    if method is None and not callable(getattr(model, "delete", None)):
        raise InvalidInputError(
            f"{type(model).__name__} has no delete; expected an estimator of erasable; delete "
            "removal.selected_ids_ from the records, and fit it anew; a network takes a method="
        )
    if method is not None and callable(getattr(model, "delete", None)):
        raise InvalidInputError(
            f"{type(model).__name__} deletes exactly, and method={shorten(method)}; expected a "
            "method for a network alone; leave it out"
        )
    refuse_label(forget_label)
    classes = getattr(model, "classes_", None)
    known = classes is None or forget_label in np.asarray(classes).tolist()
    if forget_label is not None and not known:
        raise InvalidParameterError(
            f"forget_label={shorten(forget_label)} is no class of the model; expected one of "
            f"{name_some(np.asarray(classes).tolist())}"
        )
    refuse_other_index(as_frame(X), forget, "forget")
    refuse_other_index(as_frame(X), features, "features")
    X, ids = _with_ids(X, ids)
    _refuse_other_length(X, y, "X")
    mask = _mask(forget, length_of(X), "forget")
    own, other = np.flatnonzero(mask), np.flatnonzero(~mask)
    for rows, marked in ((own, "no row"), (other, "every row")):
        if not rows.size:
            raise InvalidInputError(
                f"forget marks {marked} of {mask.size}; expected rows of the unwanted domain and "
                "others that stay; pass another mask"
            )
    seen = X if features is None else features
    if length_of(seen) != mask.size:
        raise InvalidInputError(
            f"features have {length_of(seen)} rows, and there are {mask.size} records; expected "
            "one for each; pass them in the order of X"
        )
    names = np.arange(mask.size) if ids is None else np.asarray(ids)
    removal.fit(
        _safe_indexing(seen, own), _safe_indexing(seen, other), ids=(names[own], names[other])
    )
    deleted = np.zeros(mask.size, dtype=bool)
    deleted[own[removal.selected_]] = True
    groups: dict[str, Any] = dict.fromkeys(GROUPS)
    groups |= {
        "deleted forget": _part(X, y, deleted),
        "kept forget": _part(X, y, mask & ~deleted),
        "retain": _part(X, y, ~mask),
    }
    if fresh is not None:
        groups |= _fresh(fresh)
    before = measure(model, groups, forget_label=forget_label)
    of_method = None
    if method is None:
        model.delete(removal.selected_ids_)
    elif deleted.any():
        changed, of_method = method(model, groups["deleted forget"], _part(X, y, ~deleted))
        vars(model).update(vars(changed))
    report = removal_report(before, model, groups, forget_label=forget_label)
    return replace(report, method=of_method)


def _with_ids(X: Any, ids: Any) -> tuple[Any, Any]:
    """Return X without a column of ids, and the ids: from there, as given, or from an index."""
    X, found = split_ids(X, ids)
    if found is not None and length_of(found) != length_of(X):
        raise InvalidIdsError(
            f"{length_of(found)} ids for {length_of(X)} records; expected one for each; pass those "
            "that the model was fitted with"
        )
    return X, found


def _fresh(fresh: Any) -> dict[str, Any]:
    if not isinstance(fresh, tuple | list) or len(fresh) != 3:
        raise InvalidInputError(
            f"fresh is a {type(fresh).__name__}; expected records, their targets, and which of "
            "them are of the domain; pass (X, y, forget)"
        )
    X, y, forget = fresh
    _refuse_other_length(X, y, "fresh")
    refuse_other_index(as_frame(X), forget, "forget")
    mask = _mask(forget, length_of(X), "the forget mask of fresh")
    return {"fresh forget": _part(X, y, mask), "fresh retain": _part(X, y, ~mask)}


def _mask(given: Any, n: int, name: str) -> Any:
    mask = as_array(given)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise InvalidInputError(
            f"{name} is an array of {mask.dtype} and shape {mask.shape}; expected true or false "
            f"for each of {n} records; pass a mask"
        )
    return mask


def _refuse_other_length(X: Any, y: Any, name: str) -> None:
    refuse_other_index(as_frame(X), y, "y")
    n = None if y is None else length_of(y)
    if n != length_of(X):
        raise InvalidDataError(
            f"{name} has {length_of(X)} records and {n or 'no'} targets; expected as many; pass "
            "one target for each record"
        )


def _part(X: Any, y: Any, mask: Any) -> Any:
    rows = np.flatnonzero(mask)
    return (_safe_indexing(X, rows), np.asarray(y)[rows]) if rows.size else None
