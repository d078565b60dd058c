r"""How far an estimated covariance is from the true one: regions that hold whatever the truth is.

:math:`W = \Sigma^{-1/2} S \Sigma^{-1/2}`, with S the covariance of :math:`\nu + 1` Gaussian
records, is a Wishart matrix over its :math:`\nu` degrees of freedom, whose law depends on nothing
unknown.

- All its *eigenvalues* at once: for d = 1 they are one chi-squared variable. For more,
  :math:`\sqrt\nu \mp (\sqrt d + \sqrt{2\log(2/\delta)})` bounds the roots of :math:`\nu W`
  (Davidson and Szarek, *Local operator theory, random matrices and Banach spaces*, 2001, Theorem
  II.13). That is good for what depends on one direction.
- Its *Stein loss* :math:`L = \operatorname{tr} W - \log\det W - d`, good for what adds up over all
  directions. Integrating the density of a Wishart matrix gives, with :math:`\Gamma_d` the
  multivariate gamma function and :math:`s < (\nu - d + 1)/2`,

  .. math:: E\,e^{sL} = e^{-sd} (\nu/2)^{ds} (1 - 2s/\nu)^{-d(\nu/2 - s)}
            \Gamma_d(\nu/2 - s) / \Gamma_d(\nu/2),

  and Chernoff's bound from it: :math:`L \le (\log E\,e^{sL} + \log(1/\delta)) / s` with
  probability :math:`1 - \delta` for every s that was chosen before; the best is taken.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from scipy.special import multigammaln

from erasable.core.arrays import Floats


@lru_cache(maxsize=256)
def eigenvalue_ends(d: int, nu: int, delta: float) -> tuple[float, float]:
    """Return what all eigenvalues are between, but for `delta`; the low end may be 0."""
    if d == 1:
        low, high = stats.chi2.ppf([delta / 2, 1 - delta / 2], nu) / nu
        return float(low), float(high)
    reach = np.sqrt(d) + np.sqrt(2 * np.log(2 / delta))
    return max(np.sqrt(nu) - reach, 0.0) ** 2 / nu, float((np.sqrt(nu) + reach) ** 2 / nu)


@lru_cache(maxsize=256)
def stein_radius(d: int, nu: int, delta: float) -> float:
    """Return what the Stein loss is below, but for `delta`; needs ``nu >= d``."""

    def radius(share: float) -> float:
        s = share * (nu - d + 1) / 2
        moment = d * s * (np.log(nu / 2) - 1) - d * (nu / 2 - s) * np.log1p(-2 * s / nu)
        moment += multigammaln(nu / 2 - s, d) - multigammaln(nu / 2, d)
        return float((moment - np.log(delta)) / s)

    return radius(minimize_scalar(radius, bounds=(1e-6, 1 - 1e-6), method="bounded").x)


def largest_excess(values: Floats, radius: float) -> float:
    r"""Bound ``tr B - log det B - d`` of B = A X, whose A is known and X in a Stein ball.

    With eigenvalues a of A and x of X, aligned at worst (von Neumann), that is
    :math:`\max \sum a_j x_j - 1 - \log a_j x_j` subject to
    :math:`\sum 1/x_j - 1 + \log x_j \le` `radius`. Every multiplier gives a bound, by duality;
    the best is returned.

    Parameters
    ----------
    values : ndarray of shape (d,)
        Eigenvalues of A, above 0.
    radius : float
    """
    # One x alone cannot be larger than where it takes up the whole radius.
    top = brentq(lambda y: np.expm1(-y) + y - radius, 0.0, radius + 1)

    log_values, at_top = np.log(values), values * np.exp(top) - 1 - np.log(values) - top

    def bound(log_multiplier: float) -> float:
        multiplier = float(np.exp(log_multiplier))
        # Stationary where values x**2 - (1 + multiplier) x + multiplier = 0; the lesser root is a
        # local maximum, and after the greater one the gain rises again, up to the top.
        square = (1 + multiplier) ** 2 - 4 * values * multiplier
        root = 2 * multiplier / (1 + multiplier + np.sqrt(np.maximum(square, 0.0)))
        y = np.log(root)
        gain = values * root - 1 - log_values - y - multiplier * (1 / root - 1 + y)
        gain = np.where((square >= 0) & (y <= top), gain, -np.inf)
        gain = np.maximum(gain, at_top - multiplier * radius)
        return float(multiplier * radius + gain.sum())

    rough = {"xatol": 1e-2}  # the bound is flat where it is least, and valid everywhere
    found = minimize_scalar(bound, bounds=(-20.0, 40.0), method="bounded", options=rough)
    return bound(found.x)
