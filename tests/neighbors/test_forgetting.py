"""Deletions from models that are their records: nothing left, memory freed, the rest as before."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from effort import examples
from erasable import Records
from erasable.audit import equality
from erasable.core.errors import ArtifactError, TooFewRecordsError
from erasable.kernel import NadarayaWatson
from erasable.model_selection import leave_one_out
from erasable.neighbors import KNeighborsClassifier, KNeighborsRegressor
from erasable.neighbors import _lazy as lazy_module
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler
from erasable.utils._checks.data_sets import MARKED, STANDARD
from erasable.utils._checks.reach import reachable
from erasable.utils.estimator_checks import LAW_CHECKS
from naming import named

MODELS = [
    KNeighborsClassifier(3),
    KNeighborsRegressor(3, weights="distance", leaf_size=4),
    NadarayaWatson(0.5, kernel="epanechnikov"),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=named)


def _fit(model: Any, X: Any, y: Any, **named_ids: Any) -> Any:
    return type(model)(**model.get_params()).fit(X, y, **named_ids)


def _table(n: int = 120) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 3)), rng.integers(0, 3, size=n)


@each_model
@settings(max_examples=examples(12), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(seed=st.integers(0, 2**32 - 1), asked=st.booleans())
def test_long_lives_end_as_refits(model: Any, seed: int, asked: bool) -> None:
    """Past several compactions, asked in between or not, with ties and copies."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, size=(60, 3)).astype(float), rng.integers(0, 4, size=60)
    ids = rng.permutation(500)[:60]
    own = _fit(model, X, y, ids=ids)
    order = rng.permutation(60)
    for gone, cut in enumerate(range(0, 55, 5)):
        if asked:
            own.predict(X[:3])
        own.delete(ids[order[cut : cut + 5]], digest=bool(gone % 2))
    left = np.sort(order[55:])
    fresh = _fit(model, X[left], y[left], ids=ids[left])
    assert own.predict(X).tobytes() == fresh.predict(X).tobytes()
    assert own.digest() == fresh.digest()
    assert equality(own).equal


@each_model
def test_memory_is_freed(model: Any) -> None:
    X, y = _table(400)
    own = _fit(model, X, y)
    own.predict(X[:2])
    before = _bytes_in(own)
    rows_before = own._held.records.n_rows
    own.delete(range(0, 190))
    assert own._held.records.n_rows == rows_before == 400
    own.delete(range(190, 360), digest=False)
    assert own._held.records.n_rows == 40
    own.predict(X[:2])
    assert _bytes_in(own) < before / 5
    own.delete([399, 360])
    assert own.ids_.tolist() == list(range(361, 399))


def _bytes_in(model: Any) -> int:
    gc.collect()
    arrays = [thing for _, thing in reachable(model) if isinstance(thing, np.ndarray)]
    return sum(array.nbytes for array in arrays if array.base is None)


def test_groups_are_found_after_memory_was_freed() -> None:
    X, y = _table(60)
    groups = np.array([f"person {i // 5}" for i in range(60)], dtype=object)
    model = KNeighborsRegressor(2).fit(X, y, groups=groups)
    model.delete(groups=[f"person {i}" for i in range(8)])
    assert model._held.records.n_rows == 20
    assert model.delete(groups=["person 9"]).ids.tolist() == [45, 46, 47, 48, 49]
    left = np.r_[40:45, 50:60]
    fresh = KNeighborsRegressor(2).fit(X[left], y[left], ids=left, groups=groups[left])
    assert model.digest() == fresh.digest()


@each_model
def test_records_that_others_know_stay_where_they_are(model: Any) -> None:
    X, y = _table()
    records = Records(X, y)
    one, two = (type(model)(**model.get_params()).fit(records) for _ in range(2))
    before = two.predict(X)
    one.delete(range(100))
    assert one._held.records is two._held.records is records
    assert records.n_rows == 120
    assert two.predict(X).tobytes() == before.tobytes()
    del two
    assert not records.matrix[:100].any()
    assert len(records) == 20


def test_no_trace_is_left_past_a_compaction() -> None:
    """The check of the law deletes three; here the index and the records have been made anew."""
    data = MARKED[0]
    crowd = np.setdiff1d(np.arange(len(data)), data.doomed)[:25]
    for model in (KNeighborsClassifier(2, leaf_size=3), NadarayaWatson(2.0**24)):
        LAW_CHECKS["check_nothing_left"](model, [data])
        own = _fit(model, data.X, np.arange(41) % 3, ids=data.ids)
        own.predict(data.X)
        own.delete(data.ids[crowd])
        gone = {float(value) for value in data.X[crowd].ravel()}
        seen = {
            float(value)
            for _, thing in reachable(own)
            if isinstance(thing, np.ndarray) and thing.dtype.kind == "f"
            for value in thing.ravel().tolist()
        }
        assert seen & {float(value) for value in data.X[data.doomed].ravel()}
        assert not seen & gone


