"""What a deletion changes is put back, in every estimator, to the last bit."""

from __future__ import annotations

import array
from collections import OrderedDict
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from erasable import Records
from erasable.core.deletion import Outcome
from erasable.core.errors import TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.leave_out import OpaqueError, Snapshot, each_without
from erasable.ensemble import HistGradientBoostingClassifier
from erasable.preprocessing import MinMaxScaler, StandardScaler
from erasable.utils._checks.compare import (
    Snapshot as Look,
)
from erasable.utils._checks.compare import (
    assert_same,
    assert_same_outputs,
    fit,
    seeded,
)
from erasable.utils._checks.data_sets import STANDARD, DataSet, suited
from law_instances import law_instances

INSTANCES = list(law_instances())
KINDS = {data.name: data for data in STANDARD}


def check_trials(estimator: Any, data: DataSet) -> None:
    """Try deletions, hold each against a refit, and look whether anything is left of them."""
    model = fit(estimator, data)
    look = Look(model, data)
    doomed = data.doomed.copy()  # kernels are compiled anew for what cannot be written
    parts = [doomed[:1], doomed[1:2], np.sort(doomed[:3]), doomed[:1]]
    for rows, without in zip(parts, each_without(model, parts), strict=True):
        rest = data.without(data.ids[rows])
        told = f"without {len(rows)} of {data.name!r}"
        assert_same(without, fit(estimator, rest), told)
        assert_same_outputs(without, fit(estimator, rest), rest, told)
    look.assert_unchanged("deletions on trial")
    model.delete(data.doomed_ids[:2])
    assert_same(model, fit(estimator, data.without(data.doomed_ids[:2])), "after the trials")


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("estimator", INSTANCES, ids=lambda e: " ".join(str(e).split()))
def test_trials_of_every_estimator(estimator: Any) -> None:
    tried = 0
    for data in suited([KINDS["separated"], KINDS["integers"]], estimator):
        try:
            check_trials(estimator, data)
        except TooFewRecordsError:
            continue
        tried += 1
    assert tried


@pytest.mark.parametrize("forgotten", ["_arrays", "_objects", "_slots"])
def test_what_is_not_put_back_is_found(monkeypatch: pytest.MonkeyPatch, forgotten: str) -> None:
    whole = Snapshot.restore

    def restore(self: Snapshot) -> None:
        setattr(self, forgotten, [])
        whole(self)

    monkeypatch.setattr(Snapshot, "restore", restore)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        check_trials(StandardScaler(), KINDS["skewed"])


def test_the_records_are_neither_changed_nor_withdrawn() -> None:
    data = KINDS["skewed"]
    records = Records(data.X, ids=data.ids, groups=data.groups)
    model = MinMaxScaler().fit(records)
    for _ in each_without(model, np.split(np.arange(41), 41)):
        assert np.array_equal(records.matrix, data.X)
    assert np.array_equal(records.ids, data.ids)
    assert len(records) == 41
    assert model._held.live.all()


# -- what a snapshot remembers ---------------------------------------------------------------------


class Slotted:
    __slots__ = ("later", "value")

    def __init__(self) -> None:
        self.value = 1


class Named(dict[str, int]):
    """A dict with attributes of its own."""


