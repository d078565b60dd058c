"""A draw depends on the seed, the stream, the record's id and the step, and on nothing else."""

from __future__ import annotations

import dataclasses
import datetime
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from erasable.core import _tape_kernels
from erasable.core.errors import InvalidIdsError, InvalidInputError
from erasable.core.seeds import draw_seed, seed_from
from erasable.core.tape import Stream, Tape
from subroutines import standalone

kernels = standalone(_tape_kernels)

SEEDS = st.integers(0, 2**64 - 1)
INTEGERS = st.integers(-(2**63), 2**64 - 1)
TEXTS = st.text(max_size=12)
IDS = st.lists(INTEGERS | TEXTS, max_size=20, unique=True)
LABELS = st.lists(INTEGERS | TEXTS, max_size=4)


def objects(ids: list[object]) -> np.ndarray:
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


def key(tape: Tape, one_id: object) -> int:
    return int(tape.record_keys(objects([one_id]))[0])


def siphash(seed: int, purpose: bytes, message: bytes) -> int:
    data = np.frombuffer(bytearray(message + b"\0"), dtype=np.uint8)
    second = np.uint64(int.from_bytes(purpose, "little"))
    return int(kernels.siphash24(np.uint64(seed), second, data, 0, len(message)))


# Record keys


@given(seed=SEEDS, ids=IDS)
def test_a_record_key_is_siphash_of_tag_and_canonical_bytes(
    seed: int, ids: list[int | str]
) -> None:
    def canonical(one: int | str) -> bytes:
        if isinstance(one, str):
            return b"s" + one.encode("utf-8")
        if one >= 2**63:
            return b"u" + one.to_bytes(8, "little")
        return b"i" + one.to_bytes(8, "little", signed=True)

    expected = [siphash(seed, b"records\0", canonical(one)) for one in ids]
    assert Tape(seed).record_keys(objects(ids)).tolist() == expected


@given(seed=SEEDS, ids=IDS, data=st.data())
def test_keys_depend_neither_on_the_others_nor_on_the_order(
    seed: int, ids: list[int | str], data: st.DataObject
) -> None:
    tape = Tape(seed)
    rows = data.draw(st.permutations(range(len(ids))))[: len(ids) // 2 + 1]
    everybody = tape.record_keys(objects(ids))
    some = tape.record_keys(objects([ids[row] for row in rows]))
    assert some.tolist() == [everybody[row] for row in rows]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", ">i4", ">i8", "u1", "u2", "u4", "u8"])
def test_integers_count_by_value_not_by_storage(dtype: str) -> None:
    tape = Tape(5)
    expected = [key(tape, 17), key(tape, 100)]
    assert tape.record_keys(np.array([17, 100], dtype=dtype)).tolist() == expected
    assert tape.record_keys(objects(list(np.array([17, 100], dtype)))).tolist() == expected


def test_large_unsigned_ids_are_not_negative_ones() -> None:
    tape = Tape(5)
    ids = np.array([0, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert tape.record_keys(ids).tolist() == [key(tape, int(one)) for one in ids]
    assert key(tape, 2**64 - 1) != key(tape, -1)
    assert key(tape, 2**63) != key(tape, -(2**63))


def test_a_number_and_its_digits_differ() -> None:
    tape = Tape(5)
    assert key(tape, 17) != key(tape, "17")
    assert tape.record_keys(objects([17, "17", 17])).tolist() == [
        key(tape, 17),
        key(tape, "17"),
        key(tape, 17),
    ]


@pytest.mark.parametrize("dtype", [object, "U9", np.dtypes.StringDType()])
def test_strings_count_by_value_not_by_storage(dtype: object) -> None:
    tape = Tape(5)
    texts = ["", "a", "né", "患者", "🩺", "longer-id"]
    found = tape.record_keys(np.array(texts, dtype=dtype))
    assert found.tolist() == [key(tape, text) for text in texts]
    assert found.tolist() == [key(tape, np.str_(text)) for text in texts]


def test_keys_of_a_strided_or_read_only_array() -> None:
    tape = Tape(5)
    ids = np.arange(10)
    frozen = ids.copy()
    frozen.flags.writeable = False
    assert tape.record_keys(ids[::3]).tolist() == tape.record_keys(ids)[::3].tolist()
    assert tape.record_keys(frozen).tolist() == tape.record_keys(ids).tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object, "U3"])
def test_no_ids_have_no_keys(dtype: object) -> None:
    found = Tape(5).record_keys(np.empty(0, dtype=dtype))
    assert found.shape == (0,)
    assert found.dtype == np.uint64


def test_keys_depend_on_the_seed() -> None:
    ids = np.arange(100)
    assert not np.intersect1d(Tape(1).record_keys(ids), Tape(2).record_keys(ids)).size


def test_a_million_keys_are_distinct() -> None:
    keys = Tape(5).record_keys(np.arange(1_000_000))
    assert np.unique(keys).size == keys.size


@pytest.mark.parametrize(
    "ids",
    [
        np.array([1.0, 2.0]),
        np.array([True, False]),
        np.array([b"a", b"b"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1, 2], dtype="timedelta64[s]"),
        np.array([1 + 2j]),
    ],
    ids=lambda ids: str(ids.dtype),
)
def test_other_dtypes_are_refused(ids: np.ndarray) -> None:
    with pytest.raises(InvalidIdsError, match=r"have dtype .*; expected integers .*; convert"):
        Tape(5).record_keys(ids)


@pytest.mark.parametrize(
    "bad",
    [
        1.0,
        np.float64(1.0),
        float("nan"),
        True,
        np.bool_(True),
        b"a",
        None,
        (1, 2),
        datetime.date(2020, 1, 1),
        np.datetime64("2020-01-01"),
        np.timedelta64(1, "s"),
    ],
    ids=repr,
)
def test_other_objects_are_refused_by_row(bad: object) -> None:
    for good in (7, "seven"):
        with pytest.raises(InvalidIdsError, match=r"at row 1 is of type .*; expected .*; convert"):
            Tape(5).record_keys(objects([good, bad, good]))


@pytest.mark.parametrize("bad", [2**64, -(2**63) - 1, 10**30])
def test_integers_beyond_64_bits_are_refused(bad: int) -> None:
    with pytest.raises(InvalidIdsError, match=f"id {bad} does not fit .* to strings"):
        Tape(5).record_keys(objects([1, bad, "a"]))


def test_text_that_utf8_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidIdsError, match="lone surrogate"):
        Tape(5).record_keys(objects(["a", "b\ud800"]))


