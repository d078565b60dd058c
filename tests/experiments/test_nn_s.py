"""Figure 16: how many stay in the laws of figure 15, against SciPy and by hand."""

from __future__ import annotations

import nn_s
import numpy as np
from scipy.stats import betabinom

LINES = {
    each["label"]: np.asarray(each["y"])
    for part in nn_s.weights()["panels"]
    for each in part["lines"]
}


def test_the_laws_are_those_of_figure_15() -> None:
    assert list(LINES) == [nn_s.name_of(model) for model in nn_s.SIZES]
    for alpha, beta in ((16, 4), (10, 10), (4, 16), (1, 1)):
        expected = betabinom.pmf(np.arange(nn_s.K + 1), nn_s.K, alpha, beta)
        found = LINES[f"BetaBinomial({alpha}, {beta})"]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert alpha == beta or np.abs(found - expected[::-1]).max() > 0.1
    for a in (5, 10):
        np.testing.assert_allclose(LINES[f"PointMass({a})"], np.arange(11) == a, atol=1e-12)
    for low, high in ((5, 10), (0, 4)):
        inside = (np.arange(11) >= low) & (np.arange(11) <= high)
        expected = inside / inside.sum()
        np.testing.assert_allclose(LINES[f"Uniform({low}, {high})"], expected, atol=1e-12)
