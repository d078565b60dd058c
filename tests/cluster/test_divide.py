"""DivideAndConquerKMeans equals plain k-means on the leaves, and on what they hand up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from cluster import oracles
from erasable.cluster import DivideAndConquerKMeans
from erasable.cluster._tree import Leaf, default_width
from erasable.core.errors import InvalidInputError
from erasable.core.grid import Grid
from erasable.core.tape import Stream, Tape


def quantum_of_tops(tops: Any) -> float:
    return 2.0 ** (35 - (2 * (int(max(tops)) + 1) + math.ceil(math.log2(len(tops)))))


@dataclass
class PlainNode:
    """What a node hands up, and the partition it made."""

    centers: np.ndarray
    counts: list[int]
    levels: list[oracles.Level]


def solve(
    X: np.ndarray, keys: Any, tape: Tape, k: int, rounds: int, quantum: float, mass: Any = None
) -> PlainNode:
    """k-means of one node, by the oracles of seeding and of Lloyd's algorithm."""
    if not len(X):
        return PlainNode(np.empty((0, 0)), [], [])
    k = min(k, len(X))
    tries = 2 + int(math.log(k))
    seeds = oracles.greedy_seeds(X, keys.tolist(), tape.seed, k, tries, quantum, mass)
    levels = oracles.lloyd(X, X[seeds.chosen], rounds, mass)
    return PlainNode(levels[-1].centers, levels[-1].counts, levels)


def plain_tree(
    X: np.ndarray, labels: Any, model: DivideAndConquerKMeans, width: int, weighted: bool
) -> dict[str, PlainNode]:
    """Algorithm 2 of Ginart et al., with leaves by hash; `labels` are the ids, or the groups."""
    tape, k, rounds, height = Tape(model.seed_), model.n_clusters, model.max_iter, model.height
    chance = tape.uniform(tape.record_keys(labels), Stream.LEAF, 0)
    leaf_of = np.floor(chance * width**height).astype(int)
    keys = tape.record_keys(model.ids_)
    quantum = quantum_of_tops(oracles.top_exponents(X))
    nodes: dict[str, PlainNode] = {}
    for i in range(width**height):
        mine = leaf_of == i
        child = tape.child("node", height, i)
        nodes[f"{height}/{i}"] = solve(X[mine], keys[mine], child, k, rounds, quantum)
    for depth in range(height - 1, -1, -1):
        for i in range(width**depth):
            below = [nodes[f"{depth + 1}/{i * width + j}"] for j in range(width)]
            found = [
                (j * k + c, centre, count)
                for j, node in enumerate(below)
                for c, (centre, count) in enumerate(zip(node.centers, node.counts, strict=True))
            ]
            name, child = "root" if depth == 0 else f"{depth}/{i}", tape.child("node", depth, i)
            if not found:
                nodes[name] = solve(np.empty((0, 0)), None, child, k, rounds, 1.0)
                continue
            numbers, points, mass = (np.array(part) for part in zip(*found, strict=True))
            grid = Grid.fit(points, warn=False)
            solved = solve(
                grid.apply(points), child.record_keys(numbers), child, k, rounds,
                quantum_of_tops(grid.top), mass if weighted else None,
            )  # fmt: skip
            nodes[name] = PlainNode(solved.centers + grid.origin, solved.counts, solved.levels)
    return nodes


SHAPES = [(1, 1), (2, 1), (5, 1), (2, 2), (3, 2), (2, 3), (1, 3), (64, 1)]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "mass"])
@pytest.mark.parametrize(("width", "height"), SHAPES)
def test_every_node_is_plain_kmeans(width: int, height: int, weighted: bool) -> None:
    rng = np.random.default_rng([width, height])
    X = oracles.on_grid(rng.normal(size=(150, 3)) + 4.0 * rng.integers(0, 3, (150, 1)))
    ids = rng.permutation(1_000)[:150]
    model = DivideAndConquerKMeans(
        4, width=width, height=height, weight_by_mass=weighted, random_state=3
    ).fit(X, ids=ids)
    nodes = plain_tree(X, ids, model, width, weighted)
    states = model.state()["nodes"]
    assert {name for name, node in nodes.items() if node.levels} == {
        name for name, state in states.items() if state
    }
    for name, state in states.items():
        if not state:
            continue
        levels = nodes[name].levels
        assert len(state["path"]["centers"]) == len(levels)
        for t, level in enumerate(levels):
            assert np.array_equal(state["path"]["centers"][t], level.centers)
            assert state["path"]["counts"][t].tolist() == level.counts
    assert np.array_equal(model.cluster_centers_, nodes["root"].centers)
    assert model.n_leaves_ == width**height
    assert np.array_equal(model.labels_, oracles.nearest(X, model.cluster_centers_))
    assert np.array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == oracles.loss(X, model.cluster_centers_)
    assert model.n_iter_ == min(len(nodes["root"].levels), 10)
    if width == 64:
        sizes = [sum(nodes[f"1/{i}"].counts) for i in range(64)]
        assert 0 in sizes
        assert any(0 < size < 4 for size in sizes)


