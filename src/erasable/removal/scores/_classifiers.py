"""Classifiers for density ratios, and log ratios from fitted classifiers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._covariance import MAX_FEATURES, Scatter, shrunk_metric, varying
from erasable.removal._inputs import as_numbers
from erasable.removal._sets import Sets

_BLOCK = 2**21  # values that are scored at a time
_PENALTIES = (1e-3, 3e-2, 1.0)
_SPARSE_PENALTIES = (1.0, 10.0, 100.0)
_LANDMARKS = 100
_CLIP = 1e-12


class GaussianPair(ClassifierMixin, BaseEstimator):
    """Two Gaussians with a mean and a covariance each, whose correlations are shrunk.

    Columns that vary in neither class are left out.
    """

    def fit(self, X: Any, y: Any) -> GaussianPair:
        """Fit one Gaussian to the rows of each class, 0 and 1."""
        groups = [np.ascontiguousarray(X[y == c]) for c in (0, 1)]
        sets = Sets(groups[1], groups[0])
        self.classes_ = np.array([0, 1])
        self._metrics = []
        scatters = [Scatter.fit(sets, rows).centred() for rows in groups]
        columns = varying(*scatters)
        for rows, centred, name in zip(groups, scatters, ("retain", "forget"), strict=True):
            metric = shrunk_metric(centred, max(len(rows) - 1, 1), "auto", name, columns)
            self._metrics.append(metric)
        self._means = [rows.mean(axis=0, dtype=np.float64) for rows in groups]
        self._prior = np.log(len(groups[1]) / len(groups[0]))
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return log odds of class 1."""
        logs = []
        for metric, mean in zip(self._metrics, self._means, strict=True):
            white = (X - mean)[:, metric.columns] @ metric.weights.T
            logs.append(-0.5 * (np.einsum("ij,ij->i", white, white) + metric.log_determinant))
        odds: Floats = logs[1] - logs[0] + self._prior
        return odds

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities of both classes."""
        p = expit(self.decision_function(X))
        return np.column_stack([1 - p, p])


def candidates(sparse: bool, n: int, n_features: int) -> list[Any]:
    """List the candidates for a ratio, simplest first: linear, two Gaussians, radial kernels."""
    if sparse:
        return [LogisticRegression(C=C, max_iter=1000) for C in _SPARSE_PENALTIES]
    solver = "newton-cholesky" if n_features < min(n, 1000) else "lbfgs"
    found: list[Any] = [
        make_pipeline(StandardScaler(), LogisticRegression(C=C, solver=solver, max_iter=1000))
        for C in _PENALTIES
    ]
    if n_features <= MAX_FEATURES:
        found.append(GaussianPair())
    kernels = Nystroem(
        gamma=1.0 / (2 * n_features), n_components=min(_LANDMARKS, max(2, n // 4)), random_state=0
    )
    found.append(make_pipeline(StandardScaler(), kernels, LogisticRegression(C=1.0, max_iter=1000)))
    return found


def check_classifier(classifier: Any) -> None:
    """Refuse anything but an instance of a classifier like scikit-learn's."""
    if (
        isinstance(classifier, type)
        or not hasattr(classifier, "fit")
        or not (hasattr(classifier, "predict_proba") or hasattr(classifier, "decision_function"))
    ):
        raise InvalidParameterError(
            f"classifier={shorten(classifier)}; expected one with predict_proba or "
            "decision_function; pass for instance LogisticRegression()"
        )


def fitted(classifier: Any, X: Any, y: Any, seed: int) -> Any:
    """Fit a clone, with all of its draws from the seed."""
    model = clone(classifier)
    draws = {k: seed % 2**32 for k in model.get_params() if k.endswith("random_state")}
    if draws:
        model.set_params(**draws)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model


def log_ratio(model: Any, rows: Any, correction: float) -> Floats:
    """Return ``log p1(x) / p2(x)`` by a fitted classifier.

    `correction` is ``log(n_retain / n_forget)`` of its training records. A decision function is
    taken where it is the log odds, or where there is nothing else: probabilities near 1 are rounded
    to 1, and then records tie.
    """
    n = rows.shape[0]
    size = max(1, _BLOCK // max(1, rows.shape[1]))
    out = np.empty(n)
    direct = _is_log_odds(model, rows[: min(n, 50)])
    for start in range(0, n, size):
        part = rows[start : start + size]
        if direct:
            odds = np.asarray(model.decision_function(part), dtype=np.float64).ravel()
        else:
            p = shares(model, part)[:, 1]
            odds = logit(np.clip(p, _CLIP, 1 - _CLIP))
        out[start : start + size] = odds
    if not np.isfinite(out).all():
        raise InvalidInputError(
            f"the classifier {type(model).__name__} gave {int((~np.isfinite(out)).sum())} scores "
            "that are no numbers; expected finite ones; scale the features, or pass another"
        )
    return out + (0.0 if _is_balanced(model) else correction)


def shares(model: Any, rows: Any) -> Floats:
    """Return the probabilities of both classes; another shape is refused."""
    found = as_numbers(model.predict_proba(rows))
    if found.shape != (rows.shape[0], 2):
        raise InvalidInputError(
            f"predict_proba of {type(model).__name__} returned an array of shape {found.shape}; "
            f"expected two probabilities for each of {rows.shape[0]} records"
        )
    return found


def _is_log_odds(model: Any, rows: Any) -> bool:
    if not hasattr(model, "decision_function"):
        return False
    if not hasattr(model, "predict_proba"):
        return True
    odds = np.asarray(model.decision_function(rows), dtype=np.float64).ravel()
    p = shares(model, rows)[:, 1]
    return bool(np.allclose(expit(odds), p, rtol=1e-5, atol=1e-6))


def _is_balanced(model: Any) -> bool:
    """Tell whether the classifier weighted the classes equally itself."""
    if not hasattr(model, "get_params"):
        return False
    weights = (v for k, v in model.get_params().items() if k.endswith("class_weight"))
    return any(isinstance(weight, str) and weight == "balanced" for weight in weights)
