"""Learning of members: of all at a fit, and later of those whose records have changed.

They learn, or get ready to delete, before anything is changed. If one of them cannot, nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier

from erasable.core.arrays import Ints
from erasable.core.attachment import HeldRecords
from erasable.core.classes import GONE, Classes, narrowed
from erasable.core.deletion import Action, Outcome
from erasable.core.tape import Tape
from erasable.ensemble._allotment import Allotment, Share
from erasable.ensemble._members import Fitted, Following, Member, Task, Trail, carry_out_all
from erasable.ensemble._own_members import fit_own
from erasable.refit._given import text_columns, weights_parameter
from erasable.refit._recipe import Recipe

if TYPE_CHECKING:
    from erasable.ensemble._composed import Composed

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


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


class Moves(NamedTuple):
    """Rows that leave an ensemble, those that arrive, and those that stay with other values."""

    leaving: Ints = _NO_ROWS
    arriving: Ints = _NO_ROWS
    changed: Ints = _NO_ROWS


_NO_MOVES = Moves()


def learn_members(
    model: Composed, members: Iterable[int], work: Accelerator, moves: Moves = _NO_MOVES
) -> Staged:
    """Have members learn from what `work` allots to them, or prepare them to follow the change."""
    records = model._attached().records
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
        follows = None if alone else _following(model, member, share, moves)
        if follows is not None:
            following.append(follows)
        elif model._has_own_members and not alone:
            found[member] = fit_own(
                _name(model, member), model._recipe, model._tape.child(model._part, member),
                records, share, model._columns_of(member),
            )  # fmt: skip
            rows_read += share.rows.size
        else:
            plan = plan_of(model, member, share, labels)
            plans.append(replace(plan, kept=_kept(model, plan, work.allotment, moves)))
    tasks = (plan.task(records) for plan in plans)
    learned = carry_out_all(tasks, len(plans), model.n_jobs, records.matrix)
    trails: dict[int, Trail] = {}
    for plan, trees in zip(plans, learned, strict=True):
        known = {**plan.kept, **trees}
        tree = known[max(known)]
        size, ids = plan.share.size(records.weights), plan.share.record_set(records.ids)
        fitted = model._recipe.fitted(tree)
        found[plan.member] = Fitted(size, ids, plan.columns, fitted, tree, plan.text)
        if plan.sliced:
            trails[plan.member] = Trail(
                plan.basis, {number: known[number] for number in sorted(known)[:-1]}
            )
    rows_read += sum(plan.share.rows.size - plan.begin for plan in plans)
    return Staged(found, trails, following, int(rows_read), sum(bool(plan.kept) for plan in plans))


def _following(model: Composed, member: int, share: Share, moves: Moves) -> Following | None:
    """Return the change that a member is ready to follow; None: it learns again."""
    mine, had = model._members.get(member), model._accelerator.allotment
    if mine is None or had.among(moves.changed, member).size:
        return None
    records, leaving = model._attached().records, had.among(moves.leaving, member)
    return mine.following(_name(model, member), records, share, leaving, moves.arriving)


def _kept(model: Composed, plan: MemberPlan, has: Allotment, moves: Moves) -> dict[int, Any]:
    """Return what a member knows after the slices before the first that is another one."""
    had, trail = model._accelerator.allotment, model._accelerator.trails.get(plan.member)
    if not plan.sliced or trail is None or trail.basis != plan.basis:
        return {}
    slices = [
        allotment.slices(allotment.among(rows, plan.member))
        for allotment, rows in ((had, moves.leaving), (had, moves.changed), (has, moves.arriving))
    ]
    kept: dict[int, Any] = trail.before(int(np.concatenate(slices).min()))
    return kept


def _name(model: Composed, member: int) -> str:
    return f"{model._part} {member}"


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


def plan_of(model: Composed, member: int, share: Share, labels: list[Any]) -> MemberPlan:
    """Plan to learn a share, of some classes, from its beginning."""
    records, recipe, columns = model._attached().records, model._recipe, model._columns_of(member)
    text = text_columns(records.matrix, share.rows)
    if columns is not None:
        recipe = recipe.on(columns)
        text = [place for place, column in enumerate(columns.tolist()) if column in text]
    if len(labels) == 1:
        recipe = of_one_class(recipe)
    tape = model._tape.child(model._part, member)
    return MemberPlan(member, _name(model, member), recipe, tape, share, columns, text, labels)


def sample_task(model: Composed, rows: Ints) -> Task:
    """Make the task to learn from a few records, whichever members have them."""
    slices = None
    if model._learns_by != "fit":
        slices = np.arange(rows.size) * 2 // rows.size
    labels = _labels_of(model._accelerator.classes, rows)
    return plan_of(model, 0, Share(rows, slices), labels).task(model._attached().records)


def outcome_of(
    model: Composed, staged: Staged, outcomes: list[Outcome], *, arrived: bool
) -> Outcome:
    """Make one outcome of what members learned, and of what they did themselves."""
    actions = [outcome.action for outcome in outcomes]
    learned = sum(member is not None for member in staged.members.values())
    n_refits = learned + actions.count("refit")
    action: Action = "resumed"
    if not staged.members and "refit" not in actions and "resumed" not in actions:
        action = "updated"
    elif n_refits == len(model._members) and not (staged.resumed or arrived):
        action = "refit"
    counts = {f"{model._part}s": len(staged.members) + len(outcomes)}
    for outcome in outcomes:
        for name, count in outcome.counts.items():
            name = f"{model._part}s.{name}"
            counts[name] = counts.get(name, 0) + count
    touched = staged.rows_read + sum(outcome.rows_touched for outcome in outcomes)
    return Outcome(action, touched, counts)
