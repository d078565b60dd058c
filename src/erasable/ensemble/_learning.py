"""Learning of members: of all at a fit, and later of those whose records have changed.

They learn, or get ready to delete, before anything is changed. If one of them cannot, nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

from erasable.core.arrays import Ints
from erasable.core.attachment import HeldRecords
from erasable.core.classes import GONE, Classes, narrowed
from erasable.core.deletion import Action, Outcome
from erasable.core.estimator import Erasable
from erasable.core.tape import Tape
from erasable.ensemble._allotment import Allotment, Share
from erasable.ensemble._members import Fitted, Following, Member, Task, Trail, carry_out_all
from erasable.ensemble._own_members import fit_own
from erasable.refit._given import text_columns, weights_parameter
from erasable.refit._recipe import Recipe


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

    def task(self, records: HeldRecords) -> Task:
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
    >>> from erasable.preprocessing import MinMaxScaler
    >>> recipe = of_one_class(Recipe.of(LogisticRegression(), MinMaxScaler()))
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

    def without(self, rows: Ints) -> Accelerator:
        """Return what is left without some rows."""
        classes = self.classes
        if classes is not None:
            classes = replace(classes, counts=classes.counts.copy(), codes=classes.codes.copy())
            classes.remove(rows[classes.codes[rows] != GONE])
        return Accelerator(self.allotment.without(rows), classes, dict(self.trails))


@dataclass(frozen=True, eq=False)
class Staged:
    """Members that have learned, before they replace those of the ensemble.

    Those in `following` are ready to follow the change themselves, which changes them.
    """

    members: dict[int, Member | None]
    trails: dict[int, Trail]
    following: list[Following]
    rows_read: int
    resumed: int

    def outcome(
        self, part: str, n_members: int, followed: list[Outcome], *, arrived: bool
    ) -> Outcome:
        """Make one outcome of what members learned, and of what they did themselves.

        `part` is what a member is called; `n_members` are there now.
        """
        actions = [outcome.action for outcome in followed]
        learned = sum(member is not None for member in self.members.values())
        n_refits = learned + actions.count("refit")
        action: Action = "resumed"
        if not self.members and "refit" not in actions and "resumed" not in actions:
            action = "updated"
        elif n_refits == n_members and not (self.resumed or arrived):
            action = "refit"
        counts = {f"{part}s": len(self.members) + len(followed)}
        for outcome in followed:
            for name, count in outcome.counts.items():
                name = f"{part}s.{name}"
                counts[name] = counts.get(name, 0) + count
        touched = self.rows_read + sum(outcome.rows_touched for outcome in followed)
        return Outcome(action, touched, counts)


@dataclass(frozen=True, eq=False)
class MemberChange:
    """Rows that leave an ensemble, that arrive, and that stay with other values; and what it was.

    `members` and `had` are those of the ensemble before the change.
    """

    leaving: Ints
    arriving: Ints
    changed: Ints
    members: Mapping[int, Member]
    had: Accelerator


@dataclass(frozen=True, eq=False)
class Learning:
    """How the members of an ensemble learn, and from which records."""

    part: str  # what a member is called
    recipe: Recipe
    tape: Tape
    records: HeldRecords
    columns_of: Callable[[int], Ints | None]  # columns that a member looks at; None for all
    n_jobs: int | None

    def name(self, member: int) -> str:
        """Return the name of a member, for messages."""
        return f"{self.part} {member}"

    def learn(
        self, members: Iterable[int], work: Accelerator, change: MemberChange | None = None
    ) -> Staged:
        """Have members learn from what `work` allots to them, or prepare them to follow a change.

        Without a change, they begin from nothing.
        """
        records, own = self.records, isinstance(self.recipe.template, Erasable)
        plans: list[MemberPlan] = []
        found: dict[int, Member | None] = {}
        following: list[Following] = []
        rows_read = 0
        for member in members:
            share = work.allotment.share(member)
            if share.rows.size == 0:
                found[member] = None
                continue
            labels = _labels_of(work.classes, share.rows)
            alone = len(labels) == 1
            follows = None if alone else self._following(member, share, change)
            if follows is not None:
                following.append(follows)
            elif own and not alone:
                tape, columns = self.tape.child(self.part, member), self.columns_of(member)
                name = self.name(member)
                found[member] = fit_own(name, self.recipe, tape, records, share, columns)
                rows_read += share.rows.size
            else:
                plan = self.plan(member, share, labels)
                plans.append(replace(plan, kept=_kept(plan, work.allotment, change)))
        tasks = (plan.task(records) for plan in plans)
        learned = carry_out_all(tasks, len(plans), self.n_jobs, records.matrix)
        trails: dict[int, Trail] = {}
        for plan, trees in zip(plans, learned, strict=True):
            known = {**plan.kept, **trees}
            tree = known[max(known)]
            size, ids = plan.share.size(records.weights), plan.share.record_set(records.ids)
            fitted = self.recipe.fitted(tree)
            found[plan.member] = Fitted(size, ids, plan.columns, plan.text, fitted, tree)
            if plan.sliced:
                trails[plan.member] = Trail(
                    plan.basis, {number: known[number] for number in sorted(known)[:-1]}
                )
        rows_read += sum(plan.share.rows.size - plan.begin for plan in plans)
        resumed = sum(bool(plan.kept) for plan in plans)
        return Staged(found, trails, following, int(rows_read), resumed)

    def _following(
        self, member: int, share: Share, change: MemberChange | None
    ) -> Following | None:
        """Return the change that a member is ready to follow; None: it learns again."""
        mine = None if change is None else change.members.get(member)
        if mine is None or change is None:
            return None
        had = change.had.allotment
        if had.among(change.changed, member).size:
            return None
        leaving = had.among(change.leaving, member)
        return mine.following(self.name(member), self.records, share, leaving, change.arriving)

    def plan(self, member: int, share: Share, labels: list[Any]) -> MemberPlan:
        """Plan to learn a share, of some classes, from its beginning."""
        recipe, columns = self.recipe, self.columns_of(member)
        text = text_columns(self.records.matrix, share.rows)
        if columns is not None:
            recipe = recipe.on(columns)
            text = [place for place, column in enumerate(columns.tolist()) if column in text]
        if len(labels) == 1:
            recipe = of_one_class(recipe)
        tape, name = self.tape.child(self.part, member), self.name(member)
        return MemberPlan(member, name, recipe, tape, share, columns, text, labels)

    def sample(self, rows: Ints, classes: Classes | None, *, sliced: bool) -> Task:
        """Make the task to learn from a few records, whichever members have them."""
        slices = np.arange(rows.size) * 2 // rows.size if sliced else None
        labels = _labels_of(classes, rows)
        return self.plan(0, Share(rows, slices), labels).task(self.records)


def _kept(plan: MemberPlan, has: Allotment, change: MemberChange | None) -> dict[int, Any]:
    """Return what a member knows after the slices before the first that is another one."""
    trail = None if change is None else change.had.trails.get(plan.member)
    if change is None or not plan.sliced or trail is None or trail.basis != plan.basis:
        return {}
    had = change.had.allotment
    moved = ((had, change.leaving), (had, change.changed), (has, change.arriving))
    slices = [of.slices(of.among(rows, plan.member)) for of, rows in moved]
    kept: dict[int, Any] = trail.before(int(np.concatenate(slices).min()))
    return kept


def _labels_of(classes: Classes | None, rows: Ints) -> list[Any]:
    """Return the classes of rows, sorted; none where there are no classes.

    >>> _labels_of(Classes.fit(np.array([7, 3, 7]), np.arange(3)), np.array([0, 2]))
    [7]
    """
    if classes is None:
        return []
    there = np.bincount(classes.codes[rows], minlength=classes.labels.size) > 0
    labels: list[Any] = classes.labels[there].tolist()
    return labels
