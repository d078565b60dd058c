"""Hashes of ids and of rows, added up; those of rows by SipHash-1-3, with both halves kept.

Dense rows are first reduced to two words, by sums of products with fixed random words (multilinear
hashing); that takes a quarter of the time of absorbing each value.

Sources: Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012; Lemire and
Kaser, "Strongly universal string hashing is fast", The Computer Journal 57, 2014.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from erasable.core._jit import kernel, subroutine
from erasable.core._tape_kernels import draw2, sip_round, siphash24_integers
from erasable.core.arrays import Floats, Ints, Ints32, Matrix, Words

_State: TypeAlias = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

# "somepseudorandomlygeneratedbytes", as in SipHash.
_SIP_0, _SIP_1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_SIP_2, _SIP_3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_FINAL = np.uint64(0xFF)
_ODD, _32, _STREAM = np.uint64(1), np.uint64(32), np.uint32(0)
_NAN, _NOTHING, _ZERO = np.uint64(0x7FF8000000000000), np.uint64(0), np.float64(0.0)


@subroutine
def _begin(key: np.uint64, purpose: np.uint64) -> _State:
    return key ^ _SIP_0, purpose ^ _SIP_1, key ^ _SIP_2, purpose ^ _SIP_3


@subroutine
def _absorb(state: _State, word: np.uint64) -> _State:
    v0, v1, v2, v3 = state
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
    return v0 ^ word, v1, v2, v3


@subroutine
def _add(state: _State, sums: Words) -> None:
    v0, v1, v2, v3 = state
    v2 ^= _FINAL
    for _ in range(3):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    sums[0] += v0 ^ v1
    sums[1] += v2 ^ v3


@subroutine
def _bits(value: np.float64) -> np.uint64:
    """Return the bits of a number: one zero, one NaN."""
    number = np.float64(np.float64(value) + _ZERO)  # -0.0 becomes 0.0
    bits = number.view(np.uint64)
    return bits if number == number else _NAN


@subroutine
def _word(value: np.float64) -> np.uint64:
    """Return the word of a number, 0 for 0, so that zeros need not be stored."""
    bits = _bits(value)
    return bits ^ (bits >> _32)  # the lower half of small whole numbers is 0


@subroutine
def _factors(width: int, purpose: np.uint64) -> Words:
    factors = np.empty((2, width), dtype=np.uint64)
    for j in range(width):
        first, second = draw2(purpose, np.uint64(j), _STREAM, _STREAM)
        factors[0, j], factors[1, j] = first | _ODD, second | _ODD
    return factors


@kernel
def put_four(a: Floats, b: Floats, c: Floats, d: Floats, out: Floats, first: int) -> None:
    """Write four columns beside each other, from column `first` on; -0.0 becomes 0.0.

    Writing them singly would fetch each line of the cache four times.
    """
    for i in range(a.size):
        row = out[i]
        row[first] = a[i] + 0.0
        row[first + 1] = b[i] + 0.0
        row[first + 2] = c[i] + 0.0
        row[first + 3] = d[i] + 0.0


@kernel
def sum_dense(X: Matrix, rows: Ints, keys: Words, purpose: np.uint64, sums: Words) -> None:
    """Add to `sums` the hashes of rows of numbers; `keys[i]` is that of the record of `rows[i]`."""
    factors = _factors(X.shape[1], purpose)
    for i in range(rows.size):
        first, second = _NOTHING, _NOTHING
        for j in range(X.shape[1]):
            word = _word(X[rows[i], j])
            first += word * factors[0, j]
            second += word * factors[1, j]
        _add(_absorb(_absorb(_begin(keys[i], purpose), first), second), sums)


@kernel
def sum_sparse(
    data: Floats,
    indices: Ints32,
    indptr: Ints32,
    width: int,
    rows: Ints,
    keys: Words,
    purpose: np.uint64,
    sums: Words,
) -> None:
    """Add to `sums` the hashes of rows of a sparse matrix, the same as of a dense one."""
    factors = _factors(width, purpose)
    for i in range(rows.size):
        first, second = _NOTHING, _NOTHING
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            word = _word(data[k])
            first += word * factors[0, indices[k]]
            second += word * factors[1, indices[k]]
        _add(_absorb(_absorb(_begin(keys[i], purpose), first), second), sums)


@kernel
def sum_words(words: Words, keys: Words, purpose: np.uint64, sums: Words) -> None:
    """Add to `sums` the hashes of rows of words; `keys[i]` is that of the record of `words[i]`."""
    for i in range(keys.size):
        state = _begin(keys[i], purpose)
        for j in range(words.shape[1]):
            state = _absorb(state, words[i, j])
        _add(state, sums)


@kernel
def sum_integer_keys(
    seeds: Words,
    purpose: np.uint64,
    tag: np.uint64,
    values: Ints,
    sums: Words,
) -> None:
    """Add to `sums` the keys of integer ids under each of the seeds, modulo ``2**64``."""
    keys = np.empty(values.size, dtype=np.uint64)
    for t in range(seeds.size):
        siphash24_integers(seeds[t], purpose, tag, values.view(np.uint64), keys)
        for i in range(keys.size):
            sums[t] += keys[i]
