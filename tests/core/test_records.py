from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable import Records
from erasable.core.digest import id_set_hash
from erasable.core.errors import InvalidDataError, InvalidIdsError, UnknownIdError
from erasable.core.lookup import GroupIndex, IdIndex

MARK = 123456.789


def make(ids=(10, 30, 20, 40), groups=None, y=None):
    X = np.arange(8, dtype=np.float64).reshape(4, 2) + 1
    X[1] = MARK
    return Records(X, y, ids=ids, groups=groups)


def let_go(held, ids):
    rows = held.select(ids)
    held.exclude(rows)
    held.release(rows)
    return rows


@pytest.mark.parametrize("ids", [(10, 30, 20, 40), (5, 6, 7, 8), None, ("a", "b", "c", "d")])
def test_a_row_is_overwritten_when_the_last_holder_lets_go(ids):
    records = make(ids, groups=["x", "y", "y", "z"], y=[1.5, 2.5, 3.5, 4.5])
    first, second = records.attach(), records.attach()
    name = records.ids[1]
    rows = let_go(first, [name])
    assert rows.tolist() == [1]
    assert records.matrix[1, 0] == MARK
    assert name in second.ids
    let_go(second, [name])
    assert records.matrix[1].tolist() == [0, 0]
    assert records.y[1] == 0
    assert records.groups[1] == ""
    assert records.ids[1] in (0, "")
    assert np.count_nonzero(records.matrix) == 6
    assert first.live.tolist() == second.live.tolist() == [True, False, True, True]


def test_text_targets_are_overwritten_too():
    records = make(y=["healthy", "ill", "ill", "healthy"])
    let_go(records.attach(), [30])
    assert records.y.tolist() == ["healthy", "", "ill", "healthy"]


def test_excluded_rows_can_be_read_and_readmitted():
    held = make().attach()
    rows = held.select([30])
    held.exclude(rows)
    assert held.n_live == 3
    assert held.ids.tolist() == [10, 20, 40]
    assert held.records.matrix[rows[0], 0] == MARK
    held.readmit(rows)
    assert held.n_live == 4
    assert held.live_rows().tolist() == [0, 1, 2, 3]


def test_an_excluded_row_can_come_back_whatever_other_models_do():
    records = make()
    first, second, third, fourth = (records.attach() for _ in range(4))
    let_go(first, [30])
    rows = second.select([30])
    second.exclude(rows)
    let_go(third, [30])
    del fourth
    gc.collect()
    assert records.matrix[1, 0] == MARK
    second.readmit(rows)
    assert second.ids.tolist() == [10, 30, 20, 40]
    let_go(second, [30])
    assert not records.matrix[1].any()


def test_a_withdrawn_record_is_not_shown_to_later_models():
    records = make()
    first, second = records.attach(), records.attach()
    let_go(first, [30])
    assert records.attach().ids.tolist() == [10, 20, 40]
    assert second.ids.tolist() == [10, 30, 20, 40]
    assert len(records) == 3
    assert repr(records) == "Records(n_records=3, n_features=2)"


def test_a_collected_model_holds_nothing():
    records = make()
    first, second = records.attach(), records.attach()
    let_go(first, [30])
    assert records.matrix[1, 0] == MARK
    del second
    gc.collect()
    assert records.matrix[1].tolist() == [0, 0]
    assert np.count_nonzero(records.matrix) == 6


def test_a_collected_model_deletes_nothing_that_nobody_deleted():
    records = make()
    held = records.attach()
    held.detach()
    assert held.n_live == 0
    assert not held.live.any()
    del held
    gc.collect()
    assert np.count_nonzero(records.matrix) == 8
    assert records.attach().n_live == 4


@pytest.mark.parametrize("ids", [(10, 30, 20, 40), (5, 6, 7, 8), ("a", "b", "c", "d")])
def test_unknown_deleted_and_erased_ids_are_one_error(ids):
    records = make(ids)
    first, second = records.attach(), records.attach()
    let_go(first, [ids[1]])
    for held, name in [(first, ids[1]), (first, 99), (first, "zz"), (first, -1)]:
        with pytest.raises(UnknownIdError, match="1 of the ids is not in the model"):
            held.select([name])
    let_go(second, [ids[1]])
    for name in (ids[1], 0, ""):
        with pytest.raises(UnknownIdError):
            second.select([name])
    assert second.select([ids[2]]).tolist() == [2]


def test_three_unknown_ids_are_named():
    with pytest.raises(UnknownIdError, match=r"4 of the ids are not in the model: 1, 2, 3, \.\.\."):
        make().attach().select([10, 1, 2, 3, 4])


def test_text_for_integers_is_explained():
    with pytest.raises(UnknownIdError, match="these are strings"):
        make().attach().select(["10"])


def test_a_live_id_zero_survives_the_erasure_of_others():
    held = make(ids=[0, 30, 20, 40]).attach()
    let_go(held, [30])
    let_go(held, [20])
    assert held.select([0]).tolist() == [0]
    let_go(held, [0])
    assert held.ids.tolist() == [40]


