"""Kinds of records, labels and models: frames, sparse data, weights, files, steps, and errors."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.ensemble
import sklearn.linear_model
import sklearn.svm
from scipy.sparse import csr_array, issparse
from sklearn.compose import make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.preprocessing import StandardScaler as Foreign
from sklearn.utils import get_tags

import erasable
from erasable import linear_model
from erasable.cluster import DBSCAN, KMeans
from erasable.compose import ColumnTransformer
from erasable.core.errors import ExportError
from erasable.decomposition import PCA
from erasable.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    ShardedClassifier,
    ShardedRegressor,
)
from erasable.feature_extraction import CountVectorizer, TfidfVectorizer
from erasable.kernel import NadarayaWatson, RandomFourierRidge
from erasable.linear_model import LogisticRegression, Ridge, SegmentedRegression
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.neighbors import KernelDensity, KNeighborsClassifier, KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    SimpleImputer,
    StandardScaler,
)
from erasable.recommend import ItemNeighbors
from erasable.refit import Refit
from erasable.tree import DecisionTreeClassifier
from naming import named
from same_answers import compare

RNG = np.random.default_rng(0)
X = RNG.normal([0.0, 5.0, -2.0], size=(120, 3))
Y = 1 * (X[:, 0] > 0) + (X[:, 1] > 5.5)
NEW = RNG.normal([0.0, 5.0, -2.0], size=(40, 3))
NUMBERS = X @ [1.0, 2.0, -1.0] + X[:, 0] ** 2
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
CITIES = RNG.choice(["Rome", "Oslo", "Bern"], 120).astype(object)

CLASSIFIERS = [
    LogisticRegression(),
    GaussianNB(),
    BernoulliNB(),
    KNeighborsClassifier(3),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(3, random_state=0),
    BaggingClassifier(GaussianNB(), 3, bootstrap=False, max_samples=0.5, random_state=0),
    BaggingClassifier(sklearn.linear_model.Perceptron(), 3, random_state=0),
    ShardedClassifier(sklearn.linear_model.LogisticRegression(), 3, random_state=0),
    ShardedClassifier(sklearn.linear_model.Perceptron(), 3, random_state=0),
    Refit(sklearn.ensemble.RandomForestClassifier(3), random_state=0),
    make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
]


@pytest.mark.parametrize(
    "labels", [[0, 1, 2], [7, -3, 5], ["no", "so", "yes"], [3.0, 1.0, 0.0], [False, True, True]]
)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=named)
def test_labels_stay_what_they_are(model: Any, labels: list[Any]) -> None:
    y = np.array(labels)[Y]
    model.fit(X, y)
    exported = model.to_sklearn(records=True)
    compare(model, exported, NEW)
    assert exported.classes_.dtype == model.classes_.dtype
    assert exported.classes_.tolist() == model.classes_.tolist()
    assert exported.predict(NEW).dtype == model.predict(NEW).dtype


def test_a_shard_without_a_class_gives_it_no_vote() -> None:
    """Nor does a bag; the class has two records."""
    y = np.where(np.arange(120) < 2, "rare", np.where(Y > 0, "high", "low"))
    for member in (sklearn.linear_model.LogisticRegression(), GaussianNB()):
        for model in (
            ShardedClassifier(member, 5, random_state=0),
            BaggingClassifier(member, 4, max_samples=0.3, bootstrap=False, random_state=0),
        ):
            model.fit(X, y)
            known = {len(each.classes_) for each in model.estimators_}
            assert known == {2, 3}
            compare(model, model.to_sklearn(), NEW)


def test_members_that_cannot_be_encoded_are_refused() -> None:
    search = GridSearchCV(sklearn.linear_model.Perceptron(), {"alpha": [1e-4, 1e-3]}, cv=2)
    model = ShardedClassifier(search, 3, random_state=0)
    with pytest.raises(ExportError, match="GridSearchCV, whose labels cannot be replaced"):
        model.fit(X, Y).to_sklearn()


# -- frames ----------------------------------------------------------------------------------------


def of_frames() -> Any:
    """Return a composition over columns of every kind, chosen in every way."""
    return make_pipeline(
        ColumnTransformer(
            [
                ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), ["b", "a"]),
                ("city", OneHotEncoder(handle_unknown="ignore"), make_column_selector("city")),
                ("words", TfidfVectorizer(), "text"),
                ("gone", "drop", [2]),
            ],
            remainder=MinMaxScaler(),
        ),
        LogisticRegression(),
    )


def frame(n: int) -> Any:
    table = pd.DataFrame(RNG.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    table.loc[RNG.random(n) < 0.2, "a"] = np.nan
    table["city"] = RNG.choice(["Rome", "Oslo", "Bern"], n)
    table["text"] = [" ".join(RNG.choice(["red", "green", "blue"], 4)) for _ in range(n)]
    return table


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_taken_as_by_the_model(library: str) -> None:
    """Without a warning, and with categories and words that no record has."""
    own, new = frame(90), frame(30)
    new.loc[:3, "city"], new.loc[:3, "text"] = "Lima", "yellow sky"
    if library == "polars":
        own, new = (pl.DataFrame({name: list(each[name]) for name in each}) for each in (own, new))
    model = of_frames().fit(own, np.arange(90) % 3)
    exported = model.to_sklearn()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Found unknown categories")
        compare(model, exported, new)
    assert exported.feature_names_in_.tolist() == own.columns.tolist() if library == "pandas" else 1


@pytest.mark.parametrize(
    "model",
    [
        *CLASSIFIERS,
        StandardScaler(),
        KMeans(2, random_state=0),
        make_pipeline(FunctionTransformer(np.abs), StandardScaler(), GaussianNB()),
        make_pipeline("passthrough", StandardScaler()),
    ],
    ids=named,
)
def test_named_columns_raise_no_warning(model: Any) -> None:
    exported = model.fit(FRAME, Y).to_sklearn(records=True)
    method = "predict" if hasattr(exported, "predict") else "transform"
    new = pd.DataFrame(NEW, columns=FRAME.columns)
    np.testing.assert_array_equal(getattr(exported, method)(new), getattr(model, method)(new))
    if not isinstance(exported, sklearn.pipeline.Pipeline):
        assert exported.feature_names_in_.tolist() == ["a", "b", "c"]
    first = exported[0] if isinstance(exported, sklearn.pipeline.Pipeline) else exported
    if hasattr(first, "feature_names_in_"):
        with pytest.raises(ValueError, match="feature names"):
            getattr(exported, method)(new.rename(columns={"a": "z"}))


def test_names_of_columns_are_the_models() -> None:
    table = pd.DataFrame({"city": CITIES, "floor": RNG.integers(0, 4, 120)})
    model = OneHotEncoder(drop="first").fit(table)
    exported = model.to_sklearn()
    assert exported.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


# -- sparse data, weights, texts, gaps -------------------------------------------------------------

COUNTS = RNG.integers(0, 4, size=(120, 6)) * (RNG.random((120, 6)) < 0.5) * 1.0


@pytest.mark.parametrize(
    "model",
    [
        MaxAbsScaler(),
        StandardScaler(with_mean=False),
        PCA(2),
        MultinomialNB(),
        BernoulliNB(),
        LogisticRegression(),
        make_pipeline(MaxAbsScaler(), LogisticRegression()),
    ],
    ids=named,
)
def test_sparse_data_is_taken_as_by_the_model(model: Any) -> None:
    model.fit(csr_array(COUNTS[:80]), Y[:80])
    compare(model, model.to_sklearn(), csr_array(COUNTS[80:]))


@pytest.mark.parametrize("threshold", [0, 1])
def test_a_sparse_table_stays_sparse_between_columns(threshold: int) -> None:
    model = ColumnTransformer(
        [("scaled", MaxAbsScaler(), [0, 2, 3])], remainder="passthrough", sparse_threshold=threshold
    ).fit(csr_array(COUNTS[:80]))
    exported, new = model.to_sklearn(), csr_array(COUNTS[80:])
    compare(model, exported, new)
    assert issparse(exported.transform(new)) == issparse(model.transform(new)) == (threshold == 1)
    detached = _from_file(model).to_sklearn()
    np.testing.assert_allclose(
        detached.transform(new),
        model.transform(new).toarray() if threshold else model.transform(new),
    )


def _from_file(model: Any) -> Any:
    """Load a model without its records."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return erasable.load(file)


