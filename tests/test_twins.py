"""Every estimator takes what scikit-learn's of the same name takes, but for what is named here."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.utils import all_estimators, get_tags
from sklearn.utils._param_validation import Options
from sklearn.utils.validation import has_fit_parameter

import erasable
from erasable.core._other_parameters import OTHER_PARAMETERS
from erasable.core.errors import InvalidDataError
from erasable.core.estimator import Erasable
from erasable.ensemble import RandomForestClassifier
from erasable.tree import DecisionTreeClassifier
from law_instances import instances_of
from naming import named
from optional import TORCH
from pages import module_of

OURS = {name: (cls, instances_of(name, cls, tags)) for name, cls, tags in erasable.all_estimators()}
THEIRS = dict(all_estimators())

WITHOUT_TWIN = {
    "ColumnTransformer": "takes what its parts take",
    "DivideAndConquerKMeans": "of Ginart et al. (2019)",
    "ItemNeighbors": "not in scikit-learn",
    "NadarayaWatson": "not in scikit-learn",
    "Pipeline": "takes what its steps take",
    "QuantizedKMeans": "of Ginart et al. (2019)",
    "RandomFourierRidge": "a pipeline of two in scikit-learn",
    "Refit": "takes what its estimator takes",
    "SegmentedRegression": "not in scikit-learn",
    "ShardedClassifier": "not in scikit-learn",
    "ShardedRegressor": "not in scikit-learn",
    **({"Embedding": "a network of torch"} if TORCH else {}),
}

IRIS = load_iris(return_X_y=True)
PAGE = module_of("docs", "twin_table")
INPUTS = PAGE.INPUTS
"""What the twin takes in `fit` and ours does not, and why."""

each_twin = pytest.mark.parametrize("name", sorted(OURS.keys() - WITHOUT_TWIN.keys()))


def inputs_of(estimator: Any) -> dict[str, bool]:
    """What an estimator says that it takes."""
    tags = get_tags(estimator)
    given, target = tags.input_tags, tags.target_tags
    return {
        "NaN": given.allow_nan,
        "documents": given.string and not given.two_d_array,
        "several targets": target.multi_output,
        "sparse": given.sparse,
        "text": given.categorical or (given.string and given.two_d_array),
        "weights": has_fit_parameter(estimator, "sample_weight"),
    }


def parameters_of(cls: type[Any]) -> set[str]:
    return set(inspect.signature(cls).parameters)


def twin_of(name: str, ours: Any) -> Any:
    """Scikit-learn's estimator, with the parameters that it shares with ours."""
    shared = parameters_of(THEIRS[name]) & parameters_of(type(ours))
    return THEIRS[name](**{each: getattr(ours, each) for each in shared})


def gaps_of(name: str, ours: Any) -> set[str]:
    """What the twin takes and ours does not."""
    taken, wanted = inputs_of(ours), inputs_of(twin_of(name, ours))
    return {each for each in wanted if wanted[each] and not taken[each]}


def test_every_estimator_has_a_twin_or_a_reason() -> None:
    assert WITHOUT_TWIN.keys() <= OURS.keys()
    assert OURS.keys() - THEIRS.keys() <= WITHOUT_TWIN.keys()
    assert INPUTS.keys() <= OURS.keys() - WITHOUT_TWIN.keys()
    assert OTHER_PARAMETERS.keys() <= OURS.keys() & THEIRS.keys()


@each_twin
def test_what_the_twin_takes_is_taken_or_named(name: str) -> None:
    """In every variant: some take sparse data, or text, only with other parameters."""
    found = set().union(*(gaps_of(name, ours) for ours in OURS[name][1]))
    assert found == INPUTS.get(name, {}).keys()


@pytest.mark.parametrize("name", sorted(OURS.keys() & THEIRS.keys()))
def test_parameters_of_the_twin_are_taken_or_named(name: str) -> None:
    ours, theirs = parameters_of(OURS[name][0]), parameters_of(THEIRS[name])
    known = OTHER_PARAMETERS.get(name, {}).keys()
    assert theirs - ours <= known
    assert not known & ours  # taken by now


# -- attributes, methods, arguments ----------------------------------------------------------------

NEWEST = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
every_twin = pytest.mark.parametrize("name", PAGE.twins())


@every_twin
def test_what_the_twin_shows_is_shown_or_named(name: str) -> None:
    found, known = PAGE.measured(name).other, PAGE.OTHERS.get(name, {}).keys()
    assert found <= known
    if NEWEST:
        assert found == known  # what is there by now is no longer named
    assert (PAGE.OTHERS.keys() | PAGE.DIFFERENT.keys()) <= {*PAGE.twins()}


def test_what_a_twin_has_more_is_found() -> None:
    """A negative control: a method, an attribute and an argument of another kind of scaler."""
    ours, theirs = PAGE.fitted("MaxAbsScaler", theirs=False), PAGE.fitted("PCA", theirs=True)
    found = PAGE.missing(ours, theirs)
    assert "get_covariance()" in found.methods
    assert "components_" in found.attributes
    assert "fit(sample_weight)" in PAGE.missing(ours, Ridge().fit(*IRIS)).arguments


