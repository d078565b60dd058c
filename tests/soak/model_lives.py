"""Random lives of models, held against fresh fits: ``python tests/soak/model_lives.py --seed 2``.

A life is a function of its number: an estimator or a composition, records, the container that they
come in, and steps. A step changes the records (`delete`, `add`, `correct`, `replace`), keeps the
model and brings it back (files, pickles, copies), reads from it, is refused or interrupted, or lets
a process die inside `save`. The generator knows by itself which records are left, as plain Python
values. After every step the model is held against a fit on these: state, digest, file and answers;
and nothing of a record that left may be found in its memory or in its files.

Ends with 1 where a life broke one of these; prints for each the command that repeats it, with as
few steps as still show it.
"""

# ruff: noqa: E402  # what is imported is found once `sys.path` has it

from __future__ import annotations

import argparse
import copy
import functools
import io
import json
import multiprocessing
import os
import pickle
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "compositions"), str(ROOT / "workspace")]

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from grammar import Row, Side, Writer, build, dense, leaves
from scipy.sparse import csc_array, csr_array
from sklearn import linear_model, naive_bayes
from sklearn import tree as peers
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from traces import contents

import erasable
from erasable import Records, all_estimators, cluster, ensemble, kernel, load, neighbors, tree
from erasable.audit import equality
from erasable.core.errors import (
    DetachedError,
    ErasableError,
    InvalidIdsError,
    TooFewRecordsError,
    UnknownIdError,
)
from erasable.core.tape import Tape
from erasable.core.values import Accepts
from erasable.pipeline import Pipeline
from erasable.utils._checks.compare import assert_same, differing, outputs, saved, seeded
from erasable.utils._checks.reach import reachable
from interruptions import count_events, interrupt
from law_instances import instances_of

__all__ = ["KINDS", "BrokenError", "Life", "live", "main"]

STRIDE, STEPS = 10_000_000, 10
"""So many lives does each soak have for itself, and so many steps has each of them."""


# -- estimators ------------------------------------------------------------------------------------


def _one(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _neighbors(rng: np.random.Generator) -> Any:
    cls = _one(rng, neighbors.KNeighborsClassifier, neighbors.KNeighborsRegressor)
    if rng.random() < 0.2:
        return kernel.NadarayaWatson(_one(rng, 0.3, 1.0, 2.0))
    if rng.random() < 0.2:
        return neighbors.KernelDensity(bandwidth=_one(rng, 0.3, 2.0, "scott"))
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
        (ensemble.ShardedClassifier, tree.DecisionTreeClassifier(max_depth=3), False),
        (ensemble.ShardedRegressor, peers.DecisionTreeRegressor(max_depth=3), False),
        (ensemble.ShardedRegressor, linear_model.SGDRegressor(eta0=1e-9), True),
        (ensemble.ShardedRegressor, tree.DecisionTreeRegressor(max_depth=3), False),
    )
    slices = int(rng.integers(1, 4)) if sliced else 1
    return cls(parts, n_shards, n_slices=slices, random_state=seed)


def _bags(rng: np.random.Generator) -> Any:
    cls, parts = _one(
        rng,
        (ensemble.BaggingClassifier, peers.DecisionTreeClassifier(max_depth=3)),
        (ensemble.BaggingClassifier, tree.DecisionTreeClassifier(max_depth=3)),
        (ensemble.BaggingRegressor, linear_model.LinearRegression()),
        (ensemble.BaggingRegressor, tree.DecisionTreeRegressor(max_depth=3)),
    )
    share, columns = _one(rng, 1.0, 0.3), _one(rng, 1.0, 0.5)
    seed = int(rng.integers(1000))
    return cls(parts, 3, max_samples=share, max_features=columns, random_state=seed)


def _clusters(rng: np.random.Generator) -> Any:
    k, seed = int(rng.integers(1, 5)), int(rng.integers(1000))
    if rng.random() < 0.6:
        shape = {"height": int(rng.integers(1, 4)), "width": _one(rng, None, 2, 3)}
        by_mass = bool(rng.integers(2))
        return cluster.DivideAndConquerKMeans(k, weight_by_mass=by_mass, random_state=seed, **shape)
    rounds = _one(rng, 1, 10, 50)
    if rng.random() < 0.5:
        return cluster.QuantizedKMeans(k, max_iter=rounds, random_state=seed)
    return cluster.KMeans(k, max_iter=rounds, tol=_one(rng, 0.0, 1e-3), random_state=seed)


def _listed(rng: np.random.Generator) -> Any:
    """Draw one of all estimators, with the parameters by which the law is tested."""
    every = [each for each in all_estimators() if each[0] != "Embedding"]
    return clone(_one(rng, *instances_of(*_one(rng, *every))))


DRAWN: dict[str, Callable[[np.random.Generator], Any]] = {
    "listed": _listed,
    "neighbours": _neighbors,
    "trees": _trees,
    "forests": _forests,
    "boosting": _boosting,
    "shards": _shards,
    "bags": _bags,
    "clusters": _clusters,
}
KINDS = ("composed", *DRAWN)
"""What a life can be about; a composition is a sentence of tests/compositions."""

_SHARES = np.array([0.32, 0.32, *[0.36 / (len(DRAWN) - 1)] * (len(DRAWN) - 1)])


# -- records ---------------------------------------------------------------------------------------


class Record(NamedTuple):
    """What is known of one record, in plain values."""

    cells: tuple[Any, ...]
    y: Any
    weight: float
    group: Any


Rows: TypeAlias = dict[Any, Record]

FRAMES = ("pandas", "polars", "arrow")
NAMES = ["the age", 'a "b"', "größe", "0", "x y'z", "class", "π/2", "a.b", "__x", "tab\t", "-1"]
"""Names of columns that are not identifiers."""

POOL = 200
"""How many records a life chooses among."""


@dataclass(frozen=True)
class Subject:
    """What a life is about.

    Attributes
    ----------
    estimator : estimator
        Not fitted; its seeds are fixed.
    names : list of str
        Of the columns, where they come in frames.
    cells, y : lists of equal length
        Of which records are made.
    containers : tuple of str
        Those that may hold them.
    has_files : bool
        Whether a file can hold the model.
    """

    estimator: Any
    names: list[str]
    cells: list[tuple[Any, ...]]
    y: list[Any]
    containers: tuple[str, ...]
    has_files: bool = True