class Everything:
    def __init__(self) -> None:
        self.number, self.numbers = 1.0, np.arange(3.0)
        self.row = self.numbers[1:]
        self.words = np.array(["a", "b"], dtype=object)
        self.sparse = csr_array(np.eye(2))
        self.items, self.names, self.known = [1, [2]], {"a": {"b": 1}}, {1, 2}
        self.pair = (np.zeros(2), "text")
        self.slotted = Slotted()
        self.named = Named(a=1)
        self.named.attribute = 1  # type: ignore[attr-defined]
        counts = np.zeros(2)
        self.count = lambda: counts
        self.partly = partial(np.add, counts, out=np.zeros(2))
        self.method = self.items.append
        self.itself = self

    def change(self) -> None:
        self.number, self.new = 2.0, 3
        self.row[0] = 9.0
        self.words[0] = "c"
        self.sparse.data[:] = 9.0
        self.items[1].append(3)  # type: ignore[union-attr]
        self.items = []
        self.names["a"]["c"] = 2
        self.known.add(3)
        self.pair[0][:] = 9.0
        self.slotted.value, self.slotted.later = 2, 3
        self.named["b"] = self.named.attribute = 2  # type: ignore[attr-defined]
        self.count()[:] = 9.0
        self.partly.keywords["out"][:] = 9.0

    def told(self) -> list[Any]:
        return [
            sorted(vars(self)), self.number, self.numbers.tolist(), self.row.tolist(),
            self.words.tolist(), self.sparse.toarray().tolist(), self.items, self.names,
            self.known, self.pair[0].tolist(), self.slotted.value, hasattr(self.slotted, "later"),
            self.named, vars(self.named), self.count().tolist(),
            self.partly.keywords["out"].tolist(), self.itself is self,
        ]  # fmt: skip


def test_everything_comes_back() -> None:
    thing, other = Everything(), Everything()
    snapshot = Snapshot(thing, Records([[1.0]]))
    for _ in range(2):
        thing.change()
        differ = [a != b for a, b in zip(thing.told(), other.told(), strict=True)]
        assert all(differ[:-1])
        snapshot.restore()
        assert thing.told() == other.told()


def test_records_are_left_alone() -> None:
    records = Records([[1.0], [2.0]], [0.0, 1.0], sample_weight=[1.0, 2.0], groups=["a", "b"])
    snapshot = Snapshot([records, records.matrix[1:], records.y, records.ids[:1]], records)
    assert snapshot._arrays == []
    records.matrix[:] = 5.0
    snapshot.restore()
    assert records.matrix.tolist() == [[5.0], [5.0]]


@pytest.mark.parametrize(
    "thing", [array.array("d", [1.0]), iter([1]), bytearray(b"a"), OrderedDict(a=1), Random(0)]
)
def test_what_python_cannot_look_into_is_refused(thing: Any) -> None:
    with pytest.raises(OpaqueError, match="cannot be looked into"):
        Snapshot([thing], Records([[1.0]]))


class Opaque(Erasable):
    """Sums in a compiled buffer, of which no snapshot can be taken."""

    def _fit_rows(self) -> None:
        self._sums = array.array("d", self._held.records.matrix[self._held.live].sum(axis=0))

    def _update(self, delta: Any) -> Outcome:
        rows = delta.leaving
        for j, value in enumerate(self._held.records.matrix[rows].sum(axis=0)):
            self._sums[j] -= value
        return Outcome("updated")

    def _state(self) -> dict[str, Any]:
        return {"sums": np.array(self._sums)}

    def _restore(self, state: dict[str, Any]) -> None:
        self._sums = array.array("d", state["sums"])


def test_a_model_without_a_snapshot_is_copied() -> None:
    data = KINDS["integers"]
    model = seeded(Opaque()).fit(data.X)
    with pytest.raises(OpaqueError):
        Snapshot(model, model._held.records)
    check_trials(Opaque(), data)
    assert all(without is not model for without in each_without(model, [np.array([0])]))


def test_too_few_are_refused_before_anything_changes() -> None:
    model = MinMaxScaler().fit([[1.0], [2.0]])
    with pytest.raises(TooFewRecordsError, match=r"leaving out 2 records would leave 0; .*"):
        list(each_without(model, [np.array([0, 1])]))
    assert model.ids_.tolist() == [0, 1]


def test_a_model_that_has_to_learn_again_comes_back() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    y[7] = 2  # a class that goes with its record
    model = HistGradientBoostingClassifier(max_iter=3, random_state=0).fit(X, y)
    before, left = model.digest(), np.delete(np.arange(60), 7)
    (found,) = (without.digest() for without in each_without(model, [np.array([7])]))
    fresh = HistGradientBoostingClassifier(max_iter=3, random_state=0)
    assert found == fresh.fit(X[left], y[left], ids=left).digest()
    model._info.digest = None
    assert model.digest() == before
    model.delete([7])
    assert model.digest() == found
