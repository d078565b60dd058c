"""Interrupting deletions, and checking that nothing is half-done afterwards.

A trace function raises KeyboardInterrupt at the n-th event in our own code, for every n: when a
function is entered, before each of its lines, and when it returns.
"""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import erasable
import integer_sums
from erasable.core.errors import ErasableError, UnknownIdError
from erasable.core.estimator import Erasable
from erasable.core.records import Records
from pipeline import small_steps

OURS = (str(Path(erasable.__file__).parent), integer_sums.__file__, small_steps.__file__)

N = 12
X = np.random.default_rng(3).integers(1, 30, size=(N, 2)) * np.array([1.0, 8.0])
X[4] = [900.0, 1.0]  # among the deleted: takes an extreme of each column with it
GONE = [4, 7]
NEXT = 9
IDS = {
    "count": list(range(5, 5 + N)),
    # One id and one group look like what erased ones are overwritten with.
    "integers": [0, *range(40, 40 - N + 1, -1)],
    "strings": ["", *(f"visit-{row}" for row in range(1, N))],
}
GROUPS = {
    "count": None,
    "integers": [0, 0, 0, 3, 3, 3, 6, 7, 8, 9, 9, 9],
    "strings": ["", "", "b", "b", "c", "e", "e", "c", "d", "d", "d", "d"],
}


# -- interrupting ----------------------------------------------------------------------------------


def interrupt(
    action: Callable[[], Any],
    at: int,
    ready: Callable[[], bool] = lambda: True,
    *,
    error: type[BaseException] = KeyboardInterrupt,
    where: tuple[str, ...] = OURS,
) -> bool:
    """Raise at the event of this number, of those when `ready`; tell whether there was one.

    Events are those in files whose names begin with one of `where`.
    """
    return _left(action, at, ready, error, where) < 0


def count_events(action: Callable[[], Any]) -> int:
    """Count the events of an action, one that raises an error of erasable included."""
    return sys.maxsize - _left(action, sys.maxsize, lambda: True, ErasableError, OURS)


