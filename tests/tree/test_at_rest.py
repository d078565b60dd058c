"""What a file of a tree's accelerator holds: arrays, and not an object for each of its parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from erasable import load
from erasable.core.mapped.objects import take_apart
from erasable.ensemble import RandomForestClassifier, RandomForestRegressor
from erasable.tree import DecisionTreeClassifier
from naming import named

KINDS = [
    DecisionTreeClassifier(random_state=1),
    RandomForestClassifier(3, random_state=3),
    RandomForestRegressor(2, random_state=4),
]


def _fitted(kind: Any, n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n)
    return kind.fit(X, y if isinstance(kind, RandomForestRegressor) else y > 0), X, y


def _description(model: Any) -> int:
    model.digest()
    return len(json.dumps(take_apart(model._accelerator.trees)[0]))


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_a_larger_tree_has_no_longer_description(kind: Any) -> None:
    small, large = (_description(_fitted(kind, n)[0]) for n in (2000, 12_000))
    trees = kind._accelerator.trees
    assert large < small + 2000 * len(trees)
    units = sum(each._units.nodes.size for each in trees)
    assert units > 20 * len(trees)
    each_in_an_object = [dict(enumerate(map(bytes, tree._units.hashes))) for tree in trees]
    assert len(json.dumps(take_apart(each_in_an_object)[0])) > 70 * units  # as it would be


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_hashes_of_subtrees_come_back(kind: Any, tmp_path: Path) -> None:
    """Those that stay as they are are not hashed again, and the digest is that of a fit."""
    model, X, y = _fitted(kind, 3000)
    model.save(tmp_path / "model", records=True)
    again = load(tmp_path / "model", records=True)
    before = [each._units.hashes.tobytes() for each in again._accelerator.trees]
    assert before == [each._units.hashes.tobytes() for each in model._accelerator.trees]
    again.delete([7, 11])
    left = np.delete(np.arange(3000), [7, 11])
    target = y if isinstance(kind, RandomForestRegressor) else y > 0
    refit = clone(kind).fit(X[left], target[left], ids=left)
    assert again.digest() == refit.digest()
    # The negative control: a wrong hash of one that stays is in the digest.
    broken = load(tmp_path / "model", records=True)
    for each in broken._accelerator.trees:
        each._units.hashes[:] ^= np.uint8(1)
    broken.delete([7, 11])
    assert broken.digest() != again.digest()
