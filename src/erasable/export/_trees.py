"""Exports of trees, forests and boosting: their nodes, in the arrays of scikit-learn.

An estimator of scikit-learn is fitted on a few rows of zeros, which makes all that depends on its
version. Then its trees are replaced.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.utils import check_array

from erasable.core.arrays import Floats, Ints, of_objects
from erasable.core.errors import DetachedError, ExportError
from erasable.export._source import Source, set_names
from erasable.tree._boosted._bins import Features
from erasable.tree._boosted._flat import FlatBoostedTree
from erasable.tree._boosted._losses import LogLoss, Poisson
from erasable.tree._flat import FlatTree, from_arrays
from erasable.tree._layout import ANY_VALUE
from erasable.tree._targets import ClassTargets, NumberTargets

_LEAF, _NO_FEATURE = -1, -2
_UP = 2.0**-40
"""Part of a threshold by which one behind a scaler is moved up; see `_behind`."""
_GAPS_LEFT, _EQUAL = 1, 2
_HASHES = 2.0**52
"""From here on, numbers of categories are hashes of text."""


def _behind(thresholds: Floats, features: Ints, scaling: dict[str, Floats] | None) -> Floats:
    """Return thresholds for scaled values, a little above that of the unscaled one.

    The margin covers the rounding of scaled values, so a value equal to the threshold goes left.
    """
    if scaling is None:
        return thresholds
    shift, scale = scaling["shift"][features], scaling["scale"][features]
    scaled: Floats = (thresholds - shift) / scale
    above = scaled + (np.abs(scaled) + np.abs(shift / scale)) * _UP
    return np.where(_are_scaled(features, scaling), above, scaled)


def _are_scaled(features: Ints, scaling: dict[str, Floats] | None) -> NDArray[np.bool_]:
    """Tell which of some features are scaled; a pipeline may let others through."""
    if scaling is None:
        return np.zeros(features.size, dtype=np.bool_)
    scaled: NDArray[np.bool_] = (scaling["shift"] != 0.0) | (scaling["scale"] != 1.0)
    return scaled[features]


def _zeros(model: Any, labels: NDArray[Any] | None) -> tuple[Floats, NDArray[Any]]:
    """Return rows from which an estimator of scikit-learn can learn, and their targets."""
    y = np.ones(2) if labels is None else np.resize(labels, max(2, labels.size))
    return np.zeros((y.size, model.n_features_in_)), y


# -- decision trees and forests --------------------------------------------------------------------


class _Nodes:
    """How nodes of a tree become those of scikit-learn."""

    def __init__(self, source: Source) -> None:
        self.state = source.state
        self.classifies = "classes" in self.state
        names = ("criterion", *(("class_weight",) if self.classifies else ()))
        self.settings = {name: source.at_fit(name) for name in names}
        kind: Any = ClassTargets if self.classifies else NumberTargets
        self.targets = kind.from_state(self.state, self.settings)
        self.unit = 2.0 ** self.state.get("unit", 0)

    def flats(self) -> list[FlatTree]:
        """Return the trees."""
        return from_arrays(FlatTree, self.state["trees"])

    def fill(self, empty: Any, flat: FlatTree) -> Any:
        """Return a tree of scikit-learn like an `empty` one, with the nodes of a tree."""
        features, rights, n = flat.features, flat.rights, flat.features.size
        split = features >= 0
        totals = self._totals(flat)
        shares = self.targets.shares(totals) if self.classifies else self.targets.means(totals)
        weights, impurities = self._weights(totals), self._impurities(flat, totals)
        nodes = np.zeros(n, dtype=empty.__getstate__()["nodes"].dtype)
        nodes["left_child"] = np.where(split, np.arange(1, n + 1), _LEAF)
        nodes["right_child"] = np.where(split, rights, _LEAF)
        nodes["feature"] = np.where(split, features, _NO_FEATURE)
        nodes["threshold"] = float(_NO_FEATURE)
        nodes["threshold"][split] = self._thresholds(flat)
        flags = flat.flags(regression=not self.classifies)
        nodes["missing_go_to_left"][split] = flags & _GAPS_LEFT
        nodes["impurity"] = impurities
        nodes["weighted_n_node_samples"] = weights
        counts = totals.sum(axis=1) if self.classifies else totals[:, 0]
        nodes["n_node_samples"] = np.maximum(np.rint(counts * self.unit), 1)
        n_classes = shares.shape[1] if self.classifies else 1
        made = type(empty)(int(self.state["n_features"]), np.array([n_classes], dtype=np.intp), 1)
        made.__setstate__(
            {
                "max_depth": flat.depth,
                "node_count": n,
                "nodes": nodes,
                "values": np.ascontiguousarray(shares, dtype=np.float64).reshape(n, 1, n_classes),
            }
        )
        return made

    def _totals(self, flat: FlatTree) -> Ints:
        """Return what the leaves below every node add up to."""
        first, last = self._leaves_below(flat)
        sums = np.concatenate([np.zeros((1, flat.leaves.shape[1]), np.int64), flat.leaves])
        sums = np.cumsum(sums, axis=0)
        totals: Ints = sums[last] - sums[first]
        return totals

    def _leaves_below(self, flat: FlatTree) -> tuple[Ints, Ints]:
        """Return the first leaf below every node, and that after the last one."""
        n = flat.features.size
        ends, rights = list(range(1, n + 1)), flat.rights.tolist()
        for node in range(n - 1, -1, -1):
            if rights[node] >= 0:
                ends[node] = ends[rights[node]]
        before = np.concatenate([[0], np.cumsum(flat.features < 0)])
        return before[:-1], before[ends]

    def _weights(self, totals: Ints) -> Floats:
        """Return the weight of every node's records, with that of their classes."""
        if not self.classifies:
            weights: Floats = totals[:, 0] * self.unit
            return weights
        factors = self.targets.class_weight
        weights = (totals * factors if factors.size else totals * 1.0).sum(axis=1) * self.unit
        lost = weights == 0.0
        weights[lost] = totals[lost].sum(axis=1) * self.unit
        return weights

    def _impurities(self, flat: FlatTree, totals: Ints) -> Floats:
        """Return the impurity of every node: of numbers, that between the leaves below it."""
        if self.classifies:
            shares = self.targets.shares(totals)
            if self.settings["criterion"] == "gini":
                gini: Floats = 1.0 - (shares * shares).sum(axis=1)
                return gini
            logs = np.log2(np.where(shares > 0, shares, 1.0))
            entropy: Floats = -(shares * logs).sum(axis=1)
            return entropy
        first, last = self._leaves_below(flat)
        sums = np.concatenate([[0.0], np.cumsum(flat.leaves[:, 1] ** 2.0 / flat.leaves[:, 0])])
        squares, means = (sums[last] - sums[first]) / totals[:, 0], totals[:, 1] / totals[:, 0]
        between: Floats = np.where(flat.features >= 0, squares - means * means, 0.0)
        found: Floats = np.maximum(between, 0.0) * self.targets.quantum**2
        return found

    def _thresholds(self, flat: FlatTree) -> Floats:
        features = flat.features[flat.features >= 0].astype(np.int64)
        scaling = self.state.get("map")
        divides_gaps = flat.thresholds == ANY_VALUE
        with np.errstate(over="ignore"):
            thresholds = _behind(flat.thresholds, features, scaling)
        # What is compared is rounded to float32.
        with np.errstate(over="ignore"):
            rounded = thresholds.astype(np.float32).astype(np.float64)
        scaled = _are_scaled(features, scaling)
        compared = np.where(scaled, np.maximum(thresholds, rounded), thresholds)
        return np.where(divides_gaps, np.inf, compared)


