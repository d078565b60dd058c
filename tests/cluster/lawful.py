"""The law on clustering models: what a deletion left is compared with a fit of what is left."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from erasable.core.tape import Tape


def leaves(state: Any, name: str = "") -> dict[str, Any]:
    """Flatten a state into dotted names."""
    if not isinstance(state, Mapping):
        return {name: state}
    flat: dict[str, Any] = {}
    for key, value in state.items():
        flat |= leaves(value, f"{name}.{key}")
    return flat


def same(a: Any, b: Any) -> bool:
    """Tell whether two values are equal in type, shape and bits."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b


def saved(model: Any) -> bytes:
    """Return the bytes of a saved model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.read_bytes()


def fresh(model: Any, X: np.ndarray, groups: Any = None) -> Any:
    """Fit again, on the rows of `X` that the model still holds; ids are row numbers."""
    ids = model.ids_
    new = clone(model).set_params(random_state=model.seed_)
    return new.fit(X[ids], ids=ids, groups=None if groups is None else groups[ids])


def assert_lawful(model: Any, X: np.ndarray, groups: Any = None) -> Any:
    """Demand that a model equals its fresh fit in everything that can be asked; return that."""
    other = fresh(model, X, groups)
    mine, theirs = leaves(model.state()), leaves(other.state())
    assert mine.keys() == theirs.keys()
    unequal = [name for name in mine if not same(mine[name], theirs[name])]
    assert not unequal
    assert model.digest() == other.digest()
    assert saved(model) == saved(other)
    assert same(model.labels_, other.labels_)
    assert same(model.labels_, model.predict(X[model.ids_]))
    for name in ("cluster_centers_", "inertia_", "n_iter_", "init_centers_", "losses_"):
        if hasattr(other, name):
            assert same(getattr(model, name), getattr(other, name)), name
    return other


def seeds_of(model: Any, part: str = "chosen") -> list[int]:
    """Ids of the records that seed a model, or of the candidates; for a tree, of its leaves."""
    state = model.state()
    nodes = state["nodes"].items() if "nodes" in state else [("", state)]
    keys: set[int] = set()
    for name, node in nodes:
        if node and (not name or name.startswith(f"{model.height}/")):
            keys |= set(np.ravel(node["seeds"][part]).tolist())
    ids = model.ids_
    by_key = dict(zip(Tape(model.seed_).record_keys(ids).tolist(), ids.tolist(), strict=True))
    return sorted(by_key[key] for key in keys if key in by_key)