@pytest.mark.parametrize(("n", "scale"), [(2, 1.0), (1, 1e-20), (1, 0.0)])
def test_new_rows_are_whitened_where_the_records_have_little_variance(n: int, scale: float) -> None:
    """scikit-learn divides by 2e-16 there."""
    X = scale * np.outer(RNG.normal(size=40), [1.0, 2.0, 0.0])
    model = PCA(n, whiten=True).fit(X)
    compare(model, model.to_sklearn(), RNG.normal(size=(9, 3)))


def test_sparse_regression() -> None:
    model = Ridge().fit(csr_array(COUNTS), NUMBERS)
    compare(model, model.to_sklearn(), csr_array(COUNTS[:9]))


@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        GaussianNB(),
        MultinomialNB(),
        CategoricalNB(),
        LogisticRegression(),
        RandomForestClassifier(3, random_state=0),
        KernelDensity(),
    ],
    ids=named,
)
def test_weights_are_in_what_was_learned(model: Any) -> None:
    weights = RNG.integers(0, 4, size=120) / 2.0
    model.fit(COUNTS, Y, sample_weight=weights)
    compare(model, model.to_sklearn(records=True), COUNTS[::3])


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        linear_model.LinearRegression(),
        RandomFourierRidge(random_state=0),
        KNeighborsRegressor(2),
        BaggingRegressor(sklearn.linear_model.Ridge(), 2, random_state=0),
        Refit(sklearn.linear_model.Ridge()),
    ],
    ids=named,
)
def test_targets_in_columns(model: Any, several: bool) -> None:
    y = np.column_stack([NUMBERS, X[:, 1]]) if several else NUMBERS[:, None]
    model.fit(X, y)
    compare(model, model.to_sklearn(records=True), NEW)


