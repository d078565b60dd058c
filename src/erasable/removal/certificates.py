r"""Certificates of a removal, from the data, for any choice of the records.

Notation: :math:`m, V` are the mean and covariance of the Gaussian p that is fitted to what is left,
:math:`\bar x_i, S_i` those of the *full* set from domain i, of :math:`n_i` records and d features,
with true :math:`\mu_i, \Sigma_i`; :math:`\|u\|_A^2 = u' A^{-1} u`.

The idea: :math:`m` and :math:`V` are numbers that are known. What is not known are the two domains,
and regions that hold :math:`\mu_i` and :math:`\Sigma_i` with probability :math:`1 - \delta`
together come from the full sets, before anything is selected. On that one event, the least and the
largest divergence over the regions bound ``KL(p1, p)`` and ``KL(p2, p)`` for *every* :math:`m, V`:
for any rule that selects, even one that has seen all the data, and for all budgets at once.

**Known covariance** (p1, p2 and p share it): :math:`n_i \|\bar x_i - \mu_i\|_\Sigma^2` is
chi-squared with d degrees of freedom. With r its quantile at :math:`1 - \delta/2` over
:math:`n_i`, the triangle inequality gives

.. math:: 2\alpha \ge (\|m - \bar x_1\|_\Sigma - \sqrt{r_1})_+^2, \qquad
          2\epsilon \le (\|m - \bar x_2\|_\Sigma + \sqrt{r_2})^2 .

In one dimension the root is :math:`z_{1-\delta/4} / \sqrt{n_i}`.

**Unknown covariances**, which need not be the same: the divergence is
:math:`2\,KL(p_i, p) = \sum_j \varphi(a_j) + \|m - \mu_i\|_V^2`, where :math:`a_j` are the
eigenvalues of :math:`V^{-1}\Sigma_i` and :math:`\varphi(a) = a - 1 - \log a`. Four events of
:math:`1 - \delta/4` each, two for either domain:

- Hotelling: :math:`n_i \|\bar x_i - \mu_i\|_{S_i}^2` is :math:`d (n_i - 1) / (n_i - d)` times an
  F variable of d and :math:`n_i - d` degrees of freedom; in one dimension, Student's t squared.
  So :math:`\mu_i` is in an ellipsoid. Its nearest and its farthest point from :math:`m`, in the
  norm of V, are found by duality: every multiplier gives a valid bound, and the best of them the
  exact distance.
- :math:`S_i` is as near to :math:`\Sigma_i` as a Wishart matrix is to its expectation. For alpha,
  which takes the least, by eigenvalues: if those of :math:`\Sigma_1^{-1/2} S_1 \Sigma_1^{-1/2}` are
  in [lo, hi], then :math:`S_1 / hi \le \Sigma_1 \le S_1 / lo` in the order of matrices, and by Weyl
  :math:`a_j` is in :math:`[e_j / hi, e_j / lo]` with :math:`e_j` those of :math:`V^{-1} S_1`. For
  epsilon, which adds up the largest, by the Stein loss. In
  one dimension both are chi-squared quantiles. All directions have to be covered, because the
  selection may have looked for the worst; that makes epsilon loose where records are few for the
  square of the number of features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq, minimize_scalar
from scipy.special import multigammaln

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidDataError, InvalidParameterError
from erasable.removal._gaussians import Moments, excess, read_moments, whitened
from erasable.removal._inputs import (
    read_count,
    read_covariance,
    read_deleted,
    read_number,
    read_pair,
    refuse_singular,
)

__all__ = [
    "Certificate",
    "RandomRemovalLaw",
    "certificate",
    "certificate_from_moments",
    "random_removal_law",
]


@lru_cache(maxsize=256)
def _eigenvalue_ends(d: int, nu: int, delta: float) -> tuple[float, float]:
    """Return bounds of all eigenvalues, except with probability `delta`; the lower may be 0."""
    if d == 1:
        low, high = stats.chi2.ppf([delta / 2, 1 - delta / 2], nu) / nu
        return float(low), float(high)
    reach = np.sqrt(d) + np.sqrt(2 * np.log(2 / delta))
    return max(np.sqrt(nu) - reach, 0.0) ** 2 / nu, float((np.sqrt(nu) + reach) ** 2 / nu)


@lru_cache(maxsize=256)
def _stein_radius(d: int, nu: int, delta: float) -> float:
    """Return a bound of the Stein loss, except with probability `delta`; needs ``nu >= d``."""

    def radius(share: float) -> float:
        s = share * (nu - d + 1) / 2
        moment = d * s * (np.log(nu / 2) - 1) - d * (nu / 2 - s) * np.log1p(-2 * s / nu)
        moment += multigammaln(nu / 2 - s, d) - multigammaln(nu / 2, d)
        return float((moment - np.log(delta)) / s)

    return radius(minimize_scalar(radius, bounds=(1e-6, 1 - 1e-6), method="bounded").x)


def _largest_excess(values: Floats, radius: float) -> float:
    r"""Bound ``tr B - log det B - d`` of B = A X, whose A is known and X in a Stein ball.

    With eigenvalues a of A and x of X, aligned at worst (von Neumann), that is
    :math:`\max \sum a_j x_j - 1 - \log a_j x_j` subject to
    :math:`\sum 1/x_j - 1 + \log x_j \le` `radius`. Every multiplier gives a bound, by duality;
    the best is returned.
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


