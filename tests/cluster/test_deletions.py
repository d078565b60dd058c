"""Whatever is deleted from whatever data, a model is what a fit of the rest makes."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from cluster.lawful import assert_lawful, seeds_of
from effort import examples
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.core.errors import TooFewRecordsError

pytestmark = pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")


def make_data(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(n, d))
    if kind == "skewed":
        return np.exp(4.0 * X)
    if kind == "constant":
        X[:, 0] = -3.7
    elif kind == "duplicated":
        X = X[rng.integers(0, max(1, n // 5), n)]
    elif kind == "timestamps":
        X = 1.7e9 + X * rng.choice([1.0, 1e4, 1e8])
    elif kind == "integers":
        X = rng.integers(-20, 21, (n, d)).astype(float)
    elif kind == "lattice":
        X = rng.integers(0, 3, (n, d)).astype(float)
    elif kind == "line":
        X = rng.integers(0, 9, (n, 1)).astype(float)
    elif kind == "separated":
        X = 0.05 * X + 5.0 * rng.integers(0, 4, (n, 1))
    elif kind == "outliers":
        X[rng.integers(0, n, 3)] *= 10.0 ** rng.integers(1, 6)
    elif kind == "tiny values":
        X *= 10.0 ** rng.integers(-60, -30)
    elif kind == "huge values":
        X *= 10.0 ** rng.integers(30, 130)
    elif kind == "one value":
        X[:] = 0.1
    return X


KINDS = (
    "gaussian", "skewed", "constant", "duplicated", "timestamps", "integers", "lattice", "line",
    "separated", "outliers", "tiny values", "huge values", "one value",
)  # fmt: skip
COMMANDS = ("one", "one", "one", "few", "many", "seed", "candidate", "extreme", "nearly all")


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, int, list[str], np.random.Generator]:
    """Data, a number of clusters, what to delete, and the chance by which it is chosen."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 12) | st.integers(13, 90) | st.sampled_from([400, 500, 900]))
    X = make_data(draw(st.sampled_from(KINDS)), n, draw(st.integers(1, 5)), rng)
    small = float(np.abs(X).max(initial=0.0)) < 1e30 and float(np.abs(X).min(initial=0.0)) > 1e-30
    if small and draw(st.booleans()):
        X = X.astype(np.float32)
    few = st.integers(1, 6) if n < 400 else st.integers(1, 3)  # where pairs of clusters are filed
    k = draw(few | st.sampled_from([8, 17, 25, n - 1, n]))
    plan = draw(st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=8))
    return X, min(k, n, 40), plan, rng


def choose(command: str, model: Any, X: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Ids to delete, such that the model can go on."""
    ids = model.ids_
    spare = len(ids) - model.n_clusters
    size = {"few": 4, "many": max(1, spare // 3), "nearly all": spare - int(rng.integers(0, 3))}
    if command in ("seed", "candidate"):
        known = seeds_of(model, "chosen" if command == "seed" else "candidates")
        return [int(rng.choice(known))][: max(spare, 0)]
    if command == "extreme":
        f = int(rng.integers(X.shape[1]))
        at = X[ids, f].argmax() if rng.random() < 0.5 else X[ids, f].argmin()
        return [int(ids[at])][: max(spare, 0)]
    n_gone = min(max(size.get(command, 1), 0), spare)
    return rng.choice(ids, n_gone, replace=False).tolist()


def obey(model: Any, X: np.ndarray, plan: list[str], rng: np.random.Generator) -> None:
    model.fit(X)
    for command in plan:
        model.delete(choose(command, model, X, rng), digest=bool(rng.random() < 0.3))
        if rng.random() < 0.7:
            assert_lawful(model, X)
    assert_lawful(model, X)
    with pytest.raises(TooFewRecordsError):
        model.delete(model.ids_)


SOME = settings(max_examples=examples(120))


@SOME
@given(
    problem=problems(),
    max_iter=st.sampled_from([1, 2, 10, 40]),
    tol=st.sampled_from([0.0, 0.0, 1e-4, 0.05]),
    seed=st.integers(0, 2**64 - 1),
)
def test_kmeans(problem: Any, max_iter: int, tol: float, seed: int) -> None:
    X, k, plan, rng = problem
    obey(KMeans(k, max_iter=max_iter, tol=tol, random_state=seed), X, plan, rng)


@SOME
@given(
    problem=problems(),
    max_iter=st.sampled_from([1, 3, 10, 30]),
    epsilon=st.sampled_from([None, None, 1e-3, 0.1, 2.0]),
    gamma=st.sampled_from([0.0, 0.2, 0.9]),
    seed=st.integers(0, 2**64 - 1),
)
def test_quantized_kmeans(
    problem: Any, max_iter: int, epsilon: float | None, gamma: float, seed: int
) -> None:
    X, k, plan, rng = problem
    model = QuantizedKMeans(k, max_iter=max_iter, epsilon=epsilon, gamma=gamma, random_state=seed)
    obey(model, X, plan, rng)


@SOME
@given(
    problem=problems(),
    width=st.none() | st.integers(1, 5),
    height=st.integers(1, 3),
    weighted=st.booleans(),
    max_iter=st.sampled_from([1, 10]),
    seed=st.integers(0, 2**64 - 1),
)
def test_divide_and_conquer(
    problem: Any, width: int | None, height: int, weighted: bool, max_iter: int, seed: int
) -> None:
    X, k, plan, rng = problem
    model = DivideAndConquerKMeans(
        k, width=width, height=height, weight_by_mass=weighted, max_iter=max_iter,
        random_state=seed,
    )  # fmt: skip
    obey(model, X, plan, rng)
