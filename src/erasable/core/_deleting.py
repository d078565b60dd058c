"""Deletions that are done as a whole or not at all, wherever they are interrupted.

Python may raise KeyboardInterrupt or MemoryError at any line. Until the model has learned to do
without the records, an interrupted deletion is undone: the model is a function of its records, so
these come back and it learns again. After that it is completed instead: the rest says how things
are to be, not how they change, so that it can be done twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from erasable.core.attachment import Attachment
from erasable.core.changes import Affine
from erasable.core.deletion import Outcome
from erasable.core.digest import state_root
from erasable.core.errors import ArtifactError, ErasableError
from erasable.core.grid import PrecisionWarning

if TYPE_CHECKING:
    from erasable.core.estimator import Erasable


class AllOrNothing:
    """Context that restores the attributes of estimators where something is raised.

    It is entered twice: an interruption while it restores attributes is then the first that counts.
    """

    def __init__(self, estimators: Iterable[Erasable]) -> None:
        self._before = [(each, dict(each.__dict__)) for each in estimators]

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Undo what was raised meanwhile."""
        if kind is not None:
            for each, attributes in self._before:
                each.__dict__ = attributes


def delete_or_undo(model: Erasable, held: Attachment, rows: NDArray[np.int64]) -> Outcome:
    """Delete rows that may be deleted.

    What is raised meanwhile is raised again once the model is whole: as it was, or without the
    rows. An interruption of this recovery starts it again if it follows an error; if it follows
    another interruption, the model becomes unfitted.
    """
    id_set = model._info.id_set_without(held.records.ids[rows])
    values = model._info.values
    if values is not None:
        values = values.without(held, rows)
    outcome: Outcome | None = None
    whole = False

    def make_whole() -> None:
        nonlocal whole
        if outcome is None:
            held.readmit(rows)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they were given at `fit`
                model._relearn(held)
        else:
            model._info.settle(rows, id_set, values)
            held.release(rows)
        whole = True

    try:
        try:
            held.exclude(rows)
            outcome = forget_rows(model, rows)
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
            model._abandon()
            held.detach()
    return outcome


def forget_rows(model: Erasable, rows: NDArray[np.int64]) -> Outcome:
    """Delete rows that are no longer live, or learn again where that is faster."""
    if model._learns_sooner(rows.size):
        return learn_anew(model, model._attached(), model._map)
    return model._delete_rows(rows)


def learn_anew(model: Erasable, held: Attachment, affine: Affine | None) -> Outcome:
    """Learn again from an attachment, behind a map or not; a step keeps its owner."""
    owner = model._info.owner
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # it was given at fit
        model._relearn(held, affine)
    model._info.owner = owner
    return Outcome("refit", held.n_live, {"refits": 1})


def learn_and_compare(model: Erasable) -> None:
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


def not_its_records(model: Erasable) -> ArtifactError:
    """Return the error of records that a model from a file was not fitted on."""
    return ArtifactError(
        f"a fit on the records makes another {type(model).__name__} than that of the file; "
        "expected the records it was fitted on, without those it has deleted, and their targets"
    )
