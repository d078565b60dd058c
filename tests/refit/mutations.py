"""Files of fitted models in which fields have been changed, and the digest computed anew.

A stranger can write any of these: nothing in them is damaged, and the digest is that of what is
there. `mutated` changes one to three fields, anywhere below a fitted estimator.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.digest import leaf_hash, state_root

__all__ = ["mutated", "rewritten", "saved"]

_NUMBERS = (0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, 2**40, 2**62, -(2**62))
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e300, np.nan, np.inf, -np.inf)
_WORDS = (
    "",
    "a",
    "auto",
    "kd_tree",
    "brute",
    "sklearn.tree._tree.Tree",
    "numpy.log",
    "list",
    "<U9",
)

Place = tuple[Any, Any]
"""A dict or a list, and the key of a field in it."""


def saved(model: Any) -> bytes:
    """Return the file of a model."""
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def rewritten(file: bytes, change: Any) -> bytes:
    """Return a file whose state has been changed in place, with the digest of what it holds."""
    header, state = read_artifact(io.BytesIO(file))
    change(state)
    hashed = {**state, "params": leaf_hash("params", state_root(state["params"]).hex())}
    if state["feature_names"] is not None:
        names = state_root({"": state["feature_names"]}).hex()
        hashed["feature_names"] = leaf_hash("feature_names", names)
    if "members" in state:
        hashed["members"] = {
            number: leaf_hash(f"members.{number}", state_root(member).hex())
            for number, member in state["members"].items()
        }
    kind = header["digest"].partition(":")[0]
    header["digest"] = f"{kind}:{state_root(hashed).hex()}"
    out = io.BytesIO()
    write_artifact(out, header, state)
    return out.getvalue()


def mutated(file: bytes, seed: int) -> bytes:
    """Return a file in which fields of what was fitted have been changed."""
    random = Random(seed)

    def change(state: dict[str, Any]) -> None:
        for _ in range(random.randint(1, 3)):
            places = list(_places(state))
            weights = [4 if isinstance(home[key], np.ndarray) else 1 for home, key in places]
            _change(*random.choices(places, weights)[0], random)

    return rewritten(file, change)


def _places(state: dict[str, Any]) -> Iterator[Place]:
    fitted = state.get("members", {"": state})
    for each in fitted.values():
        for key in ("fitted", "text_columns"):
            if key in each:
                yield each, key
                yield from _below(each[key])
    if "classes" in state:
        yield from ((state["classes"], key) for key in ("labels", "counts"))


def _below(tree: Any) -> Iterator[Place]:
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _below(tree[key])


def _change(home: Any, key: Any, random: Random) -> None:
    value = home[key]
    if isinstance(value, np.ndarray):
        home[key] = _changed_array(value, random)
    elif isinstance(home, dict) and random.random() < 0.08:
        del home[key]
    elif isinstance(value, bool):
        home[key] = not value
    elif isinstance(value, int):
        home[key] = random.choice([*_NUMBERS, value + 1, value - 1])
    elif isinstance(value, float):
        home[key] = random.choice([*_FLOATS, value * 2, -value])
    elif isinstance(value, str):
        home[key] = random.choice([*_WORDS, value + "_", value[::-1]])
    elif isinstance(value, dict) and value and random.random() < 0.5:
        other = random.choice(list(value))
        value[f"{other}x"] = value.pop(other)
    else:
        home[key] = random.choice([None, 3, "a", {}, [], np.zeros((2, 2)), {"is": "list"}])


def _changed_array(array: Any, random: Random) -> Any:
    """Change a few items, or the shape, or the type."""
    array = copy.deepcopy(array)
    how = random.random()
    if how < 0.7 and array.size:
        for _ in range(random.randint(1, 3)):
            place = random.randrange(array.size)
            if array.dtype.kind == "O":
                array.flat[place] = random.choice([None, "", "b", 3, 1e300, array.flat[-1]])
            elif array.dtype.kind == "f":
                array.flat[place] = random.choice(_FLOATS)
            elif random.random() < 0.5:
                array.flat[place] = array.flat[random.randrange(array.size)]
            elif array.dtype.kind in "iu":
                limits = np.iinfo(array.dtype)
                number = random.choice([*_NUMBERS, limits.min, limits.max, array.size])
                array.flat[place] = min(max(number, int(limits.min)), int(limits.max))
        return array
    return random.choice(
        [
            lambda: array[:-1] if array.ndim else array.reshape(1),
            lambda: np.concatenate([array, array]) if array.ndim else array.reshape(1, 1),
            lambda: array.reshape(-1),
            lambda: array[None],
            lambda: array.T if array.ndim else array,
            lambda: array[:0] if array.ndim else array,
            lambda: array.astype(np.float32) if array.dtype.kind in "fiub" else array,
            lambda: array.astype(np.int64) if array.dtype.kind in "iub" else np.zeros(3, np.int8),
            lambda: np.array([None, "a"], dtype=object),
        ]
    )()
