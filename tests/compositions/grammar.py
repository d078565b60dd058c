"""Sentences: compositions of estimators drawn at random, with the data that they are fitted on.

A sentence is a tree of plain values (`Leaf`, `Row`, `Side`), from which `build` makes estimators
of erasable, and the same composition of scikit-learn. A `Writer` draws it step by step: it fits
scikit-learn's composition as far as it has got, looks at what came out, and chooses among the
estimators that take it. So every sentence is one that a user of scikit-learn can write, and what
erasable makes of it can be held against scikit-learn (`twins.py`).

The combinations that erasable refuses by design are not drawn. They are listed in `takes`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import polars as pl
import sklearn.compose
import sklearn.linear_model
import sklearn.pipeline
import sklearn.tree
from polars.exceptions import PolarsError
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer
from sklearn.utils import all_estimators, get_tags

import erasable
from erasable.compose import ColumnTransformer
from erasable.pipeline import Pipeline

__all__ = ["Leaf", "Row", "Sentence", "Side", "Writer", "build", "build_twin", "dense"]

# -- what a sentence is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """One estimator: the name of its class, and its parameters."""

    name: str
    params: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.params)
        return f"{self.name}({told})"


@dataclass(frozen=True)
class Row:
    """Steps of a pipeline."""

    steps: tuple[Node, ...]

    def __str__(self) -> str:
        return f"Row[{' > '.join(map(str, self.steps))}]"


@dataclass(frozen=True)
class Side:
    """Parts of a column transformer, each with its columns, and the remainder."""

    parts: tuple[tuple[Node, Any], ...]
    remainder: Node

    def __str__(self) -> str:
        told = "; ".join(f"{part} on {columns!r}" for part, columns in self.parts)
        return f"Side[{told}; remainder {self.remainder}]"


Node: TypeAlias = Leaf | Row | Side | str


@dataclass
class Sentence:
    """A composition, and what it is fitted on and asked about.

    Attributes
    ----------
    node : Row
        All steps; the last one is `learner`, where there is one.
    learner : Leaf or None
    X, y : the records
    fresh : rows of the same columns
        Some have categories that no record has, unless an encoder refuses these.
    ids : list of int or str
    coarse : bool
        Whether a step learned sums of values that are not on its grid, so that its output agrees
        with scikit-learn's to the grid's precision and not to that of float64.
    brittle : bool
        Whether a k-means in the middle learned from such values: rounding may decide a near tie
        between two clusters, and all that follows.
    seed : int
    """

    node: Row
    learner: Leaf | None
    X: Any
    y: Any
    fresh: Any
    ids: list[Any]
    coarse: bool
    brittle: bool
    seed: int
    kind: str = ""

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.kind} of shape {self.X.shape}: {self.node}"


# -- estimators of a sentence ----------------------------------------------------------------------


_STATELESS = {
    "abs": lambda: FunctionTransformer(np.abs),
    "fliplr": lambda: FunctionTransformer(np.fliplr),
    "Normalizer": Normalizer,
    "Binarizer": Binarizer,
}
_THEIR_LEARNERS = {
    "sk.LogisticRegression": lambda: sklearn.linear_model.LogisticRegression(C=0.5),
    "sk.DecisionTreeClassifier": lambda: sklearn.tree.DecisionTreeClassifier(random_state=0),
    "sk.Ridge": lambda: sklearn.linear_model.Ridge(),
    "sk.DecisionTreeRegressor": lambda: sklearn.tree.DecisionTreeRegressor(random_state=0),
}
_OUR_LEARNERS = {
    "our LogisticRegression": lambda: OURS["LogisticRegression"](),
    "our Ridge": lambda: OURS["Ridge"](),
    "our boosting": lambda: OURS["HistGradientBoostingRegressor"](max_iter=2, min_samples_leaf=3),
    "our pipeline": lambda: Pipeline(
        [("scaler", OURS["StandardScaler"]()), ("trees", OURS["DecisionTreeClassifier"]())]
    ),
}
KEPT = 150
"""Sentences before this one stay what they are: tests/reference has their digests."""

OURS = {name: cls for name, cls, _ in erasable.all_estimators()}
MORE: dict[str, tuple[Any, Any]] = {}
"""Transformers that a `Writer` does not draw, and their twins: tests/neural has one that does."""
THEIRS = dict(all_estimators())
SAME = {
    "CountVectorizer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PCA",
    "RobustScaler",
    "SimpleImputer",
    "StandardScaler",
    "TfidfVectorizer",
}
"""Transformers that are the same function as scikit-learn's of that name.

