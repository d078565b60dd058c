"""A change that is refused once it has begun, and is interrupted once, leaves the model as it was.

Some changes cannot be refused before a model has tried to learn them: values beyond what a sum
holds, one class alone, what an estimator of scikit-learn finds to complain of. They are undone.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from effort import SEED, skip
from erasable import Records, all_estimators
from erasable.core import _adding, _changing
from erasable.core._adding import Growth
from erasable.core._changing import AllOrNothing
from erasable.core.errors import ErasableError, MagnitudeError
from erasable.core.estimator import Erasable
from erasable.ensemble import ShardedClassifier
from erasable.linear_model import Ridge
from erasable.naive_bayes import CategoricalNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler
from integer_sums import IntegerSums
from interruptions import interrupt
from law_instances import instances_of
from mixed_visits import OF_TEXT, Mixed
from visits_table import OF_COUNTS, OF_DOCUMENTS, Visits

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

N = 30
Change = Callable[[Any], Any]


class Scene:
    """An estimator, the records that it learns from, and changes that it may refuse."""

    def __init__(self, model: Any, visits: Visits, columns: list[str]) -> None:
        seeds = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        self.made = clone(model).set_params(**dict.fromkeys(seeds, 0))
        self.visits, self.frame = visits, visits.frame[columns]

    def start(self, folder: Path | None) -> Erasable:
        """Return the model that is to refuse: in memory, or at rest in a folder."""
        model = self.fit()
        if folder is None:
            return model
        model.save(folder / "model", records=True)
        return type(model).load(folder / "model", records=True)

    def fit(self, keep: Any = slice(None)) -> Erasable:
        visits = self.visits
        given = Records(
            self.frame[keep], visits.y[keep], ids=visits.ids[keep], groups=visits.groups[keep]
        )
        return clone(self.made).fit(given)

    def changes(self) -> Iterator[tuple[str, Change]]:
        ids, y = self.visits.ids, self.visits.y
        new: dict[str, Any] = {"ids": ["new-1", "new-2"], "groups": [1000, 1000]}
        numbers = [name for name in self.frame if self.frame[name].dtype.kind in "fi"][:1]
        for value in (1e39, -1e300, 1.7e308, -0.5):
            rows = self.frame.iloc[:2].assign(**dict.fromkeys(numbers, value))
            if numbers:
                yield f"correct to {value}", lambda m, rows=rows: m.correct(ids[:2], rows)
                yield f"add {value}", lambda m, rows=rows: m.add(rows, y[:2], **new)
                yield (
                    f"replace by {value}",
                    lambda m, rows=rows: m.replace(ids[2:4], rows, y[:2], **new),
                )
        for target in (1, 1e300):
            same = np.full(len(ids), target)
            yield f"correct targets to {target}", lambda m, same=same: m.correct(ids, y=same)
        rows = self.frame.iloc[[0, 0]]
        yield "replace all", lambda m: m.replace(ids, rows, y[[0, 0]], **new)
        alike = self.frame.iloc[np.zeros(len(ids), int)]
        yield "correct all to one", lambda m: m.correct(ids, alike)


class Watch:
    """Tells whether records have begun to change, and whether that is being undone.

    Models are at rest where there is a folder.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path | None = None) -> None:
        self.begun = self.undoing = False
        self.folder = folder
        begin, undo = Growth.begin, Growth.undo

        def noticed(growth: Growth) -> None:
            self.begun = True
            begin(growth)

        def noticed_again(growth: Growth) -> None:
            self.undoing = True
            undo(growth)

        monkeypatch.setattr(Growth, "begin", noticed)
        monkeypatch.setattr(Growth, "undo", noticed_again)

    def refuses(self, scene: Scene, change: Change) -> bool:
        """Tell whether a change is refused after it has begun."""
        self.begun = False
        model = scene.start(self.folder)
        with contextlib.suppress(ErasableError):
            change(model)
            return False
        return self.begun

    def check(self, scene: Scene, change: Change, at: int) -> bool:
        """Interrupt what undoes a refused change; tell whether it took so many events."""
        self.undoing = False
        model, ids = scene.start(self.folder), scene.visits.ids

        def refused() -> None:
            with contextlib.suppress(ErasableError):
                change(model)

        interrupted = interrupt(refused, at, lambda: self.undoing)
        assert sorted(model.ids_) == sorted(ids)
        assert model.digest() == scene.fit().digest()
        gone = np.isin(ids, ids[5:7])
        model.delete(ids[gone])
        assert model.digest() == scene.fit(~gone).digest()
        return interrupted

    def sweep(self, scene: Scene, change: Change, stride: int) -> int:
        at = 0
        while self.check(scene, change, at):
            at += stride
        return at // stride


def with_numbers(model: Any, **how: Any) -> Scene:
    visits = Visits(n=N, **how)
    return Scene(model, visits, list(visits.frame)[:2])


