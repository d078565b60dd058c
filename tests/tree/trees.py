"""Data for trees, and models beside what the oracle grows."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
from sklearn.base import clone, is_classifier

from erasable.core.grid import Grid
from tree.oracle import Oracle, Record


@st.composite
def tables(draw: st.DrawFn, most: int = 36, gaps: bool = False) -> tuple[Any, Any]:
    """Columns of many values and of few, constant ones among them, and whole targets.

    With `gaps`, some columns have some, up to all.
    """
    n, d = draw(st.integers(1, most)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns = [
        rng.normal(size=n) if kind > 6 else rng.integers(0, kind + 1, n) / 4.0
        for kind in draw(st.lists(st.integers(0, 9), min_size=d, max_size=d))
    ]
    X = np.column_stack(columns)
    n_classes = draw(st.integers(1, 4))
    y = rng.integers(0, n_classes, n)
    if draw(st.booleans()):
        y = np.minimum(y, (X[:, 0] > 0.3) * 2)
    if gaps:
        shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.8, 1.0]), min_size=d, max_size=d))
        X = np.where(rng.random(X.shape) < shares, np.nan, X)
    return X, y


def expected(model: Any, X: Any, y: Any, owners: list[Any]) -> dict[str, Any]:
    """Grow a model's trees by the oracle; what `state` should have under "trees"."""
    params, d = model.get_params(), X.shape[1]
    settings: dict[str, Any] = {}
    if is_classifier(model):
        labels = sorted(set(y.tolist()))
        codes = [labels.index(label) for label in y.tolist()]
        settings["n_stats"] = len(labels)
        given = params["class_weight"]
        if given == "balanced":
            counts = [codes.count(c) for c in range(len(labels))]
            settings["class_weight"] = [len(codes) / (len(labels) * float(c)) for c in counts]
        elif given is not None:
            settings["class_weight"] = [float(given.get(label, 1.0)) for label in labels]
    else:
        column = np.asarray(y, dtype=np.float64)[:, None]
        grid = Grid.fit(column, warn=False)
        codes = (grid.apply(column) / grid.quantum)[:, 0].astype(int).tolist()
        settings |= {"n_stats": 2, "scale": float(grid.quantum[0]) ** 2}
    features, depth = params["max_features"], params["max_depth"]
    if features is None or isinstance(features, float):
        features = d
    features = math.isqrt(d) if features == "sqrt" else min(features, d)
    oracle = Oracle(
        seed=model.seed_,
        names=[f"x{j}" for j in range(d)],
        criterion=params["criterion"],
        max_depth=math.inf if depth is None else depth,
        min_split=params["min_samples_split"],
        min_leaf=params["min_samples_leaf"],
        max_features=features,
        n_thresholds=params["n_thresholds"],
        min_decrease=params["min_impurity_decrease"],
        **settings,
    )
    records = [
        Record(tuple(row), code, owner)
        for row, code, owner in zip(X.tolist(), codes, owners, strict=True)
    ]
    sizes = oracle.grow_forest(
        records, params.get("n_estimators", 1), params.get("bootstrap", False)
    )
    return {
        "n_nodes": sizes,
        "features": oracle.features,
        "thresholds": oracle.thresholds,
        "leaves": oracle.leaves,
        **({"gap_sides": oracle.gap_sides} if any(oracle.gap_sides) else {}),
    }


def assert_grown(model: Any, X: Any, y: Any, owners: list[Any]) -> None:
    """Hold a model against what the oracle grows from the same records."""
    state, wanted = model.state()["trees"], expected(model, X, y, owners)
    assert state.keys() == wanted.keys()
    for name in ("n_nodes", "features", "leaves", "thresholds", *(state.keys() & {"gap_sides"})):
        assert state[name].tolist() == wanted[name], name


def assert_grown_on(kind: Any, table: Any, seed: int, cuts: list[int]) -> None:
    """A model is the oracle's after its fit, and after each deletion of a part of the records."""
    X, y = table
    if not is_classifier(kind):
        y = y * 0.75
    ids = np.arange(len(X)) * 7 - 30
    model = clone(kind).set_params(random_state=seed).fit(X, y, ids=ids)
    assert_grown(model, X, y, ids.tolist())
    order = np.random.default_rng(seed).permutation(len(X))
    done = 0
    for rows in np.split(order, sorted(cuts)):
        done += len(rows)
        left = np.sort(order[done:])
        if not len(left):
            break
        model.delete(ids[rows])
        assert_grown(model, X[left], y[left], ids[left].tolist())