@pytest.mark.parametrize("ids", [[1, "a"], "ab", np.array(3), np.zeros((2, 2), int), [[1], 2]])
def test_what_is_not_a_vector_of_ids_is_refused(ids: object) -> None:
    with pytest.raises(InvalidIdsError, match="one dimension"):
        Tape(5).record_keys(ids)  # type: ignore[arg-type]


# Draws


@given(seed=SEEDS, ids=IDS, stream=st.sampled_from(Stream), step=st.integers(0, 2**32 - 1))
def test_uniform_is_the_first_draw_of_each_key(
    seed: int, ids: list[int | str], stream: Stream, step: int
) -> None:
    tape = Tape(seed)
    keys = tape.record_keys(objects(ids))
    expected = [
        kernels.to_unit(
            np.uint64(kernels.draw2(np.uint64(seed), one, np.uint32(stream), np.uint32(step))[0])
        )
        for one in keys
    ]
    assert tape.uniform(keys, stream, step).tolist() == expected
    assert tape.uniform(keys[::-1], stream, step).tolist() == expected[::-1]


def chi_square(sample: np.ndarray, n_bins: int = 256) -> float:
    """How often a fair sample would be as uneven as this one."""
    counts = np.bincount((sample * n_bins).astype(int), minlength=n_bins)
    return float(stats.chisquare(counts).pvalue)


def test_draws_are_uniform() -> None:
    tape = Tape(2019)
    keys = tape.record_keys(np.arange(100_000))
    for stream in Stream:
        for step in (0, 1, 1000):
            assert 1e-4 < chi_square(tape.uniform(keys, stream, step)) < 1 - 1e-4


def test_draws_that_lean_would_be_noticed() -> None:
    tape = Tape(2019)
    sample = tape.uniform(tape.record_keys(np.arange(100_000)), Stream.RACE, 0)
    assert chi_square(sample**1.1) < 1e-4
    assert chi_square((np.arange(100_000) + 0.5) / 100_000) > 1 - 1e-4


def test_streams_steps_seeds_and_neighbours_are_independent() -> None:
    tape = Tape(2019)
    keys = tape.record_keys(np.arange(100_000))
    base = tape.uniform(keys, Stream.RACE, 0)
    others = [
        tape.uniform(keys, Stream.LEAF, 0),
        tape.uniform(keys, Stream.RACE, 1),
        Tape(2020).uniform(keys, Stream.RACE, 0),
        np.roll(base, 1),
    ]
    for other in others:
        cells = (base * 16).astype(int) * 16 + (other * 16).astype(int)
        counts = np.bincount(cells, minlength=256)
        assert 1e-4 < float(stats.chisquare(counts).pvalue) < 1 - 1e-4


