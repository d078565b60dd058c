"""Comparison of a model with the estimator of scikit-learn that it is exported to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from erasable.core.errors import ErasableError

__all__ = ["ASKED", "COARSE", "DifferentAnswersError", "answerable", "compare", "possible"]

ASKED = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
    "kneighbors",
)
CLOSE = 1e-9
COARSE = 2e-7
"""For k-means, which rounds rows to 26 bits of the records' range."""
_LEAST_LOGS = {"predict_log_proba": -700.0, "score_samples": -30.0}
"""Below, a logarithm stands for that of 0. scikit-learn's densities are sums that round."""


class DifferentAnswersError(AssertionError):
    """The two answer differently."""


def compare(model: Any, exported: Any, X: Any, close: float = CLOSE) -> list[str]:
    """Hold an exported estimator against its model, by every method that both have.

    Returns
    -------
    list of str
        The methods that were compared, of which there is one or more.

    Raises
    ------
    DifferentAnswersError
    """
    asked = []
    for method in ASKED:
        if hasattr(model, method) and hasattr(exported, method):
            with np.errstate(divide="ignore"):  # of the logarithm of 0
                mine, theirs = getattr(model, method)(X), getattr(exported, method)(X)
            if method == "predict":
                certain = ~_ties(model, X, close)
                mine, theirs = np.asarray(mine)[certain], np.asarray(theirs)[certain]
            for one, other in zip(_arrays(mine), _arrays(theirs), strict=True):
                _refuse_different(method, one, other, close)
            asked.append(method)
    if not asked:
        raise DifferentAnswersError("there is no method that both have")
    return asked


def answerable(model: Any, X: Any) -> Any:
    """Return the rows about which a model can be asked: not those of unknown categories."""
    asked = next(method for method in ASKED if hasattr(model, method))
    rows = []
    for row in range(len(X)):
        try:
            getattr(model, asked)(X[row : row + 1])
        except ErasableError:
            continue
        rows.append(row)
    return X[rows]


def possible(model: Any, X: Any) -> Any:
    """Return the rows that are not impossible in every class of a naive Bayes classifier.

    Of such, scikit-learn predicts NaN.
    """
    if not hasattr(model, "predict_joint_log_proba") or len(X) == 0:
        return X
    return X[~np.isneginf(model.predict_joint_log_proba(X)).all(axis=1)]


def _ties(model: Any, X: Any, close: float) -> Any:
    """Tell for which rows rounding may decide between two labels."""
    for method, sign in (("predict_proba", 1.0), ("decision_function", 1.0), ("transform", -1.0)):
        if not (hasattr(model, method) and hasattr(model, "predict")):
            continue
        if method == "transform" and not hasattr(model, "cluster_centers_"):
            continue
        found = getattr(model, method)(X)
        if isinstance(found, list):
            break
        scores = sign * np.asarray(found)
        if scores.ndim == 1:
            return np.abs(scores) < close
        if scores.shape[1] < 2:
            break
        ordered = np.sort(scores, axis=1)
        # Two infinite scores are the same.
        with np.errstate(invalid="ignore"):
            gap = ordered[:, -1] - ordered[:, -2]
        return ~(gap > close * np.maximum(1.0, np.abs(ordered[:, -1])))
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    return np.zeros(rows, dtype=bool)


def _arrays(answer: Any) -> Iterator[Any]:
    if isinstance(answer, list | tuple):
        for each in answer:
            yield from _arrays(each)
    elif issparse(answer):
        yield answer.toarray()
    else:
        yield answer.to_numpy() if hasattr(answer, "to_numpy") else np.asarray(answer)


def _refuse_different(method: str, mine: Any, theirs: Any, close: float) -> None:
    if mine.shape != theirs.shape:
        raise DifferentAnswersError(f"{method}: shape {mine.shape}, exported {theirs.shape}")
    if "O" in (mine.dtype.kind, theirs.dtype.kind):
        pairs = zip(mine.ravel().tolist(), theirs.ravel().tolist(), strict=True)
        wrong = sum(not _same_cell(a, b, close) for a, b in pairs)
    elif mine.dtype.kind in "US":
        wrong = int((mine != theirs).sum())
    else:
        one, other = mine.astype(np.float64), theirs.astype(np.float64)
        if method in _LEAST_LOGS:
            one, other = (np.where(x < _LEAST_LOGS[method], -np.inf, x) for x in (one, other))
        finite = np.abs(one[np.isfinite(one)])
        size = max(1.0, float(finite.max(initial=0.0)))
        wrong = int((~np.isclose(one, other, close, close * size, equal_nan=True)).sum())
    if wrong:
        raise DifferentAnswersError(f"{method}: {wrong} of {mine.size} answers differ")


def _same_cell(mine: Any, theirs: Any, close: float) -> bool:
    if isinstance(mine, str) or isinstance(theirs, str):
        return bool(mine == theirs)
    gaps = [cell is None or cell != cell for cell in (mine, theirs)]
    return all(gaps) or (not any(gaps) and bool(np.isclose(mine, theirs, close, close)))
