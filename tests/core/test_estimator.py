from __future__ import annotations

import gc
import pickle
import time

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from erasable import Records
from erasable.core.errors import (
    InvalidDataError,
    InvalidIdsError,
    InvalidInputError,
    KeyCollisionError,
    MagnitudeError,
    TooFewRecordsError,
    UnknownIdError,
)
from erasable.core.tape import Tape
from integer_sums import IntegerSums, MajorityClass, PlainSums, SortedValues

X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]])
IDS = ["a", "b", "c", "d", "e"]
GROUPS = [1, 1, 2, 2, 3]
MARK = 98765.4321


def fitted(**params):
    return IntegerSums(random_state=0, **params).fit(X, ids=IDS, groups=GROUPS)


@pytest.mark.parametrize("estimator", [IntegerSums(), PlainSums(), SortedValues(), MajorityClass()])
def test_scikit_learn_accepts_what_inherits(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert [r for r in results if r["status"] not in ("passed", "skipped")] == []
    assert sum(r["status"] == "passed" for r in results) > 30


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=12, unique=True),
    st.data(),
)
def test_a_deletion_is_a_refit(ids, data):
    values = data.draw(
        st.lists(st.floats(-1e6, 1e6), min_size=len(ids), max_size=len(ids)), label="values"
    )
    gone = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids) - 1))
    matrix = np.array(values)[:, None]
    model = IntegerSums(random_state=5).fit(matrix, ids=ids)
    for name in gone:
        model.delete([name])
    kept = [i for i, name in enumerate(ids) if name not in gone]
    refit = IntegerSums(random_state=5).fit(matrix[kept], ids=[ids[i] for i in kept])
    assert model.digest() == refit.digest()
    assert model.ids_.tolist() == refit.ids_.tolist()


def test_a_deletion_says_what_it_did():
    model = fitted()
    before = model.digest()
    deletion = model.delete(["d", "b"])
    assert deletion.ids.tolist() == ["b", "d"]
    assert deletion.exactness == "bitwise"
    assert deletion.action == "updated"
    assert deletion.rows_touched == 2
    assert deletion.counts == {"examined": 2}
    assert deletion.digest_before == before
    assert deletion.digest_after == model.digest() != before
    assert 0 < deletion.seconds < 60
    name = before.rpartition(":")[2][:12]
    assert str(deletion).startswith("deleted 2 records (bitwise): updated, 2 rows touched, examin")
    assert f"{name} -> " in str(deletion)
    assert "\n" not in str(deletion)


def test_digests_are_left_out_on_request():
    deletion = fitted().delete(["b"], digest=False)
    assert deletion.digest_before is deletion.digest_after is None
    assert "->" not in str(deletion)


def test_a_digest_names_class_and_version(monkeypatch):
    kind, _, root = fitted().digest().partition(":")
    assert kind.endswith("integer_sums.IntegerSums/1")
    assert len(bytes.fromhex(root)) == 32
    monkeypatch.setattr(IntegerSums, "algorithm_version", 2)
    other = fitted().digest()
    assert "IntegerSums/2:" in other
    assert not other.endswith(root)


def test_nothing_to_delete_is_nothing_done():
    model = fitted()
    before = model.digest()
    for request in ({"ids": []}, {"groups": []}, {"ids": np.array([])}, {"ids": (), "groups": ()}):
        deletion = model.delete(**request)
        assert deletion.action == "none"
        assert deletion.ids.size == 0
        assert deletion.digest_before == deletion.digest_after == before
    with pytest.raises(InvalidIdsError, match="neither ids nor groups"):
        model.delete()


def test_ids_and_groups_are_deleted_together():
    model = fitted()
    assert model.delete(["b", "e"], groups=[1]).ids.tolist() == ["a", "b", "e"]
    assert model.ids_.tolist() == ["c", "d"]
    left = IntegerSums(random_state=0).fit(X[2:4], ids=["c", "d"])
    assert model.digest() == left.digest()


