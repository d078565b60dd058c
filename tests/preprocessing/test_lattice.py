"""StandardScaler(quantize=True): scales and centres that few deletions move."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.utils.estimator_checks import parametrize_with_checks

from erasable.core.errors import InvalidInputError
from erasable.core.tape import Tape
from erasable.preprocessing import StandardScaler
from erasable.preprocessing._standard import draw_phases, lattice_center, lattice_scale
from erasable.utils.estimator_checks import parametrize_with_law_checks
from law_cases import check_law_of_variant, of_variants

BOTH = StandardScaler(quantize=True)
SCALE = StandardScaler(quantize=True, with_mean=False)
CENTER = StandardScaler(quantize=True, with_std=False)
CANCER = load_breast_cancer().data


EXPECTED = {"check_fit_score_takes_y": "records that join others need ids"}


@parametrize_with_checks([BOTH], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@of_variants(parametrize_with_law_checks([BOTH, SCALE, CENTER], fast=True))
def test_law(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


def test_scales_are_powers_of_two_with_a_phase() -> None:
    rng = np.random.default_rng(0)
    variance = 10.0 ** rng.uniform(-280, 280, size=4000)
    phase = rng.random(4000)
    scale = lattice_scale(variance, phase)
    expected = [math.log2(v) / 2 + p for v, p in zip(variance.tolist(), phase, strict=True)]
    near = np.abs(np.array(expected) - np.rint(expected)) < 1e-9
    assert near.sum() < 3
    assert np.array_equal(np.log2(scale)[~near], np.floor(expected)[~near])
    ratio = np.sqrt(variance) / scale
    assert 0.5 < ratio.min() < 0.52
    assert 1.95 < ratio.max() < 2.0
    assert lattice_scale(np.zeros(2), phase[:2]).tolist() == [1.0, 1.0]


def test_centres_are_within_two_scales() -> None:
    rng = np.random.default_rng(1)
    mean, phase = rng.normal(scale=1e3, size=4000), rng.random(4000)
    scale = 2.0 ** rng.integers(-3, 4, size=4000)
    center = lattice_center(mean, scale, phase)
    assert np.abs((center - mean) / scale).max() <= 2.0
    steps = center / scale / 4 - phase
    assert np.abs(steps - np.rint(steps)).max() < 1e-9


def test_phases_belong_to_names() -> None:
    tape, names = Tape(3), [f"column {i}" for i in range(2000)]
    phases = draw_phases(tape, names)
    for drawn in phases:
        assert abs(drawn.mean() - 0.5) < 0.02
        assert abs(drawn.std() - math.sqrt(1 / 12)) < 0.02
    assert abs(np.corrcoef(*phases)[0, 1]) < 0.08
    turned = draw_phases(tape, names[::-1])
    assert all(np.array_equal(a, b[::-1]) for a, b in zip(phases, turned, strict=True))
    assert not np.array_equal(phases[0], draw_phases(Tape(4), names)[0])


def test_a_column_keeps_its_scale_wherever_it_stands() -> None:
    frame = pd.DataFrame(CANCER[:, :6], columns=list("abcdef"))
    one = StandardScaler(quantize=True, random_state=5).fit(frame)
    two = StandardScaler(quantize=True, random_state=5).fit(frame[list("fbd")])
    assert np.array_equal(one.transform(frame)[:, [5, 1, 3]], two.transform(frame[list("fbd")]))
    unnamed = StandardScaler(quantize=True, random_state=5).fit(CANCER[:, :6])
    named = frame.set_axis([f"x{i}" for i in range(6)], axis=1)
    assert np.array_equal(
        unnamed.scale_, StandardScaler(quantize=True, random_state=5).fit(named).scale_
    )


def test_few_deletions_change_anything() -> None:
    """4 % of deletions of 569 x 30 for the scales, and a quarter of that for the centres."""
    scaler = StandardScaler(quantize=True, random_state=0).fit(CANCER)
    changes = []
    for record in np.random.default_rng(0).permutation(569)[:300].tolist():
        before = scaler.transform(CANCER)
        count = scaler.delete([record], digest=False).counts["columns_changed"]
        after = scaler.transform(CANCER)
        changed = (before != after).any(axis=0)
        assert np.array_equal(scaler._output_change().columns, changed)
        assert count == changed.sum()
        changes.append(count > 0)
    assert 0 < np.mean(changes) < 0.1


def test_what_is_subtracted_and_divided_by() -> None:
    both, scale, center = (clone(s).set_params(random_state=1).fit(CANCER)
                           for s in (BOTH, SCALE, CENTER))  # fmt: skip
    assert np.array_equal(both.transform(CANCER), (CANCER - both.center_) / both.scale_)
    np.testing.assert_allclose(both.inverse_transform(both.transform(CANCER)), CANCER, rtol=1e-12)
    assert scale.center_ is None
    assert np.array_equal(scale.transform(CANCER), CANCER / both.scale_)
    assert center.scale_ is None
    assert np.array_equal(center.transform(CANCER), CANCER - both.center_)
    assert both.mean_ == pytest.approx(CANCER.mean(axis=0))
    assert both.var_ == pytest.approx(CANCER.var(axis=0))
    plain = StandardScaler().fit(CANCER)
    assert np.array_equal(plain.center_, plain.mean_)


def test_only_a_lattice_draws_a_seed() -> None:
    assert not hasattr(StandardScaler(random_state=3).fit(CANCER), "seed_")
    assert StandardScaler(quantize=True, random_state=3).fit(CANCER).seed_ == 3
    with pytest.raises(InvalidInputError, match="random_state"):
        StandardScaler(quantize=True, random_state=-1).fit(CANCER)
