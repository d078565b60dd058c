"""What `Refit` hands to its estimator, and what it refuses: by name, on one line."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import erasable.preprocessing
from erasable import load
from erasable.core import frames
from erasable.core.errors import (
    ArtifactError,
    ErasableError,
    InvalidDataError,
    InvalidParameterError,
    MagnitudeError,
    TooFewRecordsError,
    UnlearnableError,
)
from erasable.ensemble import BaggingClassifier, ShardedClassifier
from erasable.refit import Refit
from refit.estimators import (
    ONE_DIMENSIONAL,
    Adding,
    Chancy,
    Counting,
    Failing,
    Holding,
    Homemade,
    shouted,
)

PEOPLE = pd.DataFrame(
    {
        "city": ["Bonn", "Köln", "Bonn", None, "Ulm", "Köln", "Ulm", "Bonn"],
        "age": [40, 50, 31, 62, 19, 33, 48, 57],
        "ill": [True, False, True, True, False, False, True, False],
        "visit": [f"v{i}" for i in range(8)],
    }
)
SICK = [1, 0, 1, 1, 0, 0, 1, 0]
BY_NAME = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]), (StandardScaler(), ["age"])
    ),
    LogisticRegression(),
)


def _raises(error: type[Exception], told: str, call: Any, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(error, match=told) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, ErasableError)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


# --------------------------------------------------------------------------- what it is given


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_by_name(library: str, tmp_path: Path) -> None:
    frame: Any = PEOPLE if library == "pandas" else pl.from_pandas(PEOPLE)
    features = frame.drop(columns="visit") if library == "pandas" else frame.drop("visit")
    model = Refit(BY_NAME, random_state=0).fit(frame, SICK, ids="visit")
    assert model.feature_names_in_.tolist() == ["city", "age", "ill"]
    expected = BY_NAME.fit(PEOPLE.drop(columns="visit"), SICK).predict_proba(PEOPLE)
    np.testing.assert_allclose(model.predict_proba(features), expected, rtol=1e-6)
    model.delete(["v3", "v4"])
    refit = Refit(BY_NAME, random_state=0)
    refit.fit(PEOPLE.drop(index=[3, 4])[::-1], [SICK[i] for i in (7, 6, 5, 2, 1, 0)], ids="visit")
    assert model.digest() == refit.digest()
    assert np.array_equal(model.predict_proba(features), refit.predict_proba(features))
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model", trusted=True), pickle.loads(pickle.dumps(model))):
        assert again.digest() == model.digest()
        assert np.array_equal(again.predict_proba(features), model.predict_proba(features))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_columns_by_place_need_no_frame() -> None:
    by_place = make_column_transformer((OneHotEncoder(), [0]), (StandardScaler(), [1]))
    model = Refit(make_pipeline(by_place, Ridge())).fit(PEOPLE.iloc[:, :2], SICK)
    assert model._recipe.columns is None
    table = PEOPLE.iloc[:, :2].to_numpy(dtype=object)
    assert np.array_equal(model.predict(table), model.predict(PEOPLE.iloc[:, :2]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_any_library_give_one_prediction(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Refit(BY_NAME, random_state=0).fit(PEOPLE, SICK, ids="visit")
    monkeypatch.setattr(frames, "_LIBRARIES", (library,))
    model = Refit(BY_NAME, random_state=0).fit(PEOPLE, SICK, ids="visit")
    model.delete(["v0"])
    expected.delete(["v0"])
    query = PEOPLE.drop(columns="visit")
    np.testing.assert_allclose(model.predict_proba(query), expected.predict_proba(query))


def test_without_a_library_of_frames_there_are_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([["Bonn", 40.0], ["Ulm", np.nan]], dtype=object)
    monkeypatch.setattr(frames, "_LIBRARIES", ("no such library",))
    assert frames.make_frame(table, ["city", "age"], [0]) is table


def test_gaps_of_a_query_in_a_column_of_text() -> None:
    model = Refit(BY_NAME, random_state=0).fit(PEOPLE, SICK, ids="visit")
    query = PEOPLE.drop(columns="visit").iloc[[3]]
    assert model.predict(query).shape == (1,)
    numbers = pd.DataFrame({"city": [np.nan], "age": [62.0], "ill": [1.0]})
    assert np.array_equal(model.predict_proba(numbers), model.predict_proba(query))


def test_names_of_columns_made() -> None:
    frame = PEOPLE[["age", "ill"]]
    model = Refit(StandardScaler()).fit(frame)
    assert model.get_feature_names_out().tolist() == ["age", "ill"]
    assert Refit(StandardScaler()).fit(frame.to_numpy()).get_feature_names_out().tolist() == [
        "x0",
        "x1",
    ]
    both = Refit(make_column_transformer((OneHotEncoder(), ["city"]), ("drop", ["age"])))
    assert both.fit(PEOPLE, ids="visit").get_feature_names_out()[0] == "onehotencoder__city_Bonn"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_names_of_queries_are_checked() -> None:
    model = Refit(Ridge()).fit(PEOPLE[["age", "ill"]], SICK)
    _raises(InvalidDataError, "another order", model.predict, PEOPLE[["ill", "age"]])
    _raises(InvalidDataError, "3 features", model.predict, np.ones((2, 3)))


def test_documents(tmp_path: Path) -> None:
    texts = ["win a prize", "see you", "a prize for you", "see me", "win win", "me and you"]
    spam = [1, 0, 1, 0, 1, 0]
    for head in (CountVectorizer(), make_union(CountVectorizer(), CountVectorizer(binary=True))):
        model = Refit(make_pipeline(head, MultinomialNB()), random_state=0)
        model.fit(texts, spam, ids=list("abcdef"))
        assert model.predict(texts).tolist() == spam
        model.delete(["c"])
        rest = [0, 1, 3, 4, 5]
        refit = Refit(make_pipeline(head, MultinomialNB()), random_state=0)
        refit.fit([texts[i] for i in rest[::-1]], [spam[i] for i in rest[::-1]], ids=list("fedba"))
        assert model.digest() == refit.digest()
        model.save(tmp_path / "model")
        again = load(tmp_path / "model", trusted=True)
        assert np.array_equal(again.predict(texts), model.predict(texts))
        assert "for" not in " ".join(model.estimator_[0].get_feature_names_out())
    _raises(InvalidDataError, "str object received", model.predict, "one secret text")


def test_sparse_records() -> None:
    X = csr_array(np.eye(6) * [1, 2, 3, 4, 5, 6])
    model = Refit(MultinomialNB(), random_state=0).fit(X, [0, 1, 0, 1, 0, 1])
    model.delete([0])
    dense = Refit(MultinomialNB(), random_state=0).fit(
        X.toarray()[1:], [1, 0, 1, 0, 1], ids=range(1, 6)
    )
    np.testing.assert_allclose(model.predict_proba(X), dense.predict_proba(X.toarray()))
    refit = Refit(MultinomialNB(), random_state=0).fit(X[1:], [1, 0, 1, 0, 1], ids=range(1, 6))
    assert model.digest() == refit.digest()


def test_gaps_where_a_step_fills_them() -> None:
    X = np.array([[1.0, np.nan], [2.0, 3.0], [np.nan, 4.0], [5.0, 6.0]])
    y = [0, 1, 0, 1]
    for steps in ([SimpleImputer()], [StandardScaler(), SimpleImputer()]):
        Refit(make_pipeline(*steps, Ridge())).fit(X, y)
    Refit(HistGradientBoostingClassifier(max_iter=2)).fit(X, y)
    Refit(GridSearchCV(make_pipeline(SimpleImputer(), Ridge()), {}, cv=2)).fit(X, y)
    for estimator in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
        _raises(InvalidDataError, "X contains NaN", Refit(estimator).fit, X, y)


def test_several_targets() -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = Refit(Ridge(), random_state=0).fit(X, X[:, ::-1])
    assert model.predict(X).shape == (6, 2)
    labels = (X > 5).astype(int)
    assert Refit(RandomForestClassifier(2)).fit(X, labels).predict(X).shape == (6, 2)
    column = Refit(ONE_DIMENSIONAL).fit(X[:, :1], X[:, 0])
    assert np.array_equal(column.predict(X[:, :1]), X[:, 0])


def test_parts_made_at_home(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.arange(30)[:, None] % 3
    y = np.arange(30) % 3
    model = Refit(Homemade(), random_state=0).fit(X, y)
    model.delete([4])
    rest = np.delete(np.arange(30), 4)[::-1]
    refit = Refit(Homemade(), random_state=0).fit(X[rest], y[rest], ids=rest)
    assert model.digest() == refit.digest()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    again.delete([5])
    model.save(tmp_path / "model")
    _raises(ArtifactError, "Homemade", partial(load, trusted=True), tmp_path / "model")
    framed = Refit(make_pipeline(Adding(), Ridge())).fit(PEOPLE[["age", "ill"]], SICK)
    framed.delete([0])
    assert framed.predict(PEOPLE[["age", "ill"]]).shape == (8,)


def test_functions_among_the_parameters(tmp_path: Path) -> None:
    X = np.abs(np.random.default_rng(0).normal(size=(20, 3)))
    logs = make_pipeline(FunctionTransformer(np.log1p), Ridge())
    model = Refit(logs, random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", trusted=True)
    assert np.array_equal(again.predict(X), model.predict(X))
    model = Refit(make_pipeline(SelectKBest(f_regression, k=1), Ridge()), random_state=0)
    model.fit(X, X[:, 0])
    model.delete([0])
    means = Refit(FeatureAgglomeration(), random_state=0).fit(X)
    for each in (model, means):
        assert pickle.loads(pickle.dumps(each)).digest() == each.digest()
    words = make_pipeline(FunctionTransformer(shouted), OneHotEncoder(), LogisticRegression())
    _raises(
        InvalidParameterError,
        "without a name of its own",
        Refit(FunctionTransformer(lambda values: values)).fit,
        X,
    )
    assert isinstance(words, BaseEstimator)


# --------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("estimator", "told"),
    [
        (None, "must be an object implementing 'fit'"),
        (Ridge, "the class Ridge"),
        (erasable.preprocessing.StandardScaler(), "StandardScaler of erasable"),
        (make_pipeline(erasable.preprocessing.StandardScaler(), Ridge()), "can delete by itself"),
        (Ridge(alpha=-1.0), "Ridge refuses a parameter: .*'alpha'"),
        (Chancy(), r"not deterministic: two fits to the same records differ in coef_; expected"),
        (Counting(), r"differ in count_"),
        (make_pipeline(StandardScaler(), Chancy()), "Pipeline is not deterministic"),
        (Holding(), "holds (the function _?io.open|a builtins.memoryview), of which no plain copy"),
    ],
    ids=str,
)
def test_estimators(estimator: Any, told: str) -> None:
    X = np.arange(12.0).reshape(6, 2)
    _raises(InvalidParameterError, told, Refit(estimator).fit, X, X[:, 0])


def test_the_check_for_chance_leaves_the_global_generator_alone() -> None:
    X = np.arange(12.0).reshape(6, 2)
    np.random.seed(3)
    before = np.random.get_state()[1].copy()
    Refit(Homemade()).fit(X, [0, 1] * 3)
    assert np.array_equal(np.random.get_state()[1], before)


def test_complaints_of_the_estimator_tell_no_value() -> None:
    X = np.arange(12.0).reshape(6, 2)
    told = r"Failing cannot learn from n_samples=6, .* \(ValueError: cannot learn from text\)"
    _raises(UnlearnableError, told, Refit(Failing()).fit, X, X[:, 0])
    told = (
        r"MultinomialNB cannot learn from n_samples=3, n_features=2 \(ValueError: Negative values"
    )
    _raises(InvalidDataError, told, Refit(MultinomialNB()).fit, -X[:3], [0, 1, 0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_too_large() -> None:
    X = np.ldexp(np.arange(12.0).reshape(6, 2), 1010)
    told = r"beyond 2\*\*480 \(it says: "
    _raises(MagnitudeError, told, Refit(make_pipeline(StandardScaler(), Ridge())).fit, X, range(6))


@pytest.mark.parametrize(
    ("estimator", "gone", "told"),
    [
        (LogisticRegression(), [0, 2, 4], "n_samples=3, .*at least 2 classes"),
        (KNeighborsRegressor(5), [1, 2], None),
        (
            GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=5, scoring="neg_mean_squared_error"),
            [1, 2],
            r"n_splits=5",
        ),
        (DummyClassifier(), range(6), "needs at least 1"),
    ],
    ids=lambda case: type(case).__name__,
)
def test_deletions_that_leave_too_little(estimator: Any, gone: Any, told: str | None) -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    model = Refit(estimator, random_state=0).fit(X, y)
    digest, before = model.digest(), model.predict(X[:1])
    left = np.setdiff1d(np.arange(6), gone)
    if told is None:  # it learns, and cannot predict
        model.delete(gone)
        return
    _raises(TooFewRecordsError, told, model.delete, gone)
    assert model.digest() == digest
    assert model.ids_.size == 6
    assert np.array_equal(model.predict(X[:1]), before)
    if left.size:
        blank = Refit(estimator, random_state=0)
        _raises(TooFewRecordsError, told, blank.fit, X[left], y[left], ids=left)
    model.delete([5])
    refit = Refit(estimator, random_state=0).fit(X[:5], y[:5])
    assert model.digest() == refit.digest()


def test_parameters_set_after_fit_concern_the_next_fit() -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = Refit(Ridge(alpha=1.0), random_state=0).fit(X, X[:, 0])
    model.set_params(estimator__alpha=100.0)
    model.delete([5])
    assert model.digest() == Refit(Ridge(alpha=1.0), random_state=0).fit(X[:5], X[:5, 0]).digest()


def test_the_estimator_that_is_given_is_not_changed() -> None:
    X = np.arange(12.0).reshape(6, 2)
    given = RandomForestClassifier(2)
    Refit(given).fit(X, [0, 1] * 3).delete([0])
    assert given.random_state is None
    assert not hasattr(given, "estimators_")


BEYOND = [[1.0, 2.0, 3.0], [4.0, 1e39, 6.0], [-2e38, 8.0, -1e200]]
NUMBERS = np.arange(36.0).reshape(12, 3)


def as_frame(rows: Any) -> Any:
    return pd.DataFrame(rows, columns=["age", "dose", "pulse"])


@pytest.mark.parametrize(
    "model",
    [
        Refit(RandomForestClassifier(2)),
        ShardedClassifier(DecisionTreeClassifier(), n_shards=2),
        BaggingClassifier(DecisionTreeClassifier(), n_estimators=2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("read", [np.asarray, csr_array, as_frame])
def test_queries_that_float32_does_not_hold(model: Any, read: Any) -> None:
    y = np.arange(12) % 2
    model = clone(model).fit(read(NUMBERS), y)
    named = isinstance(model, Refit) and read is as_frame
    column = "column 'dose'" if named else "column 1"
    for method in ("predict", "predict_proba", "score"):
        targets = [y[:3]] if method == "score" else []
        with pytest.raises(MagnitudeError, match=f"float32, in row 1, {column} of X") as told:
            getattr(model, method)(read(BEYOND), *targets)
        assert "\n" not in str(told.value)
        assert "e+" not in str(told.value)  # no value of a record
        getattr(model, method)(read(np.clip(BEYOND, -3.4e38, 3.4e38)), *targets)


def test_columns_of_bags_and_of_estimators_with_names_are_named_as_given() -> None:
    y = np.arange(12) % 2
    one = BaggingClassifier(DecisionTreeClassifier(), n_estimators=8, max_features=1)
    with pytest.raises(MagnitudeError, match=r"row (1, column 1|2, column 2) of X"):
        one.fit(NUMBERS, y).predict(BEYOND)
    trees = make_pipeline(
        make_column_transformer(("passthrough", ["dose"])), RandomForestClassifier(2)
    )
    model = Refit(trees).fit(as_frame(NUMBERS), y)
    with pytest.raises(MagnitudeError, match="row 1, column 'dose' of X"):
        model.predict(as_frame(BEYOND))


def test_what_else_an_estimator_cannot_answer_is_told_without_values() -> None:
    y = np.arange(12) % 2
    model = Refit(OneHotEncoder()).fit(NUMBERS, y)
    with pytest.raises(InvalidDataError, match=r"OneHotEncoder cannot answer transform \(Value"):
        model.transform([[1234.5, 1.0, 2.0]])
    with pytest.raises(InvalidDataError) as told:
        model.transform([[1234.5, 1.0, 2.0]])
    assert "1234" not in str(told.value)
