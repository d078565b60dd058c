"""Every estimator refuses to be loaded with other records than those it holds, and takes its own.

Other records have the ids of the right ones, and values that a model could mistake for theirs:
exchanged between two records, or the same numbers in a table of another kind.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from scipy.sparse import csr_array

import erasable
from erasable import Records, load
from erasable.audit import refit
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.errors import ArtifactError, ErasableError
from erasable.core.value_hash import ValueHash
from erasable.core.values import Accepts
from erasable.ensemble import RandomForestClassifier
from erasable.naive_bayes import BernoulliNB, MultinomialNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler
from erasable.utils._checks.compare import saved, seeded
from erasable.utils._checks.data_sets import suited
from erasable.utils.estimator_checks import LAW_DATA_SETS
from law_instances import first_instances

INSTANCES = first_instances()
DATA = {data.name: data for data in LAW_DATA_SETS}
Given: TypeAlias = dict[str, Any]


def _given(estimator: Any, name: str = "separated") -> Given:
    """Records in numbers that float32 holds, with all that an estimator may learn from."""
    (data,) = suited([replace(DATA[name])], estimator)
    X = data.X if data.X.dtype == object else np.round(data.X * 8.0) / 8.0
    given: Given = {"X": X, "y": data.y, "ids": data.ids, "groups": np.arange(len(data)) // 2}
    if estimator._takes_weights:
        given["sample_weight"] = 1.0 + np.arange(len(data)) % 3
    return given


def _records(given: Given) -> Records:
    return Records(given["X"], **{name: value for name, value in given.items() if name != "X"})


def _saved(estimator: Any, given: Given) -> bytes:
    return saved(seeded(estimator).fit(_records(given)))


def _swapped(values: Any) -> Any:
    """Exchange the values of the first record and of another that differs from it."""
    array = np.array(values, dtype=object) if isinstance(values, list) else np.asarray(values)
    rows = array.reshape(len(array), -1)
    other = next(i for i in range(1, len(rows)) if (rows[i] != rows[0]).any())
    order = np.arange(len(array))
    order[[0, other]] = other, 0
    return array[order]


def _objects(values: Any, kind: Callable[[float], Any]) -> Any:
    """Make a table of objects, with a column of text."""
    table = np.empty((len(values), values.shape[1]), dtype=object)
    table[:] = [[kind(int(x)) for x in row] for row in values]
    table[:, 0] = [f"{int(x) % 3}" for x in values[:, 0]]
    return table


def _others(estimator: Any, given: Given) -> Iterator[tuple[str, Given, Given]]:
    """Give names to pairs of records to learn from and records that are not these."""
    parts = seeded(estimator).fit(_records(given))._learns_from()
    accepts, X = Accepts.of(estimator), given["X"]
    for part in ("X", "y", "sample_weight", "groups"):
        if part in parts | {"X"}:
            yield f"swapped {part}", given, {**given, part: _swapped(given[part])}
    yield "swapped records", given, {**given, "ids": _swapped(given["ids"])}
    changed = X.copy()
    changed[:2] = X[1::-1]
    yield "two rows of X swapped", given, {**given, "X": changed}
    if "y" in parts and np.asarray(given["y"]).dtype.kind in "if":
        other = given["y"].astype(float if given["y"].dtype.kind == "i" else np.float32) + 1.0
        yield "another y", given, {**given, "y": other - 0.5}
        if given["y"].dtype.kind == "i":
            yield "y in floats", given, {**given, "y": given["y"].astype(float)}
            yield "y in booleans", given, {**given, "y": given["y"].astype(bool)}
    if X.dtype == object:
        return
    single = {**given, "X": X.astype(np.float32)}
    sparse = {**given, "X": csr_array(X)}
    if "X" in parts:
        yield "float64 as float32", given, single
        yield "float32 as float64", single, given
        yield "dense as sparse", given, sparse
    if accepts.objects:
        whole = {**given, "X": _objects(X, int)}
        yield "1 as 1.0 among objects", whole, {**given, "X": _objects(X, float)}
        yield "1.0 as 1 among objects", {**given, "X": _objects(X, float)}, whole
        yield "numbers as objects", given, whole
    if accepts.sparse:
        if "X" in parts:
            yield "sparse as dense", sparse, given
        swapped = csr_array(_swapped(X))
        yield "swapped sparse X", sparse, {**given, "X": swapped}


def _name(estimator: Any) -> str:
    return type(estimator).__name__


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _refused(file: bytes, given: Given) -> bool:
    try:
        load(io.BytesIO(file), _records(given))
    except ArtifactError:
        return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", INSTANCES, ids=_name)
def test_other_records_are_refused(estimator: Any) -> None:
    fitted: list[tuple[Given, bytes]] = []
    told = 0
    for name, own, other in _others(estimator, _given(estimator)):
        if not fitted or fitted[-1][0] is not own:
            try:
                fitted.append((own, _saved(estimator, own)))
            except ErasableError:  # something that an estimator of scikit-learn in it refuses
                continue
        assert _refused(fitted[-1][1], other), f"accepted: {name}"
        told += 1
    assert told >= 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", INSTANCES, ids=_name)
@pytest.mark.parametrize("kind", ["as it was", "zeros and gaps"])
def test_its_own_records_are_taken_in_any_order(estimator: Any, kind: str) -> None:
    given = _given(estimator, "separated" if kind == "as it was" else "duplicated rows")
    model = seeded(estimator).fit(_records(given))
    gone = given["ids"][:1]
    model.delete(gone)
    file = saved(model)
    order = np.random.default_rng(5).permutation(np.arange(1, len(given["ids"])))
    rest = {name: np.asarray(value)[order] for name, value in given.items()}
    if rest["X"].dtype.kind == "f":
        rest["X"] = np.where(rest["X"] == 0.0, -0.0, rest["X"])
    loaded = load(io.BytesIO(file), _records(rest))
    assert saved(loaded) == file
    loaded.delete(given["ids"][1:3])
    model.delete(given["ids"][1:3])
    assert saved(loaded) == saved(model) == saved(refit(model))


def _accepted_wrongly(estimator: Any) -> list[str]:
    """List other records that are accepted, and after which a deletion differs from a refit."""
    found = []
    for name, own, other in _others(estimator, _given(estimator)):
        try:
            loaded = load(io.BytesIO(_saved(estimator, own)), _records(other))
            loaded.delete(own["ids"][-1:])
            right = refit(loaded)
        except ErasableError:
            continue
        if loaded.digest() != right.digest():
            found.append(name)
    return found


@pytest.mark.filterwarnings("ignore")
def test_without_the_hash_some_would_be_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: deletions from models with such records differ from refits."""

    def unchecked(self: ValueHash, held: Any) -> ValueHash:
        return self

    names = ("BaggingRegressor", "ShardedClassifier")
    chosen = [each for each in INSTANCES if _name(each) in names]
    assert not any(map(_accepted_wrongly, chosen))
    monkeypatch.setattr(ValueHash, "check", unchecked)
    found = {_name(each): _accepted_wrongly(each) for each in chosen}
    assert all("swapped X" in each for each in found.values())
    assert "swapped records" in found["BaggingRegressor"]
    assert "dense as sparse" in found["BaggingRegressor"]
    assert "y in floats" in found["ShardedClassifier"]