@pytest.mark.parametrize(
    ("request_", "error", "match"),
    [
        ({"ids": ["x"]}, UnknownIdError, "'x'"),
        ({"ids": ["c", "b", "x"]}, UnknownIdError, "1 of the ids is not in the model: 'x'"),
        ({"ids": ["a"]}, UnknownIdError, "'a'"),
        ({"groups": [9]}, UnknownIdError, "1 of the groups"),
        ({"ids": ["c"], "groups": [9]}, UnknownIdError, "9"),
        ({"ids": ["b", "b"]}, InvalidIdsError, "repeated"),
        ({"ids": "b"}, InvalidIdsError, "wrap it in a list"),
        ({"ids": 3}, InvalidIdsError, "wrap it in a list"),
        ({"groups": 3}, InvalidIdsError, "wrap it in a list"),
        ({"ids": [1.0]}, InvalidIdsError, "float"),
        ({"ids": [True]}, InvalidIdsError, "bool"),
        ({"ids": ["b", "c", "d"]}, TooFewRecordsError, "3 of 4 records would leave 1; .* least 2"),
    ],
)
def test_a_request_that_raises_changes_nothing(request_, error, match):
    model = fitted(least=2)
    model.delete(["a"])
    before, kept = model.digest(), pickle.dumps(model)
    with pytest.raises(error, match=match):
        model.delete(**request_)
    assert model.ids_.tolist() == ["b", "c", "d", "e"]
    model._info.digest = None
    assert model.digest() == before
    assert pickle.dumps(model) == kept
    assert model._held.records.matrix[1:].tolist() == X[1:].tolist()


def test_down_to_the_last_record():
    model = fitted()
    for name in IDS[:-1]:
        model.delete([name])
    assert model.ids_.tolist() == ["e"]
    with pytest.raises(
        TooFewRecordsError, match="needs at least 1; delete fewer, or drop the model"
    ):
        model.delete(["e"])
    assert model.digest() == IntegerSums(random_state=0).fit(X[4:], ids=["e"]).digest()


class Clumsy(PlainSums):
    """Breaks in the middle of a deletion, when told to."""

    fails = False

    def _update(self, delta):
        self.sums_ = self.sums_ * 0
        self.half_done_ = True
        if self.fails:
            raise KeyboardInterrupt
        return super()._update(delta)


def test_an_interrupted_deletion_changes_nothing():
    model = Clumsy().fit(X, ids=IDS)
    before = model.digest()
    model.fails = True
    with pytest.raises(KeyboardInterrupt):
        model.delete(["b"])
    assert model.ids_.tolist() == IDS
    assert not hasattr(model, "half_done_")
    model._info.digest = None
    assert model.digest() == before


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"X": X * 1e13}, MagnitudeError),
        ({"X": X * np.nan}, InvalidDataError),
        ({"ids": ["a"] * 5}, InvalidIdsError),
        ({"X": X[:1], "ids": ["a"]}, TooFewRecordsError),
        ({"X": Records(X)}, InvalidInputError),
        ({"X": "nonsense", "ids": None}, InvalidDataError),
    ],
)
def test_a_fit_that_raises_leaves_the_earlier_one(changes, error):
    model = fitted(least=2)
    before, state = model.digest(), dict(vars(model))
    with pytest.raises(error):
        model.fit(**{"X": X, "ids": IDS, **changes})
    assert vars(model) == state
    model._info.digest = None
    assert model.digest() == before
    model.delete(["b"])


def test_a_first_fit_that_raises_leaves_nothing():
    model = IntegerSums(least=6)
    with pytest.raises(TooFewRecordsError, match="n_samples=5; IntegerSums needs at least 6"):
        model.fit(X)
    assert vars(model) == {"least": 6, "random_state": None}


def test_unfitted_models_say_so():
    model = IntegerSums()
    for use in (
        lambda: model.delete([1]),
        lambda: model.digest(),
        lambda: model.state(),
        lambda: model.save("x"),
        lambda: model.ids_,
        lambda: model.transform(X),
    ):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(model, "ids_")


def test_fitting_again_forgets_everything():
    model = IntegerSums(random_state=0).fit(pd.DataFrame(X, columns=["p", "q"]), ids=IDS)
    model.note = "mine"
    model.fit(X[:, :1], ids=[1, 2, 3, 4, 5])
    assert model.digest() == IntegerSums(random_state=0).fit(X[:, :1], ids=[1, 2, 3, 4, 5]).digest()
    assert not hasattr(model, "feature_names_in_")
    assert model.note == "mine"


