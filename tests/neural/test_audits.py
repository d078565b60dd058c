"""Audits of models behind a frozen network, and of networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from erasable.audit import LiRA, audit_deletion, audit_membership  # noqa: E402
from erasable.audit._data import Sample  # noqa: E402
from erasable.audit._shadows import train_shadows  # noqa: E402
from erasable.audit._signals import signals_of  # noqa: E402
from erasable.linear_model import LogisticRegression  # noqa: E402
from erasable.neighbors import KNeighborsClassifier  # noqa: E402
from erasable.neural import Embedding, NetworkClassifier  # noqa: E402
from erasable.pipeline import make_pipeline  # noqa: E402


def noise(n: int) -> tuple[Any, Any]:
    """Images whose targets cannot be learned but by heart."""
    source = np.random.default_rng(0)
    return source.random((n, 64)), source.integers(0, 2, n)


def images() -> Embedding:
    return Embedding("neural.backbones.images", shape=(1, 8, 8))


def test_pairs_behind_a_frozen_network_are_refits() -> None:
    X, y = noise(60)
    pool = Sample.read((X, y), "pool")
    head = make_pipeline(images(), LogisticRegression())
    shadows = train_shadows(head, pool, n_models=4, seed=2, paired=[0, 59])
    assert shadows.without is not None
    for k, row in np.argwhere(shadows.members[:, [0, 59]]).tolist():
        gone = (0, 59)[row]
        left = np.setdiff1d(np.flatnonzero(shadows.members[k]), gone)
        fresh = make_pipeline(images(), LogisticRegression()).fit(X[left], y[left], ids=left)
        assert shadows.without[k, gone] == signals_of(fresh, pool.take([gone])).logit[0]


@pytest.mark.parametrize("attack", ["rmia", LiRA(8)], ids=str)
def test_what_a_head_knows_by_heart_is_found(attack: Any) -> None:
    X, y = noise(400)
    model = make_pipeline(images(), KNeighborsClassifier(n_neighbors=1)).fit(X[:150], y[:150])
    split = (X[:150], y[:150]), (X[150:], y[150:])
    assert audit_membership(model, *split, attack=attack, random_state=0).verdict == "found"
    flat = make_pipeline(images(), KNeighborsClassifier(n_neighbors=40)).fit(X[:150], y[:150])
    assert audit_membership(flat, *split, attack=attack, random_state=0).verdict != "found"


def test_an_exact_deletion_behind_a_frozen_network() -> None:
    X, y = noise(80)
    model = make_pipeline(images(), LogisticRegression()).fit(X, y)
    model.delete(range(10))
    kept = X[10:], y[10:], list(range(10, 80))
    assert audit_deletion(model, kept, (X[:10], y[:10])).verdict == "equal"


def test_a_network_that_has_learned_by_heart() -> None:
    X, y = noise(240)
    learner = NetworkClassifier(
        "neural.backbones.layers", network_params={"width": 64}, max_epochs=150, batch_size=16,
        random_state=0,
    )  # fmt: skip
    X = X.astype(np.float32)
    model = learner.fit(X[:80], y[:80])
    split = (X[:80], y[:80]), (X[80:], y[80:])
    assert audit_membership(model, *split, random_state=0).verdict == "found"