def decision_tree(source: Source, theirs: type[Any]) -> Any:
    """Export a tree."""
    nodes = _Nodes(source)
    params = source.shared(theirs)
    made = theirs(random_state=0, max_features=params["max_features"])
    made.fit(*_zeros(source.model, _labels(source)))
    made.set_params(**params, random_state=None)
    made.tree_ = nodes.fill(made.tree_, nodes.flats()[0])
    return made


def forest(source: Source, theirs: type[Any]) -> Any:
    """Export trees, with the same answers in the same order."""
    nodes = _Nodes(source)
    params = source.shared(theirs)
    made = theirs(1, random_state=0, max_features=params["max_features"])
    made.fit(*_zeros(source.model, _labels(source)))
    made.set_params(**params, random_state=None)
    first = made.estimators_[0].set_params(random_state=None)
    made.estimators_ = []
    for flat in nodes.flats():
        tree = copy.copy(first)
        tree.tree_ = nodes.fill(first.tree_, flat)
        made.estimators_.append(tree)
    return made


def _labels(source: Source) -> NDArray[Any] | None:
    return getattr(source.model, "classes_", None)


# -- boosting --------------------------------------------------------------------------------------


def boosting(source: Source, theirs: type[Any]) -> Any:
    """Export the rounds; see `_predictor` for splits at categories."""
    model, state, labels = source.model, source.state, _labels(source)
    if labels is not None and labels.size < 2:
        raise ExportError(
            "the model knows one class, for which scikit-learn's boosting predicts probabilities "
            "of two; expected two classes; use sklearn.dummy.DummyClassifier"
        )
    params = source.shared(theirs)
    categories = params.pop("categorical_features")
    made = theirs(
        max_iter=1, early_stopping=False, categorical_features=None, loss=params["loss"],
        random_state=0,
    )  # fmt: skip
    made.fit(*_zeros(model, labels))
    made.set_params(**params, random_state=None)
    made.do_early_stopping_ = params["early_stopping"]
    unit, origin = _unit_and_origin(source, state)
    start = np.asarray(state["start"]) * unit + origin
    flats = from_arrays(FlatBoostedTree, state["trees"])
    empty = made._predictors[0][0]
    coded = _coded(categories, state)
    texts = {feature: _compared(flats, feature, own) for feature, own in _texts(source, coded)}
    if texts:
        order = [*texts, *(f for f in range(coded.size) if f not in texts)]
        flats = [_of_codes(flat, texts, order) for flat in flats]
        coded, made._preprocessor = coded[order], _encoder(source, texts)
    trees = [_predictor(empty, flat, unit, coded, state.get("map")) for flat in flats]
    made._predictors = [trees[t : t + start.size] for t in range(0, len(trees), start.size)]
    made._baseline_prediction = start.reshape(1, -1)
    return made