def test_groups_leave_together_and_joined_with_ids():
    held = make(groups=["x", "y", "y", "z"]).attach()
    assert held.select(groups=["y"]).tolist() == [1, 2]
    assert held.select([10, 30], groups=["y"]).tolist() == [0, 1, 2]
    assert held.select([], groups=[]).tolist() == []
    let_go(held, [20])
    assert held.select(groups=["y"]).tolist() == [1]
    let_go(held, [30])
    for unknown in ("y", "nobody", ""):
        with pytest.raises(UnknownIdError, match="1 of the groups is not in the model"):
            held.select(groups=[unknown])
    with pytest.raises(InvalidIdsError, match="repeated"):
        held.select(groups=["x", "x"])


def test_a_group_held_by_another_model_is_unknown_to_this_one():
    records = make(groups=[1, 2, 2, 3])
    first, second = records.attach(), records.attach()
    let_go(first, [30, 20])
    with pytest.raises(UnknownIdError):
        first.select(groups=[2])
    assert second.select(groups=[2]).tolist() == [1, 2]


def test_groups_that_never_were_are_an_error():
    with pytest.raises(InvalidIdsError, match="the records came without groups"):
        make().attach().select(groups=["x"])


def test_indexes_made_after_deletions_skip_what_is_erased():
    records = make(ids=[7, 0, 9, 8], groups=["", "y", "y", "z"])
    held = records.attach()
    rows = np.array([1])
    held.exclude(rows)
    held.release(rows)
    assert held.select([7]).tolist() == [0]
    assert held.select(groups=[""]).tolist() == [0]
    assert held.select(groups=["y"]).tolist() == [2]
    with pytest.raises(UnknownIdError):
        held.select([0])


def test_indexes_forget_what_is_erased():
    records = make(ids=["a", "secret", "c", "d"], groups=["x", "hidden", "x", "x"])
    held = records.attach()
    held.select(["a"], groups=["x"])
    assert "secret" in records._id_index._rows
    let_go(held, ["secret"])
    assert "secret" not in records._id_index._rows
    assert "hidden" not in records._group_index._numbers


def test_a_model_that_is_collected_while_an_index_is_made(monkeypatch):
    records = make(ids=["a", "secret", "c", "d"], groups=["x", "hidden", "x", "x"])
    held, others = records.attach(), [records.attach()]
    rows = np.array([1])
    held.exclude(rows)
    held.release(rows)

    def interrupted(kind):
        def index(names, present):
            names = names.copy()
            others.clear()
            return kind(names, present)

        return index

    monkeypatch.setattr("erasable.core.attachment.IdIndex", interrupted(IdIndex))
    held.select(["a"])
    assert "secret" not in records._id_index._rows
    monkeypatch.setattr("erasable.core.attachment.GroupIndex", interrupted(GroupIndex))
    others.append(records.attach())
    held.exclude(np.array([2]))
    held.release(np.array([2]))
    held.select(groups=["x"])
    assert records._group_index.find("x").tolist() == [0, 3]


def test_an_index_that_is_made_after_half_an_erasure():
    records = make(ids=[0, 30, 20, 40])
    held = records.attach()
    held.exclude(np.array([1]))
    held._unreleased[1], records._withdrawn[1], records.ids[1] = False, True, 0
    assert held.select([0]).tolist() == [0]
    assert not records.matrix[1].any()


@given(st.lists(st.integers(-5, 15), min_size=1, unique=True), st.integers(-6, 16))
def test_the_index_finds_what_a_search_finds(ids, wanted):
    index = IdIndex(np.array(ids), np.ones(len(ids), dtype=bool))
    assert index.find([wanted]).tolist() == [ids.index(wanted) if wanted in ids else -1]


@given(st.lists(st.integers(0, 3), min_size=1), st.integers(-1, 4))
def test_the_group_index_finds_what_a_search_finds(groups, wanted):
    index = GroupIndex(np.array(groups), np.ones(len(groups), dtype=bool))
    assert index.find(wanted).tolist() == [i for i, group in enumerate(groups) if group == wanted]


def test_ids_that_count_up_need_no_dictionary():
    held = make(ids=[5, 6, 7, 8]).attach()
    held.select([6])
    assert held.records._id_index._rows == {}


def bytes_of(number):
    return np.float64(number).tobytes()


def test_a_pickle_of_records_holds_no_withdrawn_row():
    records = make(ids=["a", "secret-id", "c", "d"], groups=["x", "hidden", "x", "x"])
    first, second = records.attach(), records.attach()
    assert bytes_of(MARK) in pickle.dumps(records)
    let_go(first, ["secret-id"])
    for thing in (records, first):
        kept = pickle.dumps(thing)
        for trace in (bytes_of(MARK), b"secret-id", b"hidden"):
            assert trace not in kept
    assert bytes_of(MARK) in pickle.dumps(second)
    again = pickle.loads(pickle.dumps(records))
    assert again.n_rows == 3
    assert again.ids.tolist() == ["a", "c", "d"]
    assert again.attach().n_live == 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda held: pickle.loads(pickle.dumps(held))])
