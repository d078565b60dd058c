"""Changes of records that models follow as a whole or not at all, wherever they are interrupted.

Python may raise KeyboardInterrupt or MemoryError at any line. Until the last model has learned, an
interrupted change is undone: a model is a function of its records, so these become what they were,
and the models learn again, or get back their attributes where these are only replaced. After that
it is completed instead: the rest says how things are to be, not how they change, so that it can be
done twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Ints
from erasable.core.attachment import Attachment
from erasable.core.changes import Affine, Delta
from erasable.core.deletion import Outcome
from erasable.core.digest import id_set_hash, state_root
from erasable.core.errors import ArtifactError, ErasableError, PrecisionWarning

if TYPE_CHECKING:
    from erasable.core.model import Model
    from erasable.core.value_hash import ValueHash


class AllOrNothing:
    """Context that restores the attributes of estimators where something is raised.

    It is entered twice: an interruption while it restores attributes is then the first that counts.
    """

    def __init__(self, estimators: Iterable[Model]) -> None:
        self._before = [(each, dict(each.__dict__)) for each in estimators]

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Undo what was raised meanwhile."""
        if kind is not None:
            for each, attributes in self._before:
                each.__dict__ = attributes


class Change(Protocol):
    """A change of records, done and undone around what the models learn."""

    plain: bool
    """Whether no array of the records changes its type, so that models may follow."""

    def begin(self) -> None:
        """Change the records and the attachments."""

    def delta(self, held: Attachment) -> Delta:
        """Return what leaves a model, and what is to arrive."""

    def arrive(self, held: Attachment) -> None:
        """Attach a model to what arrives."""

    def finish(self) -> None:
        """Overwrite what left, once all models have followed; it may be done twice."""

    def undo(self) -> None:
        """Put everything back; models still have to learn again."""


class Exclusion:
    """Records that leave one model: a `Change`."""

    plain = True

    def __init__(self, held: Attachment, rows: Ints) -> None:
        self._held, self._rows = held, rows

    def begin(self) -> None:
        """See `Change`."""
        self._held.exclude(self._rows)

    def delta(self, held: Attachment) -> Delta:
        """See `Change`."""
        return Delta(self._rows)

    def arrive(self, held: Attachment) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """See `Change`."""
        self._held.release(self._rows)

    def undo(self) -> None:
        """See `Change`."""
        self._held.readmit(self._rows)


def carry_out(change: Change, models: Sequence[tuple[Attachment, Model]]) -> list[Outcome]:
    """Change records, and have models follow.

    What is raised meanwhile is raised again once the models are whole: as they were, or changed.
    An interruption of this recovery starts it again if it follows an error; if it follows another
    interruption, the models become unfitted.
    """
    followers = [_follower(change, held, model) for held, model in models]
    outcomes: list[Outcome] = []
    begun: list[_Follower] = []
    done = whole = False
    in_place: list[bool] = []  # asked once: a model that learns again cannot tell any more

    def make_whole() -> None:
        nonlocal whole
        if done:
            change.finish()
        else:
            change.undo()
            in_place.extend(each.model._updates_in_place for each in begun[len(in_place) :])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they were given at `fit`
                for each, again in zip(begun, in_place, strict=True):
                    each.recover(again)
        whole = True

    try:
        try:
            change.begin()
            for follower in followers:
                begun.append(follower)
                outcomes.append(_follow(change, follower))
            done = True
            make_whole()
        except Exception:  # no interruption; if one comes meanwhile, it is the first
            make_whole()
            raise
    except BaseException:
        if not whole:
            make_whole()
        raise
    finally:
        if not whole:
            for held, model in models:
                model._abandon()
                held.detach()
    for _, model in models:
        model._end_change()
    return outcomes


class _Follower(NamedTuple):
    """A model that follows a change, with what it needs for that."""

    held: Attachment
    model: Model
    delta: Delta
    follows: bool
    id_set: NDArray[np.uint64] | None  # the hashes of its records without what leaves
    values: ValueHash | None
    before: tuple[dict[str, Any], dict[str, Any]]  # its attributes, and those of its `_info`

    def recover(self, again: bool) -> None:
        """Make the model what it was before the change, which has been undone; or learn again."""
        if again:
            self.model._relearn(self.held)
        else:
            attributes, told = self.before
            attributes["_info"].__dict__ = {**told, "keys": None}
            self.model.__dict__ = attributes


def _follower(change: Change, held: Attachment, model: Model) -> _Follower:
    delta, info = change.delta(held), model._info
    id_set, values, leaving = info.id_set, info.values, delta.leaving
    follows = change.plain and model._follows(delta, held.n_live)
    if follows and delta.moved and leaving.size:
        follows = _can_stay(model, held, leaving)
    if leaving.size:
        if id_set is not None:
            id_set = id_set - id_set_hash(held.records.ids[leaving])
        if values is not None:
            values = values.without(held, leaving)
    before = dict(model.__dict__), dict(info.__dict__)
    return _Follower(held, model, delta, follows, id_set, values, before)


def _can_stay(model: Model, held: Attachment, leaving: Ints) -> bool:
    """Tell whether a model can exist without rows that others are to take the place of."""
    if held.n_live - leaving.size < model._minimum_records():
        return False
    try:
        model._check_deletion(leaving)
    except ErasableError:
        return False
    return True


def _follow(change: Change, follower: _Follower) -> Outcome:
    """Update a model, or have it learn again."""
    held, model, (leaving, arriving, *_), follows, id_set, values, _ = follower
    if not (leaving.size or arriving.size):
        return Outcome("none")
    change.arrive(held)
    if arriving.size:
        model._info.keys = None
    outcome = model._update(follower.delta) if follows else None
    if outcome is None:
        outcome = learn_anew(model, held, model._map)
    if not change.plain:
        return outcome
    if arriving.size:
        if id_set is not None:
            id_set = id_set + id_set_hash(held.records.ids[arriving])
        if values is not None:
            values = values.having(held, arriving)
    model._info.settle(leaving, id_set, values)
    return outcome


def learn_anew(model: Model, held: Attachment, affine: Affine | None) -> Outcome:
    """Learn again from an attachment, behind a map or not; a step keeps its owner."""
    owner = model._info.owner
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
        model._relearn(held, affine)
    model._info.owner = owner
    return Outcome("refit", held.n_live, {"refits": 1})


def learn_and_compare(model: Model) -> None:
    """Rebuild the accelerator by learning from the records again; ArtifactError if that differs.

    For estimators that learn about as fast as they could check their records otherwise.
    """
    fresh = object.__new__(type(model))
    fresh.__dict__ = dict(model.__dict__)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given at `fit`
            learn_anew(fresh, model._attached(), model._map)
        same = state_root(fresh._state()) == state_root(model._state())
    except ErasableError:
        same = False
    if not same:
        raise not_its_records(model)
    model.__dict__ = {**fresh.__dict__, "_info": model._info}


def not_its_records(model: Model) -> ArtifactError:
    """Return the error of records that a model from a file was not fitted on."""
    return ArtifactError(
        f"a fit on the records makes another {type(model).__name__} than that of the file; "
        "expected the records it was fitted on, without those it has deleted, and their targets"
    )
