"""Changes of the fields of a file: what somebody could do who writes a file of their own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import erasable
from erasable.core.params import class_path

__all__ = ["mutate"]

NUMBERS: list[Any] = [
    -1, 0, 1, 2, 3, -(2**31), 2**31, 2**53, 2**63 - 1, -(2**63), 2**64, 10**9, 10**30,
    0.5, -0.0, 1e300, -1e300, 1e-300, float("nan"), float("inf"), -float("inf"),
]  # fmt: skip
OTHERS: list[Any] = [
    None, True, False, "", "a", "ü\u200b", "x" * 1000, "passthrough", "drop", [], [0], {},
    {"a": 1}, [[0, 1], [2]], {"__tuple__": [0, 1]}, {"__slice__": [0, None, 2]},
    {"__function__": "numpy.log"},
    {"__function__": "sklearn.metrics._ranking.auc"}, {"__mapping__": [[1, 2]]},
    {"__estimator__": "erasable.cluster.KMeans", "params": {}},
    {"__estimator__": "sklearn.linear_model.Ridge", "params": {"alpha": -1.0}},
]  # fmt: skip
DTYPES = [
    "f4",
    "f8",
    "f2",
    "i8",
    "i4",
    "i1",
    "u8",
    "u1",
    "b1",
    "c16",
    "O",
    "U3",
    ">f8",
    ">i8",
    "M8[s]",
]


def mutate(
    rng: np.random.Generator, header: dict[str, Any], state: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return a changed copy of what a file holds, and what was done, for a message.

    Parameters
    ----------
    rng : Generator
    header, state : dict
        From `read_artifact`.
    """
    header, state = copy.deepcopy(header), copy.deepcopy(state)
    told = []
    if rng.random() < 0.03:
        paths = [class_path(cls) for _, cls, _ in erasable.all_estimators()]
        header["class"] = paths[rng.integers(len(paths))]
        told.append(f"class = {header['class']}")
        if rng.random() < 0.7:
            return header, state, told[0]
    for _ in range(1 + int(rng.random() < 0.25)):
        places = list(_places(state, ""))
        # Of any depth: a place of its own for every level of names.
        where = places[rng.integers(len(places))]
        if rng.random() < 0.5:
            tops = sorted({at.split(".")[1] for _, _, at in places})
            top = tops[rng.integers(len(tops))]
            within = [place for place in places if place[2].split(".")[1] == top]
            where = within[rng.integers(len(within))]
        parent, key, at = where
        told.append(f"{at[1:]}: {_change(rng, parent, key, places)}")
    return header, state, "; ".join(told)


def _places(tree: Any, at: str) -> Any:
    if isinstance(tree, dict):
        items: Any = list(tree.items())
    elif isinstance(tree, list):
        items = list(enumerate(tree))
    else:
        return
    for key, value in items:
        yield tree, key, f"{at}.{key}"
        yield from _places(value, f"{at}.{key}")


def _change(rng: np.random.Generator, parent: Any, key: Any, places: list[Any]) -> str:
    value = parent[key]
    drawn = rng.random()
    if drawn < 0.04:
        del parent[key]
        return "left out"
    if drawn < 0.07:
        if isinstance(parent, dict):
            parent[f"{key}2"] = copy.deepcopy(value)
        else:
            parent.append(copy.deepcopy(value))
        return "another one"
    if drawn < 0.14:
        other = places[rng.integers(len(places))]
        if other[1] in other[0] if isinstance(other[0], dict) else other[1] < len(other[0]):
            parent[key] = copy.deepcopy(other[0][other[1]])
        return f"what {other[2][1:]} holds"
    if drawn < 0.20:
        parent[key] = _any(rng)
        return f"= {str(parent[key])[:60]}"
    if isinstance(value, np.ndarray):
        parent[key], told = _other_array(rng, value)
        return told
    if isinstance(value, dict) and value:
        return _other_dict(rng, value)
    if isinstance(value, list) and value:
        return _other_list(rng, value)
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.8:
        parent[key] = _other_number(rng, value)
        return f"= {parent[key]}"
    parent[key] = _any(rng)
    return f"= {str(parent[key])[:60]}"