def test_a_copy_of_a_hold_has_records_of_its_own(copied):
    held = make(groups=["x", "y", "y", "z"]).attach()
    let_go(held, [10])
    other = copied(held)
    assert other.ids.tolist() == [30, 20, 40]
    let_go(other, [30])
    assert other.records.n_rows == 3
    assert other.records.matrix[0].tolist() == [0, 0]
    assert held.records.matrix[1, 0] == MARK
    assert held.select(groups=["y"]).tolist() == [1, 2]


def test_holds_pickled_together_still_share():
    records = make()
    first, second = pickle.loads(pickle.dumps((records.attach(), records.attach())))
    assert first.records is second.records
    let_go(first, [30])
    assert first.records.matrix[1, 0] == MARK
    let_go(second, [30])
    assert first.records.matrix[1, 0] == 0


def test_holds_that_differ_are_pickled_apart():
    records = make()
    held = [records.attach(), records.attach()]
    let_go(held[0], [30])
    first, second = pickle.loads(pickle.dumps(held))
    assert first.ids.tolist() == [10, 20, 40]
    assert second.ids.tolist() == [10, 30, 20, 40]


def test_records_check_what_they_are_given():
    with pytest.raises(InvalidDataError, match="inf"):
        Records([[np.inf]])
    with pytest.raises(InvalidDataError, match="required by Records"):
        Records(np.empty((0, 2)))
    with pytest.raises(InvalidIdsError, match="repeated"):
        Records([[1.0], [2.0]], ids=["a", "a"])


def test_taken_rows_are_a_copy():
    records = make(groups=[1, 2, 2, 3], y=[1, 2, 3, 4])
    part = records.take(np.array([1, 3]))
    assert part.ids.tolist() == [30, 40]
    assert part.groups.tolist() == [2, 3]
    assert part.y.tolist() == [2, 4]
    for name in ("matrix", "y", "ids", "groups"):
        assert not np.shares_memory(getattr(part, name), getattr(records, name))


@given(
    st.lists(
        st.one_of(
            st.just(("attach", 0, 0)),
            st.tuples(st.just("drop"), st.integers(0, 3), st.just(0)),
            st.tuples(st.just("delete"), st.integers(0, 3), st.integers(0, 3)),
        ),
        max_size=20,
    )
)
def test_a_row_is_there_while_somebody_holds_it_or_nobody_deleted_it(steps):
    ids = [10, 30, 20, 40]
    records = make(ids)
    models, withdrawn = [], set()
    for action, which, row in steps:
        if action == "attach":
            models.append((records.attach(), set(ids) - withdrawn))
        elif which < len(models):
            held, names = models[which]
            if action == "drop":
                del models[which], held, names
            elif ids[row] in names:
                let_go(held, [ids[row]])
                names.discard(ids[row])
                withdrawn.add(ids[row])
            else:
                with pytest.raises(UnknownIdError):
                    held.select([ids[row]])
        held_by_some = set().union(*(names for _, names in models))
        there = [name in held_by_some or name not in withdrawn for name in ids]
        assert records.matrix.any(axis=1).tolist() == there
        assert len(records) == 4 - len(withdrawn)
        for held, names in models:
            assert set(held.ids.tolist()) == names
            assert held.n_live == len(names)


# -- copies for several models -----------------------------------------------------------------


def test_a_twin_shares_nothing_and_knows_its_ids():
    whole = Records([[1.0], [2.0], [3.0]], [1, 2, 3], ids=["a", "b", "c"], groups=["p", "p", "q"])
    twin = whole.twin(Records([[7.0], [8.0], [9.0]]), np.array(["x", "y", "z"], dtype=object))
    held = twin.attach()
    assert held.id_set().tolist() == id_set_hash(whole.ids).tolist()
    rows = held.select(["b"])
    held.exclude(rows)
    held.release(rows)
    assert twin.ids.tolist() == ["a", "", "c"]
    assert twin.y.tolist() == ["x", "", "z"]
    assert twin.groups.tolist() == ["p", "", "q"]
    assert twin.matrix.tolist() == [[7.0], [0.0], [9.0]]
    assert whole.ids.tolist() == ["a", "b", "c"]
    assert whole.matrix.tolist() == [[1.0], [2.0], [3.0]]
    assert whole.twin(whole, None).attach().select(["b"]).tolist() == [1]
    assert held.id_set().tolist() == id_set_hash(np.array(["a", "c"], dtype=object)).tolist()
    assert twin._id_set is None  # nothing of the deleted id is left in it
    with pytest.raises(UnknownIdError):
        held.select(["b"])


def test_the_hash_of_ids_is_that_of_the_live_ones():
    records = Records([[1.0], [2.0], [3.0]], ids=[5, 6, 7])
    one, other = records.attach(), records.attach()
    whole = one.id_set()
    rows = one.select([6])
    one.exclude(rows)
    one.release(rows)
    left = id_set_hash(np.array([5, 7]))
    assert one.id_set().tolist() == left.tolist()
    assert other.id_set().tolist() == whole.tolist()
    assert records.attach().id_set().tolist() == left.tolist()
