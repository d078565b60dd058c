r"""Deletion from a fitted Gaussian by influence functions, and how far that is from a refit.

One Newton step from the fit to all N records towards that without the deleted ones D. In the
coordinates mean and covariance the Hessian of the mean log-loss at the fit is block-diagonal, so
that

.. math:: \hat m = \bar m - \tfrac1N \sum_{i \in D} (x_i - \bar m), \qquad
          \hat V = \bar V - \tfrac1N \sum_{i \in D} \bigl((x_i - \bar m)(x_i - \bar m)'
          - \bar V\bigr),

where a refit divides the first sum by N - |D|: the step is too short by the share that is deleted,
because its Hessian is that of all the records. The more a score needs to delete, the more of that
it loses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from erasable.core.arrays import Floats
from erasable.removal._gaussians import Moments, gaussian_kl
from erasable.removal._inputs import (
    read_covariance,
    read_deleted,
    read_number,
    read_pair,
    refuse_singular,
)

__all__ = ["InfluenceRemoval", "influence_removal"]


@dataclass(frozen=True)
class InfluenceRemoval:
    """A Gaussian after one step, beside the one that is fitted anew.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float64
    covariance : ndarray of shape (n_features, n_features), float64
    refit_mean, refit_covariance : ndarray
        Of the records that are left; the covariance is that of maximum likelihood, or the one
        that is known.
    error : float
        KL(refit, one step), in nats; infinite where damping has left no valid covariance.

    Examples
    --------
    >>> one, zero = np.eye(1), np.zeros(1)
    >>> InfluenceRemoval(zero, one, zero, one, 0.0).error
    0.0
    """

    mean: Floats
    covariance: Floats
    refit_mean: Floats
    refit_covariance: Floats
    error: float


def influence_removal(
    forget: Any, retain: Any, deleted: Any, *, sigma: Any = None, damping: float = 0.0
) -> InfluenceRemoval:
    """Delete records from a Gaussian fit by their influence, and compare it with a refit.

    Parameters
    ----------
    forget, retain : array-like of shape (n_records, n_features), or (n_records,)
        All records of the unwanted and of the wanted domain; the Gaussian is fitted to both.
    deleted : array-like of int or bool
        Rows of `forget` that are deleted, or a mask of them.
    sigma : float or array-like of shape (n_features, n_features), default=None
        The covariance, where it is known and the mean alone is fitted; a number is a standard
        deviation. By default it is fitted, too.
    damping : float, default=0.0
        Added to the diagonal of the Hessian of the mean log-loss, which shortens the step further;
        the paper has 0.01.

    Returns
    -------
    InfluenceRemoval

    Raises
    ------
    InvalidDataError
        No records, no finite numbers, or a covariance that is singular before or after.
    InvalidInputError
        `deleted` has rows that do not exist.
    InvalidParameterError
        `sigma` or `damping` out of range.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, Table 5 and
    Appendix B.2.2.

    Examples
    --------
    Half of the records leave, and the mean goes half as far as it should:

    >>> found = influence_removal([0.0, 0.0], [1.0, 1.0], [0, 1], sigma=1.0)
    >>> found.mean, found.refit_mean, found.error
    (array([0.75]), array([1.]), 0.03125)
    """
    first, second = read_pair(forget, retain, ("forget", "retain"))
    mask = read_deleted(deleted, len(first))
    damp = read_number(damping, "damping", 0.0, np.inf, ends="[)")
    fitted = sigma is None
    of_retain = Moments.of_read(second, scatter=fitted)
    refit = Moments.of_read(first, ~mask, scatter=fitted) + of_retain
    leaving = Moments.of_read(first, mask, scatter=fitted)
    before = refit + leaving
    if fitted:
        covariance = _covariance(before)
        refit_covariance = _covariance(refit)
        refuse_singular(covariance, "the records")
        refuse_singular(refit_covariance, "the records that are left")
    else:
        covariance = refit_covariance = read_covariance(sigma, first.shape[1])
    share = leaving.n / before.n
    away = leaving.mean - before.mean
    variances, axes = np.linalg.eigh(covariance)
    # The Hessian of the mean is the inverse of the covariance, and diagonal in its axes.
    mean = before.mean - share * (axes @ ((axes.T @ away) / (1 + damp * variances)))
    if fitted and leaving.n:
        around = _covariance(leaving) + np.outer(away, away) - covariance
        # That of the covariance has 1 / (2 v_i v_j) there.
        slack = 1 + 2 * damp * np.outer(variances, variances)
        covariance = covariance - share * (axes @ ((axes.T @ around @ axes) / slack) @ axes.T)
    error = np.inf
    if np.linalg.eigvalsh(covariance)[0] > 0:
        error = gaussian_kl(refit.mean, refit_covariance, mean, covariance)
    return InfluenceRemoval(mean, covariance, refit.mean, refit_covariance, error)


def _covariance(moments: Moments) -> Floats:
    assert moments.scatter is not None
    return moments.scatter / moments.n
