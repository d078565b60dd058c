"""The base of ensembles of other estimators: learning, deletion and files of their members.

Each member is a function of its own records. A deletion concerns the members that hold one of its
records: they learn again, or delete it themselves. They learn, or get ready to delete, before
anything is changed: if one of them cannot, nothing is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.dummy import DummyClassifier
from sklearn.utils import Tags, get_tags

from erasable.core._column_choice import Columns
from erasable.core._schema import (
    Anything,
    Array,
    Decimal,
    DictOf,
    Fields,
    FieldType,
    Flag,
    Sizes,
    Text,
    classes,
    refuse,
    refuse_unbounded,
)
from erasable.core._stored_parts import drop_copies, refuse_stored_gaps
from erasable.core.arrays import Ints
from erasable.core.attachment import Attachment, HeldRecords
from erasable.core.changes import NOTHING, Affine, Delta
from erasable.core.classes import Classes
from erasable.core.deletion import Outcome
from erasable.core.errors import (
    ArtifactError,
    ErasableError,
    InvalidInputError,
    InvalidParameterError,
    TooFewRecordsError,
)
from erasable.core.estimator import NEVER, Erasable
from erasable.core.params import function_path
from erasable.core.protocol import Learner
from erasable.core.tape import Tape
from erasable.core.weighted import Weighted
from erasable.ensemble._allotment import Allotment
from erasable.ensemble._learning import (
    Accelerator,
    Learning,
    MemberChange,
    Staged,
    of_one_class,
)
from erasable.ensemble._members import Fitted, Member, carry_out, takes
from erasable.ensemble._own_members import (
    follow,
    recipe_of,
    refuse_unsuited_own,
    restored_own,
)
from erasable.refit._fitting import refuse_chance
from erasable.refit._given import weights_parameter
from erasable.refit._part import same
from erasable.refit._recipe import Recipe, not_of_records, refuse_what_is_no_estimator
from erasable.refit._tags import input_tags, target_tags, unread_by


def ensemble_schema(model: Erasable, n_members: int, *, classifies: bool) -> Fields:
    """Return the schema of an ensemble of at most so many members."""
    refuse_unbounded(model)
    n_features = model.n_features_in_

    def be_of_the_ensemble(value: dict[str, Any], at: str, sizes: Sizes) -> None:
        for name in value["members"]:
            if not (name.isdecimal() and name == str(int(name)) and int(name) < n_members):
                refuse(f"members.{name}", "a value", f"members from 0 to {n_members - 1}")
        if not value["members"]:
            refuse("members", "no fields", "a member or more")

    member = {
        "fitted": Anything(),
        "record_set": Array("uint64", (2,)),
        "size": Decimal(least=2.0**-1000),
        "text_columns": Array("int64", (None,), least=0, most=n_features - 1, ascending=True),
    }
    parts: dict[str, FieldType] = {"members": DictOf(Fields(member)), "scikit_learn": Text()}
    if classifies:
        parts["classes"] = classes(every=False)
    return Fields(parts, {"weighted": Flag((True,))}, (be_of_the_ensemble,))


def restored(
    state: dict[str, Any],
    *,
    recipe: Recipe,
    tape: Tape,
    columns: Ints | None,
    n_features: int,
    labels: NDArray[Any] | None,
) -> Member:
    """Rebuild a member from what `Member.state` gave.

    `recipe`, `n_features` and `labels` are the ensemble's; `columns` is None for all. The member
    has no estimator where that must be fitted again. Raise ArtifactError if it knows other classes
    than the ensemble, or can be neither checked nor fitted again.
    """
    tree, text, size = state["fitted"], state["text_columns"].tolist(), state["size"]
    if columns is not None:
        recipe, n_features = recipe.on(columns), columns.size
    if labels is not None and _is_of_one_class(tree):
        recipe = of_one_class(recipe)
    if isinstance(recipe.template, Erasable):
        made: Member = restored_own(state, recipe, tape, columns, n_features)
    else:
        found = recipe.restored(tree, text, tape, n_features)
        made = Fitted(size, state["record_set"], columns, text, found, tree)
    if labels is not None and made.estimator is not None:
        known = set(labels.tolist())
        if not known.issuperset(np.asarray(made.estimator.classes_).tolist()):
            raise _odd("a member that knows other classes")
    return made


def have_their_records(
    members: Mapping[int, Member], allotment: Allotment, records: HeldRecords
) -> bool:
    """Tell whether the members with records, and no others, have those that are allotted to them.

    It looks no further than the first that differs: a file can name any number of members.
    """
    n_found = 0
    for number in allotment.members():
        share = allotment.share(number)
        if not share.rows.size:
            continue
        own = members.get(number)
        if own is None or own.size != share.size(records.weights):
            return False
        if not np.array_equal(own.record_set, share.record_set(records.ids)):
            return False
        n_found += 1
    return n_found == len(members)


def refuse_other_members(
    read: Mapping[int, Member], learned: Mapping[int, Member | None], owner: str
) -> None:
    """Raise ArtifactError where members that were fitted again are not those of the file."""
    for number, member in learned.items():
        if member is None or not same(member.state(), read[number].state()):
            raise not_of_records(owner)


def _is_of_one_class(tree: Mapping[str, Any]) -> bool:
    if tree.get("class") != function_path(DummyClassifier):
        return False
    return np.size(tree["attributes"]["classes_"]) == 1


def _odd(what: str) -> ArtifactError:
    return ArtifactError(
        f"the file holds {what}; expected an ensemble as save() writes it; fit and save again"
    )


def _let_go_of(members: Iterable[Member | None]) -> None:
    """Leave nothing of records in members that an ensemble has no more."""
    for each in members:
        if each is not None:
            each.let_go()


_NO_ROWS: Ints = np.empty(0, dtype=np.int64)
_SAMPLE = 200


class Composed(MetaEstimatorMixin, Weighted):
    """Base of the ensembles; a subclass says which member has which records.

    A subclass implements ``_allot``; how answers are put together, a mixin of `_votes` says.
    """

    _refit_from: ClassVar[tuple[int, float]] = NEVER  # its members do
    _reads_blocks: ClassVar[bool] = True
    _adds_stored: ClassVar[bool] = False
    _follows_table: ClassVar[bool] = True

    estimator: Any
    n_jobs: Any
    random_state: Any
    _part: ClassVar[str]
    _kind: ClassVar[str]
    _counted_by: ClassVar[str]  # the parameter that says how many members there are
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {"n_jobs": [None, Integral]}
    _recipe: Recipe
    _members: dict[int, Member]
    _weighted: bool
    _labels: NDArray[Any]
    _counts: Ints
    _has_begun: bool = False

    # -- what a subclass implements ------------------------------------------------------------

    @abstractmethod
    def _allot(self, rows: Ints) -> Allotment:
        """Share out rows, which are given in the order of their keys."""

    def _base(self) -> Any:
        """Return the estimator that every member is made of."""
        return self._at_fit("estimator")

    def _columns_of(self, member: int) -> Ints | None:
        """Return the columns that a member looks at; None for all."""
        return None

    @property
    def _learns_by(self) -> str:
        """Name of the method by which members learn."""
        return "fit"

    @property
    def _classifies(self) -> bool:
        return self._kind == "classifier"

    @property
    def _has_own_members(self) -> bool:
        """Whether members are estimators of erasable."""
        return isinstance(self._base(), Erasable)

    # -- parameters ----------------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        base = self._base()
        refuse_what_is_no_estimator(base, type(self).__name__, own=True)
        name, kind = type(base).__name__, get_tags(base).estimator_type
        if kind != self._kind:
            own = type(self).__name__
            other = own.replace(self._kind.title(), str(kind).title())
            advice = f", or use {other}" if kind in ("classifier", "regressor") else ""
            raise InvalidParameterError(
                f"estimator is a {name}, which is no {self._kind}; {own} expected one; pass "
                f"another{advice}"
            )
        if isinstance(base, Erasable):
            refuse_unsuited_own(base, type(self).__name__)
        if not hasattr(base, self._learns_by):
            raise InvalidParameterError(
                f"estimator is a {name}, which has no {self._learns_by}; expected one that learns "
                "slice by slice; pass another, or n_slices=1"
            )

    @property
    def _takes_weights(self) -> bool:  # type: ignore[override]
        base = self._base()
        if isinstance(base, Erasable):
            return base._takes_weights
        if self._learns_by == "fit":
            return weights_parameter(base) is not None
        return takes(base, self._learns_by, "sample_weight")

    # -- learning ------------------------------------------------------------------------------

    def _learns_from(self) -> set[str]:
        return super()._learns_from() | {"groups"}

    def _fit_rows(self) -> None:
        self._weighted = self._attached().records.weights is not None
        if self._weighted and not self._takes_weights:
            raise InvalidInputError(
                f"sample_weight was given, and {type(self._base()).__name__} takes none in "
                f"{self._learns_by}; expected none; leave sample_weight out, or use another "
                "estimator"
            )
        self._refuse_weightless(_NO_ROWS)
        refuse_stored_gaps(self)
        recipe = self._recipe = recipe_of(self._base(), self)
        rows = self._teaching_rows()
        work = self._accelerator = self._share_out(rows)
        if work.classes is not None:
            self._labels, self._counts = work.classes.labels, work.classes.counts
        if not self._has_own_members:
            sliced = self._learns_by != "fit"
            sample = self._learning().sample(rows[:_SAMPLE], work.classes, sliced=sliced)
            refuse_chance(
                recipe.template,
                recipe.known,
                lambda: {str(number): tree for number, tree in carry_out(sample).items()},
            )
        self._members = {}
        staged = self._learning().learn(work.allotment.members(), work)
        self._refuse_nobody(staged)
        self._adopt_members(staged)
        drop_copies(self)

    def _learning(self) -> Learning:
        """Return how members learn from the records that are there now."""
        records = self._attached().records
        return Learning(
            self._part, self._recipe, self._tape, records, self._columns_of, self.n_jobs
        )

    def _share_out(self, rows: Ints) -> Accelerator:
        y = self._attached().records.y
        assert y is not None
        classes = Classes.fit(y, rows) if self._classifies else None
        return Accelerator(self._allot(rows), classes)

    def _teaching_rows(self) -> Ints:
        """Return the live rows that weigh anything, in the order of their keys."""
        held, keys = self._attached(), self._record_keys()
        rows, weights = held.live_rows(), held.records.weights
        if weights is not None:
            rows = rows[weights[rows] > 0]
        return rows[np.argsort(keys[rows])]  # no two are equal

    def _relearn(self, held: Attachment, affine: Affine | None = None) -> None:
        before = self.__dict__.get("_members", {})
        super()._relearn(held, affine)
        self._has_begun = self._has_own_members
        _let_go_of(before.values())

    def _abandon(self) -> None:
        before = self.__dict__.get("_members", {})
        super()._abandon()
        _let_go_of(before.values())

    def _adopt_members(self, staged: Staged) -> None:
        before = [self._members.get(member) for member in staged.members]
        members = {**self._members, **staged.members}
        there = {i: member for i, member in members.items() if member is not None}
        self._members = dict(sorted(there.items()))
        trails = self._accelerator.trails
        for member in staged.members:
            trails.pop(member, None)
        trails.update(staged.trails)
        _let_go_of(before)

    # -- forgetting ----------------------------------------------------------------------------

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)

    @property
    def _updates_in_place(self) -> bool:  # type: ignore[override]
        """Whether members that hold records have begun to change; all others are replaced."""
        return self._has_begun

    def _update(self, delta: Delta) -> Outcome | None:
        self._has_begun = False
        table = NOTHING if delta.table is None else delta.table
        if table.rows is None or not table.in_place:
            return None
        before = self._accelerator
        stays = self._attached().live[table.rows] & ~np.isin(table.rows, delta.arriving)
        leaving, arriving, changed = delta.leaving, delta.arriving, table.rows[stays]
        if arriving.size:
            self._refuse_weightless(_NO_ROWS)
            work = self._share_out(self._teaching_rows())
            work.trails = dict(before.trails)
        else:
            work = before.without(leaving)
        members = {
            *before.allotment.members_of(np.concatenate([leaving, changed])),
            *work.allotment.members_of(arriving),
        }
        change = MemberChange(leaving, arriving, changed, self._members, before)
        staged = self._learning().learn(sorted(members), work, change)
        self._refuse_nobody(staged)
        self._has_begun = self._has_own_members
        try:
            followed = follow(staged.following)
        except ErasableError:  # no member has changed; after another error, some may have
            self._has_begun = False
            raise
        self._accelerator = work
        self._adopt_members(staged)
        if work.classes is not None:
            self._labels, self._counts = work.classes.labels, work.classes.counts
        n_members = len(self._members)
        return staged.outcome(self._part, n_members, followed, arrived=arriving.size > 0)

    def _refuse_nobody(self, staged: Staged) -> None:
        """Refuse that all members are without records, which can happen to bags."""
        if any({**self._members, **staged.members}.values()):
            return
        raise TooFewRecordsError(
            f"no {self._part} would hold a record; {type(self).__name__} needs one that does; "
            f"use more records, a larger max_samples or another random_state"
        )

    # -- keeping -------------------------------------------------------------------------------

    def _schema(self) -> Fields:
        return ensemble_schema(self, self._at_fit(self._counted_by), classifies=self._classifies)

    def _state(self) -> dict[str, Any]:
        return {
            "members": {str(i): each.state() for i, each in self._members.items()},
            **self._rest,
        }

    def _digest_state(self) -> dict[str, Any]:
        hashes = {i: each.hashed_state(f"members.{i}") for i, each in self._members.items()}
        return {"members": {str(i): each for i, each in hashes.items()}, **self._rest}

    @property
    def _rest(self) -> dict[str, Any]:
        rest: dict[str, Any] = {"scikit_learn": sklearn.__version__}
        if self._classifies:
            rest["classes"] = {"labels": self._labels, "counts": self._counts}
        return {**rest, "weighted": True} if self._weighted else rest

    def _restore(self, state: dict[str, Any]) -> None:
        if state["scikit_learn"] != sklearn.__version__:
            raise ArtifactError(
                f"the model was fitted with scikit-learn {state['scikit_learn']}; expected "
                f"{sklearn.__version__}, which is here; fit again, or install the other"
            )
        self._weighted = state.get("weighted", False)
        recipe = self._recipe = recipe_of(self._base(), self)
        if self._classifies:
            self._labels, self._counts = (state["classes"][key] for key in ("labels", "counts"))
        self._members = {
            number: restored(
                state["members"][str(number)],
                recipe=recipe,
                tape=self._tape.child(self._part, number),
                columns=self._columns_of(number),
                n_features=self.n_features_in_,
                labels=self._labels if self._classifies else None,
            )
            for number in sorted(map(int, state["members"]))
        }

    def _reattach(self) -> None:
        records = self._attached().records
        same = records.y is not None and self._weighted == (records.weights is not None)
        rows = self._teaching_rows()
        if same := same and rows.size > 0:
            work = self._share_out(rows)
            same = have_their_records(self._members, work.allotment, records)
            if work.classes is not None:
                same &= work.classes.labels.tolist() == self._labels.tolist()
                same &= work.classes.counts.tolist() == self._counts.tolist()
        if not same:
            raise ArtifactError(
                f"the records are not shared out among the {self._part}s as those of the "
                f"{type(self).__name__}; expected those it was fitted on, with their targets, "
                "weights and groups; pass Records(X, y, sample_weight=..., ids=..., groups=...)"
            )
        for number, each in self._members.items():
            share = partial(work.allotment.share, number)
            each.attach(records, share, vouched=self._attached().vouched)
        self._accelerator = work
        # What was neither checked nor trusted is learned again instead.
        again = [number for number, each in self._members.items() if each.estimator is None]
        if again:
            staged = self._learning().learn(again, work)
            refuse_other_members(self._members, staged.members, type(self).__name__)
            self._adopt_members(staged)

    # -- answering -----------------------------------------------------------------------------

    @property
    def estimators_(self) -> list[Any]:
        """Fitted estimators of the members that have records, in their order.

        A change of the records may put others in their place: ask again after it. Those of
        scikit-learn are copies, made at each access.
        """
        self._check_fitted()
        return [member.shown(self._recipe) for member in self._members.values()]

    def _answers(self, method: str, X: Any) -> Iterator[tuple[Member, Any]]:
        matrix = self._read_matrix(X)
        for member in self._members.values():
            yield member, member.ask(method, matrix, self._recipe)

    def _vote_weight(self, member: Member) -> float:
        """How much a member counts when all are asked."""
        return 1.0

    def _not_by_blocks(self, *, remote: bool) -> list[Learner]:
        return [self] if self._has_own_members else []  # which keep copies in memory

    @property
    def _reads_numbers(self) -> bool:
        return False  # some estimators of scikit-learn keep the targets as they came

    @property
    def _heeds_objects(self) -> bool:
        base = self._base()
        return isinstance(base, Erasable) and base._heeds_objects

    @property
    def _checks_gaps(self) -> bool:  # type: ignore[override]
        base = self._base()
        return isinstance(base, Erasable) and base._checks_gaps

    @property
    def _marks_unread_text(self) -> bool:
        return self._has_own_members

    def _unread(self, columns: Columns) -> list[int]:
        base = self._base()
        own = isinstance(base, Erasable)
        return base._unread(columns) if own else unread_by(base, columns)

    def _check_targets(self, y: Any) -> None:
        base = self._base()
        if isinstance(base, Erasable):
            base._check_targets(y)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        try:
            base = self._base()
            own = isinstance(base, Erasable)
            tags.input_tags = deepcopy(get_tags(base).input_tags) if own else input_tags(base)
            tags.target_tags.multi_output = not self._classifies and target_tags(base).multi_output
        except (AttributeError, TypeError, ValueError):  # no estimator; fit will say so
            return tags
        return tags