# -- too few, and classes --------------------------------------------------------------------------


def test_a_model_needs_as_many_records_as_neighbours() -> None:
    X, y = _table(6)
    with pytest.raises(TooFewRecordsError, match="n_samples=4; KNeighborsClassifier needs at lea"):
        KNeighborsClassifier(5).fit(X[:4], y[:4])
    model = KNeighborsClassifier(5).fit(X, y)
    digest = model.delete([3]).digest_after
    with pytest.raises(TooFewRecordsError, match="would leave 4; KNeighborsClassifier needs at "):
        model.delete([0])
    assert model.digest() == digest
    assert model.predict(X[:1]).size == 1
    with pytest.raises(TooFewRecordsError, match=r"or set a smaller n_neighbors$"):
        KNeighborsClassifier(7).fit(X, y)
    behind = make_pipeline(MinMaxScaler(), KNeighborsClassifier(5)).fit(X, y)
    with pytest.raises(TooFewRecordsError, match=r"a smaller kneighborsclassifier__n_neighbors$"):
        behind.delete([0, 1])


def test_classes_go_with_their_last_record() -> None:
    X = np.arange(8.0)[:, None]
    labels = ["a", "b", "b", "c", "c", "c", "b", "c"]
    model = KNeighborsClassifier(2).fit(X, labels)
    model.predict(X)
    model.delete([0])
    assert model.classes_.tolist() == ["b", "c"]
    assert model.predict_proba(X).shape == (8, 2)
    model.delete([1, 2, 6])
    assert model.classes_.tolist() == ["c"]
    assert set(model.predict(X)) == {"c"}
    fresh = KNeighborsClassifier(2).fit(X[[7, 3, 4, 5]], ["c"] * 4, ids=[7, 3, 4, 5])
    assert model.digest() == fresh.digest()


def test_several_targets_lose_classes_apart() -> None:
    X, y = np.arange(6.0)[:, None], np.array([[0, 5], [1, 5], [1, 6], [1, 6], [1, 7], [1, 7]])
    model = KNeighborsClassifier(2).fit(X, y)
    model.delete([0, 1])
    assert [each.tolist() for each in model.classes_] == [[1], [6, 7]]
    assert model.digest() == KNeighborsClassifier(2).fit(X[2:], y[2:], ids=[2, 3, 4, 5]).digest()
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()


# -- the digest ------------------------------------------------------------------------------------


@each_model
def test_the_digest_tells_every_value_apart(model: Any) -> None:
    X, y = _table(12)
    ids = np.arange(12) + 50
    digest = _fit(model, X, y, ids=ids).digest()
    for row in (0, 11):
        other, target, names = X.copy(), y.copy(), ids.copy()
        other[row, 1] = np.nextafter(other[row, 1], np.inf)
        target[row] = (target[row] + 1) % 3
        names[row] = 999
        assert len({digest, _fit(model, other, y, ids=ids).digest(),
                    _fit(model, X, target, ids=ids).digest(),
                    _fit(model, X, y, ids=names).digest()}) == 4  # fmt: skip
    swapped = X.copy()
    swapped[[0, 1]] = X[[1, 0]]
    assert _fit(model, swapped, y, ids=ids).digest() != digest
    turned = np.arange(12)[::-1]
    assert _fit(model, X[turned], y[turned], ids=ids[turned]).digest() == digest


def test_labels_of_other_types_are_other_labels() -> None:
    X = np.arange(6.0)[:, None]
    texts = ["0", "1"] * 3
    digests = {
        KNeighborsClassifier(2).fit(X, labels).digest()
        for labels in (np.array([0, 1] * 3), np.array([0.0, 1.0] * 3), [False, True] * 3, texts)
    }
    assert len(digests) == 4