@pytest.mark.parametrize("keys", [[1, 2], np.array([1, 2]), np.zeros((2, 2), np.uint64)])
def test_keys_of_another_kind_are_refused(keys: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a uint64 array"):
        Tape(5).uniform(keys, Stream.RACE, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 2**32, 1.0, True, None])
def test_stream_and_step_must_fit_their_words(bad: object) -> None:
    keys = np.zeros(1, dtype=np.uint64)
    with pytest.raises(InvalidInputError, match="stream="):
        Tape(5).uniform(keys, bad, 0)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="step="):
        Tape(5).uniform(keys, Stream.RACE, bad)  # type: ignore[arg-type]


def test_stream_numbers_are_what_saved_models_hold() -> None:
    assert {"RACE": 1, "PHASE": 2, "LEAF": 3}.items() <= {s.name: s.value for s in Stream}.items()
    assert len({s.value for s in Stream}) == len(Stream.__members__)


# Labels and children


@given(seed=SEEDS, label=TEXTS)
def test_a_label_has_a_key_of_its_own(seed: int, label: str) -> None:
    tape = Tape(seed)
    text = label.encode()
    expected = siphash(seed, b"labels\0\0", b"s" + len(text).to_bytes(8, "little") + text)
    assert tape.key_of(label) == expected
    assert tape.key_of(label) != key(tape, label)


@pytest.mark.parametrize("bad", [1, None, b"age"])
def test_a_label_that_is_no_name_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a string"):
        Tape(5).key_of(bad)  # type: ignore[arg-type]


@given(seed=SEEDS, labels=LABELS, others=LABELS)
def test_children_are_equal_if_and_only_if_their_labels_are(
    seed: int, labels: list[int | str], others: list[int | str]
) -> None:
    tape = Tape(seed)
    assert tape.child(*labels) == tape.child(*labels)
    assert (tape.child(*labels) == tape.child(*others)) == (labels == others)


def test_children_that_look_alike_differ() -> None:
    tape = Tape(5)
    children = [
        tape,
        tape.child(),
        tape.child(1),
        tape.child("1"),
        tape.child(1, 2),
        tape.child(2, 1),
        tape.child(1).child(2),
        tape.child("ab", "c"),
        tape.child("a", "bc"),
        tape.child("abc"),
        tape.child(-1),
        tape.child(2**64 - 1),
        Tape(6).child(1),
    ]
    assert len({child.seed for child in children}) == len(children)
    assert tape.child(np.int32(1)) == tape.child(1)


@pytest.mark.parametrize("bad", [1.0, True, None, 2**64, -(2**63) - 1])
def test_a_child_of_no_name_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a string or an integer"):
        Tape(5).child("tree", bad)  # type: ignore[arg-type]


# Seeds


@pytest.mark.parametrize("bad", [-1, 2**64, 1.0, True, "1", None, np.timedelta64(1)])
def test_a_seed_out_of_range_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError, match=r"seed=.*; expected an integer from 0"):
        Tape(bad)  # type: ignore[arg-type]


def test_a_tape_is_a_value() -> None:
    tape = Tape(np.uint64(2**64 - 1))  # type: ignore[arg-type]
    assert type(tape.seed) is int
    assert tape == Tape(2**64 - 1)
    assert hash(tape) == hash(Tape(2**64 - 1))
    assert pickle.loads(pickle.dumps(tape)) == tape
    with pytest.raises(dataclasses.FrozenInstanceError):
        tape.seed = 1  # type: ignore[misc]


@pytest.mark.parametrize("seed", [0, 42, 2**64 - 1, np.int32(7), np.uint64(2**63)])
def test_an_integer_random_state_is_the_seed(seed: int) -> None:
    assert seed_from(seed) == int(seed)
    assert type(seed_from(seed)) is int


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_one_draw_and_moves_on(make: type) -> None:
    one, same = make(3), make(3)
    seeds = [seed_from(one), seed_from(one)]
    assert seeds == [int.from_bytes(same.bytes(8), "little") for _ in range(2)]
    assert seeds[0] != seeds[1]


def test_no_random_state_draws_another_seed_each_time() -> None:
    drawn = {seed_from(None) for _ in range(8)} | {draw_seed() for _ in range(8)}
    assert len(drawn) == 16
    assert all(0 <= seed < 2**64 for seed in drawn)


def test_what_is_drawn_without_a_random_state_does_not_follow_from_a_global_seed() -> None:
    drawn = set()
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        drawn |= {seed_from(None), draw_seed()}
    assert len(drawn) == 4


@pytest.mark.parametrize("bad", [-1, 2**64, 0.5, True, "0", np.random, np.timedelta64(1)])
def test_another_random_state_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError, match=r"random_state=.*; expected None, an integer"):
        seed_from(bad)  # type: ignore[arg-type]
