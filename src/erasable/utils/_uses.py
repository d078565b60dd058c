"""Uses of all estimators with a few records, so that all kernels are called, and so compiled.

A kernel is compiled for the types of its arguments: double and single precision, dense and sparse
records.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import erasable
from erasable.core import _jit
from erasable.core._byte_kernels import add_counts, next_pair
from erasable.core._byte_search import ByteSearch, packed_blocks
from erasable.core._token_search import TokenSearch
from erasable.core._vector_search import VectorSearch
from erasable.core.errors import InvalidInputError, InvalidTypeError, TooFewRecordsError
from erasable.core.records import Records

_N, _D = 240, 4
_FEW = 40  # where all pairs are compared, or all are left out
_COUNTS = (
    "BernoulliNB", "CategoricalNB", "ItemNeighbors", "MultinomialNB", "OneHotEncoder",
    "OrdinalEncoder",
)  # fmt: skip
_TEXTS = ("CountVectorizer", "TfidfVectorizer")
_FORESTS = ("ExtraTrees", "RandomForest")
_OTHERWISE: dict[str, dict[str, Any]] = {  # parameters with kernels of their own
    "CountVectorizer": {"min_df": 2, "max_features": 30},
    # With few edges, so that records leave without one, and trees are not grown again.
    "HistGradientBoostingClassifier": {"max_bins": 4, "random_state": 0},
    "HistGradientBoostingRegressor": {"max_bins": 4, "random_state": 0},
    "ItemNeighbors": {"n_neighbors": 2},
    "KNeighborsClassifier": {"algorithm": "brute"},
    "RandomForestClassifier": {
        "n_estimators": 2, "random_state": 0, "min_impurity_decrease": 1e-3,
    },
    "RandomForestRegressor": {"n_estimators": 2, "random_state": 0, "min_impurity_decrease": 1e-3},
    "StandardScaler": {"with_mean": False, "quantize": True},
    "TfidfVectorizer": {"min_df": 2, "max_features": 30},
}  # fmt: skip


# -- estimators ------------------------------------------------------------------------------------


def use_estimator(name: str, home: str, kind: str, meta: bool) -> None:
    """Use an estimator on all kinds of records that it takes.

    If `meta`, it is made of others, and is used on one kind: the kernels are those of the others.
    """
    cls = getattr(importlib.import_module(home), name)
    X, y = _records(name, kind)
    _use(_made(name, cls), X, y)
    _use_in_files(_made(name, cls), X, y)
    if name in _OTHERWISE:
        _use(cls(**_OTHERWISE[name]), X, y)
    if name == "HistGradientBoostingRegressor":
        _use(cls(loss="poisson", max_iter=2, random_state=0), X, np.abs(y))
    if name in _TEXTS or meta:
        return
    rng = np.random.default_rng(1)
    sparse = np.where(rng.random(X.shape) < 0.5, X, 0)
    sparse[:, 0] = 3  # a column without zeros
    sparse[:9, 0] = 4
    _use(_made(name, cls), X.astype(np.float32), y)
    with contextlib.suppress(InvalidTypeError):  # where no sparse records are taken
        for table in (csr_array(sparse), csr_array(sparse.astype(np.float32))):
            _use(cls(**_OTHERWISE[name]) if name in _OTHERWISE else _made(name, cls), table, y)
        _use_in_files(_made(name, cls), csr_array(sparse), y)
    for table in (X, csr_array(sparse)):
        with contextlib.suppress(InvalidTypeError):
            if kind == "classifier":
                _use(_made(name, cls), table, np.arange(_N) % 3)
            if name in ("GaussianNB", "MultinomialNB", "StandardScaler"):
                made = cls(**_OTHERWISE[name]) if name in _OTHERWISE else _made(name, cls)
                _use(made, table, y, sample_weight=np.arange(_N) % 3 + 1.0)


def _use(estimator: Any, X: Any, y: Any, **params: Any) -> None:
    """Fit, predict and delete: a few records, and those of the extremes of each column."""
    model = estimator.fit(X, *(() if y is None else (y,)), **params)
    for method in ("transform", "predict", "predict_proba", "score_samples", "recommend"):
        with contextlib.suppress(AttributeError, NotImplementedError):
            getattr(model, method)(X[:20])
    for attribute in ("feature_importances_", "labels_"):
        getattr(model, attribute, None)
    if hasattr(model, "similar_items"):
        model.similar_items(0)
    gone: list[Any] = [[3], [5], [7, 8], [9]]
    if not isinstance(X, list):
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        extreme = {*dense.argmax(axis=0).tolist(), *dense.argmin(axis=0).tolist()}
        gone += [[row] for row in sorted(extreme - {3, 5, 7, 8, 9})]
    for ids in gone:
        with contextlib.suppress(TooFewRecordsError):
            model.delete(ids)
        _jit.wait()
    model.digest()
    _add(model, X, y)


def _add(model: Any, X: Any, y: Any) -> None:
    """Add a record like those that are there, and one with values beyond theirs."""
    for number, times in enumerate((1,) if isinstance(X, list) else (1, 100)):
        record = X[[number]] * times if times > 1 else X[number : number + 1]
        with contextlib.suppress(InvalidInputError):  # where no such value is taken
            model.add(record, None if y is None else y[:1], ids=[_N + number], digest=False)
        _jit.wait()


def _use_in_files(estimator: Any, X: Any, y: Any) -> None:
    """Delete from models in files, with ids that are texts."""
    named = np.array([f"visit-{i}" for i in range(_N)])
    model = estimator.fit(X, *(() if y is None else (y,)), ids=named)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        model.save(path, records=True)
        for gone in (["visit-3"], ["visit-7", "visit-8"]):
            again = erasable.load(path, True)
            again.delete(gone)
            again.save(path, records=True)
        model.save(path)
        again = erasable.load(path, (X, named) if y is None else (X, y, named, None))
        again.delete(["visit-3"])
        again.digest()


def _records(name: str, kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X: Any = rng.normal(size=(_N, _D))
    X[10] = 1e3  # grids get finer without it
    amount = X @ np.arange(1.0, _D + 1)
    y: Any = {"classifier": (amount > 0).astype(np.int64), "regressor": amount}.get(kind)
    if name in _COUNTS:
        X = rng.integers(0, 5, size=(_N, _D))
        X[10] += 60 if name == "MultinomialNB" else 0
        if name == "CategoricalNB":
            X[:8] = 4  # the deleted ones are not the last of a category
        if name == "ItemNeighbors":
            X[:, -1] = 0
            X[[0, 5], -1] = 1  # pairs go with these records, and the first is added again
    if name in _TEXTS:
        X = [" ".join(f"word{i}" for i in row) for row in rng.integers(0, 40, (_N, 12))]
    if name == "Refit":
        y = amount
    return X, y


def _made(name: str, cls: Any) -> Any:
    if name.startswith(_FORESTS):
        return cls(n_estimators=3, random_state=0)
    if name.endswith("KMeans"):
        return cls(n_clusters=3, random_state=0)
    if name == "Pipeline":
        return importlib.import_module("erasable.pipeline").make_pipeline(
            _of("preprocessing", "StandardScaler"), _of("cluster", "KMeans", 3, random_state=0)
        )
    if name == "ColumnTransformer":
        return cls([("scale", _of("preprocessing", "StandardScaler"), [0, 1])])
    if name.startswith(("Bagging", "Sharded")) or name == "Refit":
        tree = "DecisionTreeClassifier" if name.endswith("Classifier") else "DecisionTreeRegressor"
        base = getattr(importlib.import_module("sklearn.tree"), tree)(max_depth=3)
        return cls(base, random_state=0)
    return cls()


def _of(home: str, name: str, *args: Any, **params: Any) -> Any:
    return getattr(importlib.import_module(f"erasable.{home}"), name)(*args, **params)


# -- others ----------------------------------------------------------------------------------------


def _select() -> None:
    """Choose records before training, whether all of them stay or some may leave."""
    of = importlib.import_module("erasable.selection")
    X, y = (each[:_FEW] for each in _records("", "classifier"))
    binned = (X > 0).astype(np.int64)
    owners = of.Groups(np.arange(_FEW) // 3, 0.7)
    for utility, table in (
        (of.NearestNeighbor(), X),
        (of.NearestNeighbor(n_neighbors=8), X),
        (of.NaiveBayes(), binned),
        (of.MutualInformation(), X),
        (of.VarianceReduction(), X),
    ):
        for staying in (1.0, 0.7, of.BetaBinomial(2.0, 1.0), owners):
            of.SubsetSelector(utility, k=4, staying=staying, random_state=0).fit(table, y)
        of.SubsetSelector(utility, k=4, optimizer="greedy").fit(table, y)
        of.SubsetSelector(utility, k=4, staying=0.7, objective=of.CVaR(0.5), random_state=0).fit(
            table, y
        )
    for table in (X, X.astype(np.float32)):
        of.SubsetSelector(k=4, staying=0.7).fit(Records(table, y)).value()
    for weights in ("shapley", 0.7):
        of.semivalues(of.NearestNeighbor(), X, y, weights=weights)


def _remove() -> None:
    """Remove a domain by each of the scores."""
    of = importlib.import_module("erasable.removal")
    X, y = _records("", "classifier")
    for table in (X, X.astype(np.float32), csr_array(np.where(X > 0, X, 0))):
        for score in of.SCORES:
            removal = of.DomainRemoval(score, budget=0.3, random_state=0)
            with contextlib.suppress(InvalidInputError):  # of those that take no sparse records
                removal.fit(table[y == 1], table[y == 0])
                getattr(removal, "frontier_", None)
    removal = of.DomainRemoval(budget=0.3, covariance="free")
    removal.fit(X[y == 1], X[y == 0]).frontier_  # noqa: B018


def _use_parquet() -> None:
    """Learn from records in a file that are read block by block."""
    if importlib.util.find_spec("pyarrow") is None:
        return  # no file can be read
    arrow, parquet = (importlib.import_module(f"pyarrow{part}") for part in ("", ".parquet"))
    X, y = _records("", "regressor")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.parquet")
        table = {"id": np.arange(_N), "y": y} | {f"x{j}": X[:, j] for j in range(_D)}
        parquet.write_table(arrow.table(table), path, row_group_size=_N // 3)
        for model in (
            _of("cluster", "KMeans", 3, random_state=0),
            _of("cluster", "QuantizedKMeans", 3, random_state=0),
            _of("linear_model", "Ridge"),
        ):
            records = Records.from_parquet(path, ids="id", target="y")
            model.fit(records)
            model.delete([3, 5])
            model.digest()
        kernel = _of("kernel", "NadarayaWatson").fit(
            Records.from_parquet(path, ids="id", target="y")
        )
        kernel.predict(X[:20])
        kernel.delete([3, 5])
        kernel.predict(X[:20])


def _use_threads() -> None:
    """Fit on enough records for several threads."""
    X, _ = _records("", "clusterer")
    _of("cluster", "KMeans", 3, random_state=0, n_jobs=2).fit(np.tile(X, (140, 1)))


def _connect() -> None:
    """Fit a step on the output of a text step."""
    X, _ = _records("CountVectorizer", "transformer")
    steps = _of("feature_extraction", "TfidfVectorizer"), _of("naive_bayes", "MultinomialNB")
    _use(_of("pipeline", "make_pipeline", *steps), X, np.arange(_N) % 2)


def _leave_out() -> None:
    """Predict every record by the model that has never seen it."""
    of = importlib.import_module("erasable.model_selection")
    X, y = _records("", "regressor")
    of.leave_one_out(_of("linear_model", "Ridge"), X[:_FEW], y[:_FEW])


def _search() -> None:
    """Search bytes, and decode a packed block."""
    ByteSearch([b"a longer string", b"shorter"]).look_at(bytes(_N))
    for _ in packed_blocks(bytes(_N)):
        pass
    [*TokenSearch([b"word"], [7]).among(bytes(_N))]
    VectorSearch([np.arange(1.0, 10)]).look_at(bytes(_N))
    next_pair(np.frombuffer(bytes(_N), dtype=np.uint8), 0, _N, np.zeros(1 << 16, dtype=np.bool_))
    add_counts(np.frombuffer(bytes(_N), dtype=np.uint8), np.zeros((4, 256), dtype=np.int64))


USES: dict[str, Callable[[], None]] = {
    "selection": _select,
    "removal": _remove,
    "Parquet": _use_parquet,
    "leave-one-out": _leave_out,
    "threads": _use_threads,
    "texts": _connect,
    "search of files": _search,
}
"""Functions for `erasable.utils.compiling.ELSE`."""
