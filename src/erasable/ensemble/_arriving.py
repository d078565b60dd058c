"""Records that come to an ensemble: the members learn again that they come to, or take them in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from erasable.core.arrays import Ints
from erasable.core.deletion import Outcome
from erasable.ensemble._learning import learn_members, told_of
from erasable.ensemble._own import Own

if TYPE_CHECKING:
    from erasable.ensemble._composed import Composed

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


def add_rows(model: Composed, rows: Ints) -> Outcome | None:
    """See `erasable.core.growing.Growing._add_rows`; None where a class is new."""
    work, y = model._accelerator, model._attached().records.y
    assert y is not None
    if work.classes is not None and not work.classes.add(y, rows):
        return None
    work.allotment = model._allot(model._teaching_rows())
    learning, outcomes = [], []
    for member in work.allotment.members_of(rows):
        mine = model._members.get(member)
        if isinstance(mine, Own):
            share = work.allotment.share(member)
            outcomes.append(mine.take_in(model._attached().records, share, rows))
        else:
            learning.append(member)
    staged = learn_members(model, learning, _NO_ROWS, rows)
    model._adopt_members(staged)
    if work.classes is not None:
        model._labels, model._counts = work.classes.labels, work.classes.counts
    outcome = told_of(model, staged, outcomes)
    return outcome if outcome.action != "refit" else replace(outcome, action="resumed")
