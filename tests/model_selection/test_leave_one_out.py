"""Leave-one-out by deletion is leave-one-out by n fits, bit for bit."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model
from hypothesis import given, settings
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer, r2_score
from sklearn.model_selection import LeaveOneGroupOut, LeaveOneOut, cross_val_predict, cross_validate

from effort import examples
from erasable import Records, load
from erasable.cluster import KMeans
from erasable.core.errors import DetachedError, InvalidInputError, TooFewRecordsError
from erasable.core.rows import Rows
from erasable.feature_extraction import CountVectorizer
from erasable.linear_model import LinearRegression, LogisticRegression, Ridge
from erasable.model_selection import _leave_one_out, leave_one_out
from erasable.naive_bayes import GaussianNB, MultinomialNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(30, 3)), 1)
X[[4, 9]] = X[20]
WEIGHTS = np.r_[0.0, rng.random(29)]
Y = X @ [1.0, -2.0, 0.5] + rng.normal(size=30)
MANY = np.c_[Y, Y**2]
KINDS = rng.permutation(np.repeat(["a", "b", "c"], 10))
PEOPLE = rng.integers(0, 6, size=30)


def refits(
    estimator: Any, X: Any, y: Any, method: str = "predict", parts: Any = None, **fit: Any
) -> np.ndarray:
    """Fit without each part of the rows, and predict it."""
    n = X.shape[0]
    out: list[Any] = [None] * n
    for part in np.arange(n)[:, None] if parts is None else parts:
        left = np.setdiff1d(np.arange(n), part)
        rest = {name: values[left] for name, values in fit.items()}
        records = Records(X[left], None if y is None else y[left], ids=left, **rest)
        model = clone(estimator).fit(records)
        told = getattr(model, method)(X[part])
        for row, value in zip(part, told, strict=True):
            out[row] = value
    return np.array(out)


ESTIMATORS = [
    (LinearRegression(), Y, "predict"),
    (Ridge(), Y, "predict"),
    (Ridge(0.1, fit_intercept=False), MANY, "predict"),
    (make_pipeline(StandardScaler(), Ridge()), Y, "predict"),
    (make_pipeline(MinMaxScaler(), StandardScaler(with_mean=False), Ridge()), MANY, "predict"),
    (make_pipeline(MinMaxScaler(clip=True), MultinomialNB()), KINDS, "predict_proba"),
    (GaussianNB(), KINDS, "predict"),
    (GaussianNB(), KINDS, "predict_log_proba"),
    (make_pipeline(StandardScaler(), GaussianNB()), KINDS, "predict_proba"),
    (LogisticRegression(), KINDS, "predict_proba"),
    (make_pipeline(StandardScaler(), LogisticRegression()), Y > 0, "decision_function"),
    (KMeans(3, random_state=1), None, "predict"),
    (make_pipeline(StandardScaler(), KMeans(3, random_state=1)), None, "predict"),
]


@pytest.mark.parametrize(("estimator", "y", "method"), ESTIMATORS, ids=lambda e: str(e)[:60])
def test_it_is_n_fits(estimator: Any, y: Any, method: str) -> None:
    result = leave_one_out(estimator, X, y, method=method)
    expected = refits(estimator, X, y, method)
    assert result.predictions.shape == expected.shape
    assert np.array_equal(result.predictions, expected)
    assert result.ids.tolist() == list(range(30))
    assert result.groups is None
    with pytest.raises(NotFittedError):
        estimator.predict(X)


@pytest.mark.parametrize(("estimator", "y", "method"), ESTIMATORS, ids=lambda e: str(e)[:60])
def test_it_is_a_fit_for_each_group(estimator: Any, y: Any, method: str) -> None:
    parts = [np.flatnonzero(person == PEOPLE) for person in range(6)]
    result = leave_one_out(estimator, X, y, groups=PEOPLE, method=method)
    assert np.array_equal(result.predictions, refits(estimator, X, y, method, parts))
    assert result.groups is not None
    assert result.groups.tolist() == [0, 1, 2, 3, 4, 5]
    assert result.scores is None if y is None else result.scores.shape == (6,)


@pytest.mark.parametrize("estimator", [Ridge(), make_pipeline(StandardScaler(), Ridge())])
def test_weights(estimator: Any) -> None:
    result = leave_one_out(estimator, X, Y, sample_weight=WEIGHTS)
    assert np.array_equal(result.predictions, refits(estimator, X, Y, sample_weight=WEIGHTS))
    assert not np.array_equal(result.predictions, leave_one_out(estimator, X, Y).predictions)


@pytest.mark.parametrize("table", [csr_array(X * (X > 0)), X.astype(np.float32)], ids=str)
@pytest.mark.parametrize("scaler", [None, StandardScaler(with_mean=False)])
def test_tables_of_other_kinds(table: Any, scaler: Any) -> None:
    estimator = Ridge() if scaler is None else make_pipeline(scaler, Ridge())
    assert np.array_equal(
        leave_one_out(estimator, table, Y).predictions, refits(estimator, table, Y)
    )


def test_frames_ids_and_groups_by_name() -> None:
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).assign(
        visit=[f"v{i}" for i in range(30)], person=PEOPLE
    )
    result = leave_one_out(Ridge(), frame, Y, ids="visit", groups="person")
    plain = leave_one_out(Ridge(), X, Y, groups=PEOPLE)
    assert result.ids.tolist() == frame["visit"].tolist()
    assert np.array_equal(result.predictions, plain.predictions)


def test_documents() -> None:
    texts = ["cheap pills", "pills now", "see you", "see you at nine", "cheap cheap", "at home"]
    y = np.array([1, 1, 0, 0, 1, 0])
    model = make_pipeline(CountVectorizer(), MultinomialNB())
    result = leave_one_out(model, texts, y, method="predict_proba", scoring="accuracy")
    for i, text in enumerate(texts):
        left = [text for j, text in enumerate(texts) if j != i]
        refit = clone(model).fit(left, np.delete(y, i))
        assert np.array_equal(result.predictions[[i]], refit.predict_proba([text]))
    scorer = make_scorer(accuracy_score)
    assert leave_one_out(model, texts, y, scoring=scorer).score == result.score


# -- where the records come from -------------------------------------------------------------------


def test_a_fitted_model_leaves_out_what_it_holds() -> None:
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, Y, ids=np.arange(100, 130))
    model.delete([103, 117])
    digest, ridge = model.digest(), model[-1]
    result = leave_one_out(model)
    left = np.delete(np.arange(30), [3, 17])
    assert result.ids.tolist() == (left + 100).tolist()
    assert np.array_equal(result.predictions, leave_one_out(model, X[left], Y[left]).predictions)
    assert model.digest() == digest
    assert model[-1] is ridge
    model.delete([100])


def test_a_model_from_a_pickle_has_no_accelerator_yet() -> None:
    for estimator in (Ridge(), GaussianNB(), make_pipeline(StandardScaler(), GaussianNB())):
        y = Y if isinstance(estimator, Ridge) else KINDS
        model = pickle.loads(pickle.dumps(clone(estimator).fit(X, y)))
        told = leave_one_out(model).predictions
        assert np.array_equal(told, leave_one_out(estimator, X, y).predictions)


def test_shared_records_are_let_go() -> None:
    records = Records(X, Y, ids=np.arange(30), groups=PEOPLE)
    others = make_pipeline(StandardScaler(), Ridge()).fit(records)
    others.delete([5])
    gc.disable()
    try:
        result = leave_one_out(make_pipeline(StandardScaler(), Ridge()), records)
        assert 5 not in result.ids
        assert np.array_equal(np.delete(records.matrix, 5, axis=0), np.delete(X, 5, axis=0))
        others.delete([6])
        assert not records.matrix[6].any()
    finally:
        gc.enable()


def test_one_seed_is_drawn_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def draw(given: Any) -> int:
        drawn.append(given)
        return 7

    monkeypatch.setattr("erasable.core.model.seed_from", draw)
    result = leave_one_out(KMeans(3), X)
    assert drawn == [None]
    monkeypatch.undo()
    seeded = leave_one_out(KMeans(3, random_state=7), X)
    assert np.array_equal(result.predictions, seeded.predictions)


# -- scores ----------------------------------------------------------------------------------------

DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "scoring", [None, "neg_mean_absolute_error", "neg_mean_squared_error", "neg_max_error"]
)
def test_scores_are_those_of_scikit_learn(scoring: str | None) -> None:
    told = leave_one_out(Ridge(), *DIABETES, scoring=scoring)
    expected = cross_validate(
        sklearn.linear_model.Ridge(), *DIABETES, cv=LeaveOneOut(),
        scoring=scoring or "neg_mean_squared_error",
    )["test_score"]  # fmt: skip
    np.testing.assert_allclose(told.scores, expected, rtol=1e-5)
    assert told.score == pytest.approx(expected.mean(), rel=1e-6)


@pytest.mark.parametrize("scoring", ["r2", make_scorer(r2_score), "neg_mean_squared_error"])
def test_scores_of_groups(scoring: Any) -> None:
    groups = np.arange(442) % 7
    told = leave_one_out(Ridge(), *DIABETES, groups=groups, scoring=scoring)
    expected = cross_validate(
        sklearn.linear_model.Ridge(), *DIABETES, groups=groups, cv=LeaveOneGroupOut(),
        scoring=scoring,
    )["test_score"]  # fmt: skip
    np.testing.assert_allclose(told.scores, expected, rtol=1e-6)


def test_classifiers_are_scored_by_accuracy() -> None:
    told = leave_one_out(GaussianNB(), *IRIS, method="predict_proba")
    proba = cross_val_predict(
        sklearn.naive_bayes.GaussianNB(), *IRIS, cv=LeaveOneOut(), method="predict_proba"
    )
    np.testing.assert_allclose(told.predictions, proba, atol=1e-6)
    assert told.score == np.mean(proba.argmax(axis=1) == IRIS[1])


def test_what_has_no_score() -> None:
    result = leave_one_out(KMeans(2, random_state=0), X)
    assert result.scores is None
    assert result.score is None
    scored = leave_one_out(KMeans(2, random_state=0), X, scoring=lambda model, X, y: model.score(X))
    assert scored.scores is not None
    assert (scored.scores <= 0).all()


def test_a_scorer_is_asked_without_names_and_without_warnings() -> None:
    frame = pd.DataFrame(X, columns=["x", "y", "z"])
    asked: list[Any] = []

    def scorer(model: Any, X: Any, y: Any) -> float:
        asked.append((X.shape, y.shape))
        return float(model.predict(X)[0])

    result = leave_one_out(Ridge(), frame, Y, scoring=scorer)
    assert np.array_equal(result.scores, result.predictions)
    assert asked == [((1, 3), (1,))] * 30


# -- classes that go -------------------------------------------------------------------------------


def test_columns_of_classes_that_are_gone() -> None:
    y = np.array(["a"] * 14 + ["b"] * 15 + ["c"])
    for method, nothing in (("predict_proba", 0.0), ("predict_log_proba", -np.inf)):
        told = leave_one_out(GaussianNB(), X, y, method=method).predictions
        assert told.shape == (30, 3)
        assert told[29, 2] == nothing
        refit = GaussianNB().fit(X[:29], y[:29])
        assert np.array_equal(told[29, :2], getattr(refit, method)(X[29:])[0])
    with pytest.raises(InvalidInputError, match=r"has 2 of 3 classes, .*; fix them with classes="):
        leave_one_out(LogisticRegression(), X, y, method="decision_function")
    fixed = LogisticRegression(classes=["a", "b", "c"])
    told = leave_one_out(fixed, X, y, method="decision_function").predictions
    assert told[29, 2] == -np.inf


def test_what_cannot_be_learned_from_the_rest_is_refused() -> None:
    y = np.r_[np.zeros(29, dtype=int), 1]
    with pytest.raises(TooFewRecordsError, match="LogisticRegression needs at least 2"):
        leave_one_out(LogisticRegression(), X, y)
    with pytest.raises(TooFewRecordsError, match="leaving out 1 records would leave 2; KMeans"):
        leave_one_out(KMeans(3, random_state=0), X[:3])
    with pytest.raises(TooFewRecordsError, match="leaving out 1 of 1 records"):
        leave_one_out(Ridge(), X[:1], Y[:1])


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: leave_one_out(sklearn.linear_model.Ridge(), X, Y), "expected one of erasable"),
        (lambda: leave_one_out(Ridge(), X, Y, method="transform"), "method is 'transform'; exp"),
        (lambda: leave_one_out(Ridge(), X, Y, method="predict_proba"), "this Ridge has no predict"),
        (lambda: leave_one_out(Ridge(), X, Y, scoring="best"), "scoring='best' is no scorer"),
        (lambda: leave_one_out(Ridge().fit(X, Y), y=Y), "without X; expected X with them"),
        (
            lambda: leave_one_out(Ridge(), Records(X, Y), sample_weight=WEIGHTS),
            "Records together with sample_weight",
        ),
        (
            lambda: leave_one_out(KMeans(2), X, sample_weight=WEIGHTS),
            "the records have weights, of which KMeans makes no use",
        ),
    ],
)
def test_what_is_refused(call: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_models_without_records_are_refused(tmp_path: Any) -> None:
    with pytest.raises(NotFittedError):
        leave_one_out(Ridge())
    Ridge().fit(X, Y).save(tmp_path / "model")
    with pytest.raises(DetachedError):
        leave_one_out(load(tmp_path / "model"))
    pipeline = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    with pytest.raises(DetachedError, match="a step of a pipeline"):
        leave_one_out(pipeline[-1])


# -- data that nobody chose ------------------------------------------------------------------------

ANY = [
    Ridge(0.5),
    make_pipeline(StandardScaler(), Ridge()),
    GaussianNB(),
    make_pipeline(MinMaxScaler(), GaussianNB()),
]


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("estimator", ANY, ids=str)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_any_data(estimator: Any, data: st.DataObject) -> None:
    n, d = data.draw(st.integers(3, 9)), data.draw(st.integers(1, 3))
    values = st.floats(-1e6, 1e6, width=32) | st.integers(-3, 3).map(float)
    table = data.draw(hnp.arrays(np.float64, (n, d), elements=values))
    y = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 2)))
    told = leave_one_out(estimator, table, y).predictions
    assert np.array_equal(told, refits(estimator, table, y))


@pytest.mark.parametrize("broken", ["_at_once", "_one_by_one"])
def test_predictions_of_the_model_that_has_seen_them_are_found(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def seen(model: Any, live: Any, *others: Any) -> Any:
        told = model.predict(Rows(model._held.records.matrix[live]))
        return told if not others else (told, None)

    monkeypatch.setattr(_leave_one_out, broken, seen)
    estimator = Ridge() if broken == "_at_once" else make_pipeline(StandardScaler(), Ridge())
    with pytest.raises(AssertionError):
        test_it_is_n_fits(estimator, Y, "predict")