_NONCENTRALITY = 1e10  # beyond, scipy's noncentral chi-squared law answers NaN


@dataclass(frozen=True)
class Certificate:
    """Bounds of the Gaussian p that is fitted to what is left, which may fail with `delta`.

    Attributes
    ----------
    alpha : float
        ``KL(p1, p)``, how far it is from the unwanted domain, is at least this many nats.
    epsilon : float
        ``KL(p2, p)``, how far it is from the wanted domain, is at most this many nats.
    delta : float
        The probability that one of the two fails, in some budget.

    Examples
    --------
    >>> Certificate(0.0, 0.3, 0.05).is_vacuous
    True
    """

    alpha: float
    epsilon: float
    delta: float

    @property
    def is_vacuous(self) -> bool:
        """Whether no removal is certain: alpha is 0."""
        return self.alpha <= 0


def certificate(
    forget: Any, retain: Any, deleted: Any, delta: float, sigma: Any = None
) -> Certificate:
    """Certify a removal, for any rule that has selected the records.

    Parameters
    ----------
    forget, retain : array-like of shape (n_records, n_features), or (n_records,)
        All records of the unwanted and of the wanted domain, as they were before the removal:
        independent draws from two Gaussians.
    deleted : array-like of int or bool
        Rows of `forget` that are deleted, or a mask of them.
    delta : float
        The certificate holds with probability ``1 - delta`` or more; and so do the certificates of
        any other deletions from the same records, all at once.
    sigma : float or array-like of shape (n_features, n_features), default=None
        The covariance that p1, p2 and p share; a number is a standard deviation. By default it is
        unknown, may be another one in either domain, and is fitted.

    Returns
    -------
    Certificate

    Raises
    ------
    InvalidDataError
        No records, no finite numbers, or no more records than features where the covariance is
        to be fitted; a singular covariance.
    InvalidInputError
        `deleted` has rows that do not exist.
    InvalidParameterError
        `delta` or `sigma` out of range.

    See Also
    --------
    certificate_from_moments : For records that are not all in memory, and for many budgets.
    erasable.removal.divergence : Where the domains are not Gaussian.

    Notes
    -----
    The derivation is in the docstring of `erasable.removal.certificates`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> forget, retain = rng.normal(0, 1, 1000), rng.normal(2.5, 1, 1000)
    >>> farthest = np.argsort(-np.abs(forget - retain.mean()))[:400]
    >>> found = certificate(forget, retain, farthest, delta=0.05, sigma=1.0)
    >>> round(found.alpha, 2), round(found.epsilon, 2)
    (1.53, 0.31)
    """
    first, second = read_pair(forget, retain, ("forget", "retain"))
    mask = read_deleted(deleted, len(first))
    fitted = sigma is None
    of_forget, of_retain = (Moments.of_read(each, scatter=fitted) for each in (first, second))
    refit = Moments.of_read(first, ~mask, scatter=fitted) + of_retain
    return certificate_from_moments(of_forget, of_retain, refit, delta, sigma)


