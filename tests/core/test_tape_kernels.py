"""Philox, SipHash and the logarithm, against what others published and against plain integers."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core import _tape_kernels
from subroutines import standalone

kernels = standalone(_tape_kernels)

WORDS_32 = st.integers(0, 2**32 - 1)
WORDS_64 = st.integers(0, 2**64 - 1)
MASK_32 = 2**32 - 1
MASK_64 = 2**64 - 1

# Random123 1.14, tests/kat_vectors: counter, key, output.
PHILOX_VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip

# github.com/veorq/SipHash, vectors.h: key 00 01 .. 0f; message i is 00 01 .. (i - 1).
SIPHASH_VECTORS = bytes.fromhex("""
310e0edd47db6f72 fd67dc93c539f874 5a4fa9d909806c0d 2d7efbd796666785
b7877127e09427cf 8da699cd64557618 cee3fe586e46c9cb 37d1018bf50002ab
6224939a79f5f593 b0e4a90bdf82009e f3b9dd94c5bb5d7a a7ad6b22462fb3f4
fbe50e86bc8f1e75 903d84c02756ea14 eef27a8e90ca23f7 e545be4961ca29a1
db9bc2577fcc2a3f 9447be2cf5e99a69 9cd38d96f0b3c14b bd6179a71dc96dbb
98eea21af25cd6be c7673b2eb0cbf2d0 883ea3e395675393 c8ce5ccd8c030ca8
94af49f6c650adb8 eab8858ade92e1bc f315bb5bb835d817 adcf6b0763612e2f
a5c91da7acaa4dde 716595876650a2a6 28ef495c53a387ad 42c341d8fa92d832
ce7cf2722f512771 e37859f94623f3a7 381205bb1ab0e012 ae97a10fd434e015
b4a31508beff4d31 81396229f0907902 4d0cf49ee5d4dcca 5c73336a76d8bf9a
d0a704536ba93e0e 925958fcd6420cad a915c29bc8067318 952b79f3bc0aa6d4
f21df2e41d4535f9 87577519048f53a9 10a56cf5dfcd9adb eb75095ccd986cd0
51a9cb9ecba312e6 96afadfc2ce666c7 72fe52975a4364ee 5a1645b276d592a1
b274cb8ebf87870a 6f9bb4203de7b381 eaecb2a30b22a87f 9924a43cc1315724
bd838d3aafbf8db7 0b1a2a3265d51aea 135079a3231ce660 932b2846e4d70666
e1915f5cb1eca46c f325965ca16d629f 575ff28e60381be5 724506eb4c328a95
""")

# By mpmath 1.4 at 300 bits, rounded to float64: across the range, at the edges of the reduction
# (the square roots of 2 and 1/2), and beside 1.
LOG_VECTORS = {
    "0x1p-1074": "-0x1.74385446d71c3p+9",
    "0x1.fffffffffffffp-1023": "-0x1.6232bdd7abcd2p+9",
    "0x1p-1022": "-0x1.6232bdd7abcd2p+9",
    "0x1p-53": "-0x1.25e4f7b2737fap+5",
    "0x1.999999999999ap-4": "-0x1.26bb1bbb55515p+1",
    "0x1.3333333333333p-2": "-0x1.34378fcbda721p+0",
    "0x1.5555555555555p-2": "-0x1.193ea7aad030bp+0",
    "0x1p-1": "-0x1.62e42fefa39efp-1",
    "0x1.6a09e667f3bccp-1": "-0x1.62e42fefa39f1p-2",
    "0x1.6a09e667f3bcdp-1": "-0x1.62e42fefa39eep-2",
    "0x1.fffffffffffffp-1": "-0x1.0000000000000p-53",
    "0x1p+0": "0x0p+0",
    "0x1.0000000000001p+0": "0x1.fffffffffffffp-53",
    "0x1.0000000000002p+0": "0x1.ffffffffffffep-52",
    "0x1.6a09e667f3bccp+0": "0x1.62e42fefa39eep-2",
    "0x1.6a09e667f3bcdp+0": "0x1.62e42fefa39f0p-2",
    "0x1.8p+0": "0x1.9f323ecbf984cp-2",
    "0x1.921fb54442d18p+1": "0x1.250d048e7a1bdp+0",
    "0x1.4p+3": "0x1.26bb1bbb55516p+1",
    "0x1.fffffffffffffp+1023": "0x1.62e42fefa39efp+9",
}


def hex_words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def philox(counter: list[int], key: list[int], rounds: int = 10) -> list[int]:
    """The paper's figure, in Python integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & MASK_32, (k1 + 0xBB67AE85) & MASK_32
    return [c0, c1, c2, c3]


