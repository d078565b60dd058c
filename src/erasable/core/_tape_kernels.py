"""The arithmetic of the tape: Philox 4x32-10, SipHash-2-4 and a natural logarithm of our own.

The law: a draw is a pure function of (seed, record key, stream, step). Nothing here knows a row
position, a thread or a library's generator, and nothing here calls libm, whose last bit differs
between machines. Every constant is wrapped in a NumPy type, because numba would promote a mixture
of signed and unsigned integers to float64.

Sources: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011
(Philox); Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012; Sun
Microsystems' fdlibm, ``e_log.c`` (the logarithm).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from erasable.core._jit import kernel, subroutine

_LOW_32 = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

_PHILOX_M0 = np.uint64(0xD2511F53)
_PHILOX_M1 = np.uint64(0xCD9E8D57)
_PHILOX_W0 = np.uint64(0x9E3779B9)  # golden ratio
_PHILOX_W1 = np.uint64(0xBB67AE85)  # sqrt(3) - 1


@subroutine
def _philox_round(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, e: np.uint64, f: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]:
    """Apply one round to counter (a, b, c, d) and key (e, f): 32-bit words, held in 64."""
    first = _PHILOX_M0 * a
    second = _PHILOX_M1 * c
    return (
        (second >> _32) ^ b ^ e,
        second & _LOW_32,
        (first >> _32) ^ d ^ f,
        first & _LOW_32,
        (e + _PHILOX_W0) & _LOW_32,
        (f + _PHILOX_W1) & _LOW_32,
    )


@subroutine
def philox4x32(
    c0: np.uint32, c1: np.uint32, c2: np.uint32, c3: np.uint32, k0: np.uint32, k1: np.uint32
) -> tuple[np.uint32, np.uint32, np.uint32, np.uint32]:
    """Encrypt a 128-bit counter with a 64-bit key: Philox 4x32, 10 rounds.

    Words are in the order of Random123.
    """
    a, b, c, d = np.uint64(c0), np.uint64(c1), np.uint64(c2), np.uint64(c3)
    e, f = np.uint64(k0), np.uint64(k1)
    for _ in range(10):
        a, b, c, d, e, f = _philox_round(a, b, c, d, e, f)
    return np.uint32(a), np.uint32(b), np.uint32(c), np.uint32(d)


@subroutine
def draw2(
    seed: np.uint64, key: np.uint64, stream: np.uint32, step: np.uint32
) -> tuple[np.uint64, np.uint64]:
    """Draw two independent 64-bit words of one record.

    The key of Philox is the seed, low word first; the words of the counter are the low and the high
    word of `key`, `stream` and `step`. The result is the output words (0, 1) and (2, 3), low word
    first.
    """
    wide_seed, wide_key = np.uint64(seed), np.uint64(key)
    w0, w1, w2, w3 = philox4x32(
        np.uint32(wide_key & _LOW_32),
        np.uint32(wide_key >> _32),
        np.uint32(stream),
        np.uint32(step),
        np.uint32(wide_seed & _LOW_32),
        np.uint32(wide_seed >> _32),
    )
    return np.uint64(w0) | (np.uint64(w1) << _32), np.uint64(w2) | (np.uint64(w3) << _32)


_12 = np.uint64(12)
_ONE_BITS = np.uint64(0x3FF0000000000000)
_ONE_LESS_HALF_A_STEP = np.float64(1.0 - 2.0**-53)


@subroutine
def to_unit(u: np.uint64) -> np.float64:
    """Return ``((u >> 12) + 1/2) / 2**52``, exact in float64: from ``2**-53`` to ``1 - 2**-53``."""
    # 1.m - (1 - 2**-53): exact, and unlike a conversion of u it vectorises on every machine.
    bits = (np.uint64(u) >> _12) | _ONE_BITS
    return np.uint64(bits).view(np.float64) - _ONE_LESS_HALF_A_STEP


_2_POW_54 = np.float64(2.0**54)
_SMALLEST_NORMAL = np.float64(2.0**-1022)
_INFINITY, _NAN = np.float64(np.inf), np.float64(np.nan)
_SQRT_HALF_HIGH = np.uint64(0x3FE6A09E00000000)
_SHIFT = _ONE_BITS - _SQRT_HALF_HIGH
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_52 = np.uint64(52)
_LN2_HI = np.float64(6.93147180369123816490e-01)
_LN2_LO = np.float64(1.90821492927058770002e-10)
_LG1 = np.float64(6.666666666666735130e-01)
_LG2 = np.float64(3.999999999940941908e-01)
_LG3 = np.float64(2.857142874366239149e-01)
_LG4 = np.float64(2.222219843214978396e-01)
_LG5 = np.float64(1.818357216161805012e-01)
_LG6 = np.float64(1.531383769920937332e-01)
_LG7 = np.float64(1.479819860511658591e-01)
_ZERO, _HALF, _ONE, _TWO = np.float64(0.0), np.float64(0.5), np.float64(1.0), np.float64(2.0)
_BIAS, _54 = np.float64(1023.0), np.float64(54.0)


@subroutine
def _log_normal(x: np.float64, exponent: np.float64) -> np.float64:
    """Compute ``log(x * 2**exponent)`` of a positive normal number."""
    # x = 2**k * (1 + f), with 1 + f between sqrt(1/2) and sqrt(2).
    bits = np.float64(x).view(np.uint64) + _SHIFT
    k = np.float64(np.int64(bits >> _52)) - _BIAS + exponent
    f = np.uint64((bits & _MANTISSA) + _SQRT_HALF_HIGH).view(np.float64) - _ONE
    half_square = _HALF * f * f
    # A plain / would test for 0, and the caller's loop would no longer vectorise.
    s: np.float64 = np.divide(f, _TWO + f)
    z = s * s
    w = z * z
    even = w * (_LG2 + w * (_LG4 + w * _LG6))
    odd = z * (_LG1 + w * (_LG3 + w * (_LG5 + w * _LG7)))
    correction = s * (half_square + (odd + even)) + k * _LN2_LO
    return k * _LN2_HI - ((half_square - correction) - f)


@subroutine
def log(x: np.float64) -> np.float64:
    """Compute the natural logarithm by a fixed formula, the same bits on every machine.

    The method and coefficients are fdlibm's, in its more accurate form throughout and without its
    short cuts. The error is below one unit in the last place; ``log(1)`` is 0, ``log(0)`` is -inf,
    and that of a negative number NaN.
    """
    value = np.float64(x)
    if value >= _SMALLEST_NORMAL and value < _INFINITY:
        return _log_normal(value, _ZERO)
    if value > _ZERO and value < _INFINITY:
        return _log_normal(value * _2_POW_54, -_54)
    if value == _ZERO:
        return -_INFINITY
    if value == _INFINITY:
        return _INFINITY
    return _NAN


@kernel
def exponential(u: np.uint64) -> np.float64:
    """Return ``-log(to_unit(u))``, a draw of mean 1 from ``2**-53`` to ``53 log 2``."""
    return -_log_normal(to_unit(u), _ZERO)


@kernel
def fill_uniform(
    seed: np.uint64,
    keys: NDArray[np.uint64],
    stream: np.uint32,
    step: np.uint32,
    out0: NDArray[np.float64],
    out1: NDArray[np.float64],
) -> None:
    """Fill `out0` and `out1` with `to_unit` of the first and second word of `draw2`, by key."""
    # The rounds are written out, not a call of draw2, because only then does the loop vectorise.
    seed_low, seed_high = np.uint64(seed) & _LOW_32, np.uint64(seed) >> _32
    wide_stream, wide_step = np.uint64(stream), np.uint64(step)
    for i in range(keys.shape[0]):
        a, b, c, d = keys[i] & _LOW_32, keys[i] >> _32, wide_stream, wide_step
        e, f = seed_low, seed_high
        for _ in range(10):
            a, b, c, d, e, f = _philox_round(a, b, c, d, e, f)
        out0[i] = to_unit(a | (b << _32))
        out1[i] = to_unit(c | (d << _32))


_SIP_0 = np.uint64(0x736F6D6570736575)  # "somepseudorandomlygeneratedbytes"
_SIP_1 = np.uint64(0x646F72616E646F6D)
_SIP_2 = np.uint64(0x6C7967656E657261)
_SIP_3 = np.uint64(0x7465646279746573)
_FINAL = np.uint64(0xFF)
_8 = np.uint64(8)
_13, _16, _17, _21 = np.uint64(13), np.uint64(16), np.uint64(17), np.uint64(21)
_43, _47, _48, _51 = np.uint64(43), np.uint64(47), np.uint64(48), np.uint64(51)
_56 = np.uint64(56)
_NINE_BYTES = np.uint64(9 << 56)


@subroutine
def sip_round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Apply one SipRound to the four words of state."""
    v0 = v0 + v1
    v1 = ((v1 << _13) | (v1 >> _51)) ^ v0
    v0 = (v0 << _32) | (v0 >> _32)
    v2 = v2 + v3
    v3 = ((v3 << _16) | (v3 >> _48)) ^ v2
    v0 = v0 + v3
    v3 = ((v3 << _21) | (v3 >> _43)) ^ v0
    v2 = v2 + v1
    v1 = ((v1 << _17) | (v1 >> _47)) ^ v2
    v2 = (v2 << _32) | (v2 >> _32)
    return v0, v1, v2, v3


