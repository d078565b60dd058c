"""Data for the tests of naive Bayes: tables that suit each classifier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import sklearn.naive_bayes
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.utils._checks.data_sets import DataSet
from erasable.utils.estimator_checks import LAW_DATA_SETS

ALL = [GaussianNB(), MultinomialNB(), BernoulliNB(), CategoricalNB()]
SPARSE = [
    MultinomialNB(),
    MultinomialNB(alpha=0.0),
    BernoulliNB(),
    BernoulliNB(binarize=1.0, alpha=0.0),
]


def theirs(model: Any) -> Any:
    """The same classifier of scikit-learn."""
    cls = getattr(sklearn.naive_bayes, type(model).__name__)
    ours = model.get_params()
    return cls(**{name: ours[name] for name in cls().get_params() if name in ours})


def table_for(model: Any, rng: np.random.Generator, n: int, d: int) -> NDArray[Any]:
    """Values that the classifier takes: of several magnitudes, duplicated, constant, zero."""
    if isinstance(model, CategoricalNB):
        return rng.integers(0, rng.integers(1, 6, size=d), size=(n, d)).astype(np.float64)
    kinds = [
        np.exp(4.0 * rng.normal(size=n)),
        rng.poisson(1.0, n).astype(np.float64),
        rng.random(n),
        np.full(n, 3.7),
        np.zeros(n),
        rng.choice(rng.random(3), n),
    ]
    if isinstance(model, GaussianNB):
        kinds += [rng.normal(size=n), 1.7e9 + rng.integers(0, 10**6, n) / 8.0, -kinds[0]]
    return np.column_stack([kinds[k] for k in rng.integers(0, len(kinds), d)])


@st.composite
def cases(draw: st.DrawFn, model: Any, least: int = 2) -> tuple[NDArray[Any], NDArray[Any]]:
    """A table and the classes of its rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(least, 30)), draw(st.integers(1, 5))
    X = table_for(model, rng, n, d)
    if draw(st.booleans()) and not isinstance(model, GaussianNB):
        X *= rng.random((n, d)) < 0.5
    y: NDArray[Any] = rng.integers(0, draw(st.integers(1, 4)), n) - 1
    if draw(st.booleans()):
        y = np.array([f"class {label}" for label in y], dtype=object)
    return X.astype(draw(st.sampled_from([np.float64, np.float32]))), y


def code_sets() -> list[DataSet]:
    """The data sets of the law, each column cut into 5 categories."""
    result = []
    for data in LAW_DATA_SETS:
        ranks = np.argsort(np.argsort(data.X, axis=0, kind="stable"), axis=0, kind="stable")
        codes = (ranks * 5 // len(data)).astype(np.float64)
        result.append(replace(data, name=f"codes of {data.name}", X=codes))
    return result


def as_sparse(X: NDArray[Any]) -> csr_array:
    """The same values in CSR."""
    return csr_array(X)
