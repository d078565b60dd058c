from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.digest import (
    LeafHash,
    flatten,
    id_set_hash,
    leaf_hash,
    merkle_root,
    state_root,
)


def rfc_6962(leaves):
    """Section 2.1, as it is written there."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = max(2**i for i in range(len(leaves).bit_length()) if 2**i < len(leaves))
    children = rfc_6962(leaves[:k]) + rfc_6962(leaves[k:])
    return hashlib.sha256(b"\x01" + children).digest()


@pytest.mark.parametrize("n", [*range(20), 63, 64, 65])
def test_the_tree_is_that_of_the_rfc(n):
    leaves = [LeafHash(hashlib.sha256(b"\x00" + bytes([i])).digest()) for i in range(n)]
    assert merkle_root(leaves) == rfc_6962(leaves)


def test_the_tree_gives_the_published_root():
    # From the tests of Certificate Transparency (google/certificate-transparency, merkletree).
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657"]
    inputs.append("606162636465666768696a6b6c6d6e6f")
    leaves = [LeafHash(hashlib.sha256(b"\x00" + bytes.fromhex(i)).digest()) for i in inputs]
    root = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    assert merkle_root(leaves).hex() == root


DIFFERENT = [
    None,
    "",
    "None",
    0,
    1,
    True,
    False,
    0.0,
    -0.0,
    1.0,
    "0",
    "1",
    np.zeros(0),
    np.zeros(1),
    np.zeros(2),
    np.zeros((1, 2)),
    np.zeros((2, 1)),
    np.zeros(2, dtype=np.float32),
    np.zeros(2, dtype=np.int64),
    np.zeros(2, dtype=np.uint64),
    np.zeros(16, dtype=np.uint8),
    np.array([0.0, -0.0]),
    np.array(["0", "0"], dtype=object),
    np.array(["00", ""], dtype=object),
    np.array(["", "00"], dtype=object),
    np.array([0, 0], dtype=object),
    np.array([0, "0"], dtype=object),
    {},
    [],
    [None],
    {"x": None},
    {"x": {}},
    [0],
    [[0]],
    [0, 0],
    {"0": 0},
    {"a": 1, "b": 2},
    {"a": {"b": 2}},
    {"a.b": 2},
    {"a\\": {"b": 2}},
    {"a\\.b": 2},
]


def test_different_states_have_different_roots():
    roots = [state_root({"v": value}) for value in DIFFERENT]
    same = [
        (DIFFERENT[i], DIFFERENT[j])
        for i, j in itertools.combinations(range(len(roots)), 2)
        if roots[i] == roots[j]
    ]
    assert same == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        (np.arange(3.0), np.arange(6.0)[::2] / 2),
        (np.arange(3.0), np.arange(3.0).astype(">f8")),
        (np.float64(2.5), 2.5),
        (np.int32(7), 7),
        (np.bool_(True), True),
        (np.array(["a", "b"]), np.array(["a", "b"], dtype=object)),
        ((1, 2), [1, 2]),
    ],
)
def test_layout_does_not_matter(one, other):
    assert state_root({"v": one}) == state_root({"v": other})


def test_zero_dimensional_arrays_are_hashed():
    assert state_root({"v": np.array(2.0)}) != state_root({"v": np.array([2.0])})


def test_the_order_of_components_does_not_matter():
    shuffled = [dict(items) for items in itertools.permutations([("a", 1), ("b", 2), ("c", 3)])]
    assert len({state_root(state) for state in shuffled}) == 1


def test_a_kept_leaf_hash_stands_for_its_component():
    array = np.arange(5)
    kept = leaf_hash("part.sums", array)
    assert state_root({"part": {"sums": kept}}) == state_root({"part": {"sums": array}})
    assert state_root({"part": {"sums": leaf_hash("sums", array)}}) != state_root(
        {"part": {"sums": array}}
    )


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object(), 1j, {1: 2}])
def test_what_cannot_be_hashed_is_named(value):
    with pytest.raises(TypeError, match="expected"):
        dict(flatten({"v": value}))


ids = st.lists(st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=5)), unique=True)


def as_array(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@given(ids, st.data())
def test_a_set_hash_is_additive_and_has_no_order(values, data):
    cut = data.draw(st.integers(0, len(values)))
    shuffled = data.draw(st.permutations(values))
    whole = id_set_hash(as_array(shuffled))
    parts = id_set_hash(as_array(values[:cut])) + id_set_hash(as_array(values[cut:]))
    assert whole.tolist() == parts.tolist()
    assert whole.dtype == np.uint64
    if values:
        assert whole.tolist() != id_set_hash(as_array(values[1:])).tolist()


def test_a_set_hash_goes_by_value_and_type():
    one = id_set_hash(np.array([17], dtype=np.int64))
    assert one.tolist() == id_set_hash(as_array([17])).tolist()
    assert one.tolist() == id_set_hash(np.array([17], dtype=np.uint64)).tolist()
    assert one.tolist() != id_set_hash(as_array(["17"])).tolist()


@pytest.mark.parametrize(
    "ids",
    [[], [17], [0, -1, 2**63 - 1, -(2**63)], list(range(1000)), [5, 5]],
    ids=["none", "one", "bounds", "many", "twice"],
)
def test_integer_ids_have_the_hash_of_their_keys(ids: list[int]) -> None:
    """As uint64 or as objects, ids go through the tape, whose vectors are tested."""
    whole = np.array(ids, dtype=np.int64)
    texts = np.array(ids, dtype=object)
    assert id_set_hash(whole).tolist() == id_set_hash(texts).tolist()
    assert id_set_hash(np.repeat(whole, 2)[::2]).tolist() == id_set_hash(texts).tolist()
