"""Write "Estimator by estimator" in docs/concepts/scikit-learn.md: ``python docs/twin_table.py``.

What is not there is measured: both estimators of a name are fitted on the same data. Why it is not
there is said by hand: of parameters in `erasable.core._other_parameters`, of all else here. A test
compares the page with the output, and the reasons with what is measured.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.utils import all_estimators

import erasable
from erasable.core._other_parameters import OTHER_PARAMETERS

PAGE = Path(__file__).resolve().parent / "concepts" / "scikit-learn.md"
TABLE = re.compile(r"^\| estimator \| different \|.*?(?=^A missing parameter that)", re.M | re.S)
OURS = {name: (cls, tags) for name, cls, tags in erasable.all_estimators()}
THEIRS = dict(all_estimators())

# -- what is said by hand --------------------------------------------------------------------------

_FILL = "a gap is refused, by the name of its column; `SimpleImputer` fills it"
_DENSE = "rows are read dense; convert with `toarray()`"
_ONE_TARGET = "one target; fit a model for each"
_EQUAL = "records count alike"
_OF_TREES = {"several targets": _ONE_TARGET, "sparse": _DENSE}

INPUTS: Mapping[str, Mapping[str, str]] = {
    "DBSCAN": {"sparse": _DENSE},
    "DecisionTreeClassifier": _OF_TREES,
    "DecisionTreeRegressor": _OF_TREES,
    "ExtraTreesClassifier": _OF_TREES,
    "ExtraTreesRegressor": _OF_TREES,
    "KMeans": {"sparse": _DENSE, "weights": _EQUAL},
    "KNeighborsClassifier": {"sparse": _DENSE},
    "KNeighborsRegressor": {"sparse": _DENSE},
    "MLPClassifier": {"sparse": _DENSE, "weights": _EQUAL},
    "MLPRegressor": {"sparse": _DENSE, "weights": _EQUAL},
    "MaxAbsScaler": {"NaN": _FILL},
    "MinMaxScaler": {"NaN": _FILL},
    "NearestCentroid": {"sparse": _DENSE},
    "RandomForestClassifier": _OF_TREES,
    "RandomForestRegressor": _OF_TREES,
    "RobustScaler": {"NaN": _FILL},
    "StandardScaler": {"NaN": _FILL},
}
"""What scikit-learn's estimator takes in `fit`, and ours does not."""

_ALWAYS_CHECKED = "rows are always checked"
_NOT_PRUNED = "trees are not pruned"
_OF_A_BASE = "an attribute of a common base class, without use here"
_OWN_BAGS = "positions of records say nothing after a deletion; bags are drawn by ids"
_WATCHED = "scores of rounds are of other records after a deletion; use `staged_predict`"
_OWN_SPLIT = "records to stop by are drawn by their ids; set `validation_fraction`"
_CALLED = "the argument is called `X`"
_STRINGS = "texts are strings"
_COPY = "rows are always copied"
_DENSE_WEIGHTS = "coefficients are dense"
_NO_CALLBACKS = "experimental in scikit-learn"

_TREE = {
    "apply(check_input)": _ALWAYS_CHECKED,
    "cost_complexity_pruning_path()": _NOT_PRUNED,
    "decision_path(check_input)": _ALWAYS_CHECKED,
    "fit(check_input)": _ALWAYS_CHECKED,
    "predict(check_input)": _ALWAYS_CHECKED,
}
_FOREST = {
    "estimator": _OF_A_BASE,
    "estimator_params": _OF_A_BASE,
    "estimators_samples_": _OWN_BAGS,
}
_BOOSTING = {
    "fit(X_val)": _OWN_SPLIT,
    "fit(sample_weight_val)": _OWN_SPLIT,
    "fit(y_val)": _OWN_SPLIT,
    "train_score_": _WATCHED,
    "validation_score_": _WATCHED,
}
_NO_LOSS = "the loss is not a part of the model; use `score`"
_PERCEPTRON = {
    **dict.fromkeys(("best_loss_", "loss_", "loss_curve_"), _NO_LOSS),
    **dict.fromkeys(("best_validation_score_", "validation_scores_"), "no records are set aside"),
    "fit(sample_weight)": _EQUAL,
    "partial_fit()": "a record takes part in all epochs; use `add`",
    "t_": "`max_iter` times the number of records",
}
_PROJECTION = {"inverse_transform()": "a projection is not inverted; `to_sklearn()` has it"}
_BAG = {"estimator_params": _OF_A_BASE, "estimators_samples_": _OWN_BAGS}
_VECTORIZER = {
    "decode()": _STRINGS,
    "fit(raw_documents)": _CALLED,
    "fit_transform(raw_documents)": _CALLED,
    "transform(raw_documents)": _CALLED,
}

