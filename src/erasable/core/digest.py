"""One hash for a whole model: equal digests, equal models.

A state is flattened to named components; each is hashed with its name, type and shape into a
leaf, and the leaves, sorted by name, into the root of a Merkle tree (RFC 6962: leaves and nodes
are hashed under different prefixes). An estimator whose components are large keeps their leaf
hashes and computes again only those that changed.

The ids of the records enter as a sum of hashes, which a deletion changes in constant time and
which does not depend on their order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core._value_kernels import sum_integer_keys
from erasable.core.tape import FOR_RECORDS, SIGNED, Tape

__all__ = ["LeafHash", "flatten", "id_set_hash", "leaf_hash", "merkle_root", "state_root"]

_PLAIN = frozenset({bool, float, int, np.ndarray, str, type(None)})
_LEAF, _NODE = b"\x00", b"\x01"
_SHORT = 1_024  # bytes that are copied in less time than a hasher takes to be called again
_LENGTHS, _FLOAT = struct.Struct("<QQ").pack, struct.Struct("<d").pack
_NAME = itemgetter(0)
# Two fixed, public seeds: the fractional parts of the square roots of 2 and 3.
_ID_TAPES = (Tape(0x6A09E667F3BCC908), Tape(0xBB67AE8584CAA73B))
_ID_SEEDS = np.array([tape.seed for tape in _ID_TAPES], dtype=np.uint64)


class LeafHash(bytes):
    """SHA-256 of a component, which an estimator returns in its place.

    Examples
    --------
    >>> state_root({"a": 1, "b": leaf_hash("b", 2)}) == state_root({"a": 1, "b": 2})
    True
    """

    __slots__ = ()


def id_set_hash(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash a set of ids, so that the hash of a part can be subtracted.

    Parameters
    ----------
    ids : ndarray of shape (n,), int64, uint64 or object

    Returns
    -------
    ndarray of shape (2,), uint64
        Sums modulo 2**64 of two SipHash-2-4 values of each id, under fixed public keys. It tells
        whether two honest parties mean the same records; it does not withstand an attacker who
        may choose ids freely to forge a sum.

    Examples
    --------
    >>> import numpy as np
    >>> whole, part = id_set_hash(np.array([1, 2, 3])), id_set_hash(np.array([2]))
    >>> bool(np.all(whole - part == id_set_hash(np.array([3, 1]))))
    True
    """
    if ids.dtype == np.int64 and ids.ndim == 1:
        # As `record_keys`, without its checks and its arrays.
        sums = np.zeros(2, dtype=np.uint64)
        sum_integer_keys(_ID_SEEDS, FOR_RECORDS, SIGNED, ids, sums)
        return sums
    return np.array(
        [tape.record_keys(ids).sum(dtype=np.uint64) for tape in _ID_TAPES], dtype=np.uint64
    )