All others (the transforms of the k-means) stand for themselves in scikit-learn's composition: what
they are alone is tested elsewhere.
"""


class Alone(TransformerMixin, BaseEstimator):
    """An estimator of erasable in scikit-learn's composition, which knows nothing of ids."""

    def __init__(self, estimator: Any, ids: list[Any]) -> None:
        self.estimator = estimator
        self.ids = ids

    def fit(self, X: Any, y: Any = None) -> Alone:
        self.estimator_ = clone(self.estimator).fit(_nameless(X), ids=self.ids)
        return self

    def transform(self, X: Any) -> Any:
        return self.estimator_.transform(_nameless(X))

    def get_feature_names_out(self, names: Any = None) -> Any:
        return self.estimator_.get_feature_names_out(names)


def build(node: Node) -> Any:
    """Make the estimators of a sentence."""

    def ours(leaf: Leaf) -> Any:
        cls = MORE[leaf.name][0] if leaf.name in MORE else OURS[leaf.name]
        return cls(**_params(leaf))

    return _built(node, ours, Pipeline, ColumnTransformer)


def build_twin(node: Node, ids: list[Any]) -> Any:
    """Make scikit-learn's composition of scikit-learn's estimators."""

    def twin(leaf: Leaf) -> Any:
        if leaf.name in MORE:
            return MORE[leaf.name][1](**_params(leaf))
        if leaf.name in SAME:
            return THEIRS[leaf.name](**_params(leaf))
        return Alone(build(leaf), ids)

    side = partial(sklearn.compose.ColumnTransformer, sparse_threshold=1.0)
    return _built(node, twin, sklearn.pipeline.Pipeline, side)


def _built(node: Node, leaf: Any, row: Any, side: Any) -> Any:
    def made(part: Node) -> Any:
        return _built(part, leaf, row, side)

    if isinstance(node, str):
        return node
    if isinstance(node, Leaf):
        return _STATELESS[node.name]() if node.name in _STATELESS else leaf(node)
    if isinstance(node, Row):
        return row([(f"s{i}", made(step)) for i, step in enumerate(node.steps)])
    parts = [(f"p{i}", made(part), columns) for i, (part, columns) in enumerate(node.parts)]
    return side(parts, remainder=made(node.remainder))


def _params(leaf: Leaf) -> dict[str, Any]:
    return {name: _value(value) for name, value in leaf.params}


def _value(value: Any) -> Any:
    known = {**_THEIR_LEARNERS, **_OUR_LEARNERS}
    return known[value]() if isinstance(value, str) and value in known else value


def leaf(name: str, **params: Any) -> Leaf:
    return Leaf(name, tuple(params.items()))


def leaves(node: Node) -> list[Leaf]:
    """Return all estimators of a sentence."""
    if isinstance(node, str):
        return []
    if isinstance(node, Leaf):
        return [node]
    if isinstance(node, Row):
        return [each for step in node.steps for each in leaves(step)]
    parts = [part for part, _ in node.parts]
    return [each for part in [*parts, node.remainder] for each in leaves(part)]


# -- what a table is like --------------------------------------------------------------------------


def dense(X: Any) -> Any:
    """Return a table as an array, of numbers where all of it are."""
    if issparse(X):
        return X.toarray()
    table = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    if table.dtype.kind in "OUT":
        try:
            return table.astype(np.float64)
        except (TypeError, ValueError):
            return table.astype(object)
    return table.astype(np.float64)


def take(X: Any, places: list[int]) -> Any:
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, places]
    if isinstance(X, pl.DataFrame) and len(set(places)) < len(places):
        raise _DeadEndError  # polars has no column twice
    return X[:, places]


