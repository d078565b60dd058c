"""Families of scikit-learn whose fitted states are checked when they come from a file.

A file may come from anybody. Its digest proves nothing, because anybody who changes a state can
compute the digest anew. Compiled code follows what a state says: a tree whose node is its own child
is walked for ever, an index out of range is read all the same. So each family has one function that
checks its attributes; estimators without one are fitted again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import dummy, ensemble, linear_model, naive_bayes, neighbors, pipeline, preprocessing
from sklearn import svm as machines
from sklearn import tree as trees
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, _tree

from erasable.refit._codec import decode, encode
from erasable.refit._names import Known
from erasable.refit._part import (
    ContradictionError,
    FittedPart,
    UncheckedError,
    close,
    expect,
    members,
    numbers,
    plain,
    same,
)

_NODES: np.dtype[Any] = _tree.NODE_DTYPE
_ROOM = 2**31 - 1


def check_tree(part: FittedPart) -> int:
    """Check one tree, and return the number of its features."""
    width, n_outputs, n_classes = part.features(), part.integer("n_outputs_", 1, _ROOM), 1
    if isinstance(part.template, DecisionTreeClassifier):
        expect(n_outputs == 1, "several targets are not checked")
        n_classes = part.labels().size
        expect(part.value("n_classes_") == n_classes, "n_classes_ is not that of classes_")
    elif part.has("class_weight"):
        expect(part.value("class_weight") is None, "class_weight is odd")
    part.integer("max_features_", 1, width)
    _structure(part.raw("tree_"), width, n_outputs, n_classes)
    return width


def _structure(tree: Any, width: int, n_outputs: int, n_classes: int) -> None:
    """Check the nodes of a tree: its shape, the features and counts, and what is in the leaves."""
    expect(tree["class"] == "sklearn.tree._tree.Tree" and tree["is"] == "object", "tree_ is none")
    given = members(tree["args"], "tree_", ("tuple",))
    expect(given[0] == width and given[2] == n_outputs and len(given) == 3, "tree_ is odd")
    per_output = numbers(given[1], "tree_", (n_outputs,), low=n_classes, high=n_classes)
    expect(per_output.dtype == np.intp, "tree_ is odd")
    state = tree["state"]
    expect(state["is"] == "dict" and state["keys"]["of"] == "str", "tree_ is odd")
    names = ["max_depth", "node_count", "nodes", "values"]
    expect(state["keys"]["items"].tolist() == names, "tree_ is odd")
    depth, n_nodes, nodes, values = members(state["values"], "tree_")
    fields = _fields(nodes)
    expect(type(n_nodes) is int and 0 < n_nodes == fields["feature"].size, "node_count is wrong")
    inner = _shape(fields, n_nodes, depth)
    feature, limits = fields["feature"], fields["threshold"]
    expect(((feature[inner] >= 0) & (feature[inner] < width)).all(), "a node has no feature")
    expect(not np.isnan(limits).any(), "threshold is not a number")
    expect((fields["missing_go_to_left"] <= 1).all(), "missing_go_to_left is odd")
    numbers(fields["impurity"], "impurity", (n_nodes,))
    for name in ("n_node_samples", "weighted_n_node_samples"):
        counts = numbers(fields[name], name, (n_nodes,), low=0.0)
        below = counts[fields["left_child"][inner]] + counts[fields["right_child"][inner]]
        expect(close(counts[inner], below), f"{name} do not add up")
    expect(isinstance(values, np.ndarray) and values.dtype == np.float64, "values are odd")
    numbers(values, "values", (n_nodes, n_outputs, n_classes))
    if n_classes > 1:
        numbers(values, "values", values.shape, low=0.0, high=1.0 + 1e-9)
        expect(np.allclose(values.sum(axis=2), 1.0), "values do not add up to 1")


def _fields(nodes: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    expect(nodes["is"] == "structures" and nodes["size"] == _NODES.itemsize, "nodes are odd")
    names = list(_NODES.names or ())
    expect(nodes["names"] == names, "nodes are odd")
    fields: Mapping[str, Any] = _NODES.fields or {}
    expect(nodes["offsets"] == [fields[name][1] for name in names], "nodes are odd")
    found: dict[str, NDArray[Any]] = dict(nodes["fields"])
    expect(
        found.keys() == fields.keys()
        and all(isinstance(found[name], np.ndarray) for name in names)
        and all(found[name].dtype == fields[name][0] for name in names)
        and len({found[name].shape for name in names}) == 1
        and found["feature"].ndim == 1,
        "nodes are odd",
    )
    return found


def _shape(fields: dict[str, NDArray[Any]], n_nodes: int, depth: Any) -> NDArray[np.intp]:
    """Check that nodes are one tree, and return those that have children."""
    left, right = fields["left_child"], fields["right_child"]
    inner = np.flatnonzero(left != -1)
    expect((right[left == -1] == -1).all(), "a leaf has a child")
    children = np.concatenate([left[inner], right[inner]])
    # Each node but the first is the child of one that comes before it: there is no way round.
    expect(np.array_equal(np.sort(children), np.arange(1, n_nodes)), "nodes are no tree")
    expect((np.minimum(left[inner], right[inner]) > inner).all(), "nodes are no tree")
    levels = np.zeros(n_nodes, dtype=np.int64)
    for node in inner.tolist():
        levels[left[node]] = levels[right[node]] = levels[node] + 1
    expect(type(depth) is int and depth == levels.max(), "max_depth is not that of the nodes")
    return inner


def check_forest(part: FittedPart) -> int:
    """Check a forest, tree by tree, and return the number of its features."""
    width, n_outputs = part.features(), part.integer("n_outputs_", 1, _ROOM)
    forest, n_classes = part.template, 0
    if isinstance(forest, RandomForestClassifier | ExtraTreesClassifier):
        n_classes = part.labels().size
        part.integer("n_classes_", n_classes, n_classes)
    elif part.has("class_weight"):
        expect(part.value("class_weight") is None, "class_weight is odd")
    expect(same(part.raw("estimator"), encode(forest.estimator, {})), "estimator is another")
    part.raw("estimator_")  # the same, as writing it again shows
    expect(
        part.value("estimator_params") == list(forest.estimator_params), "estimator_params are odd"
    )
    part.skip("_n_samples", "_n_samples_bootstrap", "_sample_weight")
    grown = members(part.raw("estimators_"), "estimators_", ("list",))
    if len(grown) != forest.n_estimators:
        raise ContradictionError("estimators_ are not n_estimators")
    own = {name: getattr(forest, name) for name in forest.estimator_params}
    template = clone(forest.estimator).set_params(**own)
    for each in grown:
        one = FittedPart(each, template, width, part.known, varying=("random_state",))
        one.integer("random_state", 0, _ROOM)
        if n_classes:
            codes = np.arange(n_classes, dtype=np.float64)
            expect(same(each["attributes"]["classes_"], codes), "classes_ of a tree are not codes")
        expect(each["attributes"]["n_outputs_"] == n_outputs, "trees have other targets")
        check_tree(one)
        one.finish()
    return width


_LOSSES = ("sklearn.linear_model._sgd_fast.", "sklearn._loss._loss.")


def checked(
    tree: Any,
    template: BaseEstimator,
    known: Known,
    n_features: int,
    columns: list[str] | None = None,
) -> BaseEstimator:
    """Turn a state from an unknown source into an estimator, if a fit could have made it.

    The estimator shares arrays with `tree`. Raise UncheckedError if its family is not checked, or a
    check fails.
    """
    try:
        _check(tree, template, known, n_features, columns)
        made: BaseEstimator = decode(tree, known)
        expect(same(encode(made, known), tree), "it is not written as a fit writes it")
    except (UncheckedError, MemoryError):
        raise
    except Exception as error:  # what is read may be of any type, and of any shape
        raise UncheckedError(f"it is malformed ({type(error).__name__})") from error
    return made


def _check(
    tree: Any, template: BaseEstimator, known: Known, n_features: int, columns: list[str] | None
) -> int:
    """Check an estimator, and return how many columns it makes of those that it is given."""
    check = _FAMILIES.get(type(template))
    name = type(template).__name__
    expect(check is not None, f"states of {name} are not checked")
    assert check is not None
    part = FittedPart(tree, template, n_features, known, columns)
    width = check(part)
    part.finish()
    return width


# --------------------------------------------------------------------------- linear models


def _linear_regressor(part: FittedPart) -> int:
    width = part.features()
    coefficients = np.asarray(part.value("coef_"))
    rows = coefficients.shape[:-1]
    expect(len(rows) < 2, "coef_ has too many dimensions")
    numbers(coefficients, "coef_", (*rows, width))
    # A line through the origin has one number for all targets.
    part.array("intercept_", rows, (), *(((1,),) if rows == () else ()))
    part.skip("rank_", "singular_", "n_iter_", "solver_", "dual_gap_", "t_")
    if isinstance(part.template, linear_model.Lasso):
        expect(part.value("l1_ratio") == 1.0, "l1_ratio is not 1")
    return width


def _linear_classifier(part: FittedPart) -> int:
    width, n_classes = part.features(), part.labels().size
    expect(n_classes > 1, "classes_ are too few")
    rows = 1 if n_classes == 2 else n_classes
    part.array("coef_", (rows, width))
    part.array("intercept_", (rows,), ())
    part.skip("n_iter_", "solver_", "t_")
    if isinstance(part.template, linear_model.SGDClassifier):
        part.array("_expanded_class_weight", (n_classes,), low=0.0)
        loss = part.raw("_loss_function_")
        expect(
            loss["class"].startswith(_LOSSES) and loss["is"] == "object" and loss["state"] is None,
            "_loss_function_ is none",
        )
        given = loss["args"]
        if given != {"is": "tuple", "of": "parts", "parts": {}}:
            numbers(plain(given, "_loss_function_"), "_loss_function_", (1,))
    return width


def _ridge_classifier(part: FittedPart) -> int:
    labels, binarizer = part.labels(), part.raw("_label_binarizer")
    again = preprocessing.LabelBinarizer(pos_label=1, neg_label=-1).fit(labels)
    expect(same(encode(again, {}), binarizer), "_label_binarizer is not that of the classes")
    width, n_classes = part.features(), labels.size
    expect(n_classes > 1, "classes_ are too few")
    part.array("coef_", (width,) if n_classes == 2 else (n_classes, width))
    part.array("intercept_", () if n_classes == 2 else (n_classes,), (1,), ())
    part.skip("n_iter_", "solver_")
    return width


def _constant(part: FittedPart) -> int:
    width, labels = part.features(), part.labels()
    size = part.integer("n_classes_", labels.size, labels.size)
    part.integer("n_outputs_", 1, 1)
    shares = part.array("class_prior_", (size,), low=0.0, high=1.0)
    expect(np.isclose(shares.sum(), 1.0), "class_prior_ does not add up to 1")
    expect(part.value("sparse_output_") is False, "sparse_output_ is odd")
    expect(part.value("_strategy") == part.template.strategy, "_strategy is odd")
    return width


# --------------------------------------------------------------------------- naive Bayes


def _gaussian(part: FittedPart) -> int:
    width, size = part.features(), part.labels().size
    counts = part.array("class_count_", (size,), low=0.0)
    prior = part.array("class_prior_", (size,), low=0.0, high=1.0)
    expect(np.isclose(prior.sum(), 1.0), "class_prior_ does not add up to 1")
    if part.template.priors is None:
        expect(close(prior, counts / counts.sum()), "class_prior_ is not counted")
    part.array("theta_", (size, width))
    part.array("var_", (size, width), low=0.0)
    part.array("epsilon_", (), low=0.0)
    return width


def _discrete(part: FittedPart) -> int:
    width, size = part.features(), part.labels().size
    part.array("class_count_", (size,), low=0.0)
    prior = part.array("class_log_prior_", (size,), high=1e-9)
    if not isinstance(part.template, naive_bayes.ComplementNB):
        expect(np.isclose(np.exp(prior).sum(), 1.0), "class_log_prior_ does not add up to 1")
    features = part.array("feature_count_", (size, width), low=0.0)
    if isinstance(part.template, naive_bayes.ComplementNB):
        whole = part.array("feature_all_", (width,), low=0.0)
        expect(close(whole, features.sum(axis=0)), "feature_all_ is not the sum")
        part.array("feature_log_prob_", (size, width))
        return width
    logs = part.array("feature_log_prob_", (size, width), high=1e-9)
    if isinstance(part.template, naive_bayes.MultinomialNB):
        expect(np.allclose(np.exp(logs).sum(axis=1), 1.0), "feature_log_prob_ does not add up")
    return width


# --------------------------------------------------------------------------- what fits anew


def _neighbours(part: FittedPart) -> int:
    """Check a model that holds its records by fitting it to them again."""
    width, model = part.features(), part.template
    expect(isinstance(model.metric, str), "metric is a function")
    expect(model.metric_params is None, "metric_params are not checked")
    X = part.value("_fit_X")
    expect(isinstance(X, np.ndarray) and X.dtype == np.float64 and X.ndim == 2, "_fit_X is odd")
    numbers(X, "_fit_X", (len(X), width))
    y = part.value("_y")
    if isinstance(model, neighbors.KNeighborsClassifier | neighbors.RadiusNeighborsClassifier):
        labels = part.labels()
        y = labels[numbers(y, "_y", (len(X),), low=0, high=labels.size - 1)]
    else:
        numbers(y, "_y", (len(X), *np.shape(y)[1:]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = encode(clone(model).fit(X, y), part.known)
    part.expect_all(again["attributes"])
    return width


# --------------------------------------------------------------------------- transformers


def _scaler(part: FittedPart) -> int:
    width, model = part.features(), part.template
    part.skip("n_samples_seen_")
    for name, switch in _SCALES[type(model)].items():
        value = part.value(name)
        if value is None:
            expect(switch is not None and not getattr(model, switch), f"{name} is missing")
            continue
        found = numbers(value, name, (width,))
        expect(name != "scale_" or (found > 0).all(), "scale_ is not positive")
        expect(name != "var_" or (found >= 0).all(), "var_ is negative")
    return width


# What a scaler has, and the parameter without which it may have none.
_SCALES: dict[type, dict[str, str | None]] = {
    preprocessing.MaxAbsScaler: {"max_abs_": None, "scale_": None},
    preprocessing.MinMaxScaler: dict.fromkeys(
        ("data_max_", "data_min_", "data_range_", "min_", "scale_")
    ),
    preprocessing.RobustScaler: {"center_": "with_centering", "scale_": "with_scaling"},
    preprocessing.StandardScaler: {"mean_": "with_mean", "scale_": "with_std", "var_": "with_std"},
}


def _components(part: FittedPart) -> int:
    width = part.features()
    size = part.integer("n_components_", 1, width)
    part.array("components_", (size, width))
    part.array("mean_", (width,))
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        part.array(name, (size,), low=0.0)
    part.array("noise_variance_", ())
    part.skip("n_samples_")
    solvers = ("full", "covariance_eigh", "arpack", "randomized")
    expect(part.value("_fit_svd_solver") in solvers, "_fit_svd_solver is odd")
    return size


def _steps(part: FittedPart) -> int:
    width, columns = part.n_features, part.columns
    own = members(part.raw("steps"), "steps", ("list",))
    expect(len(own) == len(part.template.steps), "steps differ")
    for each, (name, template) in zip(own, part.template.steps, strict=True):
        if template is None or isinstance(template, str):
            expect(same(each, encode((name, template), {})), "steps differ")
            continue
        named, tree = members(each, "steps", ("tuple",))
        expect(named == name, "steps differ")
        width = _check(tree, template, part.known, width, columns)
        columns = None  # steps make arrays
    return width


_KINDS: list[tuple[Callable[[FittedPart], int], tuple[type, ...]]] = [
    (_constant, (dummy.DummyClassifier,)),
    (check_forest, (ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor)),
    (check_forest, (ensemble.RandomForestClassifier, ensemble.RandomForestRegressor)),
    (_linear_regressor, (linear_model.ElasticNet, linear_model.Lasso, linear_model.Ridge)),
    (_linear_regressor, (linear_model.LinearRegression, linear_model.SGDRegressor)),
    (_linear_regressor, (machines.LinearSVR,)),
    (_linear_classifier, (linear_model.LogisticRegression, linear_model.SGDClassifier)),
    (_linear_classifier, (machines.LinearSVC,)),
    (_ridge_classifier, (linear_model.RidgeClassifier,)),
    (_discrete, (naive_bayes.BernoulliNB, naive_bayes.ComplementNB, naive_bayes.MultinomialNB)),
    (_gaussian, (naive_bayes.GaussianNB,)),
    (_neighbours, (neighbors.KNeighborsClassifier, neighbors.KNeighborsRegressor)),
    (_neighbours, (neighbors.RadiusNeighborsClassifier, neighbors.RadiusNeighborsRegressor)),
    (_steps, (pipeline.Pipeline,)),
    (_scaler, tuple(_SCALES)),
    (_components, (PCA,)),
    (check_tree, (trees.DecisionTreeClassifier, trees.DecisionTreeRegressor)),
    (check_tree, (trees.ExtraTreeClassifier, trees.ExtraTreeRegressor)),
]
_FAMILIES = {kind: check for check, kinds in _KINDS for kind in kinds}