def test_ids_of_a_type_that_is_no_longer_needed() -> None:
    X, y = np.arange(5.0)[:, None], np.arange(5.0)
    for strange in (2**63 + 5, "text"):
        ids = [3, 1, 4, strange, 5]
        ids = np.array(ids, dtype=object if isinstance(strange, str) else np.uint64)
        model = KNeighborsRegressor(2).fit(X, y, ids=ids)
        model.delete([strange])
        fresh = KNeighborsRegressor(2).fit(X[[0, 1, 2, 4]], y[[0, 1, 2, 4]], ids=[3, 1, 4, 5])
        kept = [each.state()["records"]["ids"].dtype for each in (model, fresh)]
        assert kept == [np.int64, np.int64]
        assert model.digest() == fresh.digest()


# -- files -----------------------------------------------------------------------------------------


@each_model
def test_a_file_predicts_and_names_its_records(model: Any, tmp_path: Path) -> None:
    X, y = _table(40)
    ids = np.array([f"r{i}" for i in range(40)], dtype=object)
    own = _fit(model, X, y, ids=ids)
    own.delete(["r3", "r20"])
    own.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert loaded.predict(X).tobytes() == own.predict(X).tobytes()
    assert sorted(loaded.ids_.tolist()) == sorted(own.ids_.tolist())
    assert loaded.n_samples_fit_ == 38
    if hasattr(model, "kneighbors"):
        found = loaded.ids_[loaded.kneighbors(X[:4])[1]]
        assert found.tolist() == own.ids_[own.kneighbors(X[:4])[1]].tolist()


@each_model
def test_other_records_are_not_attached(model: Any, tmp_path: Path) -> None:
    X, y = _table(20)
    path = tmp_path / "model"
    _fit(model, X, y).save(path)
    moved, told = X.copy(), y.copy()
    moved[7, 2] += 1.0
    told[7] = (told[7] + 1) % 3
    for records in (Records(moved, y), Records(X, told), Records(X), Records(X, np.c_[y, y])):
        with pytest.raises(ArtifactError, match=r"makes another|no targets"):
            type(model).load(path, records)
    vouched = type(model).load(path, Records(X, y), vouched=True)
    vouched.delete([7])
    rest = np.delete(np.arange(20), 7)
    assert vouched.digest() == _fit(model, X[rest], y[rest], ids=rest).digest()


@each_model
def test_a_pickle_holds_the_records_once(model: Any) -> None:
    X, y = np.random.default_rng(0).normal(size=(300, 30)), np.arange(300) % 3
    own = _fit(model, X, y)
    own.predict(X[:1])
    pickled = pickle.dumps(own)
    assert X.nbytes < len(pickled) < 1.5 * X.nbytes
    assert pickle.loads(pickled).digest() == own.digest()


def test_leaving_one_out_is_asking_the_records() -> None:
    X, y = _table(40)
    told = leave_one_out(KNeighborsClassifier(3), X, y)
    model = KNeighborsClassifier(3).fit(X, y)
    assert model.predict(None).tolist() == told.predictions.tolist()


# -- negative controls -----------------------------------------------------------------------------


class ByRow(KNeighborsRegressor):
    """Breaks ties by the position of rows."""

    def _memory_of(self, held: Any) -> Any:
        memory = super()._memory_of(held)
        memory._order = held.live_rows()
        return memory


class Hoarder(KNeighborsRegressor):
    """Keeps the targets of records that are gone."""

    def _update(self, delta: Any) -> Any:
        self._accelerator.targets.remove = lambda rows: None
        return super()._update(delta)


def test_ties_by_row_are_noticed() -> None:
    duplicated = [data for data in STANDARD if data.name == "duplicated rows"]
    with pytest.raises(AssertionError, match="check_row_order"):
        LAW_CHECKS["check_row_order"](ByRow(2), duplicated)


def test_a_kept_target_is_noticed() -> None:
    with pytest.raises(AssertionError, match="still to be found in"):
        LAW_CHECKS["check_nothing_left"](Hoarder(2), MARKED[:1])


def test_a_deletion_that_is_interrupted_while_memory_is_freed_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = _table(20)
    for error in (MemoryError, KeyboardInterrupt):
        model = KNeighborsRegressor(2).fit(X, y)

        def fail(self: Any, error: type[BaseException] = error) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(lazy_module.Attachment, "copy_records", fail)
            if error is MemoryError:
                model.delete(range(15))
            else:
                with pytest.raises(KeyboardInterrupt):
                    model.delete(range(15))
        rest = np.arange(15, 20)
        assert model.ids_.tolist() == rest.tolist()
        fresh = KNeighborsRegressor(2).fit(X[rest], y[rest], ids=rest)
        assert model.digest() == fresh.digest()
        model.delete([15])
        assert model._held.records.n_rows == 4
