"""Every estimator takes what scikit-learn's of the same name takes, but for what is named here."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils import all_estimators, get_tags
from sklearn.utils.validation import has_fit_parameter

import erasable
from erasable.core.errors import InvalidDataError
from law_instances import instances_of
from naming import named
from optional import TORCH

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

FILL = "a gap is refused, by the name of its column: SimpleImputer fills it"
DENSE = "its kernels read dense rows: a center has no zeros to skip"
TABLED = "its kernels read dense blocks: nearly all records differ from a query in any feature"
FOUND = "how near records are found does not show in what is found"
METRICS = "of metrics that are no exact formulas"
EQUAL = "its records are equal: their weights are not on the grid of its sums"
ALL = "all records within reach are summed, however they are found"
NUMBERS = "parameters of the solver, of which there is one, run to the end"
COPIED = "records are always copied, as they are to be erased"
THREADS = "one thread: the order of sums is fixed"
QUIET = "it prints nothing"
SEEDED = "it draws nothing"

ONE_TARGET = "one target: fit a model for each"
_OF_TREES = {"several targets": ONE_TARGET, "sparse": DENSE}

INPUTS = {
    "DBSCAN": {"sparse": TABLED},
    "DecisionTreeClassifier": _OF_TREES,
    "DecisionTreeRegressor": _OF_TREES,
    "ExtraTreesClassifier": _OF_TREES,
    "ExtraTreesRegressor": _OF_TREES,
    "KMeans": {"sparse": DENSE, "weights": EQUAL},
    "KNeighborsClassifier": {"sparse": TABLED},
    "KNeighborsRegressor": {"sparse": TABLED},
    "MaxAbsScaler": {"NaN": FILL},
    "MinMaxScaler": {"NaN": FILL},
    "NearestCentroid": {"sparse": DENSE},
    "RandomForestClassifier": _OF_TREES,
    "RandomForestRegressor": _OF_TREES,
    "RobustScaler": {"NaN": FILL},
    "StandardScaler": {"NaN": FILL},
}
"""What the twin takes in `fit` and ours does not, and why."""

BAGS = {
    "bootstrap_features": "a column twice is a column",
    "oob_score": "out of bag are other records after every deletion",
    "verbose": QUIET,
    "warm_start": "a start would be a trace of what was deleted",
}
_OF_EACH_TREE = {
    "ccp_alpha": "what is pruned depends on the whole tree",
    "max_leaf_nodes": "which leaf is split next depends on all others",
    "min_weight_fraction_leaf": "records weigh the same: min_samples_leaf takes a share",
    "monotonic_cst": "a bound from above would hang every node on those beside it",
}
_OF_SINGLE_TREES = {**_OF_EACH_TREE, "splitter": "n_thresholds=1 draws one for each feature"}
_OF_FORESTS = {
    **_OF_EACH_TREE,
    "max_samples": "bags are drawn record by record, so that their sizes are drawn, too",
    "oob_score": "a score is not a part of the model",
    "verbose": QUIET,
    "warm_start": "more trees are a new fit",
}

_OF_BOOSTING = {
    "interaction_cst": "a node tries edges of all features",
    "max_features": "n_thresholds says how many edges a node tries",
    "monotonic_cst": "a bound from above would hang every node on those beside it",
    "scoring": "the loss, whose sums are whole numbers, tells when to stop",
    "verbose": QUIET,
    "warm_start": "more rounds are a new fit",
}

PARAMETERS = {
    "BaggingClassifier": BAGS,
    "BaggingRegressor": BAGS,
    "CountVectorizer": {
        "decode_error": "texts are strings",
        "encoding": "texts are strings",
        "input": "texts are strings: a file is no record",
    },
    "DBSCAN": {
        "algorithm": FOUND,
        "leaf_size": FOUND,
        "metric_params": METRICS,
        "p": METRICS,
    },
    "DecisionTreeClassifier": _OF_SINGLE_TREES,
    "DecisionTreeRegressor": _OF_SINGLE_TREES,
    "ExtraTreesClassifier": _OF_FORESTS,
    "ExtraTreesRegressor": _OF_FORESTS,
    "HistGradientBoostingClassifier": _OF_BOOSTING,
    "HistGradientBoostingRegressor": {
        **_OF_BOOSTING,
        "quantile": "leaves would be quantiles of residuals, which sums do not tell",
    },
    "KMeans": {
        "algorithm": "bounds are always kept, as deletions need them",
        "copy_x": COPIED,
        "init": "k-means++ by races, which can be run again without a record",
        "n_init": "one run, of greedy seeding",
        "verbose": QUIET,
    },
    "KNeighborsClassifier": {"metric_params": METRICS},
    "KNeighborsRegressor": {"metric_params": METRICS},
    "KernelDensity": {
        "algorithm": ALL,
        "atol": ALL,
        "breadth_first": ALL,
        "leaf_size": ALL,
        "metric_params": METRICS,
        "rtol": ALL,
    },
    "LinearRegression": {
        "copy_X": COPIED,
        "positive": "it has no closed solution",
        "tol": NUMBERS,
    },
    "LogisticRegression": {
        "dual": NUMBERS,
        "intercept_scaling": NUMBERS,
        "l1_ratio": "an optimum with other penalties is not smooth",
        "max_iter": "the optimum is found, however many steps that takes",
        "penalty": "an optimum with other penalties is not smooth",
        "random_state": SEEDED,
        "solver": NUMBERS,
        "tol": NUMBERS,
        "verbose": QUIET,
        "warm_start": "a start would be a trace of what was deleted",
    },
    "MaxAbsScaler": {
        "clip": "values beyond those of the records stay what they are",
        "copy": COPIED,
    },
    "MinMaxScaler": {"copy": COPIED},
    "NearestCentroid": {"metric": "medians of classes are no sums"},
    "OneHotEncoder": {
        "feature_name_combiner": "names are one of the column and one of the category",
        "max_categories": "which categories are rare depends on all records",
        "min_frequency": "which categories are rare depends on all records",
    },
    "OrdinalEncoder": {
        "max_categories": "which categories are rare depends on all records",
        "min_frequency": "which categories are rare depends on all records",
    },
    "PCA": {
        "copy": COPIED,
        "iterated_power": NUMBERS,
        "n_oversamples": NUMBERS,
        "power_iteration_normalizer": NUMBERS,
        "random_state": SEEDED,
        "svd_solver": NUMBERS,
        "tol": NUMBERS,
    },
    "RandomForestClassifier": _OF_FORESTS,
    "RandomForestRegressor": _OF_FORESTS,
    "Ridge": {
        "copy_X": COPIED,
        "max_iter": NUMBERS,
        "positive": "it has no closed solution",
        "random_state": SEEDED,
        "solver": NUMBERS,
        "tol": NUMBERS,
    },
    "RobustScaler": {"copy": COPIED},
    "SimpleImputer": {"copy": COPIED},
    "StandardScaler": {"copy": COPIED},
    "TfidfVectorizer": {
        "decode_error": "texts are strings",
        "encoding": "texts are strings",
        "input": "texts are strings: a file is no record",
    },
}
"""What the twin is made with, in some version of scikit-learn, and ours is not, and why."""

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
    assert INPUTS.keys() | PARAMETERS.keys() <= OURS.keys() - WITHOUT_TWIN.keys()


@each_twin
def test_what_the_twin_takes_is_taken_or_named(name: str) -> None:
    """In every variant: some take sparse data, or text, only with other parameters."""
    found = set().union(*(gaps_of(name, ours) for ours in OURS[name][1]))
    assert found == INPUTS.get(name, {}).keys()


@each_twin
def test_parameters_of_the_twin_are_taken_or_named(name: str) -> None:
    ours, theirs = parameters_of(OURS[name][0]), parameters_of(THEIRS[name])
    known = PARAMETERS.get(name, {}).keys()
    assert theirs - ours <= known
    assert not known & ours  # taken by now


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
