"""The Merkle tree of RFC 9162, section 2.1: roots, proofs, and their verification.

Leaves and nodes are hashed apart (RFC 9162, 2.1.1), so that no node passes for an entry. The
hashes are those of RFC 6962.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from erasable.core.errors import EvidenceError


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees."""
    return sha256(b"\x01" + left + right).digest()


class MerkleTree:
    """All leaves of a log (see `leaf_hash`), for proofs about any of its sizes.

    >>> tree = MerkleTree(map(leaf_hash, [b"a", b"b", b"c"]))
    >>> proof = tree.inclusion(2)
    >>> verify_inclusion(leaf_hash(b"c"), 2, 3, proof, tree.root())
    True
    """

    def __init__(self, leaves: Iterable[bytes]) -> None:
        # _levels[k][i] is the root of the complete subtree over leaves i * 2**k to (i+1) * 2**k.
        self._levels = [list(leaves)]
        while len(below := self._levels[-1]) > 1:
            pairs = zip(below[::2], below[1::2], strict=False)
            self._levels.append([node_hash(left, right) for left, right in pairs])

    def __len__(self) -> int:
        return len(self._levels[0])

    def root(self, size: int | None = None) -> bytes:
        """Return the root over the first `size` leaves, or over all."""
        return self._over(0, self._size(size))

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """Prove that leaf `index` is among the first `size` (RFC 9162, 2.1.3.1)."""
        size = self._size(size)
        if not 0 <= index < size:
            raise EvidenceError(
                f"entry {index} is not among the first {size} of the log; expected a position "
                f"from 0 to {size - 1}; ask for one of these"
            )
        proof = []
        start, end = 0, size
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                proof.append(self._over(middle, end))
                end = middle
            else:
                proof.append(self._over(start, middle))
                start = middle
        return proof[::-1]

    def consistency(self, old_size: int, size: int | None = None) -> list[bytes]:
        """Prove that the first `old_size` leaves begin the first `size` (RFC 9162, 2.1.4.1)."""
        size = self._size(size)
        if not 0 <= old_size <= size:
            raise EvidenceError(
                f"the first {old_size} entries of the log do not begin its first {size}; expected "
                f"a size from 0 to {size}; ask for one of these"
            )
        if old_size in (0, size):
            return []
        proof = []
        start, end, rest = 0, size, old_size
        while rest != end:
            middle = start + _split(end - start)
            if rest <= middle:
                proof.append(self._over(middle, end))
                end = middle
            else:
                proof.append(self._over(start, middle))
                start = middle
        if start > 0:  # the old root itself is known to the verifier
            proof.append(self._over(start, end))
        return proof[::-1]

    def _size(self, size: int | None) -> int:
        if size is None:
            return len(self)
        if not 0 <= size <= len(self):
            raise EvidenceError(
                f"the log has {len(self)} entries, {size} were asked for; expected a size up to "
                f"{len(self)}; it was cut short, or the size is that of another log"
            )
        return size

    def _over(self, start: int, end: int) -> bytes:
        if start == end:
            return sha256().digest()
        level = (end - start).bit_length() - 1
        if end - start == 1 << level:
            return self._levels[level][start >> level]
        middle = start + _split(end - start)
        return node_hash(self._over(start, middle), self._over(middle, end))


def _split(size: int) -> int:
    """Return the largest power of two below a size."""
    return 1 << (size - 1).bit_length() - 1


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> bool:
    """Tell whether a proof shows a leaf in the tree with this root (RFC 9162, 2.1.3.2).

    `leaf` is the hash of the entry, and `index` its position among the `size` entries of the tree.
    """
    if not 0 <= index < size:
        return False
    node, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = node_hash(sibling, found)
            while not node & 1 and node:  # it had no sibling on these levels
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(
    old_size: int, size: int, old_root: bytes, root: bytes, proof: Sequence[bytes]
) -> bool:
    """Tell whether a proof shows that one tree begins another (RFC 9162, 2.1.4.2)."""
    if old_size == 0:
        return size >= 0 and not proof and old_root == sha256().digest()
    if old_size == size:
        return not proof and old_root == root
    if not 0 < old_size < size or not proof:
        return False
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    node, last = old_size - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old_found = found = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old_found = node_hash(sibling, old_found)
            found = node_hash(sibling, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and old_found == old_root and found == root


class MerkleFrontier:
    """The right edge of a tree, which can append in O(log n) hashes, and knows the root.

    `size` counts the leaves; `hashes` are the roots of the complete subtrees that make up the tree,
    the largest first.

    >>> frontier = MerkleFrontier()
    >>> for entry in [b"a", b"b", b"c"]:
    ...     frontier.append(leaf_hash(entry))
    >>> frontier.size, len(frontier.hashes)
    (3, 2)
    >>> frontier.root() == MerkleTree(map(leaf_hash, [b"a", b"b", b"c"])).root()
    True
    """

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        self.size = size
        self.hashes = list(hashes)

    def append(self, leaf: bytes) -> None:
        """Add a leaf on the right."""
        self.hashes.append(leaf)
        full = self.size
        while full & 1:
            right, left = self.hashes.pop(), self.hashes.pop()
            self.hashes.append(node_hash(left, right))
            full >>= 1
        self.size += 1

    def root(self) -> bytes:
        """Return the root over all leaves."""
        if not self.hashes:
            return sha256().digest()
        found = self.hashes[-1]
        for left in self.hashes[-2::-1]:
            found = node_hash(left, found)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"size": self.size, "hashes": [one.hex() for one in self.hashes]}

    @classmethod
    def from_json(cls, value: Any) -> MerkleFrontier:
        """Read the result of `to_json`; raise EvidenceError for anything else."""
        try:
            size, hashes = value["size"], [bytes.fromhex(one) for one in value["hashes"]]
            if type(size) is not int or size < 0 or size.bit_count() != len(hashes):
                raise ValueError
            if any(len(one) != 32 for one in hashes):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise EvidenceError(
                "the ledger does not know the log's right edge; expected a size and hashes in "
                "its table `meta`; restore the ledger from a backup"
            ) from None
        return cls(size, hashes)