# -- what counts as the same ----------------------------------------------------------------------


def _hash(**given: Any) -> Any:
    held = _records(given).attach()
    return ValueHash.of(["X", "y", "sample_weight", "groups"]).written(held)


OTHERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("X", lambda X: [[1.0, 2.0], [3.0, 5.0]]),
    ("X", lambda X: [[3.0, 4.0], [1.0, 2.0]]),
    ("X", lambda X: [[2.0, 1.0], [3.0, 4.0]]),
    ("X", lambda X: csr_array([[1.0, 2.0], [3.0, 4.0]])),
    ("X", lambda X: np.array(X, dtype=np.float32)),
    ("X", lambda X: [["1.0", 2.0], [3.0, 4.0]]),
    ("y", lambda y: [1, 0]),
    ("y", lambda y: [0.0, 1.0]),
    ("y", lambda y: [False, True]),
    ("y", lambda y: ["0", "1"]),
    ("y", lambda y: [[0], [1]]),
    ("sample_weight", lambda w: [1.0, 2.0]),
    ("groups", lambda g: [8, 7]),
    ("groups", lambda g: None),
    ("ids", lambda ids: ["a", "b"]),
]


@pytest.mark.parametrize(("part", "other"), OTHERS)
def test_each_difference_changes_the_hash(part: str, other: Callable[[Any], Any]) -> None:
    X = [[1.0, 2.0], [3.0, 4.0]]
    given: Given = {"X": X, "y": [0, 1], "ids": [5, 6], "groups": [7, 8]}
    assert _hash(**given) == _hash(**given)
    assert _hash(**{**given, part: other(given.get(part))}) != _hash(**given)