def marked(rng: np.random.Generator, n: int, scale: int = 22) -> list[float]:
    """Draw numbers that a grid of 26 bits and float32 hold, and that are no coincidence."""
    odd = 2 * rng.integers(-(2**23), 2**23, size=n) + 1
    return [float(value) for value in odd / 2.0**scale]


def _column(rng: np.random.Generator, kind: str, n: int) -> list[Any]:
    found = marked(rng, n, int(rng.integers(10, 26)))
    if kind == "normal":
        return [float(value) for value in rng.normal(size=n)]
    if kind == "tied":
        return [float(value) for value in np.round(rng.normal(size=n) * 2)]
    if kind == "constant":
        return [3.75] * n
    if kind == "zeros":
        return [value if rng.random() < 0.3 else 0.0 for value in found]
    if kind == "far":
        return [10.0**9, *found[1:]]
    if kind == "gaps":
        return [float("nan") if rng.random() < 0.2 else value for value in found]
    if kind in ("codes", "counts"):
        return [float(value) for value in rng.integers(0, 5, size=n)]
    if kind == "whole":
        return [int(value) for value in rng.integers(-4, 5, size=n)]
    if kind == "flags":
        return [bool(value) for value in rng.integers(0, 2, size=n)]
    if kind == "words":
        words = [f"town{number:08d}" for number in rng.integers(10**8, size=9)]
        return [words[min(int(rng.exponential(2.5)), 8)] for _ in range(n)]
    if kind == "documents":
        words = [f"word{number:08d}" for number in rng.integers(10**8, size=40)]
        return [" ".join(rng.choice(words, size=5).tolist()) for _ in range(n)]
    return found


def _subject(rng: np.random.Generator, estimator: Any, n: int) -> Subject:
    """Draw records that suit an estimator, by its tags."""
    tags, accepts = get_tags(estimator), Accepts.of(estimator)
    containers: tuple[str, ...] = ("array", "fortran", "float32", "list", "objects", *FRAMES)
    kinds = ["marked", "marked", "marked", "normal", "tied", "constant", "zeros", "far"]
    if accepts.documents:
        kinds, containers = ["documents"], ("list", "objects", *FRAMES)
    elif tags.input_tags.positive_only:
        kinds = ["codes"] if tags.input_tags.categorical else ["marked", "counts", "zeros"]
    elif accepts.objects and rng.random() < 0.7:
        mixed = [["words"], ["words", "marked"], ["whole", "flags", "tied"], ["whole"]]
        kinds, containers = _one(rng, *mixed), ("objects", "objects", *FRAMES)
    elif accepts.missing and rng.random() < 0.5:
        kinds.append("gaps")
    width = 1 if accepts.documents else int(rng.integers(2, 5))
    columns = [_column(rng, _one(rng, *kinds), n) for _ in range(width)]
    if tags.input_tags.positive_only:
        columns = [[abs(value) for value in column] for column in columns]
    if accepts.sparse and not accepts.documents and not _has_text(columns):
        containers = (*containers, "csr", "csc")
    names = rng.permutation(NAMES).tolist()[:width]
    y = _targets(rng, estimator, columns[0])
    return Subject(estimator, names, list(zip(*columns, strict=True)), y, containers)


def _has_text(columns: Iterable[Iterable[Any]]) -> bool:
    return any(isinstance(cell, str) for column in columns for cell in column)


def _targets(rng: np.random.Generator, estimator: Any, column: list[Any]) -> list[Any]:
    n = len(column)
    if is_classifier(estimator):
        text = any(isinstance(cell, str) for cell in column)
        ranks = np.argsort(np.argsort(np.array(column, dtype=str if text else np.float64)))
        codes = ranks * int(rng.integers(2, 4)) // n + (rng.random(n) < 0.1)
        codes[int(rng.integers(n))] = 3  # a class of one record
        kind = _one(rng, "int", "int", "text", "negative")
        if kind == "text":
            return [f"class{code}-70135{code}" for code in codes.tolist()]
        return [int(code) - 5 * (kind == "negative") for code in codes.tolist()]
    if is_regressor(estimator) or rng.random() < 0.5:
        return marked(rng, n) if rng.random() < 0.6 else _column(rng, "tied", n)
    return [None] * n


def _composed(rng: np.random.Generator) -> Subject:
    """Draw a sentence: a composition, and a table that suits it."""
    sentence = Writer(int(rng.integers(STRIDE, 2**40))).write()
    node, X = sentence.node, sentence.X
    containers: tuple[str, ...] = {
        "dense": ("array", "fortran", "float32", "list", "objects"),
        "sparse": ("csr", "csc"),
        "objects": ("objects",),
    }.get(sentence.kind, FRAMES)
    columns = [list(X[name]) for name in X.columns] if containers is FRAMES else list(dense(X).T)
    columns = [_with_marks(rng, _plain(column)) for column in columns]
    names = [str(j) for j in range(len(columns))]
    if containers is FRAMES:
        names = rng.permutation(NAMES).tolist()[: len(columns)]
        node = _renamed(node, dict(zip(X.columns, names, strict=True)))
    estimator = seeded(build(node))
    if sentence.learner and rng.random() < 0.15:
        estimator = _several(rng, estimator)
    cells, y = list(zip(*columns, strict=True)), _plain(sentence.y)
    has_files = all(each.name != "fliplr" for each in leaves(node))
    return Subject(estimator, names, cells, y, containers, has_files)


def _several(rng: np.random.Generator, model: Any) -> Any:
    """Make a composition a member of an ensemble, where there is one for its kind."""
    if is_classifier(model):
        kinds: Any = (ensemble.ShardedClassifier, ensemble.BaggingClassifier)
    elif is_regressor(model):
        kinds = (ensemble.ShardedRegressor, ensemble.BaggingRegressor)
    else:
        return model
    return _one(rng, *kinds)(model, 2, random_state=0)


def _plain(column: Any) -> list[Any]:
    """Return cells as Python's own values, with NaN for every gap."""
    cells = column.tolist() if hasattr(column, "tolist") else column
    return [
        float("nan") if cell is None else getattr(cell, "item", lambda c=cell: c)()
        for cell in cells
    ]


def _with_marks(rng: np.random.Generator, cells: list[Any]) -> list[Any]:
    """Make numbers of a column that has many of them recognisable; zeros and signs stay."""
    numbers = {cell for cell in cells if not isinstance(cell, str) and cell == cell}
    if len(numbers) <= 6 or any(isinstance(cell, str) for cell in cells):
        return cells
    marks = np.abs(marked(rng, len(cells), 34))
    return [
        cell + float(np.copysign(mark, cell)) if cell == cell and cell != 0 else cell
        for cell, mark in zip(cells, marks.tolist(), strict=True)
    ]