@kernel
def siphash24(
    k0: np.uint64, k1: np.uint64, data: NDArray[np.uint8], offset: int, length: int
) -> np.uint64:
    """Hash ``data[offset : offset + length]`` with SipHash-2-4; the words are little-endian."""
    v0, v1 = np.uint64(k0) ^ _SIP_0, np.uint64(k1) ^ _SIP_1
    v2, v3 = np.uint64(k0) ^ _SIP_2, np.uint64(k1) ^ _SIP_3
    for block in range(length // 8 + 1):
        start = offset + 8 * block
        taken = min(8, offset + length - start)
        word = np.uint64(0)
        for i in range(taken):
            word |= np.uint64(data[start + i]) << (_8 * np.uint64(i))
        if taken < 8:
            word |= np.uint64(length) << _56
        v3 ^= word
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0 ^= word
    v2 ^= _FINAL
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def siphash24_batch(
    k0: np.uint64,
    k1: np.uint64,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    out: NDArray[np.uint64],
) -> None:
    """Fill `out` with the hashes of the messages ``data[offsets[i] : offsets[i + 1]]``."""
    for i in range(out.shape[0]):
        out[i] = siphash24(k0, k1, data, offsets[i], offsets[i + 1] - offsets[i])


@kernel
def siphash24_integers(
    k0: np.uint64,
    k1: np.uint64,
    tag: np.uint64,
    values: NDArray[np.uint64],
    out: NDArray[np.uint64],
) -> None:
    """Fill `out` with `siphash24` of the byte `tag` and 8 little-endian bytes of each value.

    Signed integers are given by their two's complement.
    """
    key0, key1, first_byte = np.uint64(k0), np.uint64(k1), np.uint64(tag)
    for i in range(values.shape[0]):
        head = first_byte | (values[i] << _8)
        tail = _NINE_BYTES | (values[i] >> _56)
        v0, v1 = key0 ^ _SIP_0, key1 ^ _SIP_1
        v2, v3 = key0 ^ _SIP_2, key1 ^ _SIP_3 ^ head
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v3 = v0 ^ head, v3 ^ tail
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v2 = v0 ^ tail, v2 ^ _FINAL
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        out[i] = v0 ^ v1 ^ v2 ^ v3