OTHERS: Mapping[str, Mapping[str, str]] = {
    "BaggingClassifier": _BAG,
    "BaggingRegressor": _BAG,
    "ColumnTransformer": {"sparse_output_": "`sparse_threshold` alone decides it"},
    "CountVectorizer": _VECTORIZER,
    "DecisionTreeClassifier": {**_TREE, "predict_proba(check_input)": _ALWAYS_CHECKED},
    "DecisionTreeRegressor": {**_TREE, "class_weight": _OF_A_BASE},
    "ExtraTreesClassifier": _FOREST,
    "ExtraTreesRegressor": {**_FOREST, "class_weight": _OF_A_BASE},
    "GaussianRandomProjection": _PROJECTION,
    "HistGradientBoostingClassifier": _BOOSTING,
    "HistGradientBoostingRegressor": _BOOSTING,
    "KMeans": {
        f"{method}(sample_weight)": _EQUAL
        for method in ("fit", "fit_predict", "fit_transform", "score")
    },
    "KNeighborsClassifier": {"radius": _OF_A_BASE},
    "KNeighborsRegressor": {"radius": _OF_A_BASE},
    "KernelDensity": {"tree_": "records are summed in blocks; `to_sklearn(records=True)` has it"},
    "LinearRegression": {
        "singular_": "`PCA().fit(X).singular_values_` are those of centred columns"
    },
    "LogisticRegression": {
        "densify()": _DENSE_WEIGHTS,
        "set_callbacks()": _NO_CALLBACKS,
        "sparsify()": _DENSE_WEIGHTS,
    },
    "LinearSVC": {"densify()": _DENSE_WEIGHTS, "sparsify()": _DENSE_WEIGHTS},
    "MLPClassifier": {**_PERCEPTRON, "loss": _OF_A_BASE},
    "MLPRegressor": _PERCEPTRON,
    "PCA": {
        f"{method}()": "use `to_sklearn()`: not every covariance has an inverse"
        for method in ("get_precision", "score", "score_samples")
    },
    "Pipeline": {
        "get_feature_names_out()": "only where every step names its columns",
        "set_callbacks()": _NO_CALLBACKS,
    },
    "RandomForestClassifier": _FOREST,
    "RandomForestRegressor": {**_FOREST, "class_weight": _OF_A_BASE},
    "SparseRandomProjection": _PROJECTION,
    "StandardScaler": {
        "inverse_transform(copy)": _COPY,
        "set_callbacks()": _NO_CALLBACKS,
        "transform(copy)": _COPY,
    },
    "TfidfVectorizer": _VECTORIZER,
}
"""Fitted attributes, methods and their arguments that ours has not."""

_SUMS = "solved from exact sums"
_CLASSES = "`classes=` fixes the classes, so that a class may lose its last record"
_LATTICE = "coefficients are rounded to a lattice, within a certified distance of the optimum"
_THRESHOLDS = (
    "a node chooses among `n_thresholds` hashed thresholds; missing values in a node that had none "
    "go to the child of more weight; `sample_weight` is rounded to 16 bits, "
    "and to fewer in regressors of many records; `apply` numbers leaves, not nodes"
)
_ROUNDS = (
    '`categorical_features=None` is the default; with `"from_dtype"`, columns of text and objects '
    "are categories, too"
)
_DRAWN_BY_NAME = (
    '`n_components` is a number, 100 by default; `"auto"`, which depends on the number of records, '
    "is refused; directions are drawn by the names of columns"
)
_DESCENT = (
    "`hidden_layer_sizes=(32,)`, `max_iter=20`, `learning_rate_init=0.2`; `batch_size` is a share "
    "of the records; gradients are rounded to a lattice of `lattice_step`; `alpha` "
    "is a factor of the squared weights, beside the mean loss of a batch"
)
_POISSON = "the count of a record in a bag has a Poisson distribution"
_LEAVES = "`leaf_size=128`"

