"""Learning of members: of all at a fit, and later of those whose records have changed.

The law it keeps: they learn, or get ready to delete, before anything is changed. If one of them
cannot, nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from erasable.core.arrays import Ints
from erasable.core.classes import Classes
from erasable.core.deletion import Action, Outcome
from erasable.ensemble._allotment import Allotment, Share
from erasable.ensemble._members import Member, Task, Trail, carry_out_all
from erasable.ensemble._own import Leaving, Own, fit_own, n_classes
from erasable.ensemble._plan import Plan, of_one_class
from erasable.refit._given import text_columns

if TYPE_CHECKING:
    from erasable.ensemble._composed import Composed


@dataclass(eq=False)
class Accelerator:
    """The accelerator: the members' records, their classes, and where learning can resume."""

    allotment: Allotment
    classes: Classes | None
    trails: dict[int, Trail] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Staged:
    """What members have learned, before the ensemble is made of it.

    Those in `leaving` are ready to delete their records themselves, which changes them.
    """

    members: dict[int, Member | None]
    trails: dict[int, Trail]
    leaving: dict[int, Leaving]
    rows_read: int
    resumed: int


def learn_members(model: Composed, members: Iterable[int], gone: Ints, changed: Ints) -> Staged:
    """Have members learn without the rows that are gone, and again those that changed."""
    work, records = model._accelerator, model._attached().records
    plans: list[Plan] = []
    found: dict[int, Member | None] = {}
    leaving: dict[int, Leaving] = {}
    stale, rows_read = np.concatenate([gone, changed]), 0
    for member in members:
        share = work.allotment.share(member, gone)
        if share.rows.size == 0:
            found[member] = None
            continue
        if model._has_own_members and n_classes(work.classes, share.rows) != 1:
            name, mine = _name(model, member), model._members.get(member)
            if isinstance(mine, Own) and not np.isin(share.rows, changed).any():
                had = work.allotment.share(member).rows
                rows = had[np.isin(had, gone)]
                leaving[member] = mine.without(name, records, rows, share.size(records.weights))
                continue
            found[member] = fit_own(
                name, model._recipe, model._tape.child(model._part, member), records, share,
                model._columns_of(member),
            )  # fmt: skip
            rows_read += share.rows.size
            continue
        plan, trail = plan_of(model, member, share), work.trails.get(member)
        if plan.sliced and trail is not None and trail.basis == plan.basis:
            earliest = work.allotment.earliest(member, stale)
            plan = replace(plan, kept=trail.before(earliest))
        plans.append(plan)
    tasks = (plan.task(records) for plan in plans)
    learned = carry_out_all(tasks, len(plans), model.n_jobs, records.matrix)
    trails: dict[int, Trail] = {}
    for plan, trees in zip(plans, learned, strict=True):
        known = {**plan.kept, **trees}
        tree = known[max(known)]
        size, ids = plan.share.size(records.weights), plan.share.record_set(records.ids)
        fitted = model._recipe.fitted(tree)
        found[plan.member] = Member(tree, plan.text, size, ids, plan.columns, fitted)
        if plan.sliced:
            trails[plan.member] = Trail(
                plan.basis, {number: known[number] for number in sorted(known)[:-1]}
            )
    rows_read += sum(plan.share.rows.size - plan.begin for plan in plans)
    return Staged(found, trails, leaving, int(rows_read), sum(bool(plan.kept) for plan in plans))


def plan_of(model: Composed, member: int, share: Share) -> Plan:
    """Plan to learn a share from its beginning."""
    records, recipe, columns = model._attached().records, model._recipe, model._columns_of(member)
    text = text_columns(records.matrix, share.rows)
    if columns is not None:
        recipe = recipe.on(columns)
        text = [place for place, column in enumerate(columns.tolist()) if column in text]
    labels: list[Any] = []
    if model._classifies:
        assert records.y is not None
        labels = sorted(set(records.y[share.rows].tolist()))
    if len(labels) == 1:
        recipe = of_one_class(recipe)
    tape = model._tape.child(model._part, member)
    return Plan(member, _name(model, member), recipe, tape, share, columns, text, labels)


def sample_task(model: Composed, rows: Ints) -> Task:
    """Make the task to learn from a few records, whichever members have them."""
    slices = None
    if model._learns_by != "fit":
        slices = np.arange(rows.size) * 2 // rows.size
    return plan_of(model, 0, Share(rows, slices)).task(model._attached().records)


def told_of(model: Composed, staged: Staged, outcomes: list[Outcome]) -> Outcome:
    """Make one outcome of what members learned, and of what they did themselves."""
    actions = [outcome.action for outcome in outcomes]
    learned = sum(member is not None for member in staged.members.values())
    n_refits = learned + actions.count("refit")
    action: Action = "resumed"
    if not staged.members and "refit" not in actions and "resumed" not in actions:
        action = "updated"
    elif n_refits == len(model._members) and not staged.resumed:
        action = "refit"
    counts = {f"{model._part}s": len(staged.members) + len(outcomes)}
    for outcome in outcomes:
        for name, count in outcome.counts.items():
            name = f"{model._part}s.{name}"
            counts[name] = counts.get(name, 0) + count
    touched = staged.rows_read + sum(outcome.rows_touched for outcome in outcomes)
    return Outcome(action, touched, counts)


def _name(model: Composed, member: int) -> str:
    return f"{model._part} {member}"