CELLS = [1, 1.0, True, "1", 0, 0.5, False, "", np.nan, "nan", 2**70, str(2**70), "é", -1]


def test_cells_of_objects_differ_by_type_and_value() -> None:
    hashes = {repr(_hash(X=[["a", cell]])) for cell in CELLS}
    assert len(hashes) == len(CELLS)


def test_the_same_values_have_the_same_hash() -> None:
    plain = _hash(X=[[0.0, np.nan], [3.0, 4.0]], y=[1, 2], ids=[5, 6])
    assert plain == _hash(X=[[3.0, 4.0], [-0.0, -np.nan]], y=[2, 1], ids=[6, 5])
    assert plain == _hash(X=[[0, np.nan], [3, 4]], y=np.array([1, 2], np.uint8), ids=[5, 6])
    assert plain == _hash(
        X=[[0, np.nan], [3, 4]], y=[1, 2], ids=[5, 6], sample_weight=1, groups=[5, 6]
    )
    sparse = csr_array(([1.0, 1.0, 2.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    stored = csr_array(([0.0, 2.0, 2.0], ([0, 0, 1], [0, 1, 0])), shape=(2, 2))
    assert _hash(X=sparse) == _hash(X=stored)


def test_deletions_subtract_what_a_smaller_set_does_not_have() -> None:
    rng = np.random.default_rng(7)
    X, ids = rng.normal(size=(50, 3)), np.array([f"r{i}" for i in range(50)])
    table = np.array([["a", 1, 2.5], ["b", 2, np.nan]] * 25, dtype=object)
    for values in (X, X.astype(np.float32), csr_array(np.maximum(X, 0.0)), table):
        held = Records(values, X[:, :2], ids=ids, sample_weight=X[:, 0] ** 2).attach()
        known = ValueHash.of(["X", "y", "sample_weight", "groups"]).known(held)
        gone = held.rows(["r3", "r17"])
        known = known.without(held, gone)
        kept = np.setdiff1d(np.arange(50), gone)
        rest = Records(
            values[kept], X[kept, :2], ids=ids[kept], sample_weight=X[kept, 0] ** 2
        ).attach()
        held.exclude(gone)
        assert known.written(held) == ValueHash(known.parts).written(rest)
        held.release(gone)
        assert ValueHash(known.parts).written(held) == known.written(held)


# -- files ----------------------------------------------------------------------------------------


def _without_hash(file: bytes) -> bytes:
    """Make the file that a version without the hash has written."""
    header, state = read_artifact(io.BytesIO(file))
    header.pop("records")
    written = io.BytesIO()
    write_artifact(written, header, state)
    return written.getvalue()


@pytest.mark.parametrize("vouched", [False, True])
@pytest.mark.parametrize("records", [False, True])
def test_a_file_without_the_hash_is_read_as_before(vouched: bool, records: bool) -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = make_pipeline(MinMaxScaler(), StandardScaler()).fit(X)
    new = saved(model)
    old = _without_hash(new)
    loaded = load(io.BytesIO(old), (X, np.arange(6)) if records else None, vouched=vouched)
    assert loaded.digest() == model.digest()
    assert saved(loaded) == (new if records else old)
    if records:
        loaded.delete([2])
        assert saved(loaded) == saved(refit(loaded))


def test_a_vouched_model_and_copies_write_what_others_write() -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = StandardScaler().fit(X)
    file = saved(model)
    for how in (False, True):
        loaded = load(io.BytesIO(file), (X, np.arange(6)), vouched=how)
        loaded.delete([4])
        assert saved(loaded) == saved(StandardScaler().fit(X[[0, 1, 2, 3, 5]], ids=[0, 1, 2, 3, 5]))
    alone = load(io.BytesIO(file))
    for again in (alone, copy.deepcopy(alone), pickle.loads(pickle.dumps(alone))):
        assert saved(again) == file
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert saved(again) == file
        again.delete([1])
        assert saved(again) == saved(refit(again))


@pytest.mark.parametrize("told", [7, {}, {"X": 3, "hash": ""}, {"Z": "a", "hash": "b"}, {"X": "a"}])
def test_a_file_with_an_unreadable_hash_is_damaged(told: Any) -> None:
    header, state = read_artifact(io.BytesIO(saved(MinMaxScaler().fit([[1.0], [2.0]]))))
    header["records"] = told
    written = io.BytesIO()
    write_artifact(written, header, state)
    with pytest.raises(ArtifactError, match="holds no complete"):
        load(io.BytesIO(written.getvalue()))


def test_what_a_model_makes_no_use_of_may_differ() -> None:
    X, ids = [[1.0], [2.0], [5.0]], [4, 5, 6]
    file = saved(MinMaxScaler().fit(Records(X, [1, 2, 3], ids=ids, groups=[1, 1, 2])))
    for records in ((X, ids), (X, ids, [7, 8, 9]), Records(X, ["a", "b", "c"], ids=ids)):
        assert load(io.BytesIO(file), records).delete([5]).action == "updated"


@pytest.mark.parametrize("estimator", [MultinomialNB(), BernoulliNB()], ids=_name)
def test_storage_may_differ_where_no_model_can_tell(estimator: Any) -> None:
    given = _given(estimator)
    for X in (given["X"].astype(np.float32), csr_array(given["X"])):
        other = {**given, "X": X}
        file = _saved(estimator, given)
        assert _saved(estimator, other) == file
        loaded = load(io.BytesIO(file), _records(other))
        loaded.delete(given["ids"][:2])
        assert saved(loaded) == saved(refit(loaded))


def test_groups_count_where_draws_are_keyed_by_them() -> None:
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    for bootstrap in (True, False):
        forest = RandomForestClassifier(2, random_state=0, bootstrap=bootstrap)
        file = saved(forest.fit(X, y, groups=np.arange(10) // 2))
        other = Records(X, y, groups=np.arange(10)[::-1] // 2)
        if not bootstrap:
            load(io.BytesIO(file), other).delete([3])
            continue
        with pytest.raises(ArtifactError, match="groups"):
            load(io.BytesIO(file), other)


def test_integers_and_floats_in_a_table_of_objects_differ() -> None:
    X = np.array([["a", 1], ["b", 2], ["c", 1]], dtype=object)
    other = np.array([["a", 1.0], ["b", 2.0], ["c", 1.0]], dtype=object)
    file = saved(OrdinalEncoder().fit(X))
    load(io.BytesIO(file), (X, [0, 1, 2])).delete([1])
    with pytest.raises(ArtifactError, match="another X"):
        load(io.BytesIO(file), (other, [0, 1, 2]))


def test_every_estimator_is_among_them() -> None:
    assert {type(each) for each in INSTANCES} == {cls for _, cls, _ in erasable.all_estimators()}