def test_fitting_again_lets_go_of_shared_records():
    records = Records(X, ids=IDS)
    first, second = PlainSums().fit(records), PlainSums().fit(records)
    second.fit(X)
    gc.collect()
    first.delete(["b"])
    assert records.matrix[1].tolist() == [0, 0]


def test_shared_records_are_erased_by_the_last():
    records = Records(pd.DataFrame(X, columns=["p", "q"]), ids=IDS)
    first, second = PlainSums().fit(records), IntegerSums(random_state=0).fit(records)
    assert first._held.records is second._held.records is records
    assert second.feature_names_in_.tolist() == ["p", "q"]
    first.delete(["b"])
    assert records.matrix[1].tolist() == [2, 20]
    assert second.ids_.tolist() == IDS
    second.delete(["b"])
    assert records.matrix[1].tolist() == [0, 0]
    fresh = IntegerSums(random_state=0).fit(
        pd.DataFrame(X, columns=["p", "q"]).iloc[[0, 2, 3, 4]], ids=[*"acde"]
    )
    assert second.digest() == fresh.digest()


def test_shared_targets():
    records = Records(X, ["n", "y", "y", "n", "n"], ids=IDS)
    model = MajorityClass().fit(records)
    model.delete(["a"])
    assert model.counts_.tolist() == [2, 2]
    with pytest.raises(InvalidDataError, match="requires y"):
        MajorityClass().fit(Records(X))


def test_the_seed_is_drawn_once_and_kept():
    model = IntegerSums().fit(X)
    again = IntegerSums(random_state=model.seed_).fit(X)
    assert model.digest() == again.digest()
    assert model.seed_ != IntegerSums().fit(X).seed_
    assert IntegerSums(random_state=1).fit(X).digest() != again.digest()
    assert not hasattr(PlainSums().fit(X), "seed_")


def test_colliding_keys_are_refused(monkeypatch):
    def same(self, ids):
        return np.full(ids.shape, 7, dtype=np.uint64)

    model = fitted()
    monkeypatch.setattr(Tape, "record_keys", same)
    with pytest.raises(KeyCollisionError, match="choose another random_state"):
        IntegerSums().fit(X)
    with pytest.raises(KeyCollisionError):
        model.fit(X)
    monkeypatch.undo()
    model.delete(["b"])


def test_record_keys_are_the_tapes_and_end_with_the_record():
    model = fitted()
    keys = model._record_keys()
    expected = Tape(0).record_keys(np.array(IDS, dtype=object))
    assert keys.tolist() == expected.tolist()
    model.delete(["b"])
    assert model._record_keys().tolist() == [k if i != 1 else 0 for i, k in enumerate(expected)]


def test_a_clone_is_not_fitted():
    model = fitted(least=2)
    other = clone(model)
    assert vars(other) == {"least": 2, "random_state": 0}
    assert other.fit(X, ids=IDS, groups=GROUPS).digest() == model.digest()


def test_metadata_is_routed_through_scikit_learns_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        step = IntegerSums(random_state=0).set_fit_request(ids=True, groups=True)
        pipeline = make_pipeline(step).fit(X, ids=IDS, groups=GROUPS)
        assert pipeline[-1].digest() == fitted().digest()
        assert pipeline[-1].delete(groups=[1]).ids.tolist() == ["a", "b"]
        again = pickle.loads(pickle.dumps(pipeline))
        assert again.fit(X, ids=IDS, groups=GROUPS)[-1].digest() == fitted().digest()


def test_a_deletion_does_not_cost_more_with_more_records():
    def median_cost(n, ids):
        model = PlainSums().fit(np.ones((n, 1)), ids=ids)
        model.delete([5], digest=False)
        costs = []
        for name in range(100, 400):
            began = time.perf_counter()
            model.delete([name], digest=False)
            costs.append(time.perf_counter() - began)
        return np.median(costs)

    for ids in (lambda n: None, lambda n: np.arange(n)[::-1].copy()):
        assert median_cost(400_000, ids(400_000)) < 4 * median_cost(1_000, ids(1_000)) + 1e-5
