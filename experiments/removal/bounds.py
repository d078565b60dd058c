"""The paper's own bounds, each named after what it bounds, and when it says nothing.

They are those of *Distributional Machine Unlearning via Selective Data Removal* (Allouah,
Guerraoui, Koyejo), for Gaussians in one dimension whose variance is known. They never
certify more than half of ``KL(p1, p2)``, and for most budgets promise less than deleting nothing
gives. They take it as given, so that where records are too few to tell it they may promise more
than data can prove. What data prove is `erasable.removal.certificate`, which is tighter whenever
the paper's bounds are given no more than the same data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._inputs import read_count, read_number

__all__ = [
    "Bound",
    "RemovalBounds",
    "calibrate",
    "forget_loss_bound",
    "random_removal_bounds",
    "random_removal_deletions",
    "retain_loss_bound",
    "selective_removal_bounds",
    "selective_removal_deletions",
    "simplified_deletions",
]


@dataclass(frozen=True)
class Bound:
    """A bound, and whether it says anything.

    Attributes
    ----------
    value : float
    reason : str
        Why it says nothing; empty where it does say something.

    Examples
    --------
    >>> Bound(-0.7, "a divergence is never below 0").is_vacuous
    True
    """

    value: float
    reason: str = ""

    @property
    def is_vacuous(self) -> bool:
        """Whether what it says holds anyway, or is not promised at all."""
        return bool(self.reason)

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class RemovalBounds:
    """What is promised of the refit Gaussian p, before the data are looked at.

    Attributes
    ----------
    alpha : Bound
        ``KL(p1, p)`` is at least this; vacuous at 0 and below.
    epsilon : Bound
        ``KL(p2, p)`` is at most this; vacuous from ``KL(p2, p1)`` on, where a model of the
        unwanted domain alone does as well.

    Examples
    --------
    >>> RemovalBounds(Bound(0.1), Bound(0.2)).alpha.value
    0.1
    """

    alpha: Bound
    epsilon: Bound


def read_setting(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, delta: float
) -> tuple[float, float, float, float]:
    """Return kept over retained records, the share deleted, log(4 / delta), and KL(p1, p2)."""
    n_forget = read_count(n_forget, "n_forget", 1)
    n_retain = read_count(n_retain, "n_retain", 1)
    n_deleted = read_count(n_deleted, "n_deleted", 0, n_forget)
    log_term = np.log(4 / read_number(delta, "delta", 0.0, 1.0, ends="()"))
    ratio = (n_forget - n_deleted) / n_retain
    return ratio, n_deleted / n_forget, float(log_term), read_divergence(divergence)


def read_divergence(value: float, name: str = "divergence") -> float:
    """Return a finite divergence."""
    return read_number(value, name, 0.0, np.inf, ends="[)")


def random_removal_bounds(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, delta: float
) -> RemovalBounds:
    """Bound alpha and epsilon where records are deleted at random.

    Parameters
    ----------
    n_forget, n_retain : int
        How many records there are of the unwanted and of the wanted domain.
    n_deleted : int
        How many of the unwanted ones are deleted.
    divergence : float
        The true ``KL(p1, p2)``.
    delta : float
        Both hold at once with probability ``1 - delta`` or more.

    Returns
    -------
    RemovalBounds

    Notes
    -----
    The paper's proof loses a factor of 2 before the last term of alpha. What it states holds all
    the same, because the noise of the fitted mean is one Gaussian, of variance
    ``sigma**2 / (n_forget - n_deleted + n_retain)``, and not two to be added up at their worst.
    `erasable.removal.random_removal_law` has the whole distribution.

    References
    ----------
    Proposition 3.

    Examples
    --------
    >>> found = random_removal_bounds(1000, 1000, 900, divergence=0.125, delta=0.05)
    >>> round(found.alpha.value, 4), round(found.epsilon.value, 4)
    (0.0515, 0.0182)
    """
    ratio, _, log_term, apart = read_setting(n_forget, n_retain, n_deleted, divergence, delta)
    rest = 3 * log_term / int(n_retain) * (1 + ratio)
    return _bounds((0.5 - 3 * ratio**2) * apart - rest / 2, 3 * ratio**2 * apart + rest, apart)


def selective_removal_bounds(
    n_forget: int, n_retain: int, n_deleted: int, divergence: float, delta: float
) -> RemovalBounds:
    """Bound alpha and epsilon where the records farthest from the retain mean are deleted.

    Parameters
    ----------
    n_forget, n_retain, n_deleted, divergence, delta
        As for `random_removal_bounds`.

    Returns
    -------
    RemovalBounds
        Infinite, hence vacuous, where so few are deleted that the quantile in it does not exist.

    Notes
    -----
    As printed. The proof has a wrong sign before the error of the retain mean (its equation 18);
    with the right one, the last terms are up to 4 times as large. That the kept records are bounded
    by the farthest of them, and not averaged, leaves more room than that.

    References
    ----------
    Theorem 1.

    Examples
    --------
    >>> found = selective_removal_bounds(1000, 1000, 200, divergence=0.125, delta=0.05)
    >>> round(found.alpha.value, 2), found.alpha.reason
    (-0.76, 'a divergence is never below 0')
    """
    ratio, share, log_term, apart = read_setting(n_forget, n_retain, n_deleted, divergence, delta)
    quantile = _folded_quantile(1 - share + np.sqrt(log_term / (2 * int(n_forget))), apart)
    reach = 0.0 if ratio == 0 else float(ratio * quantile) ** 2
    rest = log_term / int(n_retain)
    return _bounds(apart / 2 - reach / 2 - rest, reach + 2 * rest, apart)


def _bounds(alpha: float, epsilon: float, divergence: float) -> RemovalBounds:
    return RemovalBounds(
        Bound(float(alpha), "" if alpha > 0 else "a divergence is never below 0"),
        Bound(
            float(epsilon),
            "" if epsilon < divergence else "a model of the unwanted domain alone does as well",
        ),
    )


def _folded_quantile(p: float, divergence: float) -> float:
    """Return the p-quantile of the distance from mu2 of a record of p1, in standard deviations."""
    if p >= 1:
        return np.inf
    shift = np.sqrt(2 * divergence)

    def beyond(u: float) -> float:
        return float(ndtr(u - shift) - ndtr(-u - shift) - p)

    return float(brentq(beyond, 0.0, max(shift + 40.0, shift * (1 + 1e-9))))


def random_removal_deletions(
    n_forget: int, n_retain: int, divergence: float, *, alpha: float, epsilon: float, delta: float
) -> Bound:
    """Say how many records to delete at random for a target, if that is promised at all.

    Parameters
    ----------
    n_forget, n_retain : int
    divergence : float
        The true ``KL(p1, p2)``.
    alpha, epsilon : float
        Targets: ``KL(p1, p) >= alpha`` and ``KL(p2, p) <= epsilon``, above 0.
    delta : float
        The probability of missing one.

    Returns
    -------
    Bound
        The number of deletions, which need not be whole; vacuous where the conditions are not met.

    Notes
    -----
    As printed. With the number it gives, Proposition 3 promises a part of alpha only.

    References
    ----------
    Corollary 10.1.

    Examples
    --------
    >>> found = random_removal_deletions(
    ...     1000, 10000, 2.0, alpha=0.1, epsilon=0.05, delta=0.05
    ... )
    >>> round(found.value), found.is_vacuous
    (355, False)
    """
    log_term, apart = read_setting(n_forget, n_retain, 0, divergence, delta)[2:]
    n_forget, n_retain = int(n_forget), int(n_retain)
    alpha, epsilon = _targets(alpha, epsilon)
    removal = np.sqrt(max(2 * apart - alpha, 0.0) / (12 * apart)) if apart else 0.0
    preservation = min(1.0, np.sqrt(epsilon / (6 * apart))) if apart else 1.0
    least = 12 * log_term / min(epsilon, alpha)
    reason = ""
    if n_retain < least:
        reason = f"it takes {np.ceil(least):.0f} records of the wanted domain"
    elif apart < 8 * alpha:
        reason = "alpha is more than an eighth of the divergence"
    return Bound(_deletions(n_forget, n_retain * min(removal, preservation)), reason)


def selective_removal_deletions(
    n_forget: int, n_retain: int, divergence: float, *, alpha: float, epsilon: float, delta: float
) -> Bound:
    """Say how many of the farthest records to delete for a target, if that is promised at all.

    Parameters
    ----------
    n_forget, n_retain, divergence, alpha, epsilon, delta
        As for `random_removal_deletions`.

    Returns
    -------
    Bound
        The number of deletions, which need not be whole; vacuous where the conditions are not met.
        They ask for more than half of the unwanted domain, and for all of it and more where the
        domains are close, which is where the paper sees the gain.

    Notes
    -----
    The numbers are as printed; in the last display of the paper's proof, the labels of removal and
    preservation have changed places. With the number it gives, Theorem 1 promises up to 1.7 times
    epsilon.

    References
    ----------
    Corollary 10.2.

    Examples
    --------
    >>> found = selective_removal_deletions(
    ...     1000, 10000, 2.0, alpha=0.1, epsilon=0.05, delta=0.05
    ... )
    >>> round(found.value), found.is_vacuous
    (924, False)
    """
    log_term, apart = read_setting(n_forget, n_retain, 0, divergence, delta)[2:]
    n_forget, n_retain = int(n_forget), int(n_retain)
    alpha, epsilon = _targets(alpha, epsilon)
    spare = max(apart - 4 * alpha, 0.0)
    least = 2 * log_term * max(1 / epsilon, epsilon**-0.5, 1 / alpha, np.sqrt(spare))
    scale = np.sqrt(float(n_forget) * n_retain) * np.exp(-apart)
    kept = scale * min((epsilon / (16 * np.pi)) ** 0.25, (spare / (8 * np.pi)) ** 0.25)
    share = 1.5 + np.sqrt(log_term / (2 * n_forget)) - float(ndtr(2 * np.sqrt(2 * apart)))
    deletions = max(_deletions(n_forget, kept), n_forget * share)
    reason = ""
    if n_retain < least:
        reason = f"it takes {np.ceil(least):.0f} records of the wanted domain"
    elif apart < 4 * alpha:
        reason = "alpha is more than a quarter of the divergence"
    elif deletions > n_forget:
        reason = "more records would have to go than there are"
    return Bound(float(min(deletions, n_forget)), reason)


def simplified_deletions(
    n_forget: int,
    *,
    alpha: float | None = None,
    epsilon: float | None = None,
    selective: bool = True,
) -> Bound:
    """Say the order of how many records to delete, without any constant.

    Parameters
    ----------
    n_forget : int
    alpha, epsilon : float, default=None
        Targets; one or both.
    selective : bool, default=True
        Whether the farthest are deleted, and not any.

    Returns
    -------
    Bound
        Of `n_forget`, the share ``1 - (1 - alpha)**k`` or ``1 - epsilon**k``, the larger, with
        ``k = 1/4`` if selective, else 1/2. It is always vacuous: it holds up to constants.

    References
    ----------
    Table 1.

    Examples
    --------
    >>> round(simplified_deletions(1000, epsilon=0.1).value)
    438
    >>> round(simplified_deletions(1000, epsilon=0.1, selective=False).value)
    684
    """
    n_forget = read_count(n_forget, "n_forget", 1)
    if not isinstance(selective, bool | np.bool_):
        raise InvalidParameterError(f"selective={shorten(selective)}; expected True or False")
    power = 0.25 if selective else 0.5
    kept = [1.0]
    if alpha is not None:
        kept.append((1 - read_number(alpha, "alpha", 0.0, 1.0)) ** power)
    if epsilon is not None:
        kept.append(read_number(epsilon, "epsilon", 0.0, 1.0) ** power)
    return Bound(n_forget * (1 - min(kept)), "its constants are left out")


def _targets(alpha: float, epsilon: float) -> tuple[float, float]:
    return (
        read_number(alpha, "alpha", 0.0, np.inf, ends="()"),
        read_number(epsilon, "epsilon", 0.0, np.inf, ends="()"),
    )


def _deletions(n_forget: int, kept: float) -> float:
    return float(np.clip(n_forget - kept, 0.0, n_forget))


def forget_loss_bound(alpha: float, marginal_divergence: float) -> Bound:
    """Bound from below how much the log-loss on the unwanted domain exceeds the best there is.

    Parameters
    ----------
    alpha : float
        Lower bound of ``KL(p1, p)``, inputs and labels together, in nats.
    marginal_divergence : float
        ``KL(p1, p)`` of the inputs alone. There is no default: it is at most ``KL(p1, p)``, not at
        most `alpha`, so that nothing follows where it is not known.

    Returns
    -------
    Bound
        ``alpha - marginal_divergence``, of the best predictor under p; vacuous at 0 and below.

    References
    ----------
    Proposition 2, left.

    Examples
    --------
    >>> forget_loss_bound(3.0, marginal_divergence=1.0)
    Bound(value=2.0, reason='')
    >>> forget_loss_bound(3.0, marginal_divergence=3.5).is_vacuous
    True
    """
    value = read_number(alpha, "alpha", 0.0, np.inf) - read_divergence(
        marginal_divergence, "marginal_divergence"
    )
    return Bound(value, "" if value > 0 else "the loss never is below the best there is")


def retain_loss_bound(epsilon: float, marginal_divergence: float = 0.0) -> Bound:
    """Bound from above how much the log-loss on the wanted domain exceeds the best there is.

    Parameters
    ----------
    epsilon : float
        Upper bound of ``KL(p2, p)``, inputs and labels together, in nats.
    marginal_divergence : float, default=0.0
        ``KL(p2, p)`` of the inputs alone, at most `epsilon`; 0 where it is not known.

    Returns
    -------
    Bound
        ``epsilon - marginal_divergence``, of the best predictor under p; vacuous if infinite.

    Raises
    ------
    InvalidParameterError
        A marginal divergence above epsilon, which cannot be.

    References
    ----------
    Proposition 2, right.

    Examples
    --------
    >>> retain_loss_bound(0.1).value
    0.1
    """
    whole = read_number(epsilon, "epsilon", 0.0, np.inf)
    part = read_divergence(marginal_divergence, "marginal_divergence")
    if part > whole:
        raise InvalidParameterError(
            f"marginal_divergence={part:g} is above epsilon={whole:g}; expected at most epsilon, "
            "because inputs alone differ by less than inputs and labels; pass a smaller one"
        )
    return Bound(whole - part, "" if whole < np.inf else "epsilon has no bound")


def calibrate(max_loss_increase: float, divergence: float) -> tuple[float, float]:
    """Turn "at most x nats on the retained test set" into targets for the removal.

    Parameters
    ----------
    max_loss_increase : float
        By how many nats the log-loss on the wanted domain may rise.
    divergence : float
        ``KL(p1, p2)``.

    Returns
    -------
    alpha, epsilon : float
        The largest removal at that price, and the price: ``epsilon = max_loss_increase``, and
        ``alpha = (sqrt(divergence) + sqrt(epsilon))**2``. The first holds for any distributions,
        the second for Gaussians of one covariance.

    References
    ----------
    Propositions 1 and 2.

    Examples
    --------
    >>> alpha, epsilon = calibrate(0.1, divergence=2.0)
    >>> round(alpha, 2), epsilon
    (2.99, 0.1)
    """
    epsilon = read_divergence(max_loss_increase, "max_loss_increase")
    return float((np.sqrt(read_divergence(divergence)) + np.sqrt(epsilon)) ** 2), epsilon
