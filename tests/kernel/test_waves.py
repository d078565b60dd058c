"""Random waves: what is drawn, by statistics; what is read off at rows, by mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from effort import examples
from erasable.core.tape import Tape
from erasable.kernel import RandomFourierRidge
from erasable.kernel import _wave_kernels as kernels
from erasable.kernel._random_fourier import Waves
from kernel.fourier import sampler, waves

NAMES = [f"x{j}" for j in range(40)]


def draw(seed: int, n_waves: int = 500, gamma: float = 0.5, names: list[str] = NAMES) -> Waves:
    return Waves.draw(Tape(seed), names, n_waves, gamma)


# --------------------------------------------------------------------------- the draws


def test_weights_are_normal_and_offsets_uniform() -> None:
    drawn = draw(20190711)
    weights = 2 * np.pi * drawn.frequencies.ravel()  # of variance 2 gamma = 1
    n = weights.size
    assert abs(weights.mean()) < 4 / np.sqrt(n)
    assert abs(weights.var() - 1.0) < 4 * np.sqrt(2 / n)
    assert scipy.stats.kstest(weights, "norm").pvalue > 1e-3
    assert abs(scipy.stats.kurtosis(weights)) < 4 * np.sqrt(24 / n)
    assert scipy.stats.kstest(drawn.phases, "uniform").pvalue > 1e-3


def test_the_test_would_notice_another_distribution() -> None:
    """Negative control: of Box and Muller, the radius without the angle."""
    radius = np.sqrt(-2 * np.log(np.random.default_rng(0).random(20_000)))
    assert scipy.stats.kstest(radius * np.sign(np.arange(20_000) % 2 - 0.5), "norm").pvalue < 1e-9


def test_draws_do_not_know_of_each_other() -> None:
    weights = np.concatenate([draw(seed, 200).frequencies for seed in range(5)])
    n = weights.shape[1]
    between = np.corrcoef(weights)
    np.fill_diagonal(between, 0.0)
    assert np.abs(between).max() < 6 / np.sqrt(n)
    assert np.abs(np.corrcoef(weights.T)[np.triu_indices(n, 1)]).max() < 6 / np.sqrt(200)


def test_gamma_scales_the_same_draws() -> None:
    one, four = draw(3, gamma=0.5), draw(3, gamma=2.0)
    assert (2.0 * one.frequencies).tobytes() == four.frequencies.tobytes()
    assert one.phases.tobytes() == four.phases.tobytes()


def test_a_draw_hangs_on_the_name_and_the_wave_alone() -> None:
    every, some = draw(3), draw(3, names=["x7", "new", "x2"])
    assert some.frequencies[[0, 2]].tolist() == every.frequencies[[7, 2]].tolist()
    few = draw(3, n_waves=20)
    assert few.frequencies.tolist() == every.frequencies[:, :20].tolist()
    assert few.phases.tolist() == every.phases[:20].tolist()
    assert draw(4).phases.tolist() != every.phases.tolist()


def test_names_of_a_frame_are_what_counts() -> None:
    pandas = pytest.importorskip("pandas")
    case = waves(n=40)
    frame = pandas.DataFrame(case.X, columns=["age", "height", "weight"])
    one = RandomFourierRidge(random_state=1).fit(frame, case.y)
    two = RandomFourierRidge(random_state=1).fit(frame[["weight", "age", "height"]], case.y)
    assert one.random_weights_[[2, 0, 1]].tobytes() == two.random_weights_.tobytes()
    np.testing.assert_allclose(
        one.predict(frame), two.predict(frame[["weight", "age", "height"]]), atol=1e-6
    )
    numbered = RandomFourierRidge(random_state=1).fit(case.X, case.y)
    assert numbered.random_weights_.tobytes() != one.random_weights_.tobytes()
    called = pandas.DataFrame(case.X, columns=["x0", "x1", "x2"])
    same = RandomFourierRidge(random_state=1).fit(called, case.y)
    assert same.random_weights_.tobytes() == numbered.random_weights_.tobytes()


def test_products_of_waves_approach_the_kernel() -> None:
    rng = np.random.default_rng(0)
    X, gamma = rng.normal(size=(60, 4)), 0.3
    kernel = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    errors = {}
    for count in (100, 1600):
        found = []
        for seed in range(10):
            table = Waves.draw(Tape(seed), NAMES[:4], count, gamma).at(X, np.arange(60))
            found.append((2.0 / count) * table @ table.T)
        errors[count] = np.sqrt(np.mean((np.array(found) - kernel) ** 2))
        # The variance of a product of two waves is at most 1.
        assert errors[count] < 1.0 / np.sqrt(count)
        assert np.abs(np.mean(found, axis=0) - kernel).max() < 5.0 / np.sqrt(10 * count)
    assert errors[1600] == pytest.approx(errors[100] / 4, rel=0.2)


# --------------------------------------------------------------------------- the values


def test_waves_are_the_cosines_that_they_say() -> None:
    rng = np.random.default_rng(0)
    X = 100.0 * rng.normal(size=(7, 6))
    drawn = draw(5, n_waves=9, names=NAMES[:6])
    found = drawn.at(X, np.arange(7))
    with mpmath.workdps(40):
        for i, row in enumerate(X.tolist()):
            for k in range(9):
                angle = mpmath.mpf(float(drawn.phases[k]))
                for x, f in zip(row, drawn.frequencies[:, k].tolist(), strict=True):
                    angle += mpmath.mpf(x) * mpmath.mpf(f)
                assert abs(found[i, k] - float(mpmath.cos(2 * mpmath.pi * angle))) < 1e-12


def test_scikit_learn_makes_the_same_features() -> None:
    case = waves()
    model = case.fit(RandomFourierRidge(random_state=0))
    table = np.sqrt(2 / 100) * model._waves.at(case.X, np.arange(300))
    np.testing.assert_allclose(table, sampler(model).transform(case.X), atol=1e-13)


@given(st.integers(1, 11), st.integers(1, 40), st.integers(1, 30))
@settings(max_examples=examples(60))
def test_bits_do_not_depend_on_company(d: int, n: int, n_waves: int) -> None:
    rng = np.random.default_rng(d + 100 * n)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    drawn = draw(1, n_waves, names=NAMES[:d])
    every = drawn.at(X, np.arange(n))
    order = rng.permutation(n)
    assert drawn.at(X, order).tobytes() == every[order].tobytes()
    assert drawn.at(X[[n // 2]], np.array([0])).tobytes() == every[n // 2].tobytes()
    assert drawn.at(csr_array(X), order).tobytes() == every[order].tobytes()
    few = Waves(drawn.frequencies[:, : n_waves // 2], drawn.phases[: n_waves // 2])
    assert few.at(X, np.arange(n)).tobytes() == every[:, : n_waves // 2].tobytes()
    for rows, table in drawn.blocks(X, order):
        assert table.tobytes() == every[rows].tobytes()


def test_wide_rows_are_read_in_slabs() -> None:
    d, n_waves = kernels._CACHE // 20, 50
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, d))
    drawn = Waves(rng.normal(size=(d, n_waves)), rng.random(n_waves))
    every = drawn.at(X, np.arange(3))
    for k in (0, 19, 20, 49):
        one = Waves(drawn.frequencies[:, [k]].copy(), drawn.phases[[k]])
        assert one.at(X, np.arange(3))[:, 0].tobytes() == every[:, k].tobytes()