def _unit_and_origin(source: Source, state: dict[str, Any]) -> tuple[float, float]:
    """Return what predictions count in, and what they are relative to."""
    rate = float(source.at_fit("learning_rate"))
    if "classes" in state:
        return LogLoss.with_start(state["start"], rate).unit, 0.0
    if "scale" in state:
        unit = Poisson.with_start(state["start"], float(state["scale"]), rate).unit
        return unit, float(np.log(state["scale"]))
    return float(state["unit"]), float(state["target"]["origin"][0])


def _coded(given: Any, state: dict[str, Any]) -> NDArray[np.bool_]:
    """Tell which columns hold categories."""
    d = int(state["n_features"])
    coded = np.zeros(d, dtype=np.bool_)
    if given is None:
        return coded
    if isinstance(given, str):
        declared: NDArray[np.bool_] = state["categorical"]
        return declared
    cells = np.asarray(given, dtype=object).reshape(-1).tolist()
    if len(cells) == d and all(isinstance(cell, bool | np.bool_) for cell in cells):
        return np.array(cells, dtype=np.bool_)
    names = list(state["feature_names"] or ())
    coded[[names.index(cell) if isinstance(cell, str) else int(cell) for cell in cells]] = True
    return coded


Hashed = dict[float, str]
"""Texts by what the model keeps of them."""


def _texts(source: Source, coded: NDArray[np.bool_]) -> Iterator[tuple[int, Hashed]]:
    """Yield the columns of categories that hold text, and the texts of the records."""
    if source.held is None or not coded.any():
        return
    table = source.held.records.matrix[source.held.live_rows()]
    for feature in np.flatnonzero(coded).tolist() if table.dtype == object else ():
        cells = set(table[:, feature].tolist())
        texts = sorted(cell for cell in cells if isinstance(cell, str))
        if texts and any(_is_number(cell) for cell in cells):
            raise ExportError(
                f"column {feature} holds text and numbers; expected one of these, as encoders of "
                "scikit-learn do; make them text"
            )
        if texts:
            hashes = Features(["text"], np.array([True])).column(of_objects(texts), 0)
            yield feature, dict(zip(hashes.tolist(), texts, strict=True))


def _is_number(cell: Any) -> bool:
    return not (isinstance(cell, str) or cell is None or cell != cell)


def _compared(flats: list[FlatBoostedTree], feature: int, texts: Hashed) -> Hashed:
    """Return those texts that splits compare with; all others are alike."""
    used = {one for flat in flats for one in flat.thresholds[_own(flat, feature)].tolist()}
    return {one: text for one, text in texts.items() if one in used}


def _own(flat: FlatBoostedTree, feature: int) -> NDArray[np.bool_]:
    """Tell which splits compare a feature with a category."""
    own: NDArray[np.bool_] = flat.features[flat.features >= 0] == feature
    return own & ((flat.flags & _EQUAL) > 0)


