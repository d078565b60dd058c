"""How many deletions a target takes (Corollary 10 and table 1)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.removal._reading import read_count, read_number
from erasable.removal.bounds._bound import Bound, read_setting


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