DIFFERENT: Mapping[str, str] = {
    "BaggingClassifier": _POISSON,
    "BaggingRegressor": _POISSON,
    "BernoulliNB": _CLASSES,
    "CategoricalNB": _CLASSES,
    "ColumnTransformer": (
        "`sparse_threshold` is 1 (sparse where a part is) or 0 (dense); columns that no part uses "
        "are not read; `make_column_selector` selects once, at `fit`"
    ),
    "DecisionTreeClassifier": _THRESHOLDS,
    "DecisionTreeRegressor": _THRESHOLDS,
    "ExtraTreesClassifier": _THRESHOLDS,
    "ExtraTreesRegressor": _THRESHOLDS,
    "GaussianNB": _CLASSES,
    "GaussianRandomProjection": _DRAWN_BY_NAME,
    "HistGradientBoostingClassifier": _ROUNDS,
    "HistGradientBoostingRegressor": _ROUNDS,
    "KMeans": "greedy k-means++, one start, `max_iter=10`, `tol=0`",
    "KNeighborsClassifier": _LEAVES,
    "KNeighborsRegressor": _LEAVES,
    "KernelDensity": (
        'only Euclidean distances, and no tolerance; the kernel "cosine" integrates to 1 for an '
        "even number of features, too; a seed draws other rows"
    ),
    "LinearRegression": _SUMS,
    "LinearSVC": f"solved to the optimum, of at most 4,096 features; {_LATTICE}",
    "LinearSVR": (
        'the loss is that of `loss="squared_epsilon_insensitive"`, not the default one; solved to '
        f"the optimum, of at most 4,096 features; {_LATTICE}"
    ),
    "LogisticRegression": ("only L2, solved to the optimum; " + _LATTICE),
    "MLPClassifier": _DESCENT,
    "MLPRegressor": _DESCENT,
    "MultinomialNB": _CLASSES,
    "PCA": "computed from exact second moments",
    "RandomForestClassifier": _THRESHOLDS,
    "RandomForestRegressor": _THRESHOLDS,
    "Ridge": _SUMS,
    "SimpleImputer": (
        'with `"most_frequent"`, missing values among booleans in a table of objects become the '
        "numbers 1.0 or 0.0; sparse zeros that are not stored are not missing values; no function "
        "as `strategy`"
    ),
    "SparseRandomProjection": _DRAWN_BY_NAME,
    "StandardScaler": (
        "`quantize=True`: scales rounded to a random lattice, so that few deletions change them; "
        "weights are rounded once to 26 bits below the largest"
    ),
}
"""What differs although it is there."""

# -- what is measured ------------------------------------------------------------------------------


class Missing(NamedTuple):
    """What scikit-learn's estimator has, and ours has not."""

    parameters: set[str]
    attributes: set[str]
    methods: set[str]
    """As ``name()``."""
    arguments: set[str]
    """Of methods that both have, as ``method(argument)``."""

    @property
    def other(self) -> set[str]:
        """All but parameters."""
        return self.attributes | self.methods | self.arguments


def twins() -> list[str]:
    """Return the names that both libraries have."""
    return sorted(OURS.keys() & THEIRS.keys())


def data_for(name: str) -> tuple[Any, Any]:
    """Return records and targets that an estimator learns from."""
    X, y = load_iris(return_X_y=True)
    if "Vectorizer" in name:
        return ["ham and eggs", "eggs and spam", "spam spam spam"], None
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    if name in ("CategoricalNB", "MultinomialNB"):
        frame = frame.round().astype(np.int64)
    return frame, y * 1.0 if OURS[name][1]["kind"] == "regressor" else y


def made(name: str, theirs: bool) -> Any:
    """Make one of the two estimators of a name, of few parts."""
    library = "sklearn" if theirs else "erasable"
    cls = THEIRS[name] if theirs else OURS[name][0]
    scaler = __import__(f"{library}.preprocessing", fromlist=["x"]).StandardScaler()
    if name == "Pipeline":
        linear = __import__(f"{library}.linear_model", fromlist=["x"])
        return cls([("scaler", scaler), ("model", linear.LogisticRegression())])
    if name == "ColumnTransformer":
        return cls([("scaler", scaler, ["a", "b"])])
    fewer = {"n_estimators": 3} if "n_estimators" in parameters_of(cls) else {}
    if name.endswith("RandomProjection"):  # scikit-learn's asks for many columns by default
        fewer = {"n_components": 2}
    if name == "LogisticRegression" and theirs:
        fewer = {"max_iter": 1000}
    return cls(**fewer)


