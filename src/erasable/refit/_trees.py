"""Trees and forests of scikit-learn as a file holds them: that they are trees, and add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, _tree

from erasable.refit._codec import encode
from erasable.refit._part import ContradictionError, Part, close, expect, members, numbers, same

_NODES: np.dtype[Any] = _tree.NODE_DTYPE
_ROOM = 2**31 - 1


def check_tree(part: Part) -> int:
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


def check_forest(part: Part) -> int:
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
        one = Part(each, template, width, part.known, varying=("random_state",))
        one.integer("random_state", 0, _ROOM)
        if n_classes:
            codes = np.arange(n_classes, dtype=np.float64)
            expect(same(each["attributes"]["classes_"], codes), "classes_ of a tree are not codes")
        expect(each["attributes"]["n_outputs_"] == n_outputs, "trees have other targets")
        check_tree(one)
        one.finish()
    return width