def certificate_from_moments(
    forget: Moments, retain: Moments, refit: Moments, delta: float, sigma: Any = None
) -> Certificate:
    """Certify a removal by the moments of the records.

    Parameters
    ----------
    forget, retain : Moments
        Of all records of either domain; `Moments.of_records` computes them of records that are
        stored in files or on the workers of a cluster.
    refit : Moments
        Of the records that are left, of both domains.
    delta, sigma
        As for `certificate`. Without `sigma`, all moments need their scatter.

    Returns
    -------
    Certificate

    Raises
    ------
    InvalidDataError, InvalidParameterError
        As for `certificate`.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.removal import Moments
    >>> forget, retain = Moments(1000, np.zeros(3)), Moments(1000, np.full(3, 2.0))
    >>> kept = Moments(100, np.full(3, 0.5))
    >>> certificate_from_moments(forget, retain, kept + retain, 0.05, sigma=1.0).alpha.__round__(2)
    4.9
    """
    level = read_number(delta, "delta", 0.0, 1.0, ends="()")
    d = np.size(refit.mean) if isinstance(refit, Moments) else 0
    forget, retain, refit = (
        read_moments(each, name, d, scatter=sigma is None)
        for each, name in ((forget, "forget"), (retain, "retain"), (refit, "refit"))
    )
    if sigma is not None:
        return _with_known(forget, retain, refit, level, sigma)
    covariance = _scatter(refit) / refit.n
    refuse_singular(covariance, "the edited data")
    least = _least(forget, "forget", refit.mean, covariance, level / 4)
    largest = _largest(retain, "retain", refit.mean, covariance, level / 4)
    return Certificate(least / 2, largest / 2, level)


def _with_known(
    forget: Moments, retain: Moments, refit: Moments, delta: float, sigma: Any
) -> Certificate:
    d = len(refit.mean)
    covariance, none = read_covariance(sigma, d), np.zeros((d, d))
    distances, radii = [], []
    for domain in (forget, retain):
        away, _ = whitened(refit.mean - domain.mean, none, covariance)
        distances.append(float(np.linalg.norm(away)))
        radii.append(_radius(d, domain.n, delta / 2))
    alpha = max(distances[0] - radii[0], 0.0) ** 2 / 2
    return Certificate(alpha, (distances[1] + radii[1]) ** 2 / 2, delta)


def _least(domain: Moments, name: str, mean: Floats, covariance: Floats, delta: float) -> float:
    """Return twice the least divergence of the regions of a domain from the refit Gaussian."""
    away, spread, size = _ellipsoid_around(domain, name, mean, covariance, delta)
    low, high = _eigenvalue_ends(len(mean), domain.n - 1, delta)
    # Nearest to 1, where the excess is least.
    nearest = np.maximum(spread / high, 1.0 if low == 0 else np.minimum(spread / low, 1.0))
    return float(excess(nearest - 1).sum()) + _nearest(away, spread, size)


def _largest(domain: Moments, name: str, mean: Floats, covariance: Floats, delta: float) -> float:
    """Return twice the largest divergence of these regions from the refit Gaussian."""
    away, spread, size = _ellipsoid_around(domain, name, mean, covariance, delta)
    d, nu = len(mean), domain.n - 1
    if d > 1:
        farthest = _largest_excess(spread, _stein_radius(d, nu, delta))
    else:
        farthest = max(float(excess(spread / end - 1)[0]) for end in _eigenvalue_ends(d, nu, delta))
    return farthest + _farthest(away, spread, size)


def _ellipsoid_around(
    domain: Moments, name: str, mean: Floats, covariance: Floats, delta: float
) -> tuple[Floats, Floats, float]:
    """Return an ellipsoid that holds the mean of a domain, with the refit covariance as the unit.

    These are the distance of its estimate from the mean of the refit, the eigenvalues of its
    covariance, and the size of the ellipsoid; in the axes of the covariance.
    """
    n, d = domain.n, len(mean)
    if n <= d:
        raise InvalidDataError(
            f"{name} has {n} records of {d} features; expected more records than features, to fit "
            "a covariance; pass sigma if it is known, or fewer features"
        )
    own = _scatter(domain) / (n - 1)
    refuse_singular(own, name)
    away, spread = whitened(mean - domain.mean, own, covariance)
    if spread.min() <= 16 * d * np.finfo(np.float64).eps * spread.max():
        raise InvalidDataError(
            f"the covariance of {name} is singular beside that of the edited data; expected the "
            "same features to vary in both; drop the others, or pass sigma if it is known"
        )
    return away, spread, _ellipsoid(d, n, delta)