def _of_codes(flat: FlatBoostedTree, texts: dict[int, Hashed], order: list[int]) -> FlatBoostedTree:
    """Return a tree that compares places of texts among these, of columns in another order."""
    features, thresholds = flat.features, flat.thresholds.copy()
    for feature, known in texts.items():
        places = {one: float(place) for place, one in enumerate(known)}
        own = _own(flat, feature)
        thresholds[own] = [places[one] for one in thresholds[own].tolist()]
    moved = np.where(features < 0, features, np.argsort(order)[features]).astype(np.int32)
    return replace(flat, features=moved, thresholds=thresholds)


def _encoder(source: Source, texts: dict[int, Hashed]) -> ColumnTransformer:
    """Return what boosting of scikit-learn encodes categories by; others have a number of no text.

    Its output has the columns of text first.
    """
    width = source.model.n_features_in_
    encoder = OrdinalEncoder(
        categories=[of_objects([*known.values(), np.nan]) for known in texts.values()],
        handle_unknown="use_encoded_value",
        unknown_value=1 + max(map(len, texts.values())),
        encoded_missing_value=np.nan,
    )
    read = FunctionTransformer(partial(check_array, dtype=np.float64, ensure_all_finite=False))
    others = [feature for feature in range(width) if feature not in texts]
    made = ColumnTransformer([("encoder", encoder, [*texts]), ("numerical", read, others)])
    made.fit(np.full((1, width), np.nan, dtype=object))
    set_names(made, source.names)
    return made.set_output(transform="default")


def _predictor(
    empty: Any,
    flat: FlatBoostedTree,
    unit: float,
    coded: NDArray[np.bool_],
    scaling: dict[str, Floats] | None,
) -> Any:
    """Return a tree of scikit-learn's boosting.

    A split at a category sends one to the left, and all others to the right, also such as no record
    has; scikit-learn's own would take these for gaps. So it becomes two or three splits at numbers,
    whose children may be the same node.
    """
    rights, places = flat.rights, flat.places
    rows: list[tuple[Any, ...]] = []
    more: list[tuple[Any, ...]] = []
    n = flat.features.size

    def add(*row: Any) -> int:
        more.append(row)
        return n + len(more) - 1

    for i, feature in enumerate(flat.features.tolist()):
        if feature < 0:
            rows.append((-1, 0.0, 0, 0, 0, float(flat.values[places[i]]) * unit))
            continue
        left, right, place = i + 1, int(rights[i]), places[i]
        gaps, at = int(flat.flags[place]) & _GAPS_LEFT, float(flat.thresholds[place])
        to = left if gaps else right
        low, high = _ends(at, feature, scaling)
        if not coded[feature]:
            rows.append((feature, high, gaps, left, right, 0.0))
            continue
        # Numbers below 0 are gaps.
        below = _ends(0.0, feature, scaling)[0]
        if not flat.flags[place] & _EQUAL:
            rows.append((feature, below, 1, to, add(feature, high, gaps, left, right, 0.0), 0.0))
            continue
        if at >= _HASHES:
            raise DetachedError(
                "the model splits at categories that are text, of which it keeps hashes; expected "
                "its records, which have the text; load it with them"
            )
        under = right if to == right else add(feature, below, 0, left, right, 0.0)
        inner = add(feature, low, 0, under, left, 0.0)
        rows.append((feature, high, gaps, inner, right, 0.0))
    return _with_rows(empty, rows + more)


def _ends(at: float, feature: int, scaling: dict[str, Floats] | None) -> tuple[float, float]:
    """Return the largest number below a threshold, and the threshold, as scaled values.

    Behind scalers, whose last bits may be others, they are a little apart.
    """
    places = np.array([feature])
    if scaling is None or abs(at) == np.finfo(np.float64).max or not _are_scaled(places, scaling):
        return float(np.nextafter(at, -np.inf)), at
    high = float(_behind(np.array([at]), places, scaling)[0])
    scaled = (at - float(scaling["shift"][feature])) / float(scaling["scale"][feature])
    return scaled - (high - scaled), high


def _with_rows(empty: Any, rows: Iterable[tuple[Any, ...]]) -> Any:
    given = list(rows)
    nodes = np.zeros(len(given), dtype=empty.nodes.dtype)
    features, thresholds, gaps, lefts, rights, values = (
        np.array(c) for c in zip(*given, strict=True)
    )
    leaf = features < 0
    nodes["feature_idx"], nodes["num_threshold"] = np.where(leaf, 0, features), thresholds
    nodes["missing_go_to_left"], nodes["is_leaf"] = gaps, leaf
    nodes["left"], nodes["right"], nodes["value"] = lefts, rights, values
    made = copy.copy(empty)
    made.nodes = nodes
    return made