def _left(
    action: Callable[[], Any],
    left: int,
    ready: Callable[[], bool],
    error: type[BaseException],
    where: tuple[str, ...],
) -> int:
    """Count down from a number with every event, and raise below 0; return what is left."""

    def watch(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        code = frame.f_code
        # What a generator raises as it is closed, Python drops.
        if not code.co_filename.startswith(where) or code.co_flags & inspect.CO_GENERATOR:
            return None
        if event in ("call", "line", "return") and ready():
            left -= 1
            if left < 0:
                raise error  # and Python calls `watch` no more
        return watch

    before = sys.gettrace()
    gc.disable()  # finalizers of earlier models are not what is to be interrupted
    sys.settrace(watch)
    try:
        action()
    except error:
        pass
    finally:
        sys.settrace(before)
        gc.enable()
    return left


class World:
    """Records, one or two models of them, and a request to delete from the first."""

    def __init__(self, make: Callable[[], Erasable], kind: str, others: str) -> None:
        self.make, self.kind = make, kind
        self.records = Records(X, ids=IDS[kind], groups=GROUPS[kind])
        self.models = [make().fit(self.records) for _ in range(1 if others == "none" else 2)]
        self.gone = [IDS[kind][row] for row in GONE]
        if others == "deleted":
            self.models[1].delete(self.gone)
        for model in self.models:
            model.digest()  # so that what is kept of it has to be kept right

    def restored(self) -> World:
        self.models = pickle.loads(pickle.dumps(self.models))
        self.records = self.models[0]._held.records
        return self

    def delete(self, **options: Any) -> Any:
        if GROUPS[self.kind] is None:
            return self.models[0].delete(self.gone, **options)
        groups = [GROUPS[self.kind][GONE[1]]]
        same = [i for i, group in enumerate(GROUPS[self.kind]) if group == groups[0]]
        extra = [IDS[self.kind][row] for row in GONE if row not in same]
        return self.models[0].delete(extra, groups=groups, **options)


@cache
def refitted(make: Callable[[], Erasable], kind: str, rows: tuple[int, ...]) -> str:
    groups = GROUPS[kind]
    return (
        make()
        .fit(
            X[list(rows)],
            ids=[IDS[kind][row] for row in rows],
            groups=None if groups is None else [groups[row] for row in rows],
        )
        .digest()
    )


# -- what has to hold afterwards -------------------------------------------------------------------


def check_records(world: World) -> None:
    """Everything in Records follows from what the models hold, counted from scratch."""
    records, kind = world.records, world.kind
    lives = [model._held.live for model in world.models]
    withdrawn = ~np.all(lives, axis=0)
    erased = ~np.any(lives, axis=0)
    assert np.array_equal(records._withdrawn, withdrawn)
    assert np.array_equal(records._erased, erased)
    assert len(records) == N - withdrawn.sum()
    assert np.array_equal(records.matrix, np.where(erased[:, None], 0.0, X))
    blank = "" if kind == "strings" else 0
    ids = [blank if gone else name for name, gone in zip(IDS[kind], erased, strict=True)]
    assert records.ids.tolist() == ids
    index = records._id_index
    if index is not None and kind != "count":
        assert index._rows == {IDS[kind][row]: row for row in np.flatnonzero(~erased)}
    if GROUPS[kind] is not None:
        groups = [blank if gone else name for name, gone in zip(GROUPS[kind], erased, strict=True)]
        assert records.groups.tolist() == groups
        if records._group_index is not None:
            left = {GROUPS[kind][row] for row in np.flatnonzero(~erased)}
            assert records._group_index._numbers.keys() == left
    for model in world.models:
        held = model._held
        assert held.n_live == held.live.sum()
        assert np.array_equal(held.live, held._unreleased)


def check_model(world: World, model: Erasable) -> None:
    """The model equals a refit, by the digest it has kept and by one made from scratch."""
    names = set(model.ids_.tolist())
    expected = refitted(
        world.make,
        world.kind,
        tuple(row for row, name in enumerate(IDS[world.kind]) if name in names),
    )
    assert model.digest() == expected
    for part in (model, *model.get_params().values()):
        if isinstance(part, Erasable):
            part._info.digest = part._info.id_set = part._info.params_leaf = None
    assert model.digest() == expected


def check_whole(world: World) -> bool:
    """The deletion is done or not, entirely, and life goes on; return which."""
    model, *others = world.models
    gone, every = set(world.gone), set(IDS[world.kind])
    names = set(model.ids_.tolist())
    assert names in (every, every - gone)
    done = names != every
    check_records(world)
    check_model(world, model)
    if done:
        for name in world.gone:
            with pytest.raises(UnknownIdError):
                model.delete([name])
    else:
        model.delete(world.gone)
        check_records(world)
        check_model(world, model)
    assert set(world.records.attach().ids.tolist()) == every - gone
    model.delete([IDS[world.kind][NEXT]])
    check_records(world)
    check_model(world, model)
    for other in others:
        other.delete(sorted(gone & set(other.ids_.tolist())))
        check_records(world)
        check_model(world, other)
    return done


def interrupted(make: Callable[[], World], stride: int = 1, **options: Any) -> Iterator[World]:
    """Make worlds in which the deletion is interrupted, at every so many events and at the last."""

    def world_at(event: int) -> World | None:
        world = make()
        return world if interrupt(lambda: world.delete(**options), event) else None

    event = 0
    while (world := world_at(event)) is not None:
        yield world
        event += stride
    # The last event lies between the last one tried and this one.
    low, high, last = event - stride, event, None
    while high - low > 1:
        middle = (low + high) // 2
        world = world_at(middle)
        low, high, last = (low, middle, last) if world is None else (middle, high, world)
    if last is not None:
        yield last


def sweep(make: Callable[[], World], stride: int = 1, **options: Any) -> None:
    seen = [check_whole(world) for world in interrupted(make, stride, **options)]
    # At first nothing is done, at last everything, and never the other way round.
    assert sorted(seen) == seen
    assert not seen[0]
    assert seen[-1]