def siphash(k0: int, k1: int, message: bytes) -> int:
    """The paper's section 2, in Python integers."""

    def turn(word: int, by: int) -> int:
        return ((word << by) | (word >> (64 - by))) & MASK_64

    def rounds(n: int) -> None:
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK_64
            v[2] = (v[2] + v[3]) & MASK_64
            v[1], v[3] = turn(v[1], 13) ^ v[0], turn(v[3], 16) ^ v[2]
            v[0] = turn(v[0], 32)
            v[2] = (v[2] + v[1]) & MASK_64
            v[0] = (v[0] + v[3]) & MASK_64
            v[1], v[3] = turn(v[1], 17) ^ v[2], turn(v[3], 21) ^ v[0]
            v[2] = turn(v[2], 32)

    start = b"somepseudorandomlygeneratedbytes"
    v = [int.from_bytes(start[i : i + 8], "big") for i in range(0, 32, 8)]
    v = [word ^ (k1 if i % 2 else k0) for i, word in enumerate(v)]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def run_philox(counter: list[int], key: list[int]) -> list[int]:
    return [int(word) for word in kernels.philox4x32(*map(np.uint32, counter + key))]


def run_siphash(k0: int, k1: int, message: bytes, offset: int = 0) -> int:
    data = np.frombuffer(bytearray(bytes(offset) + message + b"\xaa" * 9), dtype=np.uint8)
    return int(kernels.siphash24(np.uint64(k0), np.uint64(k1), data, offset, len(message)))


def ulps(found: float, x: float) -> float:
    """Distance from the true logarithm of x, in units in the last place."""
    with mpmath.workprec(200):
        truth = mpmath.log(mpmath.mpf(x))
        return float(abs(mpmath.mpf(found) - truth) / mpmath.mpf(math.ulp(float(truth))))


@pytest.mark.parametrize(("counter", "key", "output"), PHILOX_VECTORS)
def test_philox_gives_the_published_vectors(counter: str, key: str, output: str) -> None:
    assert run_philox(hex_words(counter), hex_words(key)) == hex_words(output)
    assert philox(hex_words(counter), hex_words(key)) == hex_words(output)


def test_philox_with_a_round_less_would_be_noticed() -> None:
    counter, key, output = map(hex_words, PHILOX_VECTORS[2])
    assert philox(counter, key, rounds=9) != output


@given(counter=st.lists(WORDS_32, min_size=4, max_size=4), key=st.tuples(WORDS_32, WORDS_32))
def test_philox_is_the_figure_of_the_paper(counter: list[int], key: tuple[int, int]) -> None:
    assert run_philox(counter, list(key)) == philox(counter, list(key))


@given(seed=WORDS_64, key=WORDS_64, stream=WORDS_32, step=WORDS_32)
def test_draw2_lays_out_counter_and_key_as_documented(
    seed: int, key: int, stream: int, step: int
) -> None:
    low, high = [key & MASK_32, key >> 32], [stream, step]
    words = philox(low + high, [seed & MASK_32, seed >> 32])
    drawn = kernels.draw2(np.uint64(seed), np.uint64(key), np.uint32(stream), np.uint32(step))
    assert [int(word) for word in drawn] == [
        words[0] + (words[1] << 32),
        words[2] + (words[3] << 32),
    ]


@given(seed=WORDS_64, keys=st.lists(WORDS_64, max_size=40), stream=WORDS_32, step=WORDS_32)
def test_fill_uniform_is_draw2_of_every_key(
    seed: int, keys: list[int], stream: int, step: int
) -> None:
    out0, out1 = np.full(len(keys), np.nan), np.full(len(keys), np.nan)
    words = np.uint32(stream), np.uint32(step)
    kernels.fill_uniform(np.uint64(seed), np.array(keys, dtype=np.uint64), *words, out0, out1)
    drawn = [kernels.draw2(np.uint64(seed), np.uint64(key), *words) for key in keys]
    assert out0.tolist() == [kernels.to_unit(np.uint64(first)) for first, _ in drawn]
    assert out1.tolist() == [kernels.to_unit(np.uint64(second)) for _, second in drawn]


@given(WORDS_64)
def test_to_unit_is_exact_and_strictly_inside(u: int) -> None:
    drawn = float(kernels.to_unit(np.uint64(u)))
    numerator, denominator = drawn.as_integer_ratio()
    assert numerator * 2**53 == (2 * (u >> 12) + 1) * denominator
    assert 0.0 < drawn < 1.0


def test_to_unit_at_both_ends() -> None:
    assert kernels.to_unit(np.uint64(0)) == 2.0**-53
    assert kernels.to_unit(np.uint64(MASK_64)) == 1.0 - 2.0**-53