def rows_of(X: Any, rows: Any) -> Any:
    """Take rows of any kind of table."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if isinstance(X, pl.DataFrame):
        return X[np.asarray(rows).tolist()]
    return X[rows]


@dataclass(frozen=True)
class Column:
    """What the values of one column are: text, gaps, and which numbers."""

    text: bool
    gaps: bool
    long: bool = False  # texts of several words
    few: bool = False  # few different values
    whole: bool = False
    positive: bool = False
    gridded: bool = False
    steady: bool = False  # hardly any spread, but some
    wide: bool = False
    mixed: bool = False  # text and numbers


def _column(values: Any) -> Column:
    cells = values.tolist()
    text = any(isinstance(cell, str) for cell in cells)
    gaps = any(cell is None or cell != cell for cell in cells)
    few = len({cell for cell in cells if cell == cell}) <= 6
    if text:
        long = any(" " in cell for cell in cells if isinstance(cell, str))
        mixed = any(not isinstance(cell, str) and cell == cell for cell in cells)
        return Column(True, gaps, long, few, mixed=mixed)
    numbers = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if numbers.size == 0:
        return Column(False, gaps)
    scaled = numbers * 64
    gridded = bool((scaled == np.round(scaled)).all() and np.abs(numbers).max() < 2**18)
    spread, most = float(np.ptp(numbers)), float(np.abs(numbers).max())
    return Column(
        False,
        gaps,
        few=few,
        whole=bool((numbers == np.round(numbers)).all()),
        positive=bool((numbers >= 0).all()),
        gridded=gridded,
        steady=0 < spread < 1e-3 * most,
        wide=most > 1e6,
    )


# -- the writer ------------------------------------------------------------------------------------

N, FRESH = 44, 12
_WORDS = ["red", "green", "blue", "round", "flat", "small"]
_ROUNDING = {"SimpleImputer", "StandardScaler", "PCA", "TfidfVectorizer", "RobustScaler"}
_KMEANS = ("KMeans", "QuantizedKMeans", "DivideAndConquerKMeans")


class _DeadEndError(Exception):
    """What was drawn does not go together."""


@dataclass
class Writer:
    """Draws sentences; the same ones from the same seed.

    Parameters
    ----------
    seed : int
    """

    seed: int
    rng: Any = field(init=False)
    coarse: bool = field(init=False, default=False)
    brittle: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def write(self) -> Sentence:
        """Draw a sentence."""
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return self._write()
            except _DeadEndError:
                continue

    def _write(self) -> Sentence:
        self.coarse = self.brittle = False
        kind, X = self._table()
        labels = self.pick(["two", "three", "named", "numbers", "numbers"])
        y = self._target(X, labels)
        own, fresh = rows_of(X, np.arange(N)), rows_of(X, np.arange(N, N + FRESH))
        self.y = y[:N]
        ids: list[Any] = self.rng.permutation(5 * N)[:N].tolist()
        self.ids = [f"r{number}" for number in ids] if self.chance(0.5) else ids
        node, Z = self._row(own, depth=0, most=4)
        learner = None
        if self.chance(0.8):
            learner = self._learner(Z, labels)
            node = Row((*node.steps, learner))
        return Sentence(
            node, learner, own, self.y, fresh, self.ids, self.coarse, self.brittle, self.seed, kind
        )

    # -- data ----------------------------------------------------------------------------------

    def _numbers(self, n: int, d: int) -> Any:
        """Return numbers on a grid of 1/64, of several scales."""
        scales = 2.0 ** self.rng.integers(-1, 5, size=d)
        return np.round(self.rng.normal(size=(n, d)) * scales * 64) / 64

    def _table(self) -> tuple[str, Any]:
        n = N + FRESH
        kind = self.pick(["dense", "dense", "sparse", "pandas", "pandas", "polars", "objects"])
        if kind == "dense":
            X = self._numbers(n, int(self.rng.integers(1, 6)))
            if self.chance(0.3):
                X[:, -1] = self.rng.integers(0, 4, size=n)
            if self.chance(0.25):
                X[self.rng.random(X.shape) < 0.08] = np.nan
                X[0, np.isnan(X).any(axis=0)] = np.nan  # a step that learned of none takes none
            if self.chance(0.15):
                X = np.abs(X)
            return kind, X
        if kind == "sparse":
            d = int(self.rng.integers(2, 7))
            X = self._numbers(n, d) * (self.rng.random((n, d)) < 0.5)
            return kind, csr_array(np.abs(X) if self.chance(0.5) else X)
        columns: dict[str, Any] = {}
        numbers = self._numbers(n, 3)
        for j, name in enumerate("abc"[: int(self.rng.integers(1, 4))]):
            columns[name] = numbers[:, j]
            if self.chance(0.3):
                columns[name] = np.where(self.rng.random(n) < 0.1, np.nan, numbers[:, j])
                columns[name][0] = np.nan
        columns["count"] = self.rng.integers(0, 5, size=n)
        for name in "uv"[: int(self.rng.integers(1, 3))]:
            words = self.rng.choice(["x", "y", "z"], size=n).astype(object)
            words[int(self.rng.integers(N))] = "rare"
            if self.chance(0.3):
                words[N:][self.rng.random(FRESH) < 0.2] = "new"
            if kind != "polars" and self.chance(0.2):  # scikit-learn takes None for a value
                words[self.rng.random(n) < 0.1] = words[0] = np.nan
            columns[name] = words
        if kind != "objects" and self.chance(0.3):
            columns["text"] = np.array(
                [" ".join(self.rng.choice(_WORDS, size=4).tolist()) for _ in range(n)], dtype=object
            )
        names = self.rng.permutation(list(columns)).tolist()
        if kind == "pandas":
            return kind, pd.DataFrame({name: columns[name] for name in names})
        if kind == "polars":
            return kind, pl.DataFrame({name: _polars(columns[name]) for name in names})
        table = np.empty((n, len(names)), dtype=object)
        for j, name in enumerate(names):
            table[:, j] = columns[name]
        return kind, table

    def _target(self, X: Any, labels: str) -> Any:
        """Make targets that follow from the columns."""
        table = dense(X)
        signal = np.zeros(table.shape[0])
        for column in table.T:
            cells = column.tolist()
            if any(isinstance(cell, str) for cell in cells):
                found = {cell: rank for rank, cell in enumerate(sorted(map(str, set(cells))))}
                signal += np.array([found[str(cell)] % 3 - 1.0 for cell in cells])
            else:
                numbers = np.nan_to_num(np.array(cells, dtype=np.float64))
                signal += numbers / max(1.0, float(numbers.std()))
        if labels == "numbers":
            return np.round(signal * 64) / 64
        cuts = [0.5] if labels != "three" else [0.33, 0.67]
        codes = np.searchsorted(np.quantile(signal, cuts), signal)
        return np.array(["no", "yes"], dtype=object)[codes] if labels == "named" else codes

    # -- compositions --------------------------------------------------------------------------

    def _row(self, Z: Any, depth: int, most: int) -> tuple[Row, Any]:
        """Draw the steps of a pipeline that only transforms."""
        steps = []
        for _ in range(int(self.rng.integers(1, most + 1))):
            step, Z = self._step(Z, depth)
            steps.append(step)
        return Row(tuple(steps)), Z

    def _step(self, Z: Any, depth: int) -> tuple[Node, Any]:
        for _ in range(8):
            before = self.coarse, self.brittle
            try:
                node = self._draw(Z, depth)
                return node, self._through(node, Z)
            except (_DeadEndError, ValueError, TypeError):
                self.coarse, self.brittle = before
        raise _DeadEndError

    def _draw(self, Z: Any, depth: int) -> Node:
        columns = _columns(Z)
        if depth < 2:
            mixed = len({column.text for column in columns}) > 1 or any(c.long for c in columns)
            if self.chance(0.75 if mixed else 0.25):
                return self._side(Z, depth)
            if self.chance(0.2):
                return self._row(Z, depth + 1, most=3)[0]
        if self.chance(0.05):
            return "passthrough"
        return self._transformer(columns, Z)

    def _through(self, node: Node, Z: Any) -> Any:
        """Send a table through scikit-learn's twin of a node."""
        if node == "passthrough":
            return Z
        if isinstance(node, str):
            raise _DeadEndError
        self._look(node, Z)
        try:
            out = build_twin(node, self.ids).fit(Z, self.y).transform(Z)
        except (ValueError, TypeError, AttributeError, IndexError, PolarsError) as error:
            raise _DeadEndError from error
        if issparse(out):
            out = csr_array(out)
        elif _sparse(node, issparse(Z)):
            out = csr_array(dense(out)) if dense(out).dtype != object else out
        if out.shape[1] == 0 or out.shape[1] > 40:
            raise _DeadEndError
        table = dense(out)
        if table.dtype != object and not np.isfinite(table[~np.isnan(table)]).all():
            raise _DeadEndError
        return out

    def _look(self, node: Node, Z: Any) -> None:
        if isinstance(node, Leaf) and node.name in {*_ROUNDING, *_KMEANS}:
            off_grid = not all(column.gridded or column.text for column in _columns(Z))
            self.coarse |= off_grid
            self.brittle |= off_grid and node.name in _KMEANS

    def _transformer(self, columns: list[Column], Z: Any) -> Leaf:
        options: list[Callable[[], Leaf]] = []
        sparse = issparse(Z)
        if any(column.mixed for column in columns):
            raise _DeadEndError
        text = [column.text for column in columns]
        gaps = any(column.gaps for column in columns)
        if len(columns) == 1 and columns[0].long:
            options += [self._words] * 3
        known = all((c.few and c.gridded) or (c.text and not c.long and c.few) for c in columns)
        if known and not sparse:
            options += [self._one_hot] * 2
            if not gaps:
                options.append(self._ordinal)
        if any(text):
            options.append(self._imputer_of_text)
        elif gaps:
            options.append(self._imputer)
        elif sparse:
            options += [
                lambda: leaf("MaxAbsScaler"),
                lambda: leaf("StandardScaler", with_mean=False),
                self._imputer,
            ]
        else:
            if any(column.steady or column.wide for column in columns):
                raise _DeadEndError
            options += [
                self._scaler,
                self._scaler,
                self._scaler,
                lambda: self._pca(dense(Z)),
                self._imputer,
                lambda: self._stateless(columns),
                lambda: leaf(self.pick(_KMEANS), n_clusters=2, random_state=3),
            ]
        if not options:
            raise _DeadEndError
        return self.pick(options)()

    def _scaler(self) -> Leaf:
        return self.pick(
            [
                leaf("StandardScaler"),
                leaf("StandardScaler"),
                leaf("StandardScaler", with_std=False),
                leaf("StandardScaler", with_mean=False),
                leaf("MinMaxScaler"),
                leaf("MinMaxScaler", feature_range=(-1, 1)),
                leaf("MinMaxScaler", clip=True),
                leaf("MaxAbsScaler"),
                leaf("RobustScaler"),
            ]
        )

    def _pca(self, table: Any) -> Leaf:
        """Keep components whose directions are well defined: no two variances are close."""
        _, found, axes = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
        peaks = np.sort(np.abs(axes), axis=1)  # the largest one is made positive
        clear = (
            np.ones(len(axes), bool) if axes.shape[1] < 2 else peaks[:, -1] > 1.01 * peaks[:, -2]
        )
        clear &= found - np.append(found[1:], 0.0) > 0.02 * found[0]
        fit = [k for k in range(1, min(found.size, 3) + 1) if clear[:k].all()]
        if not fit:
            raise _DeadEndError
        return leaf("PCA", n_components=self.pick(fit), whiten=self.chance(0.2))

    def _stateless(self, columns: list[Column]) -> Leaf:
        name = self.pick(list(_STATELESS))
        if name == "Binarizer" and not all(column.gridded for column in columns):
            raise _DeadEndError  # rounding may decide what is above 0
        return leaf(name)

    def _one_hot(self) -> Leaf:
        params = {"sparse_output": self.chance(0.4), "handle_unknown": "ignore"}
        if self.chance(0.4):
            params["drop"] = self.pick(["first", "if_binary"])
        if self.chance(0.2):
            params["handle_unknown"] = "error"
        return leaf("OneHotEncoder", **params)

    def _ordinal(self) -> Leaf:
        return leaf("OrdinalEncoder", handle_unknown="use_encoded_value", unknown_value=-1)

    def _words(self) -> Leaf:
        return leaf(self.pick(["CountVectorizer", "TfidfVectorizer"]))

    def _imputer(self) -> Leaf:
        strategy = self.pick(["mean", "median", "most_frequent", "constant"])
        return leaf("SimpleImputer", strategy=strategy, add_indicator=self.chance(0.3))

    def _imputer_of_text(self) -> Leaf:
        return leaf("SimpleImputer", strategy="most_frequent")

    def _side(self, Z: Any, depth: int) -> Side:
        columns = _columns(Z)
        width, names = len(columns), _names(Z)
        groups = self._groups(columns)
        parts: list[tuple[Node, Any]] = []
        for places in groups:
            told = self._told(places, width, names)
            if len(places) == 1 and columns[places[0]].long:
                parts.append((self._words(), names[places[0]] if names else places[0]))
            elif self.chance(0.1):
                parts.append((self.pick(["passthrough", "drop"]), told))
            elif depth < 1 and self.chance(0.35):
                parts.append((self._row(take(Z, places), depth + 1, most=3)[0], told))
            else:
                node, _ = self._step(take(Z, places), depth + 1)
                parts.append((node, told))
        remainder: Node = self.pick(["drop", "passthrough"])
        return Side(tuple(parts), remainder)

    def _groups(self, columns: list[Column]) -> list[list[int]]:
        """Cut the columns into groups that one transformer can take; a column may be in two."""
        order = self.rng.permutation(len(columns)).tolist()
        text = [j for j in order if columns[j].text and not columns[j].long]
        numbers = [j for j in order if not columns[j].text]
        groups = [group for group in (numbers, text) if group]
        if len(numbers) > 1 and self.chance(0.5):
            cut = int(self.rng.integers(1, len(numbers)))
            groups = [numbers[:cut], numbers[cut:], *([text] if text else [])]
        groups += [[j] for j in order if columns[j].long]
        if self.chance(0.25):
            repeated = self.pick(groups)
            groups.append(repeated[: 1 if columns[repeated[0]].long else None])
        if len(groups) > 1 and self.chance(0.3):
            groups.pop(int(self.rng.integers(len(groups))))
        if self.chance(0.1) and not columns[groups[0][0]].long:
            groups[0] = [*groups[0], groups[0][0]]
        return [groups[j] for j in self.rng.permutation(len(groups)).tolist()]

    def _told(self, places: list[int], width: int, names: list[str] | None) -> Any:
        """Say which columns, in one of the ways in which a user can."""
        ways = ["places"]
        if names is not None:
            ways += ["names", "names"]
        if sorted(places) == places and len(set(places)) == len(places):
            ways.append("mask")
            if places == list(range(places[0], places[-1] + 1)):
                ways.append("slice")
        way = self.pick(ways)
        if way == "names":
            return [names[place] for place in places] if names is not None else places
        if way == "mask":
            return [place in places for place in range(width)]
        if way == "slice":
            return slice(places[0], places[-1] + 1)
        return places

    # -- learners ------------------------------------------------------------------------------

    def _learner(self, Z: Any, labels: str) -> Leaf:
        columns = _columns(Z)
        if any(column.text or column.gaps for column in columns):
            raise _DeadEndError
        numbers = labels == "numbers"
        options = [*(_REGRESSORS if numbers else _CLASSIFIERS), *_CLUSTERERS]
        if self.seed >= KEPT:
            options += [_BOOSTED[numbers], *_OF_OURS[numbers]]
        found: Leaf = self.pick(options)
        late = self.seed >= KEPT and found.name in (
            "BernoulliNB",
            "GaussianNB",
            "ShardedClassifier",
        )
        if late and self.chance(0.5):
            found = leaf("NearestCentroid", priors="empirical")
        positive = all(column.positive for column in columns)
        coded = positive and all(column.whole and column.few for column in columns)
        if coded and labels != "numbers" and not issparse(Z) and self.chance(0.3):
            return _OF_CODES
        if found.name == "MultinomialNB" and not positive:
            raise _DeadEndError
        if issparse(Z) and not get_tags(build(found)).input_tags.sparse:
            raise _DeadEndError
        return found


