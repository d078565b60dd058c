"""Wherever an addition, a correction or a replacement is interrupted, it is done or it is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from effort import skip
from erasable.cluster import KMeans
from erasable.compose import ColumnTransformer
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.estimator import Erasable
from erasable.core.mapped.objects import put_together, take_apart
from erasable.core.mapped.texts import Texts
from erasable.core.records import Records
from erasable.core.row_arrays import buffer_of
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB
from erasable.neighbors import KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from integer_sums import IntegerSums
from interruptions import interrupt

N = 10
X = np.random.default_rng(3).integers(1, 30, size=(N + 3, 2)) * np.array([1.0, 8.0])
X[N] = [900.0, 1.0]  # beyond the range of the others
Y = (X[:, 0] > 12).astype(np.int64)
IDS = ["", *(f"visit-{row}" for row in range(1, N + 3))]
OLD, NEW = list(range(N)), [N, N + 1, N + 2]
VALUES = {row: row for row in range(N + 3)}


def sums() -> Erasable:
    return IntegerSums(random_state=0)


def mapped() -> Erasable:
    return make_pipeline(StandardScaler(), Ridge())


def tabled() -> Erasable:
    return make_pipeline(MinMaxScaler(clip=True), KNeighborsRegressor(2))


def clustered() -> Erasable:
    return KMeans(2, max_iter=3, random_state=0)


def grown() -> Erasable:
    return RandomForestClassifier(2, random_state=0)


def columns() -> Erasable:
    parts = [("codes", OneHotEncoder(), [0]), ("scaled", RobustScaler(), [1])]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression())


class Scene:
    """Records with an erased row, and two models that share them or one alone."""

    def __init__(
        self, make: Callable[[], Erasable], *, shared: bool, gone: tuple[int, ...] = (7,)
    ) -> None:
        self.make, self.shared = make, shared
        self.records = Records(X[:N], Y[:N], ids=IDS[:N])
        self.models = [make().fit(self.records) for _ in range(1 + shared)]
        for model in self.models:
            model.delete([IDS[row] for row in gone])
            model.digest()
        self.before = {row: row for row in OLD if row not in gone}

    def rest(self, *, room: bool) -> Scene:
        """Put the model into what a file of it holds, and back; ids may have room for more."""
        assert not self.shared
        described, arrays = take_apart(self.models[0])
        copied = [array.copy() for array in arrays]
        self.models = [put_together(json.loads(json.dumps(described)), copied)]
        held = self.models[0]._held
        assert held is not None
        self.records = held.records
        texts: Any = self.records.ids
        assert isinstance(texts, Texts)
        for name in ("starts", "lengths", "data") if room else ():
            array = getattr(texts, name)
            roomy = np.zeros(array.size + 100, array.dtype)
            roomy[: array.size] = array
            setattr(texts, name, roomy[: array.size])
        return self

    def change(self, kind: str) -> dict[int, int]:
        """Change the records; return which values each of them is to have."""
        asked: Any = self.records if self.shared else self.models[0]
        new = [IDS[row] for row in NEW]
        if kind == "add":
            asked.add(X[NEW], Y[NEW], ids=new, digest=False)
        elif kind == "correct":
            asked.correct([IDS[2], IDS[5]], X[[10, 1]], Y[[10, 1]], digest=False)
        else:
            asked.replace([IDS[2], IDS[5]], X[NEW], Y[NEW], ids=new, digest=False)
        return self.after(kind)

    def after(self, kind: str) -> dict[int, int]:
        if kind == "add":
            return {**self.before, **{row: row for row in NEW}}
        if kind == "correct":
            return {**self.before, 2: 10, 5: 1}
        left = {row: row for row in self.before if row not in (2, 5)}
        return {**left, **{row: row for row in NEW}}

    def expected(self, values: dict[int, int]) -> str:
        return refitted(self.make, tuple(values.items()))


@cache
def refitted(make: Callable[[], Erasable], values: tuple[tuple[int, int], ...]) -> str:
    rows = [value for _, value in values]
    return make().fit(X[rows], Y[rows], ids=[IDS[row] for row, _ in values]).digest()


def check_records(scene: Scene, values: dict[int, int]) -> None:
    """Every buffer holds the records that there are, and nothing else."""
    records = scene.records
    held = scene.models[0]._held
    assert held is not None
    wanted = {IDS[row]: (X[value].tolist(), int(Y[value])) for row, value in values.items()}
    assert records.y is not None
    found = {
        records.ids[row]: (records.matrix[row].tolist(), int(records.y[row]))
        for row in held.live_rows()
    }
    assert found == wanted
    assert np.array_equal(records._erased, ~held.live)
    assert np.array_equal(records._withdrawn, ~held.live)
    gone = ~held.live
    assert not records.matrix[gone].any()
    assert not records.y[gone].any()
    assert set(records.ids[gone].tolist()) <= {""}
    if isinstance(records.ids, Texts):
        check_texts(records.ids, found)
    for name, buffer in records._spare.items():
        rest = buffer[records.n_rows :]
        assert not (rest != ("" if name == "ids" else 0)).any()
    for model in scene.models:
        held = model._held
        assert held is not None
        assert held.n_live == held.live.sum() == len(values)
        assert np.array_equal(held.live, held._unreleased)


def check_texts(texts: Texts, wanted: Iterable[str]) -> None:
    """They hold the bytes of some ids, and the room that they have holds nothing."""
    letters = bytes(texts.data).replace(b"\0", b"")
    assert sorted(letters) == sorted("".join(wanted).encode())
    for each in texts.parts():
        room = buffer_of(each)
        assert room is None or not room[each.size :].any()


def check_whole(scene: Scene, kind: str) -> bool:
    """It is done in all models or in none, and life goes on; return which."""
    after = scene.after(kind)
    wanted = [scene.expected(values) for values in (scene.before, after)]
    found = {model.digest() for model in scene.models}
    assert len(found) == 1
    (digest,) = found
    assert digest in wanted
    done = digest == wanted[1]
    check_records(scene, after if done else scene.before)
    for model in scene.models:
        model._info.digest = model._info.id_set = None
        assert model.digest() == digest
    if not done:
        scene.change(kind)
        check_records(scene, after)
    for model in scene.models:
        assert model.digest() == wanted[1]
        model.delete([IDS[3]])
    left = {row: value for row, value in after.items() if row != 3}
    check_records(scene, left)
    assert scene.models[-1].digest() == scene.expected(left)
    return done


def interrupted(make: Callable[[], Scene], kind: str, stride: int) -> Iterator[Scene]:
    for at in range(0, 100_000, stride):
        scene = make()
        if not interrupt(lambda scene=scene: scene.change(kind), at):
            return
        yield scene


def sweep(make: Callable[[], Scene], kind: str, stride: int) -> None:
    seen = [check_whole(scene, kind) for scene in interrupted(make, kind, stride)]
    assert sorted(seen) == seen
    assert not seen[0]
    assert seen[-1] or stride > 5


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["add", "correct", "replace"])
@pytest.mark.parametrize("make", [sums, Ridge])
def test_a_change_is_done_or_not_done(make: Any, kind: str) -> None:
    sweep(lambda: Scene(make, shared=False), kind, skip(5))


@pytest.mark.sampled(4)
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["add", "correct", "replace"])
@pytest.mark.parametrize("make", [sums, GaussianNB])
def test_so_is_one_in_the_place_of_erased_rows(make: Any, kind: str) -> None:
    scene = Scene(make, shared=False, gone=(4, 7, 8))
    matrix = scene.records.matrix
    scene.change(kind)
    assert scene.records.matrix is matrix
    sweep(lambda: Scene(make, shared=False, gone=(4, 7, 8)), kind, skip(5))


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["add", "replace"])
@pytest.mark.parametrize("room", [False, True])
def test_so_is_one_at_rest(kind: str, room: bool) -> None:
    def make() -> Scene:
        return Scene(Ridge, shared=False, gone=(4, 7)).rest(room=room)

    scene = make()
    data: Any = scene.records.ids.data
    check_records(scene, scene.change(kind))
    now: Any = scene.records.ids.data
    assert np.may_share_memory(data, now) is room
    sweep(make, kind, skip(5))


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["correct", "add", "replace"])
@pytest.mark.parametrize("make", [grown, LogisticRegression, columns])
def test_so_is_one_of_a_model_with_tables_of_its_own(make: Any, kind: str) -> None:
    sweep(lambda: Scene(make, shared=False), kind, skip(61))


@pytest.mark.sampled(4)
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["add", "correct", "replace"])
@pytest.mark.parametrize("make", [sums, GaussianNB, KNeighborsRegressor, mapped, tabled, clustered])
def test_all_models_follow_or_none(make: Any, kind: str) -> None:
    sweep(lambda: Scene(make, shared=True), kind, skip(17))


class Failing(IntegerSums):
    """Fails when it learns of more than so many records."""

    most = 100

    def _update(self, delta: Delta) -> Outcome:
        held = self._held
        assert held is not None
        if held.n_live > self.most:
            raise MemoryError
        return super()._update(delta)


@pytest.mark.parametrize("other", [sums, Ridge])
def test_what_fails_in_the_last_model_is_undone_in_the_first(other: Any) -> None:
    records = Records(X[:N], Y[:N], ids=IDS[:N])
    models = [other().fit(records), Failing(random_state=0).fit(records)]
    digests = [model.digest() for model in models]
    models[1].most = N
    with pytest.raises(MemoryError):
        records.add(X[NEW], Y[NEW], ids=[IDS[row] for row in NEW])
    assert [model.digest() for model in models] == digests
    assert len(records) == records.n_rows == N
    models[1].most = 100
    records.add(X[NEW], Y[NEW], ids=[IDS[row] for row in NEW])
    assert models[0].digest() == other().fit(X, Y, ids=IDS).digest()


# -- negative controls -----------------------------------------------------------------------------


def test_a_change_that_is_half_done_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.core._adding import Growth

    def forgets_nothing(self: Growth) -> None:
        for held, part in self._parts.items():
            held.__dict__.update(part.before)

    monkeypatch.setattr(Growth, "undo", forgets_nothing)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        sweep(lambda: Scene(sums, shared=False), "add", 5)


def test_bytes_that_are_left_are_found() -> None:
    scene = Scene(sums, shared=False)
    values = scene.change("add")
    check_records(scene, values)
    scene.records._spare["matrix"][-1] = 5.0
    with pytest.raises(AssertionError):
        check_records(scene, values)


def test_ids_that_are_left_in_their_room_are_found() -> None:
    scene = Scene(Ridge, shared=False).rest(room=True)
    check_records(scene, scene.before)
    texts: Any = scene.records.ids
    texts.data.base[-1] = 5
    with pytest.raises(AssertionError):
        check_records(scene, scene.before)


def test_what_an_undone_change_leaves_in_the_room_of_ids_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Texts, "empty_room", lambda self: None)
    with pytest.raises(AssertionError):
        sweep(lambda: Scene(Ridge, shared=False).rest(room=True), "add", 5)