def test_siphash_gives_the_reference_vectors() -> None:
    k0, k1 = (int.from_bytes(bytes(range(i, i + 8)), "little") for i in (0, 8))
    assert len(SIPHASH_VECTORS) == 64 * 8
    for length in range(64):
        expected = int.from_bytes(SIPHASH_VECTORS[8 * length : 8 * length + 8], "little")
        message = bytes(range(length))
        assert run_siphash(k0, k1, message) == expected
        assert siphash(k0, k1, message) == expected


@given(k0=WORDS_64, k1=WORDS_64, message=st.binary(max_size=300), offset=st.integers(0, 20))
def test_siphash_is_the_paper_at_any_offset(k0: int, k1: int, message: bytes, offset: int) -> None:
    assert run_siphash(k0, k1, message, offset) == siphash(k0, k1, message)


@given(k0=WORDS_64, k1=WORDS_64, messages=st.lists(st.binary(max_size=40), max_size=12))
def test_siphash_batch_is_siphash_of_each(k0: int, k1: int, messages: list[bytes]) -> None:
    data = np.frombuffer(bytearray(b"".join(messages)), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, messages)], dtype=np.int64)
    out = np.zeros(len(messages), dtype=np.uint64)
    kernels.siphash24_batch(np.uint64(k0), np.uint64(k1), data, offsets, out)
    assert out.tolist() == [siphash(k0, k1, message) for message in messages]


@given(k0=WORDS_64, k1=WORDS_64, tag=st.integers(0, 255), values=st.lists(WORDS_64, max_size=40))
def test_siphash_integers_is_siphash_of_tag_and_bytes(
    k0: int, k1: int, tag: int, values: list[int]
) -> None:
    out = np.zeros(len(values), dtype=np.uint64)
    kernels.siphash24_integers(
        np.uint64(k0), np.uint64(k1), np.uint64(tag), np.array(values, dtype=np.uint64), out
    )
    messages = [bytes([tag]) + value.to_bytes(8, "little") for value in values]
    assert out.tolist() == [siphash(k0, k1, message) for message in messages]


@pytest.mark.parametrize(("x", "expected"), LOG_VECTORS.items())
def test_log_gives_the_pinned_bits(x: str, expected: str) -> None:
    found = float(kernels.log(float.fromhex(x)))
    assert found.hex() == float.fromhex(expected).hex()


@given(st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False))
def test_log_is_within_one_ulp(x: float) -> None:
    assert ulps(float(kernels.log(x)), x) < 1.0


@pytest.mark.parametrize(
    ("low", "high"),
    [(2.0**-53, 1.0), (0.5, 2.0), (0.7, 0.72), (1 - 1e-6, 1 + 1e-6), (1e-300, 1e300)],
)
def test_log_is_within_one_ulp_where_it_is_hardest(low: float, high: float) -> None:
    rng = np.random.default_rng(20260)
    points = np.exp(rng.uniform(np.log(low), np.log(high), 2000))
    assert max(ulps(float(kernels.log(x)), float(x)) for x in points) < 1.0


def test_a_logarithm_in_single_precision_would_be_noticed() -> None:
    assert ulps(float(np.log(np.float32(3.0))), 3.0) > 1.0


def plain_log(x: float) -> float:
    """The documented formula in Python floats, which nothing fuses or reorders."""
    fraction, k = math.frexp(x)
    if fraction < float.fromhex("0x1.6a09ep-1"):
        fraction, k = 2.0 * fraction, k - 1
    f = fraction - 1.0
    half_square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01
                + w * 1.531383769920937332e-01))  # fmt: skip
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01
               + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)))  # fmt: skip
    correction = s * (half_square + (odd + even)) + k * 1.90821492927058770002e-10
    return k * 6.93147180369123816490e-01 - ((half_square - correction) - f)


@given(st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False))
def test_the_compiler_leaves_the_formula_of_log_alone(x: float) -> None:
    assert float(kernels.log(x)).hex() == plain_log(x).hex()


def test_log_of_what_has_none() -> None:
    assert kernels.log(0.0) == -math.inf
    assert kernels.log(-0.0) == -math.inf
    assert kernels.log(math.inf) == math.inf
    assert all(math.isnan(kernels.log(x)) for x in (-1.0, -5e-324, -math.inf, math.nan))


@given(WORDS_64)
def test_exponential_is_minus_log_and_positive(u: int) -> None:
    drawn = kernels.exponential(np.uint64(u))
    assert drawn == -kernels.log(kernels.to_unit(np.uint64(u)))
    assert 0.0 < drawn < 37.0