def _nearest(away: Floats, spread: Floats, size: float) -> float:
    """Return the least squared distance of `away` from z with ``sum z**2 / spread <= size``."""
    pull = away**2 * spread

    def excess_at(multiplier: float) -> float:
        return float((pull / (multiplier + spread) ** 2).sum() - size)

    if excess_at(0.0) <= 0:
        return 0.0
    best = brentq(excess_at, 0.0, float(np.sqrt(pull.sum() / size)))
    return max(float((away**2 * best / (best + spread)).sum() - best * size), 0.0)


def _farthest(away: Floats, spread: Floats, size: float) -> float:
    """Return the largest squared distance of `away` from z with ``sum z**2 / spread <= size``."""
    pull, top = away**2 * spread, spread.max()

    def excess_at(multiplier: float) -> float:
        return float((pull / (multiplier - spread) ** 2).sum() - size)

    low, high = top * (1 + 1e-9), top * (1 + 1e-9) + float(np.sqrt(pull.sum() / size))
    best = brentq(excess_at, low, high * (1 + 1e-9)) if excess_at(low) > 0 else low
    return float((away**2 * best / (best - spread)).sum() + best * size)


@lru_cache(maxsize=256)
def _radius(d: int, n: int, delta: float) -> float:
    """Bound the squared distance of a mean from its expectation, in units of the covariance."""
    return float(np.sqrt(stats.chi2.isf(delta, d) / n))


@lru_cache(maxsize=256)
def _ellipsoid(d: int, n: int, delta: float) -> float:
    """Return the same in units of the estimated covariance: Hotelling's T2."""
    return float(stats.f.isf(delta, d, n - d) * d * (n - 1) / (n - d) / n)


def _scatter(moments: Moments) -> Floats:
    assert moments.scatter is not None  # `read_moments` sees to that
    return moments.scatter


@dataclass(frozen=True)
class RandomRemovalLaw:
    """Distributions of ``KL(p1, p)`` and ``KL(p2, p)`` when records leave at random.

    Attributes
    ----------
    alpha, epsilon : frozen scipy distributions
        With ``ppf``, ``cdf``, ``mean`` and so on. They depend on each other.

    Examples
    --------
    >>> law = random_removal_law(1000, 1000, 586, divergence=0.125)
    >>> round(law.alpha.mean() / random_removal_law(1000, 1000, 0, divergence=0.125).alpha.mean())
    2
    """

    alpha: Any
    epsilon: Any


def random_removal_law(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, *, n_features: int = 1
) -> RandomRemovalLaw:
    """Return the exact law of random removal, for Gaussians of a known covariance.

    The mean of the ``N = n_forget - n_deleted + n_retain`` records that are left is Gaussian, its
    covariance that of one record over N, so that ``2 N KL(p1, p)`` is noncentral chi-squared: with
    `n_features` degrees of freedom and the noncentrality ``2 divergence n_retain**2 / N``; and
    ``2 N KL(p2, p)`` alike, with those of the unwanted domain that are kept.

    Parameters
    ----------
    n_forget, n_retain, n_deleted : int
        Records of the unwanted and of the wanted domain, and how many of the first are deleted,
        whichever they are.
    divergence : float
        The true ``KL(p1, p2)``.
    n_features : int, default=1

    Returns
    -------
    RandomRemovalLaw

    Raises
    ------
    InvalidParameterError
        A number out of range.

    Examples
    --------
    >>> law = random_removal_law(1000, 1000, 500, divergence=2.0)
    >>> [round(float(each), 2) for each in law.alpha.ppf([0.025, 0.975])]
    [0.82, 0.96]
    """
    n_forget = read_count(n_forget, "n_forget", 1)
    n_retain = read_count(n_retain, "n_retain", 1)
    n_deleted = read_count(n_deleted, "n_deleted", 0, n_forget)
    d = read_count(n_features, "n_features", 1)
    apart = read_number(divergence, "divergence", 0.0, np.inf, ends="[)")
    kept = n_forget - n_deleted
    total = kept + n_retain
    if 2 * apart * max(n_retain, kept) ** 2 / total > _NONCENTRALITY:
        raise InvalidParameterError(
            f"divergence={apart:g}, of {total} records that are left; expected less, because the "
            f"law is computed up to a noncentrality of {_NONCENTRALITY:g}"
        )
    laws = [
        stats.ncx2(d, 2 * apart * n**2 / total, scale=1 / (2 * total))
        if n and apart
        else stats.chi2(d, scale=1 / (2 * total))
        for n in (n_retain, kept)
    ]
    return RandomRemovalLaw(*laws)