def plain(value: Any) -> Any:
    """Values that can be compared; of an object of scikit-learn, all that it holds."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, Erasable):
        return value.digest()
    if hasattr(value, "__getstate__") and type(value).__module__.startswith("sklearn."):
        return type(value), plain(value.__getstate__())
    return repr(value)


def fitted_attributes(model: Any) -> dict[str, Any]:
    found = PAGE.public(model)
    return {name: plain(value) for name, value in found.items() if name.endswith("_")}


@every_twin
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attributes_after_a_deletion_are_those_of_a_fit_without(name: str) -> None:
    X, y = PAGE.data_for(name)
    n = len(X)
    gone, left = [0, n - 1], np.arange(1, n - 1)
    part = [X[i] for i in left] if isinstance(X, list) else X.iloc[left]
    model, fresh = (PAGE.made(name, theirs=False).set_params(**seeds(name)) for _ in range(2))
    model.fit(X, y, ids=np.arange(n))
    before = fitted_attributes(model)
    model.delete(gone)
    after = fitted_attributes(model)
    assert after == fitted_attributes(fresh.fit(part, None if y is None else y[left], ids=left))
    assert before != after
    if name.startswith(("DecisionTree", "ExtraTrees", "RandomForest")):
        (made,) = {"tree_", "estimators_"} & after.keys()
        assert before[made] != after[made]


def seeds(name: str) -> dict[str, int]:
    return {"random_state": 0} if "random_state" in parameters_of(OURS[name][0]) else {}


def test_attributes_are_those_of_scikit_learn() -> None:
    X, y = IRIS
    for params in ({"p": 1}, {"p": 2}, {"metric": "chebyshev"}):
        ours, theirs = (kind(**params).fit(X, y) for kind in both("KNeighborsClassifier"))
        assert ours.effective_metric_ == theirs.effective_metric_
        assert ours.effective_metric_params_ == theirs.effective_metric_params_
        assert ours.outputs_2d_ is theirs.outputs_2d_ is False
    ours, theirs = (kind(eps=0.4).fit(X) for kind in both("DBSCAN"))
    assert ours.core_sample_indices_.tolist() == theirs.core_sample_indices_.tolist()
    for share in ("sqrt", 0.7, 1, None):
        ours, theirs = (
            kind(max_features=share).fit(X, y) for kind in both("DecisionTreeClassifier")
        )
        assert ours.max_features_ == theirs.max_features_ == ours.to_sklearn().max_features_
        assert ours.n_outputs_ == theirs.n_outputs_ == 1
    holes = X.copy()
    holes[::7, 1] = np.nan
    for add in (True, False):
        ours, theirs = (kind(add_indicator=add).fit(holes) for kind in both("SimpleImputer"))
        assert plain(ours.indicator_) == plain(theirs.indicator_)
    ours, theirs = (
        kind(max_iter=2, categorical_features=[1], early_stopping=True).fit(X.round(), y)
        for kind in both("HistGradientBoostingClassifier")
    )
    assert ours.is_categorical_.tolist() == theirs.is_categorical_.tolist()
    assert ours.do_early_stopping_ is theirs.do_early_stopping_ is True
    ours, theirs = (kind().fit(X, y) for kind in both("Ridge"))
    assert (ours.n_iter_, ours.solver_) == (theirs.n_iter_, theirs.solver_)


def both(name: str) -> tuple[type[Any], type[Any]]:
    return OURS[name][0], THEIRS[name]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_columns_of_transformers_are_those_of_scikit_learn() -> None:
    frame = pd.DataFrame(IRIS[0], columns=list("abcd"))
    for rest in ("drop", "passthrough"):
        ours, theirs = (
            kind([("one", scaler(), ["b", "a"]), ("none", "drop", ["d"])], remainder=rest).fit(
                frame
            )
            for kind, scaler in zip(both("ColumnTransformer"), both("StandardScaler"), strict=True)
        )
        (*found, left), (*known, rest_of_theirs) = (
            [(name, list(columns)) for name, _, columns in each.transformers_]
            for each in (ours, theirs)
        )
        assert found == known
        assert left == ("remainder", ["c"])
        assert left == rest_of_theirs or not NEWEST  # older versions say where it is
        assert ours.transformers_[0][1].mean_.shape == (2,)


def test_paths_lead_to_leaves() -> None:
    X, y = IRIS
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    path = tree.decision_path(X)
    assert path.shape == (150, tree.tree_.node_count)
    assert (np.diff(path.indptr) <= 4).all()
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    path, starts = forest.decision_path(X)
    assert (
        starts.tolist()
        == np.cumsum([0, *(e.tree_.node_count for e in forest.estimators_)]).tolist()
    )
    assert type(forest.estimator_) is type(forest.estimators_[0])
    assert not hasattr(RandomForestClassifier(), "estimators_")


MADE = [(name, ours) for name, (_, made) in OURS.items() for ours in made]
ON_SPARSE = [
    (name, ours)
    for name, ours in MADE
    # Zeros that are gaps would have to be stored.
    if inputs_of(ours)["sparse"] and getattr(ours, "missing_values", None) != 0
]
NOT_ON_SPARSE = [(name, ours) for name, ours in MADE if not inputs_of(ours)["sparse"]]
WITH_WEIGHTS = [
    (name, ours) for name, ours in MADE if inputs_of(ours)["weights"] and ours._takes_weights
]


def table_for(name: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (45, 4)) * (rng.random((45, 4)) < 0.7) + 0.0
    y = np.arange(45) % 3
    return X, y.astype(np.float64) if "Regress" in name or "Ridge" in name else y


def kept_by(ours: Any, X: Any, y: Any, **more: Any) -> Any:
    """A model of all rows that has deleted some, which must equal one of the rest."""
    model = clone(ours)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    refit = clone(model)
    left = np.flatnonzero(np.arange(45) % 4)
    model.fit(X, y, ids=np.arange(45), **more).delete(range(0, 45, 4))
    refit.fit(X[left], y[left], ids=left, **{key: value[left] for key, value in more.items()})
    assert model.digest() == refit.digest()
    return model


@pytest.mark.parametrize(("name", "ours"), ON_SPARSE, ids=named)
def test_sparse_data_is_taken_as_said(name: str, ours: Any) -> None:
    X, y = table_for(name)
    kept_by(ours, csr_array(X), y)


@pytest.mark.parametrize(("name", "ours"), NOT_ON_SPARSE, ids=named)
def test_sparse_data_is_refused_as_said(name: str, ours: Any) -> None:
    X, y = table_for(name)
    with pytest.raises(InvalidDataError):
        clone(ours).fit(csr_array(X), y)


@pytest.mark.parametrize(("name", "ours"), WITH_WEIGHTS, ids=named)
def test_weights_are_taken_as_said(name: str, ours: Any) -> None:
    X, y = table_for(name)
    w = np.random.default_rng(1).integers(1, 9, 45) / 4.0
    weighted, plain = kept_by(ours, X, y, sample_weight=w), kept_by(ours, X, y)
    assert weighted.digest() != plain.digest()


DIFFERENCES = Path(__file__).parents[1] / "docs" / "concepts" / "scikit-learn.md"


def choices(constraints: Any) -> set[str]:
    """Return what a parameter may be by scikit-learn's constraints, besides numbers and types."""
    found: set[str] = set()
    for each in [] if isinstance(constraints, str) else constraints:
        if isinstance(each, Options):
            found |= {f"`{value!r}`" for value in each.options - getattr(each, "deprecated", set())}
        elif each is None:
            found.add("`None`")
        elif each is callable:
            found.add("a function")
    return found


