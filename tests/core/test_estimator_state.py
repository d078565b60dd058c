from __future__ import annotations

import copy
import gc
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest

from erasable.core._fit_info import is_learned
from erasable.core.digest import leaf_hash, state_root
from erasable.core.tape import Tape
from integer_sums import IntegerSums, PlainSums, SortedValues

X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]])
IDS = ["a", "b", "c", "d", "e"]
GROUPS = [1, 1, 2, 2, 3]
MARK = 98765.4321


def fitted(**params):
    return IntegerSums(random_state=0, **params).fit(X, ids=IDS, groups=GROUPS)


def test_a_state_is_a_copy_of_everything_that_counts():
    model = fitted(least=2)
    state = model.state()
    assert state["params"] == {"least": 2}
    assert state["seed"] == 0
    assert state["n_records"] == 5
    assert state["n_features"] == 2
    assert state["feature_names"] is None
    assert state["algorithm_version"] == 1
    before = model.digest()
    state["sums"][:] = 0
    state["record_set"][:] = 0
    state["params"]["least"] = 3
    model._info.digest = None
    assert model.digest() == before


def test_a_state_speaks_of_parameters_at_fit():
    model = fitted()
    before = model.digest()
    model.set_params(least=2)
    model._info.digest = None
    assert model.digest() == before


def test_digests_notice_a_record_that_changes_no_sum():
    zeros = np.zeros((3, 1))
    model = PlainSums().fit(zeros)
    before = model.delete([]).digest_after
    assert model.delete([1]).digest_after != before
    assert PlainSums().fit(zeros, ids=[0, 1, 3]).digest() != before
    assert PlainSums().fit(zeros, ids=["0", "1", "2"]).digest() != before


def test_reserved_names_are_refused():
    class Taken(PlainSums):
        def _state(self):
            return {"seed": 1}

    with pytest.raises(TypeError, match=r"reserved names: .*seed"):
        Taken().fit(X).state()


def test_fields_are_the_state_without_underscores_around():
    model = PlainSums().fit(X)
    assert model._state() == {"sums": model.sums_}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.sums_, model.sums_)


def test_an_estimator_without_fields_and_state_is_refused():
    class Nothing(PlainSums):
        _fields = ()

    with pytest.raises(NotImplementedError, match="neither _fields nor _state"):
        Nothing().fit(X).digest()


def reachable_bytes(thing):
    """Everything an object leads to, as bytes; arrays as they lie in memory."""
    seen, queue, found = set(), [thing], []
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, type | type(gc)):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            base = item if item.base is None or not isinstance(item.base, np.ndarray) else item.base
            found.append(base.tobytes() if base.dtype != object else repr(base.tolist()).encode())
        elif isinstance(item, str | int | float):
            found.append(repr(item).encode())
            if isinstance(item, float):
                found.append(np.float64(item).tobytes())
        elif callable(item):
            continue
        queue.extend(gc.get_referents(item))
        queue.extend(vars(item).values() if hasattr(item, "__dict__") else ())
    return b"|".join(found)


@pytest.mark.parametrize("make", [IntegerSums, SortedValues])
def test_no_byte_of_a_deleted_record_is_left(make):
    marked = X.copy()
    marked[1, 0] = MARK
    ids = ["a", "secret-id", "c", "d", "e"]
    groups = ["g", "hidden-group", "g", "g", "g"]
    model = make().fit(marked, ids=ids, groups=groups)
    traces = (np.float64(MARK).tobytes(), b"secret-id", b"hidden-group")
    model.digest()
    model.ids_  # noqa: B018
    for trace in traces:
        assert trace in pickle.dumps(model)
        assert trace in reachable_bytes(model)
    model.delete(["a"], groups=["hidden-group"])
    for trace in traces:
        assert trace not in pickle.dumps(model)
        assert trace not in pickle.dumps(copy.deepcopy(model))
        assert trace not in reachable_bytes(model)


def test_integer_ids_leave_too():
    ids = np.array([11, 2**61 + 12345, 13, 14, 15])
    model = IntegerSums(random_state=0).fit(X, ids=ids)
    model.delete([11])
    model.delete([2**61 + 12345])
    for trace in (np.int64(2**61 + 12345).tobytes(), repr(2**61 + 12345).encode()):
        assert trace not in pickle.dumps(model)
        assert trace not in reachable_bytes(model)
    key = Tape(0).record_keys(ids[1:2]).tobytes()
    assert key not in reachable_bytes(model)


@pytest.mark.parametrize(
    "copied",
    [
        copy.deepcopy,
        copy.copy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    ],
)
@pytest.mark.parametrize("make", [IntegerSums, SortedValues])
def test_a_copy_lives_its_own_life(copied, make):
    model = make().fit(pd.DataFrame(X, columns=["p", "q"]), ids=IDS, groups=GROUPS)
    model.delete(["a"])
    other = copied(model)
    assert other.digest() == model.digest()
    assert other.ids_.tolist() == model.ids_.tolist()
    assert other._accelerator is None
    other.delete(groups=[1])
    assert model.ids_.tolist() == ["b", "c", "d", "e"]
    model.delete(["b"])
    assert other.digest() == model.digest()
    assert pickle.dumps(copied(other)) == pickle.dumps(copied(model))


def test_a_model_mapped_from_disk_deletes(tmp_path):
    model = fitted()
    joblib.dump(model, tmp_path / "model.joblib")
    other = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    other.delete(["b"])
    model.delete(["b"])
    assert other.digest() == model.digest()


def test_settings_of_scikit_learn_survive_a_pickle():
    model = (
        IntegerSums(random_state=0)
        .set_output(transform="pandas")
        .fit(pd.DataFrame(X, columns=["p", "q"]))
    )
    again = pickle.loads(pickle.dumps(model))
    assert again.fit_transform(pd.DataFrame(X, columns=["p", "q"])).columns.tolist() == ["p", "q"]


def test_a_kept_leaf_hash_gives_the_same_digest():
    class Keeping(PlainSums):
        def _digest_state(self):
            return {"sums": leaf_hash("sums", self.sums_)}

    model = Keeping().fit(X)
    whole = model._whole_state(model._state())
    constants = model._info.hash_constants(whole)
    assert model.digest().endswith(state_root({**whole, **constants}).hex())
    assert constants["seed"] == leaf_hash("seed", whole["seed"])
    assert isinstance(model.state()["sums"], np.ndarray)


@pytest.mark.parametrize("name", ["n_clusters", "note", "_sklearn_output_config", "__x", "_skl_x"])
def test_parameters_and_settings_are_not_learned(name):
    assert not is_learned(name)