_CLUSTERERS = [
    leaf("KMeans", n_clusters=3, random_state=0),
    leaf("QuantizedKMeans", n_clusters=2, random_state=0),
    leaf("DivideAndConquerKMeans", n_clusters=2, random_state=0),
]
_OF_CODES = leaf("CategoricalNB", min_categories=8)
_BOOSTED = [
    leaf("HistGradientBoostingClassifier", max_iter=5, random_state=0),
    leaf("HistGradientBoostingRegressor", max_iter=5, random_state=0),
]
_OF_OURS = [
    [
        leaf("ShardedClassifier", estimator="our pipeline", n_shards=2, random_state=0),
        leaf(
            "BaggingClassifier", estimator="our LogisticRegression", n_estimators=2, random_state=0
        ),
    ],
    [
        leaf("ShardedRegressor", estimator="our boosting", n_shards=2, random_state=0),
        leaf("BaggingRegressor", estimator="our Ridge", n_estimators=2, random_state=0),
    ],
]
_CLASSIFIERS = [
    leaf("LogisticRegression"),
    leaf("LogisticRegression", C=100.0, fit_intercept=False),
    leaf("KNeighborsClassifier", n_neighbors=3),
    leaf("KNeighborsClassifier", n_neighbors=1),
    leaf("GaussianNB"),
    leaf("BernoulliNB"),
    leaf("MultinomialNB"),
    leaf("DecisionTreeClassifier", random_state=0),
    leaf("RandomForestClassifier", n_estimators=4, random_state=0),
    leaf("ExtraTreesClassifier", n_estimators=4, random_state=0),
    leaf("BaggingClassifier", estimator="sk.LogisticRegression", n_estimators=2, random_state=0),
    leaf("ShardedClassifier", estimator="sk.LogisticRegression", n_shards=2, random_state=0),
    leaf("Refit", estimator="sk.LogisticRegression", random_state=0),
    leaf("Refit", estimator="sk.DecisionTreeClassifier", random_state=0),
]
_REGRESSORS = [
    leaf("LinearRegression"),
    leaf("Ridge"),
    leaf("Ridge", alpha=0.1, fit_intercept=False),
    leaf("SegmentedRegression", n_segments=2, alpha=0.5, random_state=0),
    leaf("RandomFourierRidge", n_components=20, random_state=0),
    leaf("NadarayaWatson", bandwidth=1.5),
    leaf("KNeighborsRegressor", n_neighbors=3),
    leaf("DecisionTreeRegressor", random_state=0),
    leaf("RandomForestRegressor", n_estimators=4, random_state=0),
    leaf("ExtraTreesRegressor", n_estimators=4, random_state=0),
    leaf("BaggingRegressor", estimator="sk.Ridge", n_estimators=2, random_state=0),
    leaf("ShardedRegressor", estimator="sk.Ridge", n_shards=2, random_state=0),
    leaf("Refit", estimator="sk.Ridge", random_state=0),
]