def _any(rng: np.random.Generator) -> Any:
    every = [*NUMBERS, *OTHERS, np.zeros(0), np.zeros(3), np.arange(3), np.zeros((2, 3))]
    return copy.deepcopy(every[rng.integers(len(every))])


def _number(rng: np.random.Generator) -> Any:
    return NUMBERS[rng.integers(len(NUMBERS))]


def _other_number(rng: np.random.Generator, value: Any) -> Any:
    near = [value + 1, value - 1, -value, 2 * value, float(value), str(value), value + 0.5]
    return near[rng.integers(len(near))] if rng.random() < 0.4 else _number(rng)


def _other_dict(rng: np.random.Generator, value: dict[str, Any]) -> str:
    names = list(value)
    one, two = names[rng.integers(len(names))], names[rng.integers(len(names))]
    if rng.random() < 0.5:
        value[one], value[two] = value[two], value[one]
        return f"{one} and {two} swapped"
    value[f"{one}x"] = value.pop(one)
    return f"{one} renamed"


def _other_list(rng: np.random.Generator, value: list[Any]) -> str:
    drawn = rng.integers(4)
    if drawn == 0:
        value.reverse()
        return "reversed"
    if drawn == 1:
        value.extend(copy.deepcopy(value))
        return "twice"
    if drawn == 2:
        value.clear()
        return "emptied"
    value[rng.integers(len(value))] = _any(rng)
    return "one item changed"


def _other_array(rng: np.random.Generator, array: Any) -> tuple[Any, str]:
    changes: list[Callable[[], Any]] = [
        lambda: array[:-1] if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: array.ravel(),
        lambda: array[None],
        lambda: array[..., :-1] if array.ndim else array,
        lambda: np.asfortranarray(array),
        lambda: array.T.copy(),
        lambda: array[::-1].copy() if array.ndim else array,
        lambda: rng.permutation(array) if array.ndim else array,
        lambda: np.zeros_like(array),
        lambda: array.tolist(),
    ]
    drawn = rng.random()
    with np.errstate(all="ignore"):
        try:
            if drawn < 0.25:
                at = int(rng.integers(len(changes)))
                return changes[at](), f"other shape or order ({at})"
            if drawn < 0.35:
                kind = DTYPES[rng.integers(len(DTYPES))]
                return array.astype(kind), f"as {kind}"
            return _other_cells(rng, array)
        except (TypeError, ValueError, OverflowError):
            return None, "= None"


def _other_cells(rng: np.random.Generator, array: Any) -> tuple[Any, str]:
    out = array.copy()
    if out.size == 0:
        return np.ones(2), "= [1, 1]"
    flat = out.reshape(-1)
    at = rng.integers(flat.size) if rng.random() < 0.8 else slice(None)
    where = "every cell" if isinstance(at, slice) else f"cell {at}"
    if rng.random() < 0.2:
        flat[at] = flat[rng.integers(flat.size)]
        return out, f"{where} as another one"
    if out.dtype == object:
        values = [*NUMBERS, "", "a", "zz", None, True, ["a"], {"b": 1}]
        if isinstance(at, slice):
            at = 0
        flat[at] = values[rng.integers(len(values))]
        return out, f"cell {at} = {flat[at]!r}"
    if out.dtype.kind in "iu" and rng.random() < 0.5:
        flat[at] += np.array([1, 2, 100, 10**6], dtype=out.dtype)[rng.integers(4)]
        return out, f"{where} more"
    if out.dtype.kind in "if" and rng.random() < 0.3:
        flat[at] = -flat[at] - (flat[at] == 0)
        return out, f"{where} negative"
    limits = np.iinfo(out.dtype) if out.dtype.kind in "iu" else None
    number = _number(rng)
    if limits is not None:
        number = int(
            np.clip(np.nan_to_num(float(number)), float(limits.min), float(limits.max) / 2)
        )
    flat[at] = number
    return out, f"{where} = {number}"