def flatten(state: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """List the components of a state by dotted name, in no particular order.

    Containers get a component of their own that says what they are and how long, so that an empty
    one is not the same as none.

    Raises
    ------
    TypeError
        If a component is not an array, a number, a string, None, or a container of these.

    Examples
    --------
    >>> dict(flatten({"params": {"b": 2}}))
    {'params.b': 2, 'params': ('dict', 1)}
    """
    found: list[tuple[str, Any]] = []
    _collect(state, prefix, found)
    return iter(found)


def _collect(state: Mapping[str, Any], prefix: str, found: list[tuple[str, Any]]) -> None:
    # A list is filled: nested generators would pass each component up level by level.
    for key, value in state.items():
        if not isinstance(key, str):
            raise TypeError(f"state has the key {key!r} under {prefix!r}; expected strings")
        if "." in key or "\\" in key:
            key = key.replace("\\", "\\\\").replace(".", "\\.")
        name = prefix + key
        kind = type(value)
        if kind in _PLAIN:
            found.append((name, value))
        elif kind is dict or isinstance(value, Mapping):
            _collect(value, name + ".", found)
            found.append((name, ("dict", len(value))))
        elif isinstance(value, list | tuple):
            _collect({str(i): item for i, item in enumerate(value)}, name + ".", found)
            found.append((name, ("list", len(value))))
        elif isinstance(value, np.generic):
            found.append((name, value.item()))
        elif isinstance(value, bool | int | float | str | np.ndarray | LeafHash):
            found.append((name, value))
        else:
            raise TypeError(
                f"state[{name!r}] is a {kind.__name__}; expected an array, a number, a "
                "string, None, or a dict or list of these"
            )


def leaf_hash(name: str, value: Any) -> LeafHash:
    """Hash one component with its dotted name.

    Parameters
    ----------
    name : str
        Dotted name, as `flatten` gives it.
    value : ndarray, bool, int, float, str or None
        Arrays enter with dtype and shape; -0.0 is not 0.0.

    Returns
    -------
    LeafHash
        32 bytes.

    Examples
    --------
    >>> leaf_hash("sums", np.zeros(2)) == leaf_hash("sums", np.zeros((2, 1)))
    False
    """
    if isinstance(value, LeafHash):
        return value
    kind, body = _encode(value)
    label = name.encode()
    head = _LEAF + _LENGTHS(len(label), len(kind)) + label + kind
    if len(body) < _SHORT:
        return LeafHash(sha256(head + body).digest())
    hasher = sha256(head)
    hasher.update(body)
    return LeafHash(hasher.digest())


def merkle_root(leaves: list[LeafHash]) -> bytes:
    """Root of the Merkle tree over leaf hashes, as in RFC 6962, section 2.1.

    Examples
    --------
    >>> merkle_root([leaf_hash("a", 1)]) == leaf_hash("a", 1)
    True
    """
    if not leaves:
        return sha256().digest()
    level: list[bytes] = list(leaves)
    while len(level) > 1:
        # The last of an odd number goes up unpaired: the same tree as splitting at powers of two.
        pairs = zip(level[::2], level[1::2], strict=False)
        unpaired = level[-1:] if len(level) % 2 else []
        level = [sha256(_NODE + left + right).digest() for left, right in pairs] + unpaired
    return level[0]


def state_root(state: Mapping[str, Any]) -> bytes:
    """Root over all components of a state, sorted by name.

    Examples
    --------
    >>> state_root({"a": 1, "b": 2.5}) == state_root({"b": 2.5, "a": 1})
    True
    >>> state_root({"a": 1}) == state_root({"a": 1.0})
    False
    """
    components = sorted(flatten(state), key=_NAME)
    return merkle_root([leaf_hash(name, value) for name, value in components])


def _encode(value: Any) -> tuple[bytes, Any]:
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, str):
        return b"str", value.encode()
    if value is None:
        return b"none", b""
    if isinstance(value, bool):
        return b"bool", bytes([value])
    if isinstance(value, int):
        return b"int", str(value).encode()
    if isinstance(value, float):
        return b"float", _FLOAT(value)
    kind, length = value
    return b"container", f"{kind}:{length}".encode()


def _encode_array(array: NDArray[Any]) -> tuple[bytes, Any]:
    shape = str(array.size) if array.ndim == 1 else ",".join(map(str, array.shape))
    if array.dtype.kind not in "OUT":
        stored, name = _stored(array.dtype)
        array = np.asarray(array, dtype=stored, order="C")
        return name + shape.encode(), array.reshape(-1).view(np.uint8).data
    parts = []
    for item in array.reshape(-1).tolist():
        kind, body = _encode(item)
        parts.append(_LENGTHS(len(kind), len(body)) + kind + body)
    return b"object:" + shape.encode(), b"".join(parts)


@cache
def _stored(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], bytes]:
    """Return the little-endian type as which an array is hashed, and its name."""
    little = dtype.newbyteorder("<")
    return little, little.str.encode() + b":"