def _columns(Z: Any) -> list[Column]:
    if isinstance(Z, pd.DataFrame | pl.DataFrame):
        return [_column(np.array(list(Z[name]), dtype=object)) for name in Z.columns]
    return [_column(column) for column in dense(Z).T]


def _nameless(X: Any) -> Any:
    """Return a table without names, which a k-means draws its phases by: steps hand on none."""
    return X if issparse(X) else dense(X)


def _names(Z: Any) -> list[str] | None:
    return list(Z.columns) if hasattr(Z, "columns") else None


def _polars(values: Any) -> Any:
    cells = [None if cell != cell else cell for cell in values.tolist()]
    return pl.Series(cells, strict=False)


def _sparse(node: Node, given: bool) -> bool:
    """Tell whether erasable's output is sparse: wherever that of any part is."""
    if isinstance(node, str):
        return given
    if isinstance(node, Row):
        for step in node.steps:
            given = _sparse(step, given)
        return given
    if isinstance(node, Side):
        parts = [part for part, _ in node.parts if part != "drop"]
        rest = [] if node.remainder == "drop" else [node.remainder]
        return any(_sparse(part, given) for part in [*parts, *rest])
    if node.name == "OneHotEncoder":
        return dict(node.params)["sparse_output"]
    if node.name in ("CountVectorizer", "TfidfVectorizer"):
        return True
    return given and node.name in ("MaxAbsScaler", "StandardScaler", "SimpleImputer")
