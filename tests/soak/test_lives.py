"""Neighbours, trees, forests, boosting, shards and bags keep the law in a thousand random lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from erasable.ensemble._allotment import Bags, Shards
from erasable.ensemble._boosting._boosted import Boosted
from erasable.neighbors._index import Index
from erasable.neighbors._targets import StoredLabels
from erasable.tree._base import TreeModel
from erasable.tree._forest import Forest
from soak.lives import ROOMS, Life

pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn"),  # classes of one record
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning"),
]
LIVES = {
    "neighbours": 400,
    "trees": 300,
    "forests": 150,
    "shards": 120,
    "bags": 120,
    "boosting": 300,
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_life_keeps_the_law(room: str) -> None:
    assert live(room, LIVES[room]) > 2 * LIVES[room]


def live(room: str, lives: int) -> int:
    """Run the first lives of a room; return how many deletions there were."""
    return sum(Life(room, number).run() for number in range(lives))


# -- what is broken is found -----------------------------------------------------------------------


def a_record_stays_in_the_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Index, "remove", lambda self, rows: None)


def a_class_outlives_its_last_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredLabels, "remove", lambda self, rows: None)


def a_batch_leaves_one_record_in_the_trees(patch: pytest.MonkeyPatch) -> None:
    right = Forest.remove

    def remove(self: Forest, rows: Any, keys: Any, live: Any, live_rows: Any, *rest: Any) -> Any:
        some = slice(0, max(1, rows.size - 1))
        stays = live.copy()
        stays[rows[some.stop :]] = True  # or kernels write where there is no room
        keys = None if keys is None else keys[some]
        return right(self, rows[some], keys, stays, lambda: np.flatnonzero(stays), *rest)

    patch.setattr(Forest, "remove", remove)
    # Found at once: nothing more is asked of a model that does not agree with itself.
    patch.setattr(Life, "share", 1.0)


def an_interrupt_undoes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeModel, "_relearn", lambda self, held, *given: None)


def a_shard_resumes_a_slice_too_late(patch: pytest.MonkeyPatch) -> None:
    right = Shards.earliest
    patch.setattr(Shards, "earliest", lambda self, *given: right(self, *given) + 1)


def the_last_bag_does_not_learn_again(patch: pytest.MonkeyPatch) -> None:
    right = Bags.members_of
    patch.setattr(Bags, "members_of", lambda self, rows: right(self, rows)[:-1])


def a_record_stays_in_boosted_trees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Boosted, "_follow", lambda self, gone, use: (self.n_rounds, {}))


CONTROLS = [
    ("neighbours", a_record_stays_in_the_index),
    ("neighbours", a_class_outlives_its_last_record),
    ("trees", a_batch_leaves_one_record_in_the_trees),
    ("forests", a_batch_leaves_one_record_in_the_trees),
    ("trees", an_interrupt_undoes_nothing),
    ("shards", a_shard_resumes_a_slice_too_late),
    ("bags", the_last_bag_does_not_learn_again),
    ("boosting", a_record_stays_in_boosted_trees),
]


@pytest.mark.parametrize(
    ("room", "spoil"), CONTROLS, ids=[f"{room}-{spoil.__name__}" for room, spoil in CONTROLS]
)
def test_what_is_broken_is_found(
    room: str, spoil: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    with pytest.raises(AssertionError, match=f"{room} [0-9]+: (another|other)"):
        live(room, 60)