def test_several_targets_of_shards_are_refused() -> None:
    model = ShardedRegressor(sklearn.linear_model.Ridge(), 2, random_state=0)
    model.fit(X, np.column_stack([NUMBERS, X[:, 1]]))
    with pytest.raises(ExportError, match="several targets"):
        model.to_sklearn()


def test_several_labels_of_neighbours() -> None:
    y = np.column_stack([CITIES, np.array(["a", "b", "c"], dtype=object)[Y]])
    model = KNeighborsClassifier(3).fit(X, y)
    compare(model, model.to_sklearn(records=True), NEW)


def test_places_of_neighbours_are_places_in_ids() -> None:
    ids = [f"r{number}" for number in RNG.permutation(120)]
    model = KNeighborsClassifier(3).fit(X, Y, ids=ids)
    model.delete(ids[5:50])
    _, places = model.to_sklearn(records=True).kneighbors(NEW)
    np.testing.assert_array_equal(model.ids_[places], model.ids_[model.kneighbors(NEW)[1]])


def shout(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    "model",
    [
        CountVectorizer(vocabulary=["green", "red"]),
        CountVectorizer(ngram_range=(1, 2), binary=True, stop_words=["red"], dtype=np.float32),
        CountVectorizer(preprocessor=shout),
        TfidfVectorizer(vocabulary=["green", "sky"], smooth_idf=True),
        TfidfVectorizer(analyzer="char", max_features=5, quantize=True),
        TfidfVectorizer(use_idf=False, norm=None, sublinear_tf=True),
    ],
    ids=named,
)
def test_texts(model: Any) -> None:
    texts = [" ".join(RNG.choice(["red", "green", "blue", "sky"], 5)) for _ in range(30)]
    model.fit(texts)
    exported = model.to_sklearn()
    compare(model, exported, ["red unknown sky", "", "green green", *texts[:5]])
    assert exported.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


GAPS = np.array(
    [["x", np.nan, 1.0], ["y", np.nan, np.nan], [np.nan, np.nan, 3.0], ["x", np.nan, 3.0]],
    dtype=object,
)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("mark", [False, True])
@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
def test_gaps_among_text(strategy: str, mark: bool, keep: bool) -> None:
    """With a column of gaps alone."""
    model = SimpleImputer(
        strategy=strategy, add_indicator=mark, keep_empty_features=keep,
        fill_value="none" if strategy == "constant" else None,
    ).fit(GAPS)  # fmt: skip
    new = np.array([[np.nan, np.nan, np.nan], ["z", "q", 5.0]], dtype=object)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Skipping features")
        compare(model, model.to_sklearn(), new)


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("gap", [np.nan, 1.0, 0.0])
def test_gaps_among_numbers(strategy: str, keep: bool, gap: float) -> None:
    table = np.array([[1.0, 0.0, 4.0], [-1.0, 2.0, 4.0], [0.0, 5.0, 4.0], [2.0, 1.0, 4.0]])
    table[[0, 3], [1, 0]] = table[:, 2] = gap
    model = SimpleImputer(
        strategy=strategy, missing_values=gap, add_indicator=True, keep_empty_features=keep
    ).fit(table)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Skipping features")
        compare(model, model.to_sklearn(), table[:, ::-1].copy())


