"""Every transformer of scikit-learn as a step: what it is there, and the law; or advice."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.pipeline
import sklearn.preprocessing
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import MissingIndicator
from sklearn.linear_model import LogisticRegression as ForeignRegression
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer
from sklearn.utils import all_estimators

import erasable
from erasable import Refit
from erasable.compose import ColumnTransformer
from erasable.core.errors import ErasableError
from erasable.core.values import Accepts
from erasable.linear_model import LogisticRegression
from erasable.pipeline import _stateless, make_pipeline
from erasable.preprocessing import MaxAbsScaler
from erasable.utils._checks.compare import assert_same

N = 40
NUMBERS = np.random.default_rng(3).random((N, 3)) + 0.1
TEXTS = [f"word{i % 7} and word{i % 5}" for i in range(N)]
KNOTS = np.linspace(0.0, 1.2, 4)[:, np.newaxis] * np.ones(3)
GIVEN: dict[str, dict[str, Any]] = {
    "HashingVectorizer": {"n_features": 2**8},
    "ColumnTransformer": {
        "transformers": [("scaled", sklearn.preprocessing.StandardScaler(), [0])]
    },
    "FeatureUnion": {"transformer_list": [("scaled", sklearn.preprocessing.StandardScaler())]},
    "SparseCoder": {"dictionary": np.eye(3)},
}
OTHERS = {
    "MissingIndicator of all": MissingIndicator(features="all"),
    "PolynomialFeatures of products": PolynomialFeatures(3, interaction_only=True),
    "SplineTransformer with knots": SplineTransformer(knots=KNOTS, extrapolation="linear"),
    "FunctionTransformer of logarithms": FunctionTransformer(np.log1p, validate=True),
}
TAKEN = {
    *OTHERS,
    "AdditiveChi2Sampler",
    "Binarizer",
    "FunctionTransformer",
    "HashingVectorizer",
    "Normalizer",
    "PolynomialFeatures",
    "SparseCoder",
}
ADVICE = r"Refit\(sklearn\.pipeline\.make_pipeline\(\.\.\.\)\)"


def transformers() -> Iterator[tuple[str, Any]]:
    for name, kind in all_estimators(type_filter="transformer"):
        given = GIVEN.get(name, {})
        if name in ("RFE", "RFECV", "SelectFromModel", "SequentialFeatureSelector"):
            given = {"estimator": Ridge()}
        elif name.startswith(("Stacking", "Voting")):
            given = {"estimators": [("ridge", Ridge())]}
        yield name, kind(**given)
    yield from OTHERS.items()


def records_for(step: Any) -> Any:
    return TEXTS if Accepts.of(step).documents else NUMBERS


def check(step: Any) -> None:
    """Hold a step to scikit-learn's pipeline, and to the law."""
    X = records_for(step)
    some = (lambda rows: [X[i] for i in rows]) if X is TEXTS else (lambda rows: X[rows])
    model = make_pipeline(clone(step), MaxAbsScaler()).fit(X)
    twin = sklearn.pipeline.make_pipeline(clone(step), sklearn.preprocessing.MaxAbsScaler())
    out, expected = model.transform(X), twin.fit_transform(X)
    for_both = [each.toarray() if issparse(each) else each for each in (out, expected)]
    np.testing.assert_allclose(*for_both, atol=1e-7)
    assert issparse(out) == issparse(expected)
    if hasattr(model, "get_feature_names_out"):
        assert model.get_feature_names_out().tolist() == twin.get_feature_names_out().tolist()
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded = erasable.load(file, (X, list(range(N))))
    left = np.delete(np.arange(N), [2, 9, 30])
    fresh = make_pipeline(clone(step), MaxAbsScaler()).fit(some(left), ids=left)
    for each in (model, loaded):
        each.delete([2, 9, 30])
        assert_same(each, fresh, "behind a transformer of scikit-learn")


@pytest.mark.parametrize(
    ("name", "step"), [pytest.param(*each, id=each[0]) for each in transformers()]
)
def test_it_is_its_twin_or_is_refused_with_advice(name: str, step: Any) -> None:
    if name in TAKEN:
        check(step)
        return
    with pytest.raises(ErasableError, match=ADVICE):
        make_pipeline(step, MaxAbsScaler()).fit(NUMBERS, NUMBERS[:, 0])
    with pytest.raises(ErasableError, match=ADVICE):
        ColumnTransformer([("step", step, [0, 1])]).fit(NUMBERS, NUMBERS[:, 0])


def test_one_that_learns_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check tells: a scaler that is declared to learn nothing is found out."""
    path = "sklearn.preprocessing.MinMaxScaler"
    monkeypatch.setattr(_stateless, "_OF_WIDTH", {path: lambda step: True})
    with pytest.raises(AssertionError):
        check(sklearn.preprocessing.MinMaxScaler())


def test_the_advice_helps() -> None:
    foreign = sklearn.pipeline.make_pipeline(sklearn.preprocessing.PowerTransformer(), Ridge())
    model = Refit(foreign, random_state=0).fit(NUMBERS, NUMBERS[:, 0])
    model.delete([3])
    left = np.delete(np.arange(N), 3)
    fresh = Refit(foreign, random_state=0).fit(NUMBERS[left], NUMBERS[left, 0], ids=left)
    assert_same(model, fresh, "wrapped")


def with_ratio(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(ratio=X["a"] / X["b"])


def test_functions_of_frames() -> None:
    """Between steps there are arrays; scikit-learn's own pipeline hands frames on."""
    X = pd.DataFrame(NUMBERS, columns=list("abc"))
    y = NUMBERS[:, 0] / NUMBERS[:, 1]
    with pytest.raises(ErasableError, match=f"table of float64 of 3 columns without.*{ADVICE}"):
        make_pipeline(FunctionTransformer(with_ratio), MaxAbsScaler()).fit(X)
    foreign = sklearn.pipeline.make_pipeline(FunctionTransformer(with_ratio), Ridge(alpha=1e-6))
    model = Refit(foreign, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.999
    model.delete([3])
    fresh = Refit(foreign, random_state=0).fit(X.drop(index=3), np.delete(y, 3))
    assert_same(model, fresh, "a function of frames")


def test_steps_that_were_passed_are_fitted() -> None:
    poly = PolynomialFeatures()
    model = make_pipeline(poly, MaxAbsScaler()).fit(NUMBERS)
    assert poly.n_output_features_ == 10
    np.testing.assert_array_equal(model[:-1].transform(NUMBERS[:2]), poly.transform(NUMBERS[:2]))
    assert make_pipeline(MaxAbsScaler(), PolynomialFeatures()).fit(NUMBERS).transform(
        NUMBERS
    ).shape == (N, 10)


def test_words_are_hashed() -> None:
    hashing = HashingVectorizer(n_features=64)
    y = np.arange(N) % 2
    model = make_pipeline(hashing, LogisticRegression()).fit(TEXTS, y)
    twin = sklearn.pipeline.make_pipeline(hashing, ForeignRegression(tol=1e-9))
    np.testing.assert_allclose(
        model.predict_proba(TEXTS), twin.fit(TEXTS, y).predict_proba(TEXTS), atol=1e-4
    )