SCENES: dict[str, tuple[Callable[[], Scene], str, int]] = {
    "by a sum": (lambda: with_numbers(Ridge()), "correct to -1e+300", 50),
    "by a step": (
        lambda: with_numbers(make_pipeline(StandardScaler(), Ridge())),
        "add 1.7e+308",
        100,
    ),
    "by what is counted": (
        lambda: with_numbers(CategoricalNB(), counts=True),
        "replace by -0.5",
        50,
    ),
    "by a member": (
        lambda: with_numbers(ShardedClassifier(DecisionTreeClassifier(), n_shards=2)),
        "add 1e+39",
        300,
    ),
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("at_rest", [False, True])
@pytest.mark.parametrize("name", list(SCENES))
def test_a_refusal_that_is_interrupted_changes_nothing(
    name: str, at_rest: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make, told, stride = SCENES[name]
    scene, watch = make(), Watch(monkeypatch, tmp_path if at_rest else None)
    change = dict(scene.changes())[told]
    assert watch.refuses(scene, change)
    assert watch.sweep(scene, change, skip(stride)) >= 5


def every_scene() -> Iterator[Any]:
    for name, cls, tags in all_estimators():
        for number, model in enumerate(instances_of(name, cls, tags)):
            if name in OF_DOCUMENTS:
                yield pytest.param(Scene(model, Mixed(), ["note"]), id=f"{name}-{number}")
            else:
                visits = Visits(n=N, counts=name in OF_COUNTS)
                yield pytest.param(Scene(model, visits, list(visits.frame)), id=f"{name}-{number}")
    for name, (model, columns) in OF_TEXT.items():
        yield pytest.param(Scene(model, Mixed(), columns), id=name)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scene", list(every_scene()))
def test_so_does_a_refusal_of_any_estimator(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watch = Watch(monkeypatch)
    rng = np.random.default_rng([SEED, zlib.crc32(repr(scene.made).encode())])
    changes = [change for _, change in scene.changes()]
    order = rng.permutation(len(changes)).tolist()
    refused = next((changes[at] for at in order if watch.refuses(scene, changes[at])), None)
    if refused is not None:
        for at, folder in zip(
            (10.0 ** rng.uniform(0.0, 3.6, size=3)).astype(int).tolist(),
            (None, None, tmp_path),
            strict=True,
        ):
            watch.folder = folder
            watch.check(scene, refused, at)


class Refusing(IntegerSums):
    """Refuses a deletion when it has forgotten half."""

    def _update(self, delta: Any) -> Any:
        self.sums_ = self.sums_ * 0
        raise MagnitudeError("refused")


def test_a_deletion_that_is_refused_late_and_interrupted_changes_nothing() -> None:
    X = np.arange(12.0).reshape(6, 2)
    whole = Refusing(random_state=0).fit(X).digest()
    for at in range(1000):
        model = Refusing(random_state=0).fit(X)

        def late(model: Erasable = model) -> bool:
            return not model.__dict__.get("sums_", X).any()

        interrupted = interrupt(lambda model=model: refused(model), at, late)
        assert model.digest() == whole
        if not interrupted:
            break
    assert at > 5


def refused(model: Erasable) -> None:
    with contextlib.suppress(MagnitudeError):
        model.delete([2], digest=False)


def sweep_fit(monkeypatch: pytest.MonkeyPatch, *, once: bool = False) -> None:
    """Interrupt what gives estimators their attributes back after a fit that is refused."""
    visits = Visits(n=N)
    model = make_pipeline(StandardScaler(), Ridge()).fit(visits.frame, visits.y)
    digest = model.digest()
    restore, begun = AllOrNothing.__exit__, []

    def restoring(unchanged: AllOrNothing, kind: Any, *rest: Any) -> None:
        again = unchanged in begun
        if kind is not None:
            begun.append(unchanged)
        if not (once and again):
            restore(unchanged, kind, *rest)

    monkeypatch.setattr(AllOrNothing, "__exit__", restoring)

    def refit() -> None:
        with contextlib.suppress(MagnitudeError):
            model.fit(visits.frame, visits.y * 1e300)

    at = 0
    while interrupt(refit, at, lambda: bool(begun)):
        assert model.digest() == digest
        at += 1
        begun.clear()
    assert at > 10


def test_so_does_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_fit(monkeypatch)


def test_a_fit_that_leaves_a_part_as_it_became_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFittedError):
        sweep_fit(monkeypatch, once=True)


def undo_once(growth: Growth, models: Any) -> Any:
    """Do as `carry_out` does, but let an interruption of what undoes a refusal end it."""
    whole = False
    try:
        followers = [_changing._follower(growth, held, model) for held, model in models]
        growth.begin()
        outcomes = [_changing._follow(growth, each) for each in followers]
        growth.finish()
        whole = True
        return outcomes
    except BaseException:
        growth.undo()
        for held, model in models:
            model._relearn(held)
        whole = True
        raise
    finally:
        if not whole:
            for _, model in models:
                model._abandon()


def test_a_refusal_that_unfits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_adding, "carry_out", undo_once)
    make, told, _ = SCENES["by a sum"]
    scene, watch = make(), Watch(monkeypatch)
    with pytest.raises(NotFittedError):
        watch.sweep(scene, dict(scene.changes())[told], 100)
