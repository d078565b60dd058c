"""Draws of trees: bags, features of a node, candidates among values.

A draw is a hash of what it is for: of a record's key and the tree, of the path to a node and the
names of features, of these and values. No draw depends on a position or on the other records.

Keys come from the tape (SipHash and Philox) and are combined with the finalisers of MurmurHash3,
which need one multiplication or two where Philox needs twenty: bijections that spread every bit of
the key over all bits of the draw.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import inlined, kernel
from erasable.core._tape_kernels import draw2

_33 = np.uint64(33)
_A = np.uint64(0xFF51AFD7ED558CCD)
_B = np.uint64(0xC4CEB9FE1A85EC53)
_16, _13 = np.uint64(16), np.uint64(13)
_C, _D = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_LOW = np.uint64(0xFFFFFFFF)
LEFT_SIDE, RIGHT_SIDE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


def _poisson_bounds() -> NDArray[np.uint64]:
    """Return ``2**64`` times the distribution function of Poisson(1) at 0, 1, 2, ..., rounded."""
    with localcontext() as context:
        context.prec = 60
        term = total = Decimal(-1).exp()
        bounds = []
        while int(total * 2**64) < 2**64 - 1:
            bounds.append(int(total * 2**64))
            term /= len(bounds)
            total += term
    return np.array(bounds, dtype=np.uint64)


_POISSON = _poisson_bounds()


@inlined
def mix64(x: np.uint64) -> np.uint64:
    """Spread the bits of a word: the finaliser of MurmurHash3, of 64 bits."""
    x = (x ^ (x >> _33)) * _A
    x = (x ^ (x >> _33)) * _B
    return x ^ (x >> _33)


@inlined
def mix32(x: np.uint64) -> np.uint64:
    """Spread the lower 32 bits of a word over 32 bits: the finaliser of MurmurHash3."""
    x = ((x ^ (x >> _16)) * _C) & _LOW
    x = ((x ^ (x >> _13)) * _D) & _LOW
    return x ^ (x >> _16)


@inlined
def child_key(key: np.uint64, side: np.uint64) -> np.uint64:
    """Return the key of a child, of which `side` says which: `LEFT_SIDE` or `RIGHT_SIDE`."""
    return mix64(key + side)


@inlined
def weigh(u: np.uint64) -> int:
    """Turn 64 random bits into a draw of the Poisson distribution of mean 1."""
    weight = 0
    while weight < _POISSON.size and u >= _POISSON[weight]:
        weight += 1
    return weight


@kernel
def bag_weights(
    seeds: NDArray[np.uint64], keys: NDArray[np.uint64], stream: int, out: NDArray[np.uint8]
) -> None:
    """Draw how often each record (a column of `out`) counts in each tree (a line)."""
    for t in range(seeds.size):
        for i in range(keys.size):
            word, _ = draw2(seeds[t], keys[i], np.uint32(stream), np.uint32(0))
            out[t, i] = weigh(word)