CATEGORIES = np.array(
    [["x", 3.0], ["y", 1.0], ["x", np.nan], [np.nan, 3.0], ["z", 2.5]], dtype=object
)


@pytest.mark.parametrize(
    "model",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first"),
        OneHotEncoder(drop="if_binary", sparse_output=False, dtype=np.int32),
        OneHotEncoder(drop=["y", 3.0], handle_unknown="ignore"),
        OneHotEncoder(categories=[["z", "y", "x", np.nan], [1.0, 2.5, 3.0, np.nan]]),
        OrdinalEncoder(),
        OrdinalEncoder(encoded_missing_value=-2, dtype=np.int64),
        OrdinalEncoder(categories=[["z", "y", "x", np.nan], [1.0, 2.5, 3.0, np.nan]]),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
    ],
    ids=named,
)
def test_categories(model: Any) -> None:
    model.fit(CATEGORIES)
    exported = model.to_sklearn()
    compare(model, exported, CATEGORIES[::-1])
    frame = pd.DataFrame({"a": CATEGORIES[:, 0], "b": CATEGORIES[:, 1].astype(np.float64)})
    compare(model.fit(frame), model.to_sklearn(), frame.iloc[::-1])


def test_a_category_that_left_is_not_dropped() -> None:
    """`fit` of scikit-learn refuses to drop a category that it does not see."""
    model = OneHotEncoder(drop=["z", 3.0], handle_unknown="ignore", sparse_output=False)
    model.fit(CATEGORIES, ids=[0, 1, 2, 3, 4])
    model.delete([4])
    exported = model.to_sklearn()
    assert exported.drop_idx_.tolist() == model.drop_idx_.tolist()
    compare(model, exported, CATEGORIES[:4])
    assert exported.get_feature_names_out().size == model.get_feature_names_out().size == 5


# -- lives of models -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        *CLASSIFIERS[:7],
        CLASSIFIERS[8],
        make_pipeline(StandardScaler(), PolynomialFeatures(2), StandardScaler(), GaussianNB()),
        ColumnTransformer([("a", PolynomialFeatures(2), [0, 1])], remainder="passthrough"),
    ],
    ids=named,
)
def test_a_model_from_a_file_is_exported_without_its_records(model: Any) -> None:
    detached = _from_file(model.fit(X, Y))
    compare(detached, detached.to_sklearn(records=True), NEW)


@pytest.mark.parametrize(
    "model",
    [
        Refit(sklearn.svm.SVC(), random_state=0),
        make_pipeline(StandardScaler(), Refit(sklearn.svm.SVC(), random_state=0)),
        ShardedClassifier(sklearn.linear_model.Perceptron(), 2, random_state=0),
    ],
    ids=named,
)
def test_what_a_file_is_not_trusted_for_is_fitted_again(model: Any) -> None:
    file = io.BytesIO()
    model.fit(X, Y).save(file)
    file.seek(0)
    loaded = erasable.load(file, (X, Y))
    compare(model, loaded.to_sklearn(records=True), NEW)


def test_steps_that_have_an_owner_are_exported() -> None:
    model = make_pipeline(StandardScaler(), PCA(2), GaussianNB()).fit(X, Y)
    for part in model[:-1]:
        assert hasattr(part.to_sklearn(), "transform")
    scaled = model[0].to_sklearn().transform(NEW)
    np.testing.assert_allclose(scaled, model[0].transform(NEW))
    compare(model[-1], model[-1].to_sklearn(), model[1].transform(scaled))


def test_parameters_are_those_of_the_fit() -> None:
    model = Ridge(alpha=2.0).fit(X, NUMBERS).set_params(alpha=9.0, fit_intercept=False)
    exported = model.to_sklearn()
    assert (exported.alpha, exported.fit_intercept) == (2.0, True)
    compare(model, exported, NEW)


def test_a_model_is_not_changed() -> None:
    model = make_pipeline(StandardScaler(), FunctionTransformer(np.abs), KMeans(2, random_state=0))
    model.fit(FRAME)
    before = model.digest()
    exported = model.to_sklearn()
    exported[0].mean_[:] = 0.0
    exported[-1].cluster_centers_[:] = 0.0
    assert model.digest() == before
    model.delete([3, 4])
    assert model.predict(FRAME).size == 120


