"""What float64 cannot hold is told once for each fit, whatever the score, and only then."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import spearmanr

from erasable.core.grid import Grid, PrecisionWarning
from erasable.removal import Coverage, DomainRemoval, MaxShift, MinRemoval
from erasable.removal._sets import Sets
from erasable.removal.scores import SCORES, NeighborRatio
from removal import plain_scores as plain

DENSE_ONLY = ("maha-mu2", "lr-maha")
SCORES_OF = {
    kind: [name for name in SCORES if kind == "dense" or name not in DENSE_ONLY]
    for kind in ("dense", "sparse")
}
EVERY = [(kind, name) for kind, names in SCORES_OF.items() for name in names]


def draw(n1: int = 90, n2: int = 70, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(n1, d)), rng.normal(size=(n2, d)) + 1.0


def warned(kind: str, name: str, sets: Any, **options: Any) -> list[str]:
    """Return what is said of precision, by a fit and all that is asked for afterwards."""
    made = [csr_array(X) if kind == "sparse" else X for X in sets]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        removal = DomainRemoval(name, **{"budget": 5, "random_state": 0, **options}).fit(*made)
        _ = removal.frontier_, removal.alpha_, removal.epsilon_
    return [str(each.message) for each in caught if each.category is PrecisionWarning]


def vanishing(X: Any, at: int = 1) -> Any:
    """One value is so large that the others of its column are nothing beside it."""
    X = X.copy()
    X[3, at] = 1e12
    return X


@pytest.mark.parametrize("covariance", ["shared", "free"])
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_vanishing_values_are_told_once(kind: str, name: str, covariance: str) -> None:
    sets = [vanishing(X) for X in draw()]
    told = warned(kind, name, sets, covariance=covariance)
    assert len(told) == 1
    assert "1 columns (1): more than 1 % of their nonzero values" in told[0]


@pytest.mark.parametrize("budget", [0.5, Coverage(0.5), MinRemoval(0.0), MaxShift(9e99)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_any_budget_tells_once(kind: str, budget: Any) -> None:
    assert len(warned(kind, "mu2-distance", [vanishing(X) for X in draw()], budget=budget)) == 1


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("kind", "name"), [("dense", "mu2-distance"), ("sparse", "mu2-distance")])
def test_values_that_vanish_beside_the_other_set_are_told(kind: str, name: str, side: int) -> None:
    """Either set alone is fine: it is on the grid of both that one of them is 0."""
    sets = list(draw())
    rng = np.random.default_rng(0)
    sets[side] = sets[side] * np.where(np.arange(4) == 2, 1e12, 1.0)
    for X in sets:
        assert not Grid.fit(X, warn=False).skewed(X).size
    assert "1 columns (2): more than 1 %" in warned(kind, name, sets)[0]
    sets[side][:, 2] = rng.normal(size=len(sets[side]))
    assert warned(kind, name, sets) == []


@pytest.mark.parametrize("name", DENSE_ONLY)
def test_a_coarse_metric_is_told_once(name: str) -> None:
    forget, retain = draw()
    forget[0, 0] = 1e6
    told = warned("dense", name, (forget, retain))
    assert len(told) == 1
    assert "1 columns (0): they vary by less than 2**-16 of their range" in told[0]


def test_all_that_is_lost_is_told_at_once() -> None:
    """By the names of the columns, where there are some."""
    forget, retain = (vanishing(X) for X in draw())
    forget[:, 3], retain[:, 3] = forget[:, 3] + 5.0, retain[:, 3] + 5.0
    forget[0, 3] = 2e5
    frames = [pd.DataFrame(X, columns=list("abcd")) for X in (forget, retain)]
    frames[1].index += 100
    told = warned("dense", "lr-maha", frames)
    assert len(told) == 1
    assert "('b'): more than 1 %" in told[0]
    assert "('d'): they vary" in told[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("kind", "name"), [each for each in EVERY if each[0] == "sparse"])
def test_sparse_sets_far_from_0_are_told(kind: str, name: str, dtype: Any) -> None:
    sets = [(X * 10 + 1e8).astype(dtype) for X in draw()]
    told = warned(kind, name, sets)
    assert len(told) == 1
    assert "4 columns (0, 1, 2, ...): sparse, they vary by less than 2**-20" in told[0]


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_where_nothing_is_lost_nothing_is_told(kind: str, name: str, offset: float) -> None:
    """The control: also with zeros, constant columns and empty ones."""
    sets = []
    for X in draw():
        rng = np.random.default_rng(0)
        gaps = np.where(rng.random(X.shape) < 0.3, 0.0, X)
        constant = 3.0 if "cos" in name else 1e8  # which makes all directions one
        sets.append(np.column_stack([X + offset, gaps, np.full(len(X), constant)]))
    if kind == "sparse":
        sets = [np.column_stack([X, np.zeros(len(X))]) for X in sets]
    assert warned(kind, name, sets) == []


@pytest.mark.parametrize("name", ["mu2-distance", "knn-ratio", "lr-maha", "coreset", "craig"])
def test_dense_sets_far_from_0_lose_nothing(name: str) -> None:
    """They have an origin: their order is that of the same records around 0."""
    forget, retain = (np.round(X * 2**8) / 2**8 for X in draw(d=20))
    assert warned("dense", name, (forget + 1e8, retain + 1e8)) == []
    near = SCORES[name].rank(Sets(forget, retain), 0).scores
    far = SCORES[name].rank(Sets(forget + 1e8, retain + 1e8), 0).scores
    assert spearmanr(near, far)[0] > 0.999


def test_sparse_sets_far_from_0_do_lose() -> None:
    """The control: what is warned of is there."""
    forget, retain = (X + 1e8 for X in draw())
    dense = DomainRemoval("mu2-distance", budget=5).fit(forget, retain)
    with pytest.warns(PrecisionWarning, match="sparse"):
        sparse = DomainRemoval("mu2-distance", budget=5).fit(csr_array(forget), csr_array(retain))
    assert abs(sparse.alpha_ - dense.alpha_) > 0.5


@pytest.mark.parametrize("name", ["cos-mu2", "lr-cos"])
@pytest.mark.filterwarnings("ignore::erasable.removal.RemovalWarning")
def test_cosines_that_are_rounding_are_told(name: str) -> None:
    sets = [X + 1e8 for X in draw()]
    told = warned("dense", name, sets)
    assert len(told) == 1
    assert "all records have nearly one direction" in told[0]
    same = np.ones((90, 4)), draw()[1]
    assert warned("dense", name, same) == []


def test_neighbours_far_from_0_are_those_of_the_definition() -> None:
    """In 20 columns scikit-learn multiplies rows; around 1e8 that left no distance at all."""
    forget, retain = (np.round(X * 2**8) / 2**8 for X in draw(d=20))
    found = NeighborRatio().rank(Sets(forget + 1e8, retain + 1e8), 0).scores
    np.testing.assert_allclose(found, plain.SCORES["knn-ratio"](forget, retain), rtol=1e-6)