def test_a_tree_of_width_one_is_one_kmeans_on_every_level() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) + 5.0 * rng.integers(0, 4, (200, 1))
    model = DivideAndConquerKMeans(4, width=1, height=2, random_state=0).fit(X)
    nodes = model.state()["nodes"]
    centers = [nodes[name]["path"]["centers"][-1] for name in ("2/0", "1/0")]
    ordered = [c[np.lexsort(c.T)] for c in (*centers, model.cluster_centers_)]
    assert np.allclose(ordered[0], ordered[1], atol=1e-6)
    assert np.allclose(ordered[0], ordered[2], atol=1e-6)


def test_a_leaf_can_be_computed_anywhere() -> None:
    """It is a pure function of its records, their keys, its place, and the grid."""
    rng = np.random.default_rng(1)
    X = oracles.on_grid(rng.normal(size=(120, 3)))
    model = DivideAndConquerKMeans(3, width=4, random_state=8).fit(X)
    tape = Tape(8)
    keys = tape.record_keys(np.arange(120))
    leaf_of = np.floor(tape.uniform(keys, Stream.LEAF, 0) * 4).astype(int)
    quantum = quantum_of_tops(oracles.top_exponents(X))
    for i in range(4):
        mine = rng.permutation(np.flatnonzero(leaf_of == i))
        leaf = Leaf(f"1/{i}", tape.child("node", 1, i), 3, 10)
        leaf.fit(X[mine], keys[mine], np.arange(mine.size), quantum)
        alone, inside = leaf.state(), model.state()["nodes"][f"1/{i}"]
        for part, names in inside.items():
            for name, value in names.items():
                assert np.array_equal(value, alone[part][name])


def test_deletions_leave_other_leaves_alone() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    model = DivideAndConquerKMeans(3, width=2, height=2, random_state=1).fit(X)
    tape = Tape(1)
    leaf_of = np.floor(tape.uniform(tape.record_keys(np.arange(200)), Stream.LEAF, 0) * 4)
    inner = np.flatnonzero((np.abs(X) < 1.0).all(axis=1))
    for record in inner[:20].tolist():
        before = model.state()["nodes"]
        deletion = model.delete([record])
        after = model.state()["nodes"]
        mine = int(leaf_of[record])
        assert deletion.counts["leaves"] == 1
        for name in before:
            same = all(
                np.array_equal(before[name][part][value], after[name][part][value])
                for part in before[name]
                for value in before[name][part]
            )
            if name not in (f"2/{mine}", f"1/{mine // 2}", "root"):
                assert same
            elif name == f"2/{mine}":
                assert not same


def test_a_group_stays_in_one_leaf() -> None:
    rng = np.random.default_rng(3)
    X = oracles.on_grid(rng.normal(size=(180, 2)))
    groups = np.array([f"patient {g}" for g in rng.integers(0, 40, 180)], object)
    model = DivideAndConquerKMeans(2, width=6, random_state=4).fit(X, groups=groups)
    nodes = plain_tree(X, groups, model, 6, False)
    assert np.array_equal(model.cluster_centers_, nodes["root"].centers)
    for name, state in model.state()["nodes"].items():
        assert np.array_equal(state["path"]["counts"][-1], nodes[name].counts)
    assert model.delete(groups=["patient 5"]).counts["leaves"] == 1
    left = groups != "patient 5"
    ids = np.flatnonzero(left)
    fresh = DivideAndConquerKMeans(2, width=6, random_state=4)
    assert model.digest() == fresh.fit(X[left], ids=ids, groups=groups[left]).digest()


