"""Wherever a deletion is interrupted, it is done or it is not done."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer

from effort import skip
from erasable.cluster import KMeans
from erasable.core.changes import Delta
from erasable.core.digest import id_set_hash
from erasable.core.estimator import Erasable
from erasable.core.records import Records
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, StandardScaler
from integer_sums import IntegerSums
from interruptions import (
    GONE,
    GROUPS,
    IDS,
    NEXT,
    World,
    X,
    check_records,
    check_whole,
    interrupt,
    interrupted,
    sweep,
)
from pipeline.small_steps import Failing, Rarity, Sums


def sums() -> Erasable:
    return IntegerSums(random_state=0)


def kmeans() -> Erasable:
    return KMeans(2, max_iter=2, random_state=0)


def on_a_lattice() -> Erasable:
    return StandardScaler(quantize=True, random_state=0)


def rowwise() -> Erasable:
    return make_pipeline(Rarity(), Sums())


def mapped() -> Erasable:
    return make_pipeline(StandardScaler(), kmeans())


def tabled() -> Erasable:
    return make_pipeline(MinMaxScaler(clip=True), FunctionTransformer(np.abs), kmeans())


# -- one interruption ------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", list(IDS))
@pytest.mark.parametrize("others", ["none", "hold", "deleted"])
def test_a_deletion_is_done_or_not_done(kind: str, others: str) -> None:
    sweep(lambda: World(sums, kind, others), 1 if kind == "strings" else 3, digest=False)


@pytest.mark.thorough
def test_with_digests_and_what_they_cache() -> None:
    sweep(lambda: World(sums, "strings", "hold"), stride=skip(5))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "others", "stride"),
    [
        (StandardScaler, "hold", 3),
        (on_a_lattice, "none", 5),
        (MinMaxScaler, "deleted", 3),
        (kmeans, "none", 5),
        (kmeans, "deleted", 7),
        (rowwise, "deleted", 5),
        (mapped, "hold", 13),
        (tabled, "none", 17),
    ],
)
def test_estimators_and_pipelines(make: Any, others: str, stride: int) -> None:
    sweep(lambda: World(make, "strings", others), skip(stride), digest=False)


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "stride"), [(sums, 5), (kmeans, 19), (mapped, 37)])
def test_models_that_were_restored(make: Any, stride: int) -> None:
    """They make their accelerators again, before they delete."""
    sweep(lambda: World(make, "integers", "hold").restored(), skip(stride), digest=False)


class Narrow(IntegerSums):
    """Warns when it learns, and breaks off once it has forgotten half."""

    def _fit_rows(self) -> None:
        warnings.warn("half of the values are 0", stacklevel=2)
        super()._fit_rows()

    def _update(self, delta: Any) -> Any:
        self.sums_ = self.sums_ * 0
        raise MemoryError


def test_what_comes_back_is_what_fit_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the parameters set since, nor the records' lack of names; and warnings stay warnings."""
    with pytest.warns(UserWarning, match="half"):
        model = Narrow(random_state=0).fit(X)
    model.feature_names_in_ = np.array(["p", "q"], dtype=object)  # as in a file loaded with arrays
    model._info.digest = None
    digest = model.digest()
    model.set_params(least=9, random_state=8)
    with pytest.raises(MemoryError):
        model.delete([3])
    assert model.digest() == digest
    assert model.feature_names_in_.tolist() == ["p", "q"]
    pipeline = tabled().fit(X)
    digest = pipeline.digest()
    pipeline.set_params(kmeans__n_clusters=3)

    def break_off(*_: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(KMeans, "_fit_rows", break_off)
    with pytest.raises(KeyboardInterrupt):
        pipeline.delete([4])
    assert pipeline.digest() == digest


# -- and another one meanwhile ---------------------------------------------------------------------


class Breaking(IntegerSums):
    """Is interrupted when it has forgotten half."""

    broken = False

    def _update(self, delta: Any) -> Any:
        if not Breaking.broken:
            self.sums_ = self.sums_ * 0
            Breaking.broken = True
            raise KeyboardInterrupt
        return super()._update(delta)


def breaking() -> Erasable:
    return Breaking(random_state=0)


def failing() -> Erasable:
    return make_pipeline(Rarity(), Failing())


def release_breaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Let the first release break off at once; return whether it has."""
    broken = []

    def let_go(records: Records, rows: Any, plainly: Any = Records._let_go) -> None:
        if not broken:
            broken.append(True)
            raise KeyboardInterrupt
        plainly(records, rows)

    monkeypatch.setattr(Records, "_let_go", let_go)
    return lambda: bool(broken)


def check_unfitted(world: World) -> None:
    """The model says that it has to be fitted again, and can be; the records are consistent."""
    model = world.models.pop(0)
    parts = [part for part in model.get_params().values() if isinstance(part, Erasable)]
    for part in (model, *parts):
        with pytest.raises(NotFittedError):
            part.digest()
        with pytest.raises(NotFittedError):
            part.delete(world.gone)
    model.fit(world.records)
    kept = set(model.ids_.tolist())
    assert kept in (set(IDS[world.kind]), set(IDS[world.kind]) - set(world.gone))
    world.models.insert(0, model)
    if kept == set(IDS[world.kind]):
        assert not world.records._withdrawn.any()
        check_whole(world)
    elif len(world.models) == 1:
        assert world.records._erased[GONE].all()
        assert not world.records.matrix[GONE].any()
    else:
        check_whole(world)


@pytest.mark.parametrize(
    ("make", "others", "stride"),
    [
        (sums, "none", 1),
        (sums, "hold", 1),
        (sums, "deleted", 1),
        (breaking, "hold", 2),
        (breaking, "deleted", 2),
        (failing, "hold", 5),
    ],
)
def test_a_second_interruption_leaves_no_half_model(
    make: Any, others: str, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfitted = 0
    for at in range(0, 1000, stride):
        world = World(make, "strings", others)
        with monkeypatch.context() as patch:
            if make is sums:
                ready = release_breaks(patch)
            elif make is breaking:
                Breaking.broken = False
                ready = lambda: Breaking.broken  # noqa: E731
            else:
                Failing.failures = 1
                ready = lambda: not Failing.failures  # noqa: E731
            if not interrupt(lambda world=world: world.delete(digest=False), at, ready):
                break
        if hasattr(world.models[0], "ids_"):
            check_whole(world)
        else:
            unfitted += 1
            check_unfitted(world)
    assert at > unfitted > 5
    check_whole(world)


def test_an_unfitted_model_holds_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while the traceback is there, which an interactive session keeps."""
    world = World(sums, "strings", "none")

    def let_go(records: Records, rows: Any) -> None:
        records._withdrawn[rows] = True
        raise KeyboardInterrupt

    monkeypatch.setattr(Records, "_let_go", let_go)
    with pytest.raises(KeyboardInterrupt) as kept:
        world.delete()
    assert kept.tb is not None
    assert not hasattr(world.models[0], "ids_")
    assert world.records._erased.tolist() == [row in GONE for row in range(len(X))]


# -- the end of a model ----------------------------------------------------------------------------


def test_a_finalizer_that_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python prints what it raises, which names no record; at the latest, the next one erases."""
    at_once = 0
    for at in range(1000):
        world = World(sums, "strings", "hold")
        world.delete(digest=False)
        assert world.records.matrix[GONE].all()
        ignored: list[Any] = []
        monkeypatch.setattr(sys, "unraisablehook", ignored.append)
        found = interrupt(world.models.pop, at)
        monkeypatch.undo()
        if not found:
            assert not ignored
            break
        (report,) = ignored
        text = "".join(traceback.format_exception(report.exc_value)) + repr(report.object)
        assert "KeyboardInterrupt" in text
        assert "visit" not in text
        at_once += not world.records.matrix[GONE].any()
        world.models[0].delete([IDS["strings"][NEXT]])
        check_records(world)
    assert at >= at_once > at - 5
    check_records(world)


# -- negative controls -----------------------------------------------------------------------------


def excluded_only(world: World) -> None:
    world.models[0]._held.exclude(np.array(GONE))


def not_learned(world: World) -> None:
    held = world.models[0]._held
    held.exclude(np.array(GONE))
    held.release(np.array(GONE))


def learned_only(world: World) -> None:
    excluded_only(world)
    world.models[0]._update(Delta(np.array(GONE)))


def an_old_digest(world: World) -> None:
    digest = world.models[0].digest()
    world.delete()
    world.models[0]._info.digest = digest


def subtracted_twice(world: World) -> None:
    book = world.models[0]._info
    world.delete()
    gone = np.array(world.gone, dtype=object)
    book.settle(np.array(GONE), book.id_set - id_set_hash(gone))


def not_counted(world: World) -> None:
    world.models[0]._held.live[GONE] = False


def bytes_left(world: World) -> None:
    world.delete()
    world.records.matrix[GONE[0]] = X[GONE[0]]


def name_left(world: World) -> None:
    world.delete()
    world.records._id_index._rows[world.gone[0]] = GONE[0]


def group_left(world: World) -> None:
    world.delete()
    world.records._group_index._numbers[GROUPS[world.kind][GONE[0]]] = 0


def not_withdrawn(world: World) -> None:
    world.delete()
    world.records._withdrawn[GONE] = False


def held_by_nobody(world: World) -> None:
    world.delete()
    world.models[0]._held._unreleased[GONE] = True


@pytest.mark.parametrize(
    "sabotage",
    [
        excluded_only,
        not_learned,
        learned_only,
        an_old_digest,
        subtracted_twice,
        not_counted,
        bytes_left,
        name_left,
        group_left,
        not_withdrawn,
        held_by_nobody,
    ],
)
def test_half_a_deletion_is_noticed(sabotage: Callable[[World], None]) -> None:
    world = World(sums, "strings", "none")
    sabotage(world)
    with pytest.raises(AssertionError):
        check_whole(world)


def half_guarded(change: Any, models: Any) -> Any:
    """Take care of what the estimator does, and not of what follows."""
    ((held, model),) = models
    rows = change.delta(held).leaving
    id_set = model._info.id_set - id_set_hash(held.records.ids[rows])
    held.exclude(rows)
    try:
        outcome = model._update(Delta(rows))
    except BaseException:
        held.readmit(rows)
        model._relearn(held)
        raise
    model._info.settle(rows, id_set)
    held.release(rows)
    return [outcome]


def test_half_a_guard_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("erasable.core.estimator.carry_out", half_guarded)
    halves = []
    for world in interrupted(lambda: World(sums, "strings", "none"), digest=False):
        try:
            check_whole(world)
        except AssertionError:
            halves.append(world)
    assert len(halves) > 10
    before = [world for world in halves if not world.records._withdrawn.any()]
    assert 0 < len(before) < len(halves)
