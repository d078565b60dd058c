"""The cosine of turns, against mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core._function_kernels import cos_turns
from erasable.core._jit import kernel
from subroutines import standalone

cos_turns = standalone(cos_turns)

# By mpmath at 300 bits, rounded to float64: everywhere, at the edges of the three polynomials'
# ranges, beside the zero, and where whole turns are many.
VECTORS = {
    "0x0p+0": "0x1p+0",
    "0x1p-30": "0x1p+0",
    "0x1.999999999999ap-4": "0x1.9e3779b97f4a8p-1",
    "0x1.fffffffffffffp-4": "0x1.6a09e667f3bcdp-1",
    "0x1p-3": "0x1.6a09e667f3bcdp-1",
    "0x1.6p-3": "0x1.e2b5d3806f63bp-2",
    "0x1.fffffffffffffp-3": "0x1.921fb54442d18p-53",
    "0x1.8p-2": "-0x1.6a09e667f3bcdp-1",
    "0x1.f333333333333p-2": "-0x1.fe6bf2e2660afp-1",
    "0x1.23456789abcdfp+20": "-0x1.f796ae08d58a3p-1",
}


def ulps(t: float) -> float:
    """Distance from the true cosine, in units in the last place."""
    with mpmath.workprec(300):
        truth = mpmath.cos(2 * mpmath.pi * mpmath.mpf(t))
        unit = math.ulp(float(truth))
        return float(abs(mpmath.mpf(float(cos_turns(t))) - truth) / unit)


@kernel
def fill(t: np.ndarray, out: np.ndarray) -> None:
    for i in range(t.size):
        out[i] = cos_turns(t[i])


@pytest.mark.parametrize(("turns", "cosine"), VECTORS.items())
def test_pinned_vectors(turns: str, cosine: str) -> None:
    assert float(cos_turns(float.fromhex(turns))).hex() == float.fromhex(cosine).hex()


def test_mpmath_agrees_to_the_last_digits() -> None:
    rng = np.random.default_rng(0)
    turns = np.concatenate(
        [
            rng.uniform(-0.5, 0.5, 4000),
            *(edge + rng.uniform(-1e-3, 1e-3, 500) for edge in (0.125, 0.25, 0.375, 0.5)),
            0.25 + 2.0 ** -rng.uniform(5.0, 50.0, 500),
            rng.uniform(-1e9, 1e9, 500),
        ]
    )
    assert max(map(ulps, turns.tolist())) < 2.0


def test_radians_lose_digits() -> None:
    """Negative control: by way of 2 pi t the angle is rounded, and its cosine has fewer digits."""
    t = 1e6 + 0.25 + 2.0**-20
    assert ulps(t) < 2.0
    assert abs(math.cos(2 * math.pi * t) - float(cos_turns(t))) > 1e6 * math.ulp(2.0**-18)


@given(st.floats(-(2.0**40), 2.0**40))
def test_it_is_even_and_repeats_itself(t: float) -> None:
    value = float(cos_turns(t))
    assert abs(value) <= 1.0
    assert float(cos_turns(-t)) == value
    rest = t - round(t)
    assert float(cos_turns(rest)) == value


@pytest.mark.parametrize("quarters", range(-9, 10))
def test_quarters_are_exact(quarters: int) -> None:
    assert float(cos_turns(quarters / 4)) == [1.0, 0.0, -1.0, 0.0][quarters % 4]


@pytest.mark.parametrize("unknown", [2.0**52, 1e300, -1e300, np.inf, -np.inf, np.nan])
def test_an_angle_that_is_not_known_has_no_cosine(unknown: float) -> None:
    assert float(cos_turns(unknown)) == 0.0
    assert float(cos_turns(2.0**51)) == float(cos_turns(2.0**51 - 1.0)) == 1.0


def test_a_loop_gives_the_same_bits() -> None:
    t = np.random.default_rng(1).uniform(-50.0, 50.0, 1003)
    out = np.zeros_like(t)
    fill(t, out)
    assert out.tolist() == [float(cos_turns(each)) for each in t.tolist()]
    shifted = np.zeros(1000)
    fill(t[3:], shifted)
    assert shifted.tobytes() == out[3:].tobytes()
