"""Members that are estimators of erasable: they learn here, and delete their records themselves.

Such a member is fitted on the records of its share, by their ids and with a seed of its own tape;
by its own law it is a function of these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from erasable.core._adding import RecordsChange
from erasable.core._changing import carry_out
from erasable.core.arrays import Ints
from erasable.core.attachment import Attachment, HeldRecords
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.digest import LeafHash, id_set_hash, leaf_hash, state_root
from erasable.core.errors import (
    ArtifactError,
    InvalidParameterError,
    TooFewRecordsError,
    UnlearnableError,
)
from erasable.core.estimator import Erasable
from erasable.core.inputs import RecordArrays
from erasable.core.params import encode_params
from erasable.core.records import Records
from erasable.core.rows import Rows
from erasable.core.tape import Tape
from erasable.core.trust import origin
from erasable.core.values import Accepts
from erasable.ensemble._allotment import Share
from erasable.ensemble._members import Following, Member
from erasable.refit._fitting import seeded
from erasable.refit._names import parts_of
from erasable.refit._recipe import Recipe, refuse_reaching_out

_OWNER = "an ensemble"  # so that a member refuses to delete on its own
_DERIVED = ("params", "record_set")  # what a member's state need not say, as the ensemble's does


@dataclass(eq=False)
class Own(Member):
    """A member that is an estimator of erasable, with a copy of its records."""

    def learned(self) -> dict[str, Any]:
        """Return the state of the model, but for what is known from the ensemble's."""
        whole = self.estimator._whole_state(self.estimator._state())
        return {name: value for name, value in whole.items() if name not in _DERIVED}

    def hashed_state(self, name: str) -> LeafHash:
        """Return the hash of its state; the model makes its own once."""
        content = {
            "fitted": self.estimator.digest(),
            "record_set": self.record_set,
            "size": self.size,
        }
        return leaf_hash(name, state_root(content).hex())

    def shown(self, recipe: Recipe) -> Any:
        """Return the model itself, whose attributes are copies."""
        return self.estimator

    def ask(self, method: str, matrix: Any, recipe: Recipe) -> Any:
        """Ask the model about rows."""
        if self.columns is not None:
            matrix = matrix[:, self.columns]
        if matrix.dtype != object:
            matrix = matrix.astype(np.float64, copy=False)
        return getattr(self.estimator, method)(Rows(matrix))

    def attach(self, records: HeldRecords, share: Callable[[], Share], *, vouched: bool) -> None:
        """Give the model its records."""
        self.estimator._attach_to(_copied(records, share(), self), vouched)
        self.estimator._info.values = None

    def following(
        self, name: str, records: HeldRecords, share: Share, leaving: Ints, arriving: Ints
    ) -> Following:
        """Check that the model can follow the change; raise UnlearnableError if it cannot."""
        model: Erasable = self.estimator
        with _named(name):
            model._make_ready()
            held, table = model._attached(), None
            gone = np.sort(held.rows(records.ids[leaving].tolist()))
            new = np.isin(share.rows, arriving)
            come = share.rows[new]
            if come.size:
                times = None if share.times is None else share.times[new]
                table = _table(records, come, self.columns, times)
            change = RecordsChange(held.records, model, digest=False).prepared(table, gone)
        left = self.record_set - id_set_hash(records.ids[leaving])
        ids = left + id_set_hash(records.ids[come])
        return Following(name, self, change, share.size(records.weights), ids)

    def let_go(self) -> None:
        """Leave nothing of records in the model, which another replaces and somebody may keep."""
        held = self.estimator.__dict__.get("_held")
        if held is not None:
            rows = held.live_rows()
            held.exclude(rows)
            held.release(rows)
        self.estimator._abandon()


class _Changes:
    """Changes of the records of several members, done and undone as one: a `Change`."""

    def __init__(self, following: Sequence[Following]) -> None:
        models = [each.member.estimator for each in following]
        self.models = [(model._attached(), model) for model in models]
        self._of = {id(held): each for (held, _), each in zip(self.models, following, strict=True)}
        self.plain = all(each.change.plain for each in following)
        self.name = ""

    def begin(self) -> None:
        """See `Change`."""
        for each in self._of.values():
            each.change.begin()

    def delta(self, held: Attachment) -> Delta:
        """See `Change`."""
        return self._of[id(held)].change.delta(held)

    def arrive(self, held: Attachment) -> None:
        """See `Change`; note which member is next to learn."""
        self.name = self._of[id(held)].name
        self._of[id(held)].change.arrive(held)

    def finish(self) -> None:
        """See `Change`."""
        for each in self._of.values():
            each.change.finish()

    def undo(self) -> None:
        """See `Change`."""
        for each in self._of.values():
            each.change.undo()


