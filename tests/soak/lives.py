"""Random lives of models that delete, and what has to be true of each: the law, on small data.

A life is a function of its number: data with ties, repeats and constant columns, an estimator of a
room with drawn parameters, and a dozen events: deletions in batches of every size, calls that fail,
interrupts, questions, files and pickles. After each the model is what a fit to the records that are
left makes, in another order of rows.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import linear_model, naive_bayes
from sklearn import tree as peers
from sklearn.base import clone, is_classifier

import erasable
from erasable import ensemble, kernel, neighbors, tree
from erasable.core.errors import ErasableError, InvalidIdsError, UnknownIdError
from erasable.core.records import Records
from interruptions import interrupt

__all__ = ["ROOMS", "Life"]

Draw = Callable[[np.random.Generator], Any]
EVENTS = 8
FAR = 10.0**9


def _one(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


# -- estimators ------------------------------------------------------------------------------------


def _neighbors(rng: np.random.Generator) -> Any:
    cls = _one(rng, neighbors.KNeighborsClassifier, neighbors.KNeighborsRegressor)
    if rng.random() < 0.2:
        return kernel.NadarayaWatson(_one(rng, 0.3, 1.0, 2.0))
    return cls(
        int(rng.integers(1, 6)),
        weights=_one(rng, "uniform", "distance"),
        algorithm=_one(rng, "auto", "brute", "kd_tree"),
        leaf_size=int(rng.integers(1, 20)),
    )


def _rules(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "max_depth": _one(rng, None, 1, 3, 8),
        "max_features": _one(rng, None, 1, "sqrt", 0.5),
        "min_impurity_decrease": _one(rng, 0.0, 0.0, 1e-3),
        "min_samples_leaf": _one(rng, 1, 1, 5, 0.02),
        "min_samples_split": _one(rng, 2, 2, 10, 0.1),
        "n_thresholds": _one(rng, 1, 2, 16, 128),
        "random_state": int(rng.integers(1000)),
    }


def _of_trees(rng: np.random.Generator, classifier: Any, regressor: Any, **options: Any) -> Any:
    if rng.random() < 0.5:
        return regressor(**_rules(rng), **options)
    criterion, weight = _one(rng, "gini", "entropy"), _one(rng, None, None, "balanced")
    return classifier(criterion=criterion, class_weight=weight, **_rules(rng), **options)


def _trees(rng: np.random.Generator) -> Any:
    return _of_trees(rng, tree.DecisionTreeClassifier, tree.DecisionTreeRegressor)


def _forests(rng: np.random.Generator) -> Any:
    pair = _one(
        rng,
        (ensemble.RandomForestClassifier, ensemble.RandomForestRegressor),
        (ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor),
    )
    n_trees, bootstrap = int(rng.integers(1, 6)), bool(rng.integers(2))
    return _of_trees(rng, *pair, n_estimators=n_trees, bootstrap=bootstrap)


def _boosting(rng: np.random.Generator) -> Any:
    cls = _one(rng, ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor)
    return cls(
        learning_rate=_one(rng, 0.05, 0.2, 1.0),
        max_iter=int(rng.integers(1, 12)),
        max_depth=_one(rng, 1, 3, 5, None),
        min_samples_leaf=_one(rng, 1, 3, 20),
        l2_regularization=_one(rng, 0.0, 1.5),
        max_bins=_one(rng, 2, 8, 255),
        n_thresholds=_one(rng, 1, 4, 16),
        categorical_features=_one(rng, None, None, [0]),
        early_stopping=_one(rng, False, False, True),
        validation_fraction=0.2,
        n_iter_no_change=int(rng.integers(1, 4)),
        random_state=int(rng.integers(1000)),
    )


def _shards(rng: np.random.Generator) -> Any:
    seed, n_shards = int(rng.integers(1000)), int(rng.integers(1, 5))
    cls, parts, sliced = _one(
        rng,
        (ensemble.ShardedClassifier, peers.DecisionTreeClassifier(max_depth=3), False),
        (ensemble.ShardedClassifier, naive_bayes.GaussianNB(), True),
        (ensemble.ShardedRegressor, peers.DecisionTreeRegressor(max_depth=3), False),
        (ensemble.ShardedRegressor, linear_model.SGDRegressor(eta0=1e-9), True),
    )
    slices = int(rng.integers(1, 4)) if sliced else 1
    return cls(parts, n_shards, n_slices=slices, random_state=seed)


def _bags(rng: np.random.Generator) -> Any:
    cls, parts = _one(
        rng,
        (ensemble.BaggingClassifier, peers.DecisionTreeClassifier(max_depth=3)),
        (ensemble.BaggingRegressor, linear_model.LinearRegression()),
    )
    share, columns = _one(rng, 1.0, 0.3), _one(rng, 1.0, 0.5)
    seed = int(rng.integers(1000))
    return cls(parts, 3, max_samples=share, max_features=columns, random_state=seed)


ROOMS: dict[str, Draw] = {
    "neighbours": _neighbors,
    "trees": _trees,
    "forests": _forests,
    "boosting": _boosting,
    "shards": _shards,
    "bags": _bags,
}


# -- data ------------------------------------------------------------------------------------------


def _table(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    X = rng.normal(size=(n, int(rng.integers(2, 5))))
    kind = int(rng.integers(5))
    if kind == 0:
        X = np.round(X)  # ties in every column, and in distances
    elif kind == 1:
        X = X[rng.integers(0, max(2, n // 4), size=n)]  # whole records repeat
    elif kind == 2:
        X[rng.random(X.shape) < 0.8] = 0.0
    elif kind == 3:
        X[:, -1] = 3.0
        X[0, 0] = FAR  # scales the thresholds of its column until it goes
    return X


def _target(rng: np.random.Generator, X: NDArray[np.float64], classes: bool) -> NDArray[Any]:
    if not classes:
        return np.round(2.0 * X[:, -1] + rng.normal(size=len(X)), int(rng.integers(0, 6)))
    y = (X[:, 0] > np.median(X[:, 0])) + rng.integers(0, 2, size=len(X))
    y[rng.integers(len(X))] = 7  # a class of one record
    return np.array([f"class {code}" for code in y], dtype=object) if rng.random() < 0.3 else y


# -- lives -----------------------------------------------------------------------------------------


class Life:
    """A model, the records that it was fitted to, and which of these are left.

    Parameters
    ----------
    room : str
        Which estimators it is drawn from.
    number : int
        Everything else is drawn from this.
    """

    def __init__(self, room: str, number: int) -> None:
        self.rng = rng = np.random.default_rng([sorted(ROOMS).index(room), number])
        self.name, self.deletions = f"{room} {number}", 0
        n = int(_one(rng, 15, 60, 250))
        made = ROOMS[room](rng)
        self.X = _table(rng, n)
        self.y = _target(rng, self.X, is_classifier(made))
        self.ids: NDArray[Any] = np.arange(100, 100 + n)
        if rng.random() < 0.5:
            self.ids = np.array([f"record {i}" for i in range(n)], dtype=object)
        self.groups = rng.integers(0, max(2, n // 5), size=n) if rng.random() < 0.5 else None
        self.left = np.arange(n)
        self.model = self.refit(made)

    def records(self, rows: NDArray[np.int64]) -> Records:
        groups = None if self.groups is None else self.groups[rows]
        return Records(self.X[rows], self.y[rows], ids=self.ids[rows], groups=groups)

    def refit(self, model: Any) -> Any:
        return clone(model).fit(self.records(self.rng.permutation(self.left)))

    def run(self) -> int:
        """Live; return how many deletions there were."""
        for _ in range(EVENTS):
            event = _one(
                self.rng, self.delete, self.delete, self.delete, self.delete_a_group,
                self.be_refused, self.be_interrupted, self.ask, self.be_loaded, self.be_pickled,
            )  # fmt: skip
            try:
                event()
            except ErasableError:  # too few records are left, or none that a member can learn from
                break
            self.check(event.__name__)
        self.check_whole()
        return self.deletions

    # -- events ------------------------------------------------------------------------------------

    def choose(self) -> NDArray[np.int64]:
        """Choose records to delete: one, many, the largest, or nearly all of a class."""
        left, rng = self.left, self.rng
        how = int(rng.integers(4))
        if how == 0:
            return rng.choice(left, 1)
        if how == 1:
            return rng.choice(left, int(rng.integers(1, 1 + max(1, left.size // 2))), replace=False)
        if how == 2:
            return left[np.argsort(self.X[left, 0], kind="stable")][-3:]
        alike = left[self.y[left] == self.y[left[0]]]
        return alike[: max(1, alike.size - int(rng.integers(2)))]

    def gone(self, rows: NDArray[np.int64]) -> None:
        self.left = np.setdiff1d(self.left, rows)
        self.deletions += 1

    def delete(self) -> None:
        rows = self.choose()
        self.attempt(lambda: self.model.delete(self.ids[rows], digest=False))
        self.gone(rows)

    def delete_a_group(self) -> None:
        if self.groups is None:
            return
        group = self.groups[self.left[0]]
        self.attempt(lambda: self.model.delete(groups=[group], digest=False))
        self.gone(self.left[self.groups[self.left] == group])

    def attempt(self, action: Callable[[], Any]) -> None:
        """Do something that may be refused, and then changes nothing."""
        before = self.model.digest() if self.rng.random() < 0.5 else None
        try:
            action()
        except ErasableError:
            assert before in (None, self.model.digest()), f"{self.name}: a refusal changed it"
            raise

    def be_refused(self) -> None:
        known = self.ids[self.left[0]]
        gone = np.setdiff1d(np.arange(self.ids.size), self.left)
        unknown = self.ids[gone[0]] if gone.size else type(known)(999)
        before = self.model.digest()
        with pytest.raises(UnknownIdError):
            self.model.delete([known, unknown])
        with pytest.raises(InvalidIdsError):
            self.model.delete([known, known])
        assert self.model.digest() == before, f"{self.name}: a refusal changed it"

    def be_interrupted(self) -> None:
        rows = self.choose()
        interrupt(
            lambda: self.model.delete(self.ids[rows], digest=False), int(self.rng.integers(1500))
        )
        there = np.isin(self.ids[rows], self.model.ids_)
        assert there.all() or not there.any(), f"{self.name}: half is deleted; {self.model}"
        if not there.any():
            self.gone(rows)

    def ask(self) -> None:
        self.model.predict(self.X[self.left[:5]])

    def be_loaded(self) -> None:
        kept = self.records(np.sort(self.left))
        self.model = erasable.load(io.BytesIO(saved(self.model)), kept)

    def be_pickled(self) -> None:
        self.model = pickle.loads(pickle.dumps(self.model))

    # -- what has to be true -----------------------------------------------------------------------

    share = 0.5  # of events after which the whole model is compared

    def check(self, event: str) -> None:
        if self.rng.random() < self.share:
            same = self.model.digest() == self.refit(self.model).digest()
            assert same, f"{self.name}: another model after {event}; {self.model}"

    def check_whole(self) -> None:
        fresh = self.refit(self.model)
        assert fresh.digest() == self.model.digest(), f"{self.name}: another model; {fresh}"
        assert saved(fresh) == saved(self.model), f"{self.name}: another file; {fresh}"
        answers = [told(each, self.X) for each in (fresh, self.model)]
        assert answers[0] == answers[1], f"{self.name}: other answers; {fresh}"


def saved(model: Any) -> bytes:
    held = io.BytesIO()
    model.save(held)
    return held.getvalue()


def told(model: Any, X: NDArray[np.float64]) -> list[Any]:
    """Return what a model predicts, or how it refuses to: far off, kernels have no record."""
    try:
        return list(model.predict(X).tolist())
    except ErasableError as error:
        return [str(error)]