@pytest.mark.parametrize("name", sorted(OURS.keys() & THEIRS.keys()))
def test_values_that_are_refused_are_on_the_page(name: str) -> None:
    rows = [
        row for row in DIFFERENCES.read_text(encoding="utf-8").splitlines() if f"`{name}`" in row
    ]
    own, theirs = OURS[name][0]._parameter_constraints, THEIRS[name]._parameter_constraints
    for parameter in own.keys() & theirs.keys():
        for value in choices(theirs[parameter]) - choices(own[parameter]):
            said = [row for row in rows if f"`{parameter}`" in row.split("|")[1]]
            assert parameter == "metric" or any(value in row for row in said), (parameter, value)
            assert said


def test_values_are_read_from_constraints() -> None:
    read = choices(THEIRS["HistGradientBoostingRegressor"]._parameter_constraints["loss"])
    assert {"`'quantile'`", "`'squared_error'`"} <= read
    assert choices(THEIRS["SimpleImputer"]._parameter_constraints["strategy"]) > {"a function"}


def test_a_new_gap_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: an estimator that no longer takes what its twin takes."""
    cls, (first, *_) = OURS["PCA"]
    tags_of = cls.__sklearn_tags__

    def dense(self: Any) -> Any:
        tags = tags_of(self)
        tags.input_tags.sparse = False
        return tags

    assert gaps_of("PCA", first) == set()
    monkeypatch.setattr(cls, "__sklearn_tags__", dense)
    assert gaps_of("PCA", first) == {"sparse"}


def test_attributes_of_what_is_not_fitted_say_so() -> None:
    asked = ("feature_importances_", "tree_", "estimators_", "transformers_", "output_indices_")
    read = [(cls, name) for cls, _ in OURS.values() for name in asked if hasattr(cls, name)]
    assert len(read) > len(asked)
    for cls, name in read:
        made = next(clone(each) for each in OURS[cls.__name__][1])
        with pytest.raises(NotFittedError):
            getattr(made, name)