def follow(following: Sequence[Following]) -> list[Outcome]:
    """Have members follow, all or none: what is raised has changed nothing."""
    changes = _Changes(following)
    try:
        outcomes = carry_out(changes, changes.models)
    except TooFewRecordsError as error:
        raise UnlearnableError(f"{changes.name}: {error}") from None
    for each in following:
        each.member.size, each.member.record_set = each.size, each.record_set
    return outcomes


def recipe_of(base: Any, owner: Erasable) -> Recipe:
    """Return how members learn; of estimators of erasable, it holds nothing that no file keeps."""
    if isinstance(base, Erasable):
        return Recipe(clone(base), {}, None, Accepts.of(owner).documents)
    return Recipe.of(base, owner)


def fit_own(
    name: str, recipe: Recipe, tape: Tape, records: HeldRecords, share: Share, columns: Ints | None
) -> Own:
    """Fit a member on its share of the records; raise UnlearnableError if that cannot be done."""
    size, ids = share.size(records.weights), share.record_set(records.ids)
    member = Own(size, ids, columns, [], seeded(recipe.template, tape))
    with _named(name):
        member.estimator.fit(_copied(records, share, member))
    member.estimator._info.values = None  # the ensemble knows
    member.estimator._info.owner = _OWNER
    return member


def restored_own(
    state: Mapping[str, Any], recipe: Recipe, tape: Tape, columns: Ints | None, n_features: int
) -> Own:
    """Rebuild a member from what `Own.state` gave, without its records.

    Raise ArtifactError if it comes from a file, and no fit makes it.
    """
    foreign = not origin().trusted
    if foreign:
        refuse_reaching_out(recipe.template)
    model: Any = seeded(recipe.template, tape)
    whole = {**state["fitted"], "params": encode_params(model), "record_set": state["record_set"]}
    model._adopt(whole, None, foreign=foreign)
    drawn = model.get_params()
    if model.n_features_in_ != n_features or any(
        drawn[name] != seed for name, seed in model._seeds().items()
    ):
        raise ArtifactError(
            f"the file holds a {type(model).__name__} of {model.n_features_in_} columns, or of "
            f"another seed; expected one of {n_features}, fitted as a member; fit and save again"
        )
    model._info.owner = _OWNER
    return Own(state["size"], state["record_set"], columns, [], model)


def refuse_unsuited_own(base: Erasable, owner: str) -> None:
    """Raise InvalidParameterError for estimators of erasable that no ensemble is made of.

    >>> from erasable.linear_model import LogisticRegression
    >>> refuse_unsuited_own(LogisticRegression(classes=[0, 1]), "ShardedClassifier")
    Traceback (most recent call last):
    erasable.core.errors.InvalidParameterError: estimator holds a LogisticRegression with ...
    """
    if base.exactness == "approximate":
        raise InvalidParameterError(
            f"estimator is a {type(base).__name__}, which forgets about, and deletions of a "
            f"{owner} are exact; expected an estimator whose are; use it alone"
        )
    for part in parts_of(base):
        if isinstance(part, Erasable) and getattr(part, "classes", None) is not None:
            raise InvalidParameterError(
                f"estimator holds a {type(part).__name__} with classes=, and the classes of a "
                f"{owner} are those that its records have; expected classes=None"
            )
    base._validate_params()


def _copied(records: HeldRecords, share: Share, member: Own) -> Records:
    return Records.from_table(_table(records, share.rows, member.columns, share.times))


def _table(
    records: HeldRecords, rows: Ints, columns: Ints | None, times: Ints | None
) -> RecordArrays:
    """Copy records; how often each is there is a weight."""
    table = records._table().take(rows)
    if columns is not None:
        table = _of_columns(table, columns)
    if times is not None:
        weights = times.astype(np.float64)
        table = replace(
            table, weights=weights if table.weights is None else weights * table.weights
        )
    return table


def _of_columns(table: RecordArrays, columns: Ints) -> RecordArrays:
    names = table.feature_names
    return replace(
        table,
        matrix=table.matrix[:, columns],
        feature_names=None if names is None else [names[j] for j in columns.tolist()],
        numeric=None if table.numeric is None else table.numeric[columns],
    )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say which member has too few records, or records from which it cannot learn."""
    try:
        yield
    except TooFewRecordsError as error:
        raise UnlearnableError(f"{name}: {error}") from None
