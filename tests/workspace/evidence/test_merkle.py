"""The Merkle tree against its definition in RFC 9162, and Certificate Transparency's vectors."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import EvidenceError
from erasable.workspace.evidence.merkle import (
    MerkleFrontier,
    MerkleTree,
    leaf_hash,
    node_hash,
    verify_consistency,
    verify_inclusion,
)

LARGEST = 70

# -- the definitions of RFC 9162, 2.1, word by word ------------------------------------------------


def split(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(d: list[bytes]) -> bytes:
    if not d:
        return sha256(b"").digest()
    if len(d) == 1:
        return sha256(b"\x00" + d[0]).digest()
    k = split(len(d))
    return sha256(b"\x01" + mth(d[:k]) + mth(d[k:])).digest()


def path(m: int, d: list[bytes]) -> list[bytes]:
    if len(d) == 1:
        return []
    k = split(len(d))
    if m < k:
        return [*path(m, d[:k]), mth(d[k:])]
    return [*path(m - k, d[k:]), mth(d[:k])]


def subproof(m: int, d: list[bytes], known: bool) -> list[bytes]:
    if m == len(d):
        return [] if known else [mth(d)]
    k = split(len(d))
    if m <= k:
        return [*subproof(m, d[:k], known), mth(d[k:])]
    return [*subproof(m - k, d[k:], False), mth(d[:k])]


# -- vectors of Certificate Transparency: transparency-dev/merkle, testonly ------------------------

INPUTS = [
    bytes.fromhex(one)
    for one in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
_01 = "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
_23 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
_45 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
_67 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
_03 = "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"
_47 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
_0 = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
_1 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
_4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"


@pytest.mark.parametrize("size", range(9))
def test_the_roots_of_certificate_transparency(size: int) -> None:
    leaves = [leaf_hash(one) for one in INPUTS]
    assert MerkleTree(leaves[:size]).root().hex() == ROOTS[size]
    assert MerkleTree(leaves).root(size).hex() == ROOTS[size]


@pytest.mark.parametrize(
    ("index", "size", "proof"),
    [
        (0, 1, []),
        (0, 2, [_1]),
        (1, 2, [_0]),
        (2, 3, [_01]),
        (1, 5, [_0, _23, _4]),
        (0, 8, [_1, _23, _47]),
        (5, 8, [_4, _67, _03]),
    ],
)
def test_the_inclusion_proofs_of_certificate_transparency(
    index: int, size: int, proof: list[str]
) -> None:
    tree = MerkleTree(leaf_hash(one) for one in INPUTS)
    assert [one.hex() for one in tree.inclusion(index, size)] == proof


@pytest.mark.parametrize(
    ("old", "size", "proof"),
    [(1, 1, []), (1, 8, [_1, _23, _47]), (2, 5, [_23, _4]), (6, 8, [_45, _67, _03])],
)
def test_the_consistency_proofs_of_certificate_transparency(
    old: int, size: int, proof: list[str]
) -> None:
    tree = MerkleTree(leaf_hash(one) for one in INPUTS)
    assert [one.hex() for one in tree.consistency(old, size)] == proof


# -- every tree up to LARGEST leaves ---------------------------------------------------------------

ENTRIES = [bytes([i, i * 7 % 256]) for i in range(LARGEST)]
TREE = MerkleTree(leaf_hash(one) for one in ENTRIES)


@pytest.mark.parametrize("size", range(LARGEST + 1))
def test_every_inclusion_proof(size: int) -> None:
    tree = MerkleTree(leaf_hash(one) for one in ENTRIES[:size])
    root = mth(ENTRIES[:size])
    assert tree.root() == TREE.root(size) == root
    for index in range(size):
        proof = path(index, ENTRIES[:size])
        assert tree.inclusion(index) == TREE.inclusion(index, size) == proof
        assert verify_inclusion(leaf_hash(ENTRIES[index]), index, size, proof, root)


@pytest.mark.parametrize("size", range(LARGEST + 1))
def test_every_consistency_proof(size: int) -> None:
    root = mth(ENTRIES[:size])
    for old in range(size + 1):
        proof = subproof(old, ENTRIES[:size], True) if old else []
        assert TREE.consistency(old, size) == proof
        assert verify_consistency(old, size, mth(ENTRIES[:old]), root, proof)


@pytest.mark.parametrize("size", range(LARGEST + 1))
def test_the_frontier_grows_like_the_tree(size: int) -> None:
    frontier = MerkleFrontier()
    for entry in ENTRIES[:size]:
        frontier = MerkleFrontier.from_json(frontier.to_json())
        frontier.append(leaf_hash(entry))
    assert (frontier.size, frontier.root()) == (size, mth(ENTRIES[:size]))


def test_an_append_costs_the_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    from erasable.workspace.evidence import merkle

    calls = []
    monkeypatch.setattr(merkle, "node_hash", lambda left, right: calls.append(1) or left)
    frontier = MerkleFrontier()
    for _ in range(4096):
        calls.clear()
        frontier.append(b"x" * 32)
        assert len(calls) <= 12
        assert len(frontier.hashes) <= 12


# -- negative controls -----------------------------------------------------------------------------


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(changed)


@given(st.data())
def test_a_changed_inclusion_proof_fails(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, LARGEST))
    index = data.draw(st.integers(0, size - 1))
    bit = data.draw(st.integers(0, 255))
    leaf, root, proof = leaf_hash(ENTRIES[index]), TREE.root(size), TREE.inclusion(index, size)

    def holds(leaf=leaf, index=index, size=size, proof=proof, root=root) -> bool:
        return verify_inclusion(leaf, index, size, proof, root)

    assert holds()
    assert not holds(leaf=flip(leaf, bit))
    assert not holds(root=flip(root, bit))
    assert not holds(proof=[*proof, root])
    assert not holds(proof=[leaf, *proof])
    for other in range(-1, size + 1):
        assert (other == index) == holds(index=other)
    for i in range(len(proof)):
        assert not holds(proof=[*proof[:i], flip(proof[i], bit), *proof[i + 1 :]])
        assert not holds(proof=[*proof[:i], *proof[i + 1 :]])


@given(st.integers(1, LARGEST), st.data())
def test_a_wrong_size_fails_inclusion_where_the_path_has_another_shape(
    size: int, data: st.DataObject
) -> None:
    # An honest proof may also fit another size (RFC 9162 signs the size with the root for that);
    # where it does, the path from the leaf to the root is the same one, turn by turn.
    index = data.draw(st.integers(0, size - 1))
    other = data.draw(st.integers(0, LARGEST))
    proof, root = TREE.inclusion(index, size), TREE.root(size)
    holds = verify_inclusion(leaf_hash(ENTRIES[index]), index, other, proof, root)
    assert holds == (turns(index, other) == turns(index, size))


def turns(index: int, size: int) -> str | None:
    """Say left or right for every step from the leaf up to the root, by the definition."""
    if not 0 <= index < size:
        return None
    if size == 1:
        return ""
    k = split(size)
    return f"{turns(index, k)}l" if index < k else f"{turns(index - k, size - k)}r"


@given(st.data())
def test_a_changed_consistency_proof_fails(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, LARGEST))
    old = data.draw(st.integers(1, size - 1))
    bit = data.draw(st.integers(0, 255))
    proof, was, now = TREE.consistency(old, size), TREE.root(old), TREE.root(size)

    def holds(old=old, size=size, was=was, now=now, proof=proof) -> bool:
        return verify_consistency(old, size, was, now, proof)

    assert holds()
    assert not holds(was=flip(was, bit))
    assert not holds(now=flip(now, bit))
    assert not holds(proof=[*proof, proof[0]])
    assert not holds(proof=[])
    assert not holds(size=old)
    assert not holds(old=size)
    assert not holds(old=-1)
    assert not holds(old=old, size=old - 1)
    for i in range(len(proof)):
        assert not holds(proof=[*proof[:i], flip(proof[i], bit), *proof[i + 1 :]])
        assert not holds(proof=[*proof[:i], *proof[i + 1 :]])


@given(st.integers(2, LARGEST), st.data())
def test_a_rewritten_past_has_no_consistency_proof(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(1, size - 1))
    where = data.draw(st.integers(0, old - 1))
    forged = [leaf_hash(one) for one in ENTRIES[:size]]
    forged[where] = leaf_hash(b"another")
    tree = MerkleTree(forged)
    proof = tree.consistency(old)
    assert not verify_consistency(old, size, TREE.root(old), tree.root(), proof)


def test_nothing_is_consistent_with_an_empty_tree_but_by_an_empty_proof() -> None:
    empty = sha256(b"").digest()
    assert verify_consistency(0, 5, empty, TREE.root(5), [])
    assert not verify_consistency(0, 5, TREE.root(1), TREE.root(5), [])
    assert not verify_consistency(0, 5, empty, TREE.root(5), [empty])


def test_a_node_is_no_leaf() -> None:
    left, right = (leaf_hash(one) for one in ENTRIES[:2])
    assert leaf_hash(left + right) != node_hash(left, right)


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0), (0, 71)])
def test_no_proof_of_what_is_not_there(index: int, size: int) -> None:
    with pytest.raises(EvidenceError, match="expected"):
        TREE.inclusion(index, size)


@pytest.mark.parametrize(("old", "size"), [(4, 3), (-1, 3), (71, 70)])
def test_no_proof_of_a_larger_past(old: int, size: int) -> None:
    with pytest.raises(EvidenceError, match="expected"):
        TREE.consistency(old, size)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"size": 1, "hashes": []},
        {"size": -1, "hashes": []},
        {"size": True, "hashes": ["00" * 32]},
        {"size": 1, "hashes": ["00" * 31]},
        {"size": 1, "hashes": ["zz" * 32]},
        {"size": "1", "hashes": ["00" * 32]},
    ],
    ids=str,
)
def test_a_damaged_frontier_is_told(value: object) -> None:
    with pytest.raises(EvidenceError, match="right edge"):
        MerkleFrontier.from_json(value)