def test_merging_by_mass_is_another_model() -> None:
    """A few far records make a centroid that counts as one of many, or as a few records."""
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal(size=(600, 1)), 30.0 + rng.normal(size=(6, 1)) * 4.0])
    by_count, by_mass = (
        DivideAndConquerKMeans(3, width=8, weight_by_mass=weighted, random_state=0).fit(X)
        for weighted in (False, True)
    )
    assert by_count.digest() != by_mass.digest()
    assert not np.array_equal(by_count.cluster_centers_, by_mass.cluster_centers_)
    assert sum(by_mass.state()["nodes"]["root"]["path"]["counts"][-1]) == 606


@pytest.mark.parametrize("height", [1, 3])
@pytest.mark.parametrize("width", [1, 4])
def test_centroids_without_mass_are_kept(width: int, height: int) -> None:
    X = np.ones((50, 2))
    X[0] = 2.0
    model = DivideAndConquerKMeans(
        5, width=width, height=height, weight_by_mass=True, random_state=0
    ).fit(X)
    assert model.cluster_centers_.shape == (5, 2)
    assert sum(model.state()["nodes"]["root"]["path"]["counts"][-1]) == 50
    assert len(np.unique(model.cluster_centers_, axis=0)) == 2
    assert model.transform(X).shape == (50, 5)
    assert len(set(model.predict([[1.0, 1.0], [2.0, 2.0]]).tolist())) == 2
    assert model.inertia_ == 0.0
    model.delete([0, 7])
    fresh = DivideAndConquerKMeans(
        5, width=width, height=height, weight_by_mass=True, random_state=0
    ).fit(X[model.ids_], ids=model.ids_)
    assert model.digest() == fresh.digest()
    assert model.cluster_centers_.shape == (5, 2)
    assert np.all(model.cluster_centers_ == 1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_run_empty(weighted: bool) -> None:
    rng = np.random.default_rng(6)
    X = oracles.on_grid(rng.normal(size=(40, 2)))
    X[rng.integers(0, 40, 20)] = X[0]
    model = DivideAndConquerKMeans(
        3, width=4, height=2, weight_by_mass=weighted, random_state=2
    ).fit(X)
    for record in rng.permutation(40)[:-3].tolist():
        model.delete([record])
        fresh = DivideAndConquerKMeans(
            3, width=4, height=2, weight_by_mass=weighted, random_state=2
        ).fit(X[model.ids_], ids=model.ids_)
        assert model.digest() == fresh.digest()
        assert np.array_equal(model.labels_, fresh.labels_)
    assert sum(1 for state in model.state()["nodes"].values() if not state) > 10


# -- how many leaves ---------------------------------------------------------------------------


def test_default_width_is_the_nearest_power_of_two() -> None:
    """Appendix D.1.2: ``n**0.3``, rounded to the nearest power of two."""
    rng = np.random.default_rng(7)
    numbers = [*range(1, 2_000), *(10 ** rng.uniform(3, 12, 1_000)).astype(int).tolist()]
    with mpmath.workdps(50):
        for n in numbers:
            exact = mpmath.mpf(n) ** (mpmath.mpf(3) / 10)
            lower = 2 ** int(mpmath.floor(mpmath.log(exact, 2) + mpmath.mpf(10) ** -30))
            upper = 2 * lower
            expected = upper if upper - exact <= exact - lower else lower
            assert default_width(n) == expected
    assert [default_width(n) for n in (1, 100_000, 1_000_000)] == [1, 32, 64]


def test_the_number_of_leaves_follows_n() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 2))
    for height in (1, 2, 3):
        model = DivideAndConquerKMeans(2, height=height, random_state=0).fit(X)
        seen = {model.n_leaves_}
        for record in range(57):
            before = model.n_leaves_
            action = model.delete([record]).action
            n = len(model.ids_)
            assert model.n_leaves_ >= default_width(n)
            assert height > 1 or model.n_leaves_ == default_width(n)
            assert model.n_leaves_ == before or action == "refit"
            fresh = DivideAndConquerKMeans(2, height=height, random_state=0)
            assert model.digest() == fresh.fit(X[model.ids_], ids=model.ids_).digest()
            seen.add(model.n_leaves_)
        assert len(seen) > 1


def test_too_many_leaves_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="at most 1048576; choose a smaller width"):
        DivideAndConquerKMeans(2, width=1_025, height=2).fit(np.arange(10.0)[:, None])