def test_the_global_generator_is_left_alone() -> None:
    models = [KMeans(2, random_state=0), RandomForestClassifier(2, random_state=0)]
    fitted = [model.fit(X, Y) for model in models]
    np.random.seed(0)
    expected = np.random.random()
    np.random.seed(0)
    for model in fitted:
        model.to_sklearn()
    assert np.random.random() == expected


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "instead"),
    [
        (DBSCAN(), "KNeighborsClassifier"),
        (ItemNeighbors(), "similar"),
        (NadarayaWatson(), "KNeighborsRegressor"),
        (SegmentedRegression(2), "decision tree"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_model_without_counterpart_says_what_to_use(model: Any, instead: str) -> None:
    model.fit(COUNTS, NUMBERS)
    with pytest.raises(ExportError, match=rf"no estimator like {type(model).__name__}.*{instead}"):
        model.to_sklearn()


def test_a_pipeline_that_ends_in_one_says_so() -> None:
    model = make_pipeline(StandardScaler(), NadarayaWatson()).fit(X, NUMBERS)
    with pytest.raises(ExportError, match="NadarayaWatson"):
        model.to_sklearn()


def test_a_density_that_does_not_integrate_to_one_is_refused() -> None:
    model = KernelDensity(kernel="cosine").fit(X[:, :2])
    with pytest.raises(ExportError, match="odd number"):
        model.to_sklearn(records=True)


@pytest.mark.parametrize(
    "model", [Ridge(), make_pipeline(StandardScaler()), KNeighborsClassifier()]
)
def test_a_model_has_to_be_fitted(model: Any) -> None:
    with pytest.raises(NotFittedError):
        model.to_sklearn()


class MyRidge(Ridge):
    """An estimator of a user, which may predict otherwise."""


def test_a_class_of_a_user_is_refused() -> None:
    with pytest.raises(ExportError, match=r"no estimator like MyRidge.*save the model"):
        MyRidge().fit(X, NUMBERS).to_sklearn()


def test_members_that_choose_columns_by_name() -> None:
    """Shards are given frames, and bags arrays."""
    columns = sklearn.compose.ColumnTransformer([("a", Foreign(), ["c", "a"])])
    member = sklearn.pipeline.make_pipeline(columns, sklearn.linear_model.LogisticRegression())
    new = pd.DataFrame(NEW, columns=FRAME.columns)
    model = ShardedClassifier(member, 2, random_state=0).fit(FRAME, Y)
    compare(model, model.to_sklearn(), new)
    with pytest.raises(ExportError, match="positions of columns"):
        BaggingClassifier(member, 2, random_state=0).fit(FRAME, Y).to_sklearn()


def test_texts_that_are_hashed() -> None:
    """A vectorizer that learns nothing reads one column, which is a column of texts."""
    table, hashed = frame(60), HashingVectorizer(n_features=16)
    if get_tags(hashed).requires_fit:
        pytest.skip("this version of scikit-learn does not say that it learns nothing")
    model = make_pipeline(
        ColumnTransformer([("words", hashed, "text"), ("numbers", MinMaxScaler(), ["b", "c"])]),
        LogisticRegression(),
    ).fit(table, np.arange(60) % 2)
    compare(model, model.to_sklearn(), frame(9))


def test_a_table_of_parquet_is_as_one_in_memory(tmp_path: Path) -> None:
    FRAME.assign(y=Y).to_parquet(tmp_path / "table.parquet")
    records = erasable.Records.from_parquet(tmp_path / "table.parquet", target="y")
    for model in (Ridge(), KNeighborsClassifier(3), make_pipeline(StandardScaler(), GaussianNB())):
        model.fit(records)
        compare(model, model.to_sklearn(records=True), pd.DataFrame(NEW, columns=FRAME.columns))


def test_parameters_of_an_exported_estimator_are_its_own() -> None:
    model = linear_model.Ridge(alpha=np.array([2.5])).fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 2.0])
    before = model.digest()
    exported = model.to_sklearn()
    assert exported.alpha == model.alpha
    exported.alpha[:] = 77.0
    assert model.alpha.item() == 2.5
    assert model.digest() == before


def test_a_class_of_the_users_has_no_attributes_of_an_export() -> None:
    class Mine(RandomForestClassifier):
        pass

    rows, classes = [[1.0], [2.0], [4.0], [5.0]], [0, 0, 1, 1]
    assert len(RandomForestClassifier(2).fit(rows, classes).estimators_) == 2
    model = Mine(2).fit(rows, classes)
    assert not hasattr(model, "estimators_")
    with pytest.raises(AttributeError, match="no estimator like Mine"):
        _ = model.estimators_
