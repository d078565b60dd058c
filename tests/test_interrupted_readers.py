"""A model that is interrupted while it answers is the model that it was.

What a model keeps beside its state (hashes, digests, sets of ids, what follows from its records) is
made when it is asked. Here a model is fitted and deletes, and between its deletions it is asked
questions that are interrupted at points that are drawn. Afterwards it is the model of a fit on the
records that are left, to the last byte of its file.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from effort import SEED, THOROUGH, skip
from erasable import Records, all_estimators
from erasable.ensemble import BaggingClassifier, RandomForestClassifier, ShardedClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler
from erasable.tree import DecisionTreeClassifier, DecisionTreeRegressor
from erasable.tree._grown import UpdatableTree
from erasable.tree._layout import DIRTY
from erasable.utils._checks.compare import assert_same
from interruptions import interrupt
from law_instances import instances_of
from mixed_visits import OF_TEXT, Mixed
from readers import NO_ANSWER, queries, readers_of
from visits_table import OF_COUNTS, OF_DOCUMENTS, Visits

N = 48
BEYOND = 10**6  # more events than a digest has
KEEPING = ("digest", "state", "save", "save with records", "equality")
"""Questions whose answers are kept, or made of what is kept: half of all that are asked."""


ROUNDS, QUESTIONS = 3, 3


class Life:
    """A model, the records that it has, and questions that are interrupted."""

    def __init__(
        self, model: Any, visits: Visits, columns: list[str], where: str, seed: int
    ) -> None:
        seeds = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
        self.made = clone(model).set_params(**dict.fromkeys(seeds, 0))
        self.visits, self.columns = visits, columns
        self.rng = np.random.default_rng([seed, zlib.crc32(f"{model!r} {where}".encode())])
        self.left = np.arange(len(visits.ids))
        self.told: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            records = self.stored(Path(folder)) if where == "parquet" else self.records()
            self.model = clone(self.made).fit(records)
            self.run()

    def records(self) -> Records:
        visits, rows = self.visits, self.left
        frame = visits.frame[self.columns].iloc[rows]
        return Records(frame, visits.y[rows], ids=visits.ids[rows], groups=visits.groups[rows])

    def stored(self, folder: Path) -> Records:
        pq.write_table(self.visits.table, folder / "a.parquet", row_group_size=9)
        uses = {"ids": "id", "target": "label", "groups": "person"}
        return Records.from_parquet(folder, **uses, features=self.columns)

    def run(self) -> None:
        self.model.digest()
        for _ in range(ROUNDS):
            self.delete()
            for _ in range(QUESTIONS):
                self.ask()
            self.check()

    def interrupted(self, told: str, action: Callable[[], Any]) -> None:
        """Do something, and be interrupted at one of its events, the first of them most likely."""
        error = KeyboardInterrupt if self.rng.random() < 0.6 else MemoryError
        at = int(10.0 ** self.rng.uniform(0.0, 4.5))
        if interrupt(action, at, error=error):
            self.told.append(f"{error.__name__} at {at} of {told}")

    def delete(self) -> None:
        """Delete records with what goes with it; in one of four cases be interrupted."""
        gone = self.visits.ids[self.rng.choice(self.left, 2, replace=False)]
        if self.rng.random() < 0.25:
            self.interrupted("delete", lambda: self.model.delete(gone))
        else:
            self.model.delete(gone, digest=False)
        self.left = np.flatnonzero(np.isin(self.visits.ids, self.model.ids_))

    def ask(self) -> None:
        readers = readers_of(self.model)
        name = str(self.rng.choice(KEEPING if self.rng.random() < 0.5 else sorted(readers)))
        X = queries(self.visits.frame[self.columns].iloc[self.left])
        y = self.visits.y[self.left[: len(X)]]

        def answer() -> None:
            try:
                readers[name](self.model, X, y)
            except NO_ANSWER as error:
                if replaces_an_interruption(error):
                    raise

        self.interrupted(name, answer)

    def check(self) -> None:
        fresh = clone(self.made).fit(self.records())
        assert_same(self.model, fresh, f"after {', '.join(self.told)}", save=True)


def replaces_an_interruption(error: BaseException | None) -> bool:
    """Tell whether an error was raised while an interruption was handled.

    That a method is not there scikit-learn says of whatever is raised when it looks for it.
    """
    if isinstance(error, AttributeError):
        return False
    while error is not None and not isinstance(error, KeyboardInterrupt | MemoryError):
        error = error.__context__
    return error is not None


def cases() -> Iterator[Any]:
    for name, cls, tags in all_estimators():
        for number, model in enumerate(instances_of(name, cls, tags)):
            if name in OF_DOCUMENTS:
                yield pytest.param(model, Mixed(), ["note"], id=f"{name}-{number}")
            else:
                visits = Visits(n=N, counts=name in OF_COUNTS)
                yield pytest.param(model, visits, list(visits.frame), id=f"{name}-{number}")
    for name, (model, columns) in OF_TEXT.items():
        yield pytest.param(model, Mixed(), columns, id=name)


@pytest.mark.thorough
@pytest.mark.sampled(9)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", ["memory", "parquet"])
@pytest.mark.parametrize(("model", "visits", "columns"), list(cases()))
def test_a_model_that_was_asked_is_what_it_was(
    model: Any, visits: Visits, columns: list[str], where: str
) -> None:
    if where == "parquet" and not model._can_read_blocks():
        where = "memory"
    for number in range(3 if THOROUGH else 1):
        Life(model, visits, columns, where, 100 * SEED + number)


# -- hashes of trees, which are kept from one digest to the next -----------------------------------


def of_trees() -> dict[str, Any]:
    forest = RandomForestClassifier(4, random_state=0)
    return {
        "a tree": DecisionTreeRegressor(random_state=0),
        "a forest": forest,
        "shards": ShardedClassifier(forest, n_shards=2, random_state=0),
        "bags": BaggingClassifier(
            DecisionTreeClassifier(),
            n_estimators=3,
            max_samples=0.6,
            bootstrap=False,
            random_state=0,
        ),
        "a step": make_pipeline(MinMaxScaler(), forest),
    }


def sweep_digest(model: Any, stride: int) -> None:
    visits = Visits(n=N)
    fresh = clone(model).fit(visits.frame[1:], visits.y[1:], ids=visits.ids[1:]).digest()
    for at in range(0, BEYOND, stride):
        made = clone(model).fit(visits.frame, visits.y, ids=visits.ids)
        made.digest()
        made.delete(visits.ids[:1], digest=False)
        interrupted = interrupt(made.digest, at)
        assert made.digest() == fresh, f"interrupted at {at}"
        if not interrupted:
            return


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(of_trees()))
def test_a_digest_after_one_that_was_interrupted(name: str) -> None:
    sweep_digest(of_trees()[name], skip(10 if name == "a tree" else 40))


def test_hashes_that_are_marked_before_they_are_made_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed = UpdatableTree._hashed

    def marked_first(self: UpdatableTree, nodes: Any, changed: Any, columns: Any) -> Any:
        self.growing.nodes[nodes[changed], DIRTY] = 0
        return hashed(self, nodes, changed, columns)

    monkeypatch.setattr(UpdatableTree, "_hashed", marked_first)
    for name in ("a tree", "a forest"):
        with pytest.raises(AssertionError, match="interrupted at"):
            sweep_digest(of_trees()[name], 9)
