"""Hashes of rows, each keyed by its record, added up: SipHash-1-3 with 128 bits of output.

Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012, with the second
output word of the reference implementation's SipHash-128.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel
from erasable.core._tape_kernels import sip_round

__all__ = ["sum_dense", "sum_sparse", "sum_words"]

Words: TypeAlias = NDArray[np.uint64]
_State: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

# "somepseudorandomlygeneratedbytes", as in SipHash.
_SIP_0, _SIP_1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_SIP_2, _SIP_3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_WIDE, _FINAL, _SECOND = np.uint64(0xEE), np.uint64(0xEE), np.uint64(0xDD)
_NAN, _NOTHING = np.uint64(0x7FF8000000000000), np.uint64(0)


@kernel
def _begin(key: np.uint64, purpose: np.uint64) -> _State:
    return key ^ _SIP_0, purpose ^ _SIP_1 ^ _WIDE, key ^ _SIP_2, purpose ^ _SIP_3


@kernel
def _absorb(state: _State, word: np.uint64) -> _State:
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
    return v0 ^ word, v1, v2, v3


@kernel
def _add(state: _State, length: int, sums: Words) -> None:
    v0, v1, v2, v3 = _absorb(state, np.uint64(length))
    v2 ^= _FINAL
    for _ in range(3):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    sums[0] += v0 ^ v1 ^ v2 ^ v3
    v1 ^= _SECOND
    for _ in range(3):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    sums[1] += v0 ^ v1 ^ v2 ^ v3


@kernel
def _bits(value: np.float64) -> np.uint64:
    """Return the bits of a number: one zero, one NaN."""
    number = np.float64(value)
    if number == 0.0:
        return _NOTHING
    if number != number:
        return _NAN
    return number.view(np.uint64)


@kernel
def sum_dense(
    X: NDArray[np.float64], rows: NDArray[np.int64], keys: Words, purpose: np.uint64, sums: Words
) -> None:
    """Add to `sums` the hashes of rows of numbers; `keys[i]` is that of the record of `rows[i]`."""
    for i in range(rows.size):
        state = _begin(keys[i], purpose)
        for j in range(X.shape[1]):
            state = _absorb(state, _bits(X[rows[i], j]))
        _add(state, X.shape[1], sums)


@kernel
def sum_sparse(
    data: NDArray[np.float64],
    indices: NDArray[np.int32],
    indptr: NDArray[np.int32],
    rows: NDArray[np.int64],
    keys: Words,
    purpose: np.uint64,
    sums: Words,
) -> None:
    """Add to `sums` the hashes of rows of a sparse matrix; stored zeros do not count."""
    for i in range(rows.size):
        state, count = _begin(keys[i], purpose), 0
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if data[k] != 0.0:
                state = _absorb(state, np.uint64(indices[k]))
                state = _absorb(state, _bits(data[k]))
                count += 2
        _add(state, count, sums)


@kernel
def sum_words(words: Words, keys: Words, purpose: np.uint64, sums: Words) -> None:
    """Add to `sums` the hashes of rows of words; `keys[i]` is that of the record of `words[i]`."""
    for i in range(keys.size):
        state = _begin(keys[i], purpose)
        for j in range(words.shape[1]):
            state = _absorb(state, words[i, j])
        _add(state, words.shape[1], sums)