def parameters_of(cls: type[Any]) -> list[str]:
    """Return the parameters of an estimator."""
    return list(inspect.signature(cls).parameters)


def fitted(name: str, theirs: bool) -> Any:
    """Fit one of the two estimators of a name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(name, theirs).fit(*data_for(name))


def public(model: Any) -> dict[str, Any]:
    """Return the public attributes and methods that a fitted model has."""
    found = {}
    for name in dir(model):
        if not name.startswith("_") and hasattr(model, name):
            found[name] = getattr(model, name)
    return found


def _arguments(method: Any) -> set[str]:
    gathered = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = inspect.signature(method).parameters.values()
    return {each.name for each in parameters if each.kind not in gathered}


def _taken(own: Mapping[str, Any], method: str) -> set[str]:
    """Return the arguments of a method; `fit_predict` and `fit_transform` pass others to `fit`."""
    of_fit = _arguments(own["fit"]) if method in ("fit_predict", "fit_transform") else set()
    return _arguments(own[method]) | of_fit


def missing(ours: Any, theirs: Any) -> Missing:
    """Compare two fitted models."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, other = public(ours), public(theirs)
    parameters = {*parameters_of(type(theirs))} - {*parameters_of(type(ours))}
    lacking = other.keys() - own.keys() - parameters
    # These follow from arguments.
    lacking = {each for each in lacking if not re.fullmatch(r"set_\w+_request", each)}
    methods = {each for each in lacking if inspect.ismethod(other[each])}
    arguments = {
        f"{method}({argument})"
        for method in own.keys() & other.keys()
        if inspect.ismethod(own[method]) and not re.fullmatch(r"set_\w+_request", method)
        for argument in _arguments(other[method]) - _taken(own, method)
    }
    return Missing(parameters, lacking - methods, {f"{each}()" for each in methods}, arguments)


def measured(name: str) -> Missing:
    """Return what the estimator of a name lacks."""
    return missing(fitted(name, theirs=False), fitted(name, theirs=True))


# -- the page --------------------------------------------------------------------------------------


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _row(name: str) -> tuple[str, ...]:
    """Return the cells of an estimator, all but its name."""
    parameters, inputs = OTHER_PARAMETERS.get(name, {}), INPUTS.get(name, {})
    refused = {each for each, other in parameters.items() if other.values is not None}
    words = {each for each in inputs if each != "weights"}  # which are an argument of `fit`
    other = [*sorted(words), *(f"`{each}`" for each in sorted(OTHERS.get(name, {})))]
    return (
        DIFFERENT.get(name, ""),
        _code(refused),
        _code(parameters.keys() - refused),
        ", ".join(other),
    )


def _reasons() -> dict[str, tuple[set[str], set[str]]]:
    """Return what is not there, and of which estimators, by the reason."""
    found: dict[str, tuple[set[str], set[str]]] = {}

    def add(why: str, what: str, name: str) -> None:
        things, names = found.setdefault(why, (set(), set()))
        things.add(what)
        names.add(name)

    for name in twins():
        for what, why in INPUTS.get(name, {}).items():
            add(why, what, name)
        for what, why in OTHERS.get(name, {}).items():
            add(why, f"`{what}`", name)
        for what, other in OTHER_PARAMETERS.get(name, {}).items():
            taken = " or ".join(f"`{each!r}`" for each in other.values or ())
            told = f"; ignored if {taken}" if other.values else "; ignored"
            add(f"{other.why}{told}", f"`{what}`", name)
    return found


def table() -> str:
    """Return the tables: what differs, and why."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in twins():
        rows.setdefault(_row(name), []).append(name)
    out = ["| estimator | different | refused parameters | ignored parameters | not there |"]
    out.append("|---|---|---|---|---|")
    out += [f"| {_code(names)} | {' | '.join(cells)} |" for cells, names in rows.items()]
    out += ["", "| what is refused, ignored or not there | of | why, and what to do instead |"]
    out.append("|---|---|---|")
    why = sorted(
        (", ".join(sorted(things)), _code(names), why)
        for why, (things, names) in _reasons().items()
    )
    out += [f"| {things} | {names} | {reason} |" for things, names, reason in why]
    return "\n".join([*out, "", ""])


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text("utf-8")), encoding="utf-8")
