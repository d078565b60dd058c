"""Logistic regression on stored records: sums by blocks, and the fallback in the order of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable import Records
from erasable.core.inputs import RecordArrays
from erasable.core.passes import InOrder, Stored
from erasable.linear_model import LogisticRegression, _logistic_work, _solver
from erasable.linear_model._logistic_work import LogisticWork
from erasable.linear_model._softmax_dense import DenseDesign


class Cut(Stored):
    """An array that is read in blocks of some rows, and remembers how often."""

    def __init__(self, values: Any, starts: list[int]) -> None:
        self.values, self.dtype, self.shape = values, values.dtype, values.shape
        self.starts, self.read = np.array([0, *starts, len(values)]), 0

    def block(self, number: int, columns: Any = None) -> Any:
        self.read += 1
        own = self.values[self.starts[number] : self.starts[number + 1]]
        return np.ascontiguousarray(own if columns is None else own[:, columns])

    def __getitem__(self, rows: Any) -> Any:
        return self.values[rows]


def drawn(n: int, d: int, k: int, kind: Any, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(rng.normal(size=d) * 3.0, size=(n, d)).astype(kind)
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    return X, y


def stored(X: Any, y: Any, starts: list[int]) -> Records:
    return Records.from_table(RecordArrays(Cut(X, starts), y, np.arange(len(X)), None, None))


def fits(X: Any, y: Any, starts: list[int], **params: Any) -> tuple[Any, Any]:
    model = LogisticRegression(**params)
    return model.fit(stored(X, y, starts)), LogisticRegression(**params).fit(Records(X, y))


def designs(m: int, kind: Any, at_once: int) -> tuple[DenseDesign, DenseDesign, Any]:
    """Return a design of stored rows and one in memory, both in an order, and coefficients."""
    n, d, rng = 6000, 5, np.random.default_rng(m)
    X, codes = drawn(n, d, m + 1, kind)
    rows = rng.permutation(n)[:5500]
    weights, unit = rng.uniform(0.5, 2.0, n), np.ldexp(1.0, -rng.integers(0, 3, d))
    rest = weights, codes.astype(np.int32), m, True, True, rng.normal(size=d), unit
    memory = DenseDesign(X, *rest).in_order(rows, weights[rows])
    files = DenseDesign(Cut(X, [0, 7, 3000]), *rest).in_order(rows, weights[rows])
    assert isinstance(files.matrix, InOrder)
    files.matrix._step = at_once
    assert isinstance(memory, DenseDesign)
    return files, memory, rng.normal(size=(m, d + 1))


def told(design: DenseDesign, theta: Any) -> list[Any]:
    """Return all that a solver learns from a design."""
    simple = design.evaluate(theta)
    exact = design.evaluate_exactly(theta, 1e-20 * theta)
    chances = design.chances(simple.logits)
    high, low = design.hessian_precisely(simple.logits)
    fields = [getattr(each, name) for each in (simple, exact) for name in type(each).__slots__]
    return [
        *fields, design.hessian(simple.logits), high, low, design.multiply(chances, theta),
        design.diagonal(chances), design.energy(theta, simple.logits), design.row_norm,
        design.squared_rows(np.ones(5)), design.column_norms, design.hessian_error,
    ]  # fmt: skip


def equal(one: list[Any], other: list[Any]) -> list[bool]:
    pairs = zip(one, other, strict=True)
    return [np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs]


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("at_once", [1, 2048, 10_000])
def test_in_the_order_of_keys_all_sums_are_those_of_memory(m: int, kind: Any, at_once: int) -> None:
    files, memory, theta = designs(m, kind, at_once)
    assert all(equal(told(files, theta), told(memory, theta)))


def test_another_order_is_told_from_it() -> None:
    files, memory, theta = designs(2, np.float64, 2048)
    assert isinstance(files.matrix, InOrder)
    for array in (files.matrix._rows, files.weights, files.codes):
        array[[0, 4000]] = array[[4000, 0]]
    assert not all(equal(told(files, theta), told(memory, theta)))


@pytest.fixture
def canonical(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often the canonical solver was asked."""
    asked, own = [0], LogisticWork._canonical

    def count(self: LogisticWork, problem: Any) -> Any:
        asked[0] += 1
        return own(self, problem)

    monkeypatch.setattr(LogisticWork, "_canonical", count)
    return asked


def uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no solver be certain: what is published is what the canonical one's rounding makes it."""
    own = _solver.round_intervals
    monkeypatch.setattr(_solver, "round_intervals", lambda *args: (own(*args)[0], False))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("most", [1500, 1])
@pytest.mark.parametrize("starts", [[], [1, 1, 2, 300], list(range(1, 20))])
def test_where_nothing_is_certain_files_publish_what_memory_does(
    n_classes: int, most: int, starts: list[int], canonical: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(_logistic_work, "MOST", most)
    monkeypatch.setattr("erasable.core.passes._AT_ONCE", 3000)
    uncertain(monkeypatch)
    X, y = drawn(500, 3, n_classes, np.float64)
    models = fits(X, y, starts, n_jobs=2)
    for gone in ([], [4], [100, 101, 400]):
        for model in models:
            model.delete(gone, digest=False)
        assert models[0].digest() == models[1].digest()
    assert canonical[0] >= 6


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("n", "starts"),
    [(9000, [1, 1, 4000, 8999]), (9000, [5]), (100, list(range(1, 100))), (40_000, [33_000])],
)
def test_blocks_do_not_show(
    n: int, starts: list[int], n_classes: int, n_jobs: int | None, canonical: list[int]
) -> None:
    X, y = drawn(n, 3, n_classes, np.float64, seed=n)
    models = fits(X, y, starts, n_jobs=n_jobs)
    gone = np.random.default_rng(0).permutation(n)[: n - 2 * n_classes]
    gone = gone[gone >= n_classes]
    furthest = np.abs(X).argmax(axis=0)
    for some in (gone[:1], np.setdiff1d(furthest, gone[:1]), gone[1:90], gone[90:]):
        some = np.intersect1d(some, models[0].ids_)
        for model in models:
            model.delete(some, digest=False)
        assert models[0].digest() == models[1].digest()
        assert np.array_equal(models[0].coef_, models[1].coef_)
    left = models[0].ids_
    assert models[0].digest() == LogisticRegression().fit(X[left], y[left], ids=left).digest()
    assert canonical == [0]


def test_a_class_leaves_with_its_last_record() -> None:
    X, y = drawn(60, 2, 3, np.float64)
    last = np.flatnonzero(y == 1)
    models = fits(X, y, [1, 20, 20, 21])
    for some in (last[:-1], last[-1:], [i for i in range(3, 50) if y[i] != 1]):
        for model in models:
            model.delete(some)
        assert models[0].digest() == models[1].digest()
    assert models[0].classes_.tolist() == [0, 2]


def test_how_often_the_files_are_read() -> None:
    X, y = drawn(20_000, 4, 2, np.float64)
    records = stored(X, y, [5000, 10_000, 15_000])
    model = LogisticRegression().fit(records)
    fit: Any = records.matrix
    # Extremes, norms, and then gradients and Hessians; the sample is read by rows.
    assert fit.read <= 4 * 9
    before = fit.read
    model.delete([17], digest=False)
    assert fit.read == before
    _ = model.coef_
    assert fit.read - before <= 4 * 2


def test_blocks_of_which_nothing_counts_are_not_read() -> None:
    X, y = drawn(4000, 2, 2, np.float64)
    records = stored(X, y, [1000, 2000, 3000])
    model = LogisticRegression().fit(records)
    model.delete(np.arange(1000, 2000), digest=False)
    matrix: Any = records.matrix
    before = matrix.read
    _ = model.coef_
    assert (matrix.read - before) % 3 == 0
