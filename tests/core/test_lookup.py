"""From ids to rows at rest: as a dictionary has them, whatever came, left and was kept between."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from effort import examples
from erasable.core import lookup
from erasable.core.arrays import of_objects
from erasable.core.lookup import HashIndex
from erasable.core.mapped.objects import put_together, take_apart
from erasable.core.mapped.texts import Texts
from erasable.core.tape import Tape
from interruptions import interrupt

NAMES = st.one_of(st.integers(0, 30), st.integers(0, 30).map(str))
STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "leave", "keep", "copy"]), st.lists(NAMES, max_size=6)),
    max_size=8,
)


class Life:
    """An index, and a dictionary beside it."""

    def __init__(self, n: int) -> None:
        self.ids: list[Any] = [f"first {row}" for row in range(n)]
        self.index = HashIndex.of(of_objects(self.ids), np.ones(n, dtype=np.bool_))
        self.known = {name: row for row, name in enumerate(self.ids)}

    def step(self, kind: str, names: list[Any]) -> None:
        if kind == "come":
            new = [name for name in dict.fromkeys(names) if name not in self.known]
            rows = np.arange(len(self.ids), len(self.ids) + len(new))
            self.ids += new
            self.known.update(zip(new, rows.tolist(), strict=True))
            self.index = self.index.grown(of_objects(self.ids), rows, of_objects(new))
        elif kind == "leave":
            gone = [name for name in dict.fromkeys([*names, "first 0"]) if name in self.known]
            rows = np.array([self.known.pop(name) for name in gone], dtype=np.int64)
            self.index.forget(rows, gone)
            self.index.forget(rows, gone)  # it may be done again
        elif kind == "keep":
            described, arrays = take_apart(self.index)
            copied = [array.copy() for array in arrays]
            self.index = put_together(json.loads(json.dumps(described)), copied)
        else:
            former, self.index = self.index, copy.copy(self.index)
            for name, row in self.known.items():
                former.forget(np.array([row]), [name])

    def check(self) -> None:
        every = [*range(32), *map(str, range(32)), *self.known]
        assert self.index.find(every).tolist() == [self.known.get(name, -1) for name in every]
        held = {int(key) for part in self.index._parts() for key in part.keys}
        keys = lookup._HASHES.record_keys(of_objects(list(self.known)))
        assert held <= {0, *keys.tolist()}


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 40), STEPS)
def test_an_index_is_a_dictionary(n: int, steps: list[tuple[str, list[Any]]]) -> None:
    life = Life(n)
    for kind, names in steps:
        life.step(kind, names)
        life.check()


def test_what_comes_moves_nothing_of_what_was_there_until_it_is_much() -> None:
    life = Life(80)
    keys = life.index.keys
    for name in range(10):
        life.step("come", [name])
        assert life.index.keys is keys
    life.step("leave", [3, "first 7"])
    life.check()
    life.step("come", [3, 11, 12])
    assert life.index.keys.size == 80 + 10 + 3 - 3
    life.check()


def test_ids_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Same(Tape):
        def record_keys(self, ids: Any) -> Any:
            return np.full(len(ids), 7, dtype=np.uint64)

    monkeypatch.setattr(lookup, "_HASHES", Same(0))
    life = Life(60)
    for step in (("come", [1, "1"]), ("leave", [1]), ("come", [5, 1]), ("leave", ["first 3"])):
        life.step(*step)
        life.check()
    assert life.index.later is not None


def test_what_was_half_forgotten_is_forgotten_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever the first one was interrupted; two of the ids have one hash."""
    own = Tape.record_keys

    def of_tens(tape: Tape, ids: Any) -> Any:
        return own(tape, np.array([each // 10 for each in ids.tolist()]))

    monkeypatch.setattr(Tape, "record_keys", of_tens)
    names, gone, half = np.array([11, 12, 20, 31, 40, 41]), [0, 1, 2, 4], 0
    keys = {
        key: name for name, key in zip(names.tolist(), lookup._keys(names.tolist()), strict=True)
    }
    for at in range(1000):
        index = HashIndex.of(names, np.ones(6, dtype=bool))
        forget = functools.partial(index.forget, np.array(gone), names[gone].tolist())
        if not interrupt(forget, at):
            break
        half += {keys[key] // 10 for key in index.keys if key} != {1, 2, 3, 4}
        forget()
        assert {keys[key] // 10 for key in index.keys if key} == {3, 4}
        assert index.find(names.tolist()).tolist() == [-1, -1, -1, 3, -1, 5]
    assert at > half > 5


def test_an_index_of_an_earlier_file_has_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(20)
    kept = HashIndex._kept_attributes

    def earlier(self: HashIndex) -> dict[str, Any]:
        return {name: value for name, value in kept(self).items() if name != "later"}

    with monkeypatch.context() as patch:
        patch.setattr(HashIndex, "_kept_attributes", earlier)
        life.step("keep", [])
    for kind in ("come", "leave", "keep"):
        life.check()
        life.step(kind, [4, 5])
    life.check()


def test_a_second_part_that_forgets_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HashIndex, "_parts", lambda self: [self])
    life = Life(20)
    life.step("come", [1])
    with pytest.raises(AssertionError):
        life.check()


# -- texts -----------------------------------------------------------------------------------------


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.text(max_size=4), max_size=20),
    st.lists(st.tuples(st.sets(st.integers(0, 30)), st.lists(st.text(max_size=3), max_size=4))),
)
def test_texts_grow_as_a_list_does(
    first: list[str], steps: list[tuple[set[int], list[str]]]
) -> None:
    texts, known = Texts.of(first), list(first)
    for gone, new in steps:
        places = [place for place in gone if place < len(known)]
        texts[np.array(places, dtype=np.int64)] = ""
        for place in places:
            known[place] = ""
        # Each comes to a place that was left, or to the end.
        rows = [*places, *range(len(known), len(known) + len(new))][: len(new)]
        known += [""] * (max(rows, default=-1) + 1 - len(known))
        for row, value in zip(rows, new, strict=True):
            known[row] = value
        texts = texts.grown(len(known), np.array(rows, dtype=np.int64), new)
        assert texts.tolist() == known
        held = bytes(texts.data).replace(b"\0", b"")
        assert sorted(held) == sorted("".join(known).replace("\0", "").encode())


def test_texts_that_come_and_go_take_no_more_room() -> None:
    texts = Texts.of([f"patient {row}" for row in range(100)])
    for step in range(1000):
        texts[np.array([step % 100])] = ""
        texts = texts.grown(100, np.array([step % 100]), [f"patient {step + 100}"])
    assert texts.data.size < 2 * len("patient 1000") * 100
    assert texts.tolist()[0] == "patient 1000"


def test_texts_that_have_room_stay_where_they_are() -> None:
    texts = Texts.of(["anna"] * 99).grown(100, np.array([99]), ["bo"])
    again = texts.grown(101, np.array([100]), ["cy"])
    assert all(map(np.may_share_memory, again.parts(), texts.parts()))
    assert (again[100], texts.size) == ("cy", 100)
    texts.empty_room()
    assert b"cy" not in again.data.tobytes()
    copied = copy.copy(texts)
    copied[np.array([99])] = ""
    assert texts[99] == "bo"