def _renamed(node: Any, names: dict[str, str]) -> Any:
    """Give the columns of a composition other names."""
    if isinstance(node, Row):
        return Row(tuple(_renamed(step, names) for step in node.steps))
    if not isinstance(node, Side):
        return node

    def told(columns: Any) -> Any:
        if isinstance(columns, str):
            return names[columns]
        return [names.get(each, each) for each in columns] if isinstance(columns, list) else columns

    parts = tuple((_renamed(part, names), told(columns)) for part, columns in node.parts)
    return replace(node, parts=parts)


# -- containers ------------------------------------------------------------------------------------

_POLARS = {"text": pl.String, "float": pl.Float64, "int": pl.Int64, "bool": pl.Boolean}
_ARROW = {"text": pa.string(), "float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}
_PANDAS = {"text": object, "float": np.float64, "int": np.int64, "bool": np.bool_}


def _type_of(cells: Iterable[Any]) -> str:
    kinds = {type(cell) for cell in cells}
    return (
        "text" if str in kinds else "float" if float in kinds else "int" if int in kinds else "bool"
    )


def contained(kind: str, cells: list[tuple[Any, ...]], types: dict[str, str], texts: bool) -> Any:
    """Put cells into a container; `types` has the type of each column by its name."""
    if kind in FRAMES and texts:
        return contained(kind, cells, types, False)[next(iter(types))]
    if kind in FRAMES:
        columns = dict(zip(types, map(list, zip(*cells, strict=True)), strict=True))
        if kind == "pandas":
            return pd.DataFrame(
                {name: pd.Series(of, dtype=_PANDAS[types[name]]) for name, of in columns.items()}
            )
        columns = {name: [None if c != c else c for c in of] for name, of in columns.items()}
        if kind == "polars":
            return pl.DataFrame(
                {name: pl.Series(of, dtype=_POLARS[types[name]]) for name, of in columns.items()}
            )
        return pa.table({name: pa.array(of, _ARROW[types[name]]) for name, of in columns.items()})
    if texts:
        words = [row[0] for row in cells]
        return words if kind == "list" else np.array([*words, None], dtype=object)[:-1]
    if kind == "list":
        return [list(row) for row in cells]
    if kind == "objects":
        table = np.empty((len(cells), len(types)), dtype=object)
        for i, row in enumerate(cells):
            table[i] = row
        return table
    table = np.array(cells, dtype=np.float32 if kind == "float32" else np.float64)
    if kind == "fortran":
        return np.asfortranarray(table)
    return {"csr": csr_array, "csc": csc_array}.get(kind, lambda same: same)(table)


def _ids(rng: np.random.Generator, kind: str, n: int) -> list[Any]:
    """Draw ids; all but small ones are no coincidence where they are found."""
    large = [int(number) for number in rng.integers(2**61, 2**62, size=n)]
    if kind == "mixed":
        kinds = rng.choice(["whole", "text", "beyond"], size=n).tolist()
        return [_ids(rng, each, 1)[0] for each in kinds]
    return {
        "whole": large,
        "negative": [-number for number in large],
        "beyond": [2**63 + number for number in large],
        "text": [f"visit-{number:016x}" for number in large],
        "digits": [str(number) for number in large],
        "small": [int(number) for number in rng.choice(100_000, size=n, replace=False)],
    }[kind]


# -- what is left of a record ----------------------------------------------------------------------


def _telling(number: float) -> bool:
    """Tell whether a number has too many bits to be met by chance, as 1 less a rounding is."""
    if not np.isfinite(number):
        return False
    scaled = float(np.frexp(number)[0]) * 2.0**16
    return abs(scaled - round(scaled)) > 2.0**-20


def _marks(records: Iterable[tuple[Any, Record]]) -> tuple[set[float], set[str], set[Any]]:
    """Return numbers, words and names by which records are recognised."""
    numbers: set[float] = set()
    words: set[str] = set()
    names: set[Any] = set()
    for name, row in records:
        names |= {name, row.group}
        for cell in (*row.cells, row.y):
            if isinstance(cell, str):
                words |= {word for word in cell.split() if len(word) > 7}
            elif isinstance(cell, float) and _telling(cell):
                numbers |= {cell, float(np.float32(cell))} - {np.inf, -np.inf}
    return numbers, words, names


class Traces:
    """Finds records that left, by their values, ids and groups, and by keys of their ids.

    Parameters
    ----------
    gone, left : sets of (id, Record)
        What both have is no trace.
    keys : dict of id to set of int
        The keys of ids on tapes.
    more : set of float
        Other numbers that must not be found: what steps of a pipeline made of a record that left.
    """

    def __init__(
        self,
        gone: set[tuple[Any, Record]],
        left: set[tuple[Any, Record]],
        keys: dict[Any, set[int]],
        more: Iterable[float] = (),
    ) -> None:
        (numbers, words, names), others = _marks(gone), _marks(left)
        numbers, words, names = numbers - others[0], words - others[1], names - others[2]
        ids = {name for name in names if isinstance(name, int) and abs(name) > 2**20}
        self.words = sorted(words | {name for name in names if isinstance(name, str)})
        values = np.array(sorted(numbers | set(more)))
        keyed = [key for name in names for key in keys.get(name, ())]
        self._wholes = np.unique(np.array([*map(_signed, [*ids, *keyed])], np.int64))
        self._mantissas = np.unique(np.abs(np.frexp(values)[0]))
        self._bits = np.union1d(self._wholes, values.view(np.int64))
        self.is_empty = not (self._bits.size or self.words)

    def in_bytes(self, data: bytes) -> bool:
        """Tell whether bytes show a record: its numbers at any place, or its words."""
        for start in range(min(8, len(data) - 7)):
            whole = np.frombuffer(data, "<i8", (len(data) - start) // 8, start)
            if _among(whole, self._bits).any():
                return True
        return any(word.encode() in data or word.encode("utf-32-le") in data for word in self.words)

    def but_those_in(self, root: Any) -> Traces:
        """Return the traces without those that another model shows: they are met by chance."""
        less = copy.copy(self)
        arrays = [thing for _, thing in reachable(root) if isinstance(thing, np.ndarray)]
        arrays += [np.array([x]) for _, x in reachable(root) if isinstance(x, float | np.floating)]
        numbers = [each.astype(np.float64).ravel() for each in arrays if each.dtype.kind in "fiu"]
        met = np.abs(np.frexp(np.concatenate([np.zeros(1), *numbers]))[0])
        less._mantissas = np.setdiff1d(self._mantissas, met)
        places = self.in_memory(root)
        texts = "\0".join(x for path, x in reachable(root) if isinstance(x, str) and path in places)
        less.words = [word for word in self.words if word not in texts]
        return less

    def in_memory(self, root: Any) -> set[str]:
        """Name the places in the memory of a model that show a record."""
        texts: list[tuple[str, str]] = []
        pieces: list[tuple[str, bytes]] = []
        numbers: list[tuple[str, Any, int]] = []
        wholes: list[tuple[str, Any, int]] = []
        for path, thing in reachable(root):
            if isinstance(thing, np.ndarray):
                base, kind, width = thing.base, thing.dtype.kind, thing.dtype.itemsize
                if isinstance(base, np.ndarray) and base.dtype == thing.dtype:
                    continue  # its base comes, too
                if kind in "USV" or (kind in "iu" and width == 1):
                    pieces.append((path, thing.tobytes()))
                elif kind in "fiu":
                    numbers.append((path, thing.astype(np.float64).ravel(), width))
                    if kind != "f" and width == 8:
                        wholes.append((path, thing.astype(np.int64).ravel(), width))
            elif isinstance(thing, str):
                texts.append((path, thing))
            elif isinstance(thing, bytes | bytearray):
                pieces.append((path, bytes(thing)))
            elif isinstance(thing, float | np.floating):
                numbers.append((path, np.array([thing], np.float64), 8))
            elif isinstance(thing, int | np.integer) and abs(whole := _signed(int(thing))) < 2**63:
                wholes.append((path, np.array([whole]), 8))
        found = _hits(numbers, lambda array: _among(np.abs(np.frexp(array)[0]), self._mantissas))
        found |= _hits(wholes, lambda array: _among(array, self._wholes))
        joined = "\0".join(text for _, text in texts)
        for word in self.words:
            if word in joined:
                found |= {path for path, text in texts if word in text}
        if self.in_bytes(bytes(8).join(piece for _, piece in pieces)):
            found |= {path for path, piece in pieces if self.in_bytes(piece)}
        return found


def _among(values: Any, known: Any) -> Any:
    """Tell which values are among some that are sorted."""
    if not known.size:
        return np.zeros(values.shape, bool)
    return known[np.minimum(np.searchsorted(known, values), known.size - 1)] == values


def _signed(number: int) -> int:
    """Return the integer of 64 bits that has the bits of a number, or the number."""
    return number - 2**64 if 2**63 <= number < 2**64 else number


def _hits(arrays: list[tuple[str, Any, int]], test: Callable[[Any], Any]) -> set[str]:
    """Return the places of arrays in which a test holds; all are looked at together first.

    A number of 32 bits may be met by chance: of those, two are asked for.
    """
    if not arrays or not test(np.concatenate([array for _, array, _ in arrays])).any():
        return set()
    found = ((path, np.unique(array[test(array)]), width) for path, array, width in arrays)
    return {path for path, hits, width in found if hits.size > (width < 8)}


@contextmanager
def recorded(keys: dict[Any, set[int]]) -> Iterator[None]:
    """Note the keys that tapes make of ids."""
    own = Tape.record_keys

    def noted(tape: Tape, ids: Any) -> Any:
        made = own(tape, ids)
        for name, key in zip(np.asarray(ids).tolist(), made.tolist(), strict=True):
            keys.setdefault(name, set()).add(key)
        return made

    Tape.record_keys = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tape.record_keys = own  # type: ignore[method-assign]


# -- a life ----------------------------------------------------------------------------------------


class BrokenError(AssertionError):
    """A life broke the law, or left something of a record."""


class Life:
    """A model, and the records that it is to hold.

    Parameters
    ----------
    number : int
        Everything is drawn from this.
    folder : Path
        Where its files are.
    kind : str, default=""
        One of `KINDS`; by default drawn.
    steps : sequence of int, default=range(10)
        Those that are made. Each draws by itself, so that any may be left out.
    most : int, default=200
        How many records it begins with, at most.
    """

    def __init__(
        self,
        number: int,
        folder: Path,
        kind: str = "",
        steps: Iterable[int] = range(STEPS),
        most: int = POOL,
    ) -> None:
        self.number, self.kind, self.steps, self.most = number, kind, list(steps), most
        self.folder = folder / "accelerators"  # whose small arrays `contents` unpacks
        self.keys: dict[Any, set[int]] = {}
        self.done: list[str] = []
        self.counts: Counter[str] = Counter()
        self.rows: Rows = {}
        self.ever: set[tuple[Any, Record]] = set()
        self.files: dict[Path, Rows] = {}
        self.first = 0

    def run(self) -> Counter[str]:
        """Live; return how often what was done.

        Raises
        ------
        BrokenError
        """
        with warnings.catch_warnings(), np.errstate(all="ignore"), recorded(self.keys):
            warnings.simplefilter("ignore")
            try:
                self._begin()
                for step in self.steps:
                    self._step(step)
            except Exception as error:
                raise BrokenError(f"{_told(error)}\n  {self}") from error
        return self.counts

    def __str__(self) -> str:
        told = " ".join(repr(self.subject.estimator).split())
        steps = "; ".join(self.done)
        return f"life {self.number}: {told}\n  {self.first} records at first, {self.how}: {steps}"

    # -- the beginning -----------------------------------------------------------------------------

    def _begin(self) -> None:
        """Draw until an estimator takes the records that were drawn for it."""
        self.rng = rng = np.random.default_rng([self.number])
        for _ in range(100):
            kind = self.kind or str(rng.choice(KINDS, p=_SHARES))
            drawn = _composed(rng) if kind == "composed" else _subject(rng, DRAWN[kind](rng), POOL)
            self.subject = replace(drawn, estimator=seeded(drawn.estimator))
            self._draw_form()
            n = min(int(_one(rng, 8, 8, 16, 24, 40, 60, POOL)), self.most, len(drawn.y))
            self.rows = {}
            self.rows = self._draw_rows(n, range(n))
            try:
                self.model = self._fit(self.rows, stored=self.stored)
            except ErasableError:
                continue
            self.first, self.ever = n, set(self.rows.items())
            forms = self.how.replace("in files of ", "").split(", ")
            for form in (type(self.subject.estimator).__name__, *forms):
                self.note(f"as {form.removeprefix('as ')}")
            return self.verify(self.fresh(self.rows), "after fit")
        raise AssertionError("100 estimators refused the records that were drawn for them")

    def _draw_form(self) -> None:
        """Draw in which form records come."""
        rng, subject = self.rng, self.subject
        self.texts = Accepts.of(subject.estimator).documents
        self.container = _one(rng, *subject.containers)
        self.types = dict(
            zip(subject.names, map(_type_of, zip(*subject.cells, strict=True)), strict=True)
        )
        self.supervised = is_classifier(subject.estimator) or is_regressor(subject.estimator)
        self.weighs = has_fit_parameter(subject.estimator, "sample_weight") and rng.random() < 0.4
        self.id_kind = _one(rng, "whole", "negative", "beyond", "text", "digits", "small", "mixed")
        groups = _one(rng, "", "", "whole", "text", "beyond")
        self.groups = _ids(rng, groups, 9) if groups else []
        one_type = self.container in FRAMES and self.id_kind != "mixed"
        self.id_column = one_type and not self.texts and rng.random() < 0.3
        self.shares = rng.random() < 0.25
        self.stored = one_type and not self.texts and rng.random() < 0.15
        told = ["in files of Parquet"] * self.stored + ["as Records"] * self.shares
        told += [self.container, f"ids {self.id_kind}", f"groups {groups or 'none'}"]
        self.how = ", ".join(told + ["weights"] * self.weighs)

    def _draw_rows(self, n: int, places: Iterable[int] = (), taken: Iterable[Any] = ()) -> Rows:
        """Draw new records, of places of the pool, under ids that none has or had, mostly."""
        rng, subject = self.rng, self.subject
        known = {*self.rows, *taken}
        found: Rows = {}
        for place in [*places] or rng.integers(len(subject.y), size=n).tolist():
            name = None
            while name is None or name in known:
                (name,) = _ids(rng, self.id_kind, 1)
                if rng.random() < 0.1 and (left := {each for each, _ in self.ever} - known):
                    name = _one(rng, *sorted(left, key=repr))  # one that left comes back
            known.add(name)
            group = _one(rng, *self.groups) if self.groups else None
            weight = float(_one(rng, 1.0, 0.25, 3.0, 1.7, 0.0)) if self.weighs else 1.0
            found[name] = Record(subject.cells[place], subject.y[place], weight, group)
        return found

    # -- what estimators are given -----------------------------------------------------------------

    def table(self, rows: Rows) -> Any:
        """Put the cells of records into their container."""
        cells = [row.cells for row in rows.values()]
        return contained(self.container, cells, self.types, self.texts)

    def given(self, rows: Rows) -> tuple[Any, Any, dict[str, Any]]:
        """Return X, y, and what else `fit` and `add` are told of records."""
        X, of = self.table(rows), list(rows.values())
        told: dict[str, Any] = {"ids": list(rows)}
        if self.groups:
            told["groups"] = [row.group for row in of]
        if self.weighs:
            told["sample_weight"] = [row.weight for row in of]
        if self.id_column:
            X, told["ids"] = _with_column(X, "the id", told["ids"]), "the id"
        return X, self._targets(rows), told

    def _targets(self, rows: Rows) -> Any:
        y = [row.y for row in rows.values()]
        if y[0] is None:
            return None
        return np.array(y, dtype=object) if isinstance(y[0], str) else np.array(y)

    def _fit(self, rows: Rows, like: Any = None, *, stored: bool = False) -> Any:
        model = clone(self.subject.estimator if like is None else like)
        if stored:
            return model.fit(self._in_files(rows))
        X, y, told = self.given(rows)
        return model.fit(Records(X, y, **told)) if self.shares else model.fit(X, y, **told)

    def _in_files(self, rows: Rows) -> Records:
        """Write records into a file of Parquet, in which they stay."""
        table = contained("arrow", [row.cells for row in rows.values()], self.types, False)
        parts = {"ids": list(rows)}
        for name, field in (("target", "y"), ("groups", "group"), ("sample_weight", "weight")):
            if {"target": self.subject.y[0] is not None, "groups": self.groups}.get(
                name, self.weighs
            ):
                parts[name] = [getattr(row, field) for row in rows.values()]
        for name, values in parts.items():
            table = _with_column(table, name, values)
        path = self.folder.parent / "records.parquet"
        pq.write_table(table, path, row_group_size=7)
        named = {name: name for name in parts}
        return Records.from_parquet(path, features=list(self.types), **named)

    def fresh(self, rows: Rows) -> Any:
        """Return a fit on records, in another order, or the error that refuses them."""
        order = self.rng.permutation(len(rows)).tolist()
        items = list(rows.items())
        try:
            return self._fit({items[place][0]: items[place][1] for place in order})
        except ErasableError as error:
            return error

    # -- what has to hold --------------------------------------------------------------------------

    def note(self, name: str) -> None:
        self.counts[name] += 1

    def verify(self, expected: Any, told: str, more: Iterable[float] = ()) -> None:
        """Hold the model against a fit, and look for what is left of records that left."""
        if isinstance(expected, ErasableError):
            raise AssertionError(f"there is a model {told}, where a fit says: {_told(expected)}")
        rng, thorough = self.rng, self.rng.random() < 0.3
        assert_same(self.model, expected, told, save=thorough)
        self.note("digests")
        if thorough:
            for rows in (self.rows, self._draw_rows(9)):  # those that left are among the others
                self._same_answers(expected, rows, told)
        traces = self.traces(more)
        if traces.is_empty:
            return
        found = traces.in_memory(self.model)
        if found:
            found = traces.but_those_in(expected).in_memory(self.model)
        if rng.random() < 0.2:
            mine, others = (traces.in_bytes(pickle.dumps(each)) for each in (self.model, expected))
            found |= {"the pickle"} if mine and not others else set()
        places = "; ".join(_short(each) for each in sorted(found)[:4])
        assert not found, f"a record that left is found {told}: {places}"
        self.note("searches")

    def _same_answers(self, expected: Any, rows: Rows, told: str) -> None:
        mine, theirs = (_answers(model, self._asked(rows)) for model in (self.model, expected))
        told_apart = {name: differing(mine.get(name), theirs.get(name)) for name in mine | theirs}
        found = {name: how for name, how in told_apart.items() if how is not None}
        assert not found, f"other answers {told}: {found}"
        self.note("answers")

    def _asked(self, rows: Rows) -> Any:
        return SimpleNamespace(X=self.table(rows), y=self._targets(rows))

    def traces(self, more: Iterable[float] = ()) -> Traces:
        left = set(self.rows.items())
        return Traces(self.ever - left, left, self.keys, more)

    # -- steps -------------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        self.rng = np.random.default_rng([self.number, number])
        events = [
            *[self.change] * 8, *[self.be_interrupted] * 4, *[self.rest] * 2,
            *[self.be_read_and_interrupted] * 2, *[self.be_cut_off_in_save] * 2,
            self.be_loaded, self.be_loaded, self.be_loaded_alone, self.be_pickled, self.be_copied,
            self.be_cloned, self.be_read, self.be_refused,
        ]  # fmt: skip
        event = _one(self.rng, *events)
        self.done.append(f"{number} {event.__name__}")
        event()

    def _draw_change(self) -> tuple[str, Callable[[Any], Any], Rows]:
        """Draw a change: what it is called, the call, and the records that are there after it."""
        kinds = ["delete"] * 4 + (
            [] if self.stored else ["add", "add", "correct", "correct", "replace"]
        )
        kind = _one(self.rng, *kinds)
        call, after = getattr(self, f"_{kind}")({"digest": bool(self.rng.integers(2))})
        self.done[-1] += f" ({kind})"
        self.ever |= set(after.items())
        self.note(kind)
        return kind, call, after

    def _with_one_far(self, rows: Rows) -> Rows:
        """Give the first record a value that most estimators refuse as they learn, or leave it."""
        name, row = next(iter(rows.items()))
        place = next((j for j, cell in enumerate(row.cells) if isinstance(cell, float)), -1)
        if place < 0 or self.container == "float32" or self.rng.random() < 0.9:
            return rows
        cells = (*row.cells[:place], float(_one(self.rng, 1e39, 1e300)), *row.cells[place + 1 :])
        return {**rows, name: row._replace(cells=cells)}

    def _choose(self) -> list[Any]:
        """Choose records: one, some, the largest, those of one kind, or nearly all."""
        rng, names = self.rng, list(self.rows)
        how, some = int(rng.integers(6)), rng.permutation(len(names)).tolist()
        if how == 0:
            return [names[some[0]]]
        if how == 1:
            return [names[place] for place in some[: 1 + len(names) // 2]]
        column = int(rng.integers(len(self.types)))
        if how == 2:
            return sorted(names, key=lambda name: str(self.rows[name].cells[column]))[-3:]
        if how == 3:
            kind = self.rows[names[some[0]]].cells[column]
            return [name for name in names if self.rows[name].cells[column] == kind] or names[:1]
        if how == 4:
            return [names[place] for place in some[2:]] or names
        return [names[place] for place in some[:3]]

    def _delete(self, how: dict[str, Any]) -> tuple[Callable[[Any], Any], Rows]:
        gone = self._choose()
        if self.groups and self.rng.random() < 0.4:
            group = self.rows[gone[0]].group
            rest = [name for name in gone[1:3] if self.rows[name].group != group]
            how |= {"groups": [group]}
            gone = rest + [name for name, row in self.rows.items() if row.group == group]
            return lambda model: model.delete(rest, **how), _without(self.rows, gone)
        return lambda model: model.delete(gone, **how), _without(self.rows, gone)

    def _add(self, how: dict[str, Any]) -> tuple[Callable[[Any], Any], Rows]:
        come = self._with_one_far(self._draw_rows(int(self.rng.integers(1, 5))))
        X, y, told = self.given(come)
        return lambda model: model.add(X, y, **told, **how), {**self.rows, **come}

    def _correct(self, how: dict[str, Any]) -> tuple[Callable[[Any], Any], Rows]:
        rng, names = self.rng, self._choose()
        drawn = [*self._with_one_far(self._draw_rows(len(names))).values()]
        if rng.random() < 0.1:
            names, drawn = list(self.rows), drawn[:1] * len(self.rows)
        was = [self.rows[name] for name in names]
        only = _one(rng, "cells", *["y"] * self.supervised, *["weight"] * self.weighs, "", "")
        fields = [only] if only else ["cells", "y", "weight"]
        now = {
            name: old._replace(**{field: getattr(new, field) for field in fields})
            for name, old, new in zip(names, was, drawn, strict=True)
        }
        X = self.table(now) if "cells" in fields else None
        y = self._targets(now) if "y" in fields else None
        if self.weighs and "weight" in fields:
            how |= {"sample_weight": [row.weight for row in now.values()]}
        return lambda model: model.correct(names, X, y, **how), {**self.rows, **now}

    def _replace(self, how: dict[str, Any]) -> tuple[Callable[[Any], Any], Rows]:
        gone = self._choose()
        come = self._with_one_far(self._draw_rows(int(self.rng.integers(1, 5))))
        X, y, told = self.given(come)
        after = {**_without(self.rows, gone), **come}
        return lambda model: model.replace(gone, X, y, **told, **how), after

    def change(self) -> None:
        """Change the records; what a fit refuses is to be refused, and to change nothing."""
        self._carry_out(*self._draw_change())

    def _carry_out(self, kind: str, call: Callable[[Any], Any], after: Rows) -> None:
        expected, made = self._expected(after), self._made_of(after)
        try:
            call(self.model)
        except ErasableError as error:
            if not isinstance(expected, ErasableError):
                raise AssertionError(
                    f"refused to {kind} what a fit takes: {_told(error)}"
                ) from error
            self.verify(self.fresh(self.rows), f"after a refusal to {kind}")
            self.note("refusals")
            return
        self.rows = after
        self.verify(expected, f"after {kind}", made)

    def _expected(self, after: Rows) -> Any:
        return self.fresh(after) if after else TooFewRecordsError("no records")

    def _made_of(self, after: Rows) -> set[float]:
        """Return what the steps of a pipeline make of records that leave, and of no others."""
        gone = dict(self.rows.items() - after.items())
        if not gone or self.rng.random() < 0.5 or not isinstance(self.model, Pipeline):
            return set()
        made: list[set[float]] = []
        for rows in (gone, _without(self.rows, gone) | after):
            X = self.table(rows) if rows else None
            made.append(set())
            for n in range(1, len(self.model) if rows else 1):
                with suppress(ErasableError):  # what a deleted category is to an encoder
                    values = dense(self.model[:n].transform(X))
                    made[-1] |= set(values.ravel().tolist()) if values.dtype != object else set()
        return {value for value in made[0] - made[1] if _telling(value)}

    def be_interrupted(self) -> None:
        """Interrupt a change: it is done or it is not, and the next one is done."""
        kind, call, after = self._draw_change()
        expected = self._expected(after)
        refused = isinstance(expected, ErasableError)
        at = int(np.exp(self.rng.uniform(0.0, np.log(20_000.0))))
        if refused or self.rng.random() < 0.5:
            twin = copy.deepcopy(self.model)
            at = int(self.rng.integers(count_events(lambda: call(twin))))
        self.done[-1] += f" at {at}"
        try:
            reached = interrupt(lambda: call(self.model), at)
        except ErasableError as error:
            if not refused:
                raise AssertionError(
                    f"refused to {kind} what a fit takes: {_told(error)}"
                ) from error
            reached = True
        self.note("interruptions")
        done = not refused and set(self.model.ids_.tolist()) == after.keys()
        if self.rows.keys() == after.keys():  # the ids do not tell
            done = done and saved(self.model) == saved(expected)
        assert done or reached, f"{kind} is not done, and nothing was raised"
        if done and reached and self.rows.keys() == after.keys():
            call(self.model)  # files of both may be equal: a correction can be made twice
        self.rows = after if done else self.rows
        told = f"after {kind} that was interrupted at {at}"
        self.verify(expected if done else self.fresh(self.rows), told)
        if not done and self.rng.random() < 0.5:
            self._carry_out(kind, call, after)

    def be_read(self) -> None:
        """Read from the model in every way: nothing changes."""
        for read in self._readers().values():
            read(self.model)
        self.verify(self.fresh(self.rows), "after it was read from")

    def _readers(self) -> dict[str, Callable[[Any], Any]]:
        asked = self._asked(self.rows)
        return {
            "digest": lambda model: model.digest(),
            "state": lambda model: model.state(),
            "save": lambda model: model.save(io.BytesIO()),
            "answers": lambda model: _answers(model, asked),
            "copy": copy.deepcopy,
            "pickle": pickle.dumps,
            "equality": lambda model: equality(model, model),
        }

    def be_read_and_interrupted(self) -> None:
        """Change the records, and interrupt what reads from the model first after that."""
        kind, call, after = self._draw_change()
        with suppress(ErasableError):
            call(self.model)
            self.rows = after
        name, read = _one(self.rng, *self._readers().items())
        at = int(np.exp(self.rng.uniform(0.0, np.log(5_000.0))))
        self.done[-1] += f" and {name} at {at}"
        interrupt(lambda: read(self.model), at)
        self.note("interruptions")
        self.verify(self.fresh(self.rows), f"after {kind}, and {name} that was interrupted at {at}")

    def be_refused(self) -> None:
        """Ask for what is refused: it changes nothing."""
        known, (unknown,) = next(iter(self.rows)), _ids(self.rng, self.id_kind, 1)
        for wrong, error in (([known, unknown], UnknownIdError), ([known, known], InvalidIdsError)):
            _demand(error, lambda wrong=wrong: self.model.delete(wrong))
        X, y, told = self.given({known: self.rows[known]})
        if not self.stored:
            _demand(InvalidIdsError, lambda: self.model.add(X, y, **told))
        self.verify(self.fresh(self.rows), "after it refused")

    # -- keeping, and coming back ------------------------------------------------------------------

    def be_pickled(self) -> None:
        self.model = pickle.loads(pickle.dumps(self.model))
        self.verify(self.fresh(self.rows), "from a pickle")

    def be_copied(self) -> None:
        self.model = copy.deepcopy(self.model)
        self.verify(self.fresh(self.rows), "of a copy")

    def be_cloned(self) -> None:
        self.model, self.stored = self._fit(self.rows, self.model), False
        self.verify(self.fresh(self.rows), "of a clone that was fitted")

    def be_loaded(self) -> None:
        """Save the model without its records, and load it with them."""
        if not self.subject.has_files:
            return
        (X, y, told), file = self.given(self.rows), io.BytesIO(saved(self.model))
        records: Any = Records(X, y, **told)
        if not self.weighs and not self.id_column and self.rng.random() < 0.3:
            records = (X, y, *told.values()) if self.supervised else (X, *told.values())
        self.model, self.stored = load(file, records, trusted=bool(self.rng.integers(2))), False
        self.verify(self.fresh(self.rows), "from a file, with records that were given")

    def be_loaded_alone(self) -> None:
        """Load the model without any records: it answers, and cannot delete."""
        if not self.subject.has_files:
            return
        alone = load(io.BytesIO(saved(self.model)), trusted=True)
        assert_same(alone, self.model, "from a file, without records", save=True)
        self._same_answers(alone, self.rows, "from a file")
        _demand(DetachedError, lambda: alone.delete(list(self.rows)[:1]))

    def rest(self) -> None:
        """Keep the model with its records in files, and live on with what is mapped from there."""
        if not self.subject.has_files:
            return
        self.model = load(self._save("rested", with_records=True), True, trusted=True)
        self.verify(self.fresh(self.rows), "at rest")

    def _save(self, name: str, *, with_records: bool) -> Path:
        """Save the model into a folder of its own; nothing there shows a record that left."""
        path = self.folder / name / "model"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.model.save(path, records=with_records)
        self.files[path] = self.rows
        traces = self.traces()
        files = [each for each in sorted(path.parent.rglob("*")) if each.is_file()]
        found = [each.name for each in files if traces.in_bytes(contents(each))]
        assert not found, f"a record that left is found in the files {found}"
        self.note("files")
        return path

    def be_cut_off_in_save(self) -> None:
        """Let a process die, or be interrupted, inside `save`: the old file or the new is whole."""
        if not self.subject.has_files:
            return
        with_records, dies = bool(self.rng.integers(2)), bool(self.rng.integers(2))
        path = self.folder / ("rested" if with_records else "alone") / "model"
        if self.files.get(path) in (None, self.rows):
            self._save(path.parent.name, with_records=with_records)
            self.change()
        at = int(np.exp(self.rng.uniform(0.0, np.log(1_500.0))))
        self.done[-1] += f" at {at}, {'with' if with_records else 'without'} records"
        save = functools.partial(self.model.save, path, records=with_records)
        if dies:
            _die(save, at)
        else:
            interrupt(save, at)
            self.verify(self.fresh(self.rows), f"after save that was interrupted at {at}")
        self.note("deaths in save" if dies else "interruptions")
        found = load(path, True if with_records else None, trusted=True)
        choices = [rows for rows in (self.rows, self.files[path]) if _is(found, self.fresh(rows))]
        assert choices, f"the file is neither the old one nor the new one after save ended at {at}"
        if len(choices) == 2:  # files of models that do not differ
            self.ever -= set(choices[0].items()) ^ set(choices[1].items())
        self.files[path] = choices[0]
        if with_records:
            self.model, self.rows = found, choices[0]
            self.verify(self.fresh(self.rows), f"from a file after save ended at {at}")


def _told(error: BaseException) -> str:
    """Say what was raised, and where."""
    if isinstance(error, AssertionError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {Path(each.filename).name}:{each.lineno}" for each in last)
    return f"{type(error).__name__}: {error}{place}"


def _short(told: str) -> str:
    told = " ".join(told.split())
    return told if len(told) < 150 else f"{told[:40]} ... {told[-100:]}"


def _without(rows: Rows, gone: Iterable[Any]) -> Rows:
    left = set(gone)
    return {name: row for name, row in rows.items() if name not in left}


def _demand(kind: type[Exception], call: Callable[[], Any]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")


def _is(found: Any, fresh: Any) -> bool:
    return not isinstance(fresh, ErasableError) and bool(saved(found) == saved(fresh))


def _answers(model: Any, asked: Any) -> dict[str, Any]:
    """Return what a model predicts, or how it refuses to: far off, kernels have no record."""
    try:
        return outputs(model, asked)
    except ErasableError as error:
        return {"refused": str(error)}
    except ValueError as error:  # a score of predictions that are endless or NaN
        if "infinity" not in str(error) and "contains NaN" not in str(error):
            raise
        return {"refused": "a score that is endless"}


def _with_column(table: Any, name: str, values: list[Any]) -> Any:
    """Give a frame one more column."""
    if isinstance(table, pd.DataFrame):
        return table.assign(**{name: values})
    whole = all(isinstance(value, int) for value in values)
    large = whole and max(values) >= 2**63
    if isinstance(table, pl.DataFrame):
        return table.with_columns(pl.Series(name, values, dtype=pl.UInt64 if large else None))
    return table.append_column(name, pa.array(values, pa.uint64() if large else None))


_WRITING = tuple(str(Path(erasable.core.__path__[0]) / each) for each in ("artifact.py", "mapped"))


def _die(action: Callable[[], Any], at: int) -> None:
    """Have a process do something, and die at a line of what writes files, if it comes so far."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    left = at

    def watch(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(_WRITING):
            return None
        left -= 1
        if left < 0:
            os._exit(0)
        return watch

    try:
        sys.settrace(watch)
        action()
    finally:
        os._exit(0)


# -- many lives ------------------------------------------------------------------------------------


def live(number: int, kind: str = "", **how: Any) -> Counter[str]:
    """Live one life; see `Life`."""
    with tempfile.TemporaryDirectory() as folder:
        return Life(number, Path(folder), kind, **how).run()


def shortest(number: int, kind: str, error: BrokenError) -> tuple[str, dict[str, Any]]:
    """Leave out steps and records while a life is broken in the same way; return what is left."""
    told, how = str(error), {"steps": list(range(STEPS)), "most": POOL}

    def is_broken(**other: Any) -> bool:
        nonlocal told, how
        try:
            live(number, kind, **{**how, **other})
        except BrokenError as found:
            if _sort(str(found)) == _sort(told):
                told, how = str(found), {**how, **other}
                return True
        return False

    last = next((n for n in range(STEPS + 1) if is_broken(steps=list(range(n)))), STEPS)
    for step in range(last):
        is_broken(steps=[each for each in how["steps"] if each != step])
    for most in (6, 8, 12, 16, 24):
        if is_broken(most=most):
            break
    return told, how


def _sort(told: str) -> str:
    """Return in which way a life is broken: the words of the message without what was drawn."""
    return re.sub(r"[0-9a-f]*[0-9][0-9a-f]*|'[^']*'|\[[^]]*\]", "", told.partition("\n")[0])[:60]


def main(arguments: list[str] | None = None) -> int:
    """Live until the time is over; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lives", type=int, default=STRIDE, help="so many at most")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kind", default="", choices=["", *KINDS], help="lives of one kind alone")
    parser.add_argument("--life", type=int, help="this one alone")
    parser.add_argument("--steps", default=",".join(map(str, range(STEPS))), help="of this life")
    parser.add_argument("--records", type=int, default=POOL, help="of this life, at most")
    chosen = parser.parse_args(arguments)
    if chosen.life is not None:
        steps = [int(step) for step in chosen.steps.split(",") if step]
        print(dict(live(chosen.life, chosen.kind, steps=steps, most=chosen.records)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        return _tell(chosen, *_run(chosen, Path(name)))


def _run(chosen: argparse.Namespace, folder: Path) -> tuple[Counter[str], list[str]]:
    """Have processes live; return how often what was done, and what broke."""
    context = multiprocessing.get_context("fork")
    first, n, end = chosen.seed * STRIDE, chosen.workers, time.monotonic() + chosen.seconds
    current = context.Array("q", n)
    workers = [
        context.Process(
            target=_work,
            args=(range(first + k, first + chosen.lives, n), chosen.kind, end, current, k, folder),
        )
        for k in range(n)
    ]
    for worker in workers:
        worker.start()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for k, worker in enumerate(workers):
        worker.join()
        if worker.exitcode:
            wrong.append(f"the process ended with {worker.exitcode} in life {current[k]}")
        for line in (folder / str(k)).read_text().splitlines():
            done, told = json.loads(line)
            counts += Counter(done)
            wrong += [told] if told else []
    return counts, wrong


def _work(numbers: range, kind: str, end: float, current: Any, place: int, folder: Path) -> None:
    """Live until the time is over; write down of each life what was done, or how it broke."""
    with (folder / str(place)).open("w") as file:
        for number in numbers:
            if time.monotonic() > end:
                return
            current[place] = number
            done, told = {"lives": 1}, ""
            try:
                done |= live(number, kind)
            except BrokenError as error:
                told, how = shortest(number, kind, error)
                steps = ",".join(map(str, how["steps"]))
                told += f"\n  python tests/soak/model_lives.py --life {number} --steps '{steps}'"
                told += f" --records {how['most']}" + f" --kind {kind}" * bool(kind)
            print(json.dumps([done, told]), file=file, flush=True)


def _tell(chosen: argparse.Namespace, counts: Counter[str], wrong: list[str]) -> int:
    for told in wrong:
        print(told)
    done = ", ".join(
        f"{number:,} {name}" for name, number in counts.most_common() if not name.startswith("as ")
    )
    print(f"models from seed {chosen.seed}: {done}; {len(wrong)} lives broken")
    return int(bool(wrong) or not counts["lives"])


if __name__ == "__main__":
    sys.exit(main())
