"""Learning of members: of all at a fit, and later of those whose records have changed.

They learn, or get ready to delete, before anything is changed. If one of them cannot, nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.dummy import DummyClassifier

from erasable.core.arrays import Ints
from erasable.core.classes import Classes, narrowed
from erasable.core.deletion import Action, Outcome
from erasable.core.records import Records
from erasable.core.tape import Tape
from erasable.ensemble._allotment import Allotment, Share
from erasable.ensemble._members import Member, Task, Trail, carry_out_all
from erasable.ensemble._own_members import Leaving, Own, fit_own, n_classes
from erasable.refit._given import text_columns, weights_parameter
from erasable.refit._recipe import Recipe

if TYPE_CHECKING:
    from erasable.ensemble._composed import Composed


@dataclass(frozen=True, eq=False)
class MemberPlan:
    """The records, columns and classes from which a member is to learn."""

    member: int
    name: str  # of the member, for messages
    recipe: Recipe  # for its columns, and for records of one class, if its are
    tape: Tape  # of the member
    share: Share  # all its records
    columns: Ints | None  # columns that it looks at; None for all
    text: list[int]  # those of its columns that are text
    labels: list[Any]  # classes of its records, sorted; empty if it learns no classes
    # what is known after slices of which nothing has changed
    kept: dict[int, Any] = field(default_factory=dict)

    @property
    def basis(self) -> tuple[Any, ...]:
        """What the records decide as a whole: slices can be kept only while it is the same."""
        return tuple(self.labels), tuple(self.text)

    @property
    def sliced(self) -> bool:
        """Whether it is learned slice by slice."""
        return self.share.slices is not None and len(self.labels) != 1

    @property
    def begin(self) -> int:
        """Position of the first row that has to be learned."""
        if not self.kept or self.share.slices is None:
            return 0
        return int(np.searchsorted(self.share.slices, max(self.kept), side="right"))

    def task(self, records: Records) -> Task:
        """Take the records that have to be learned, in the form in which they are."""
        begin, share = self.begin, self.share
        rows, times = share.rows[begin:], share.times
        weighs = weights_parameter(self.recipe.template) is not None
        if times is not None and not weighs:
            rows = np.repeat(rows, times)
        X, y, weights = self.recipe.given(records, rows, self.text, self.columns)
        if times is not None and weighs:
            weights = times.astype(np.float64) if weights is None else weights * times
        assert y is not None
        if not self.sliced or share.slices is None:
            return Task(self.name, self.recipe, self.tape, X, y, weights)
        numbers, sizes = np.unique(share.slices[begin:], return_counts=True)
        ends = dict(zip(numbers.tolist(), np.cumsum(sizes).tolist(), strict=True))
        start = self.kept[max(self.kept)] if self.kept else None
        classes = None
        if self.labels:
            assert records.y is not None
            classes = narrowed(np.array(self.labels, dtype=records.y.dtype))
            y = y.astype(classes.dtype)  # of the last slices alone, it may be a narrower one
        return Task(self.name, self.recipe, self.tape, X, y, weights, ends, classes, start)


def of_one_class(recipe: Recipe) -> Recipe:
    """Return the recipe for records of one class, from which many estimators cannot learn.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from erasable.core.estimator import Erasable
    >>> recipe = of_one_class(Recipe.of(LogisticRegression(), Erasable()))
    >>> X, y = np.array([[0.0], [1.0]]), np.array(["a", "a"], dtype=object)
    >>> recipe.fitted(recipe.fit(Tape(3), X, y, None)).predict([[7.0]]).tolist()
    ['a']
    """
    return Recipe(DummyClassifier(), {}, recipe.columns, recipe.documents)


@dataclass(eq=False)
class Accelerator:
    """The accelerator: the members' records, their classes, and where learning can resume."""

    allotment: Allotment
    classes: Classes | None
    trails: dict[int, Trail] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Staged:
    """Members that have learned, before they replace those of the ensemble.

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
    plans: list[MemberPlan] = []
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


def plan_of(model: Composed, member: int, share: Share) -> MemberPlan:
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
    return MemberPlan(member, _name(model, member), recipe, tape, share, columns, text, labels)


def sample_task(model: Composed, rows: Ints) -> Task:
    """Make the task to learn from a few records, whichever members have them."""
    slices = None
    if model._learns_by != "fit":
        slices = np.arange(rows.size) * 2 // rows.size
    return plan_of(model, 0, Share(rows, slices)).task(model._attached().records)


def outcome_of(model: Composed, staged: Staged, outcomes: list[Outcome]) -> Outcome:
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


_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


def add_rows(model: Composed, rows: Ints) -> Outcome | None:
    """See `erasable.core.estimator.Erasable._add_rows`; None where a class is new."""
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
    outcome = outcome_of(model, staged, outcomes)
    return outcome if outcome.action != "refit" else replace(outcome, action="resumed")
