"""The frontier of Gaussians that share a covariance: a parabola in the roots."""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.removal._inputs import read_number, read_targets


def gaussian_frontier(alpha: Any, divergence: float) -> Any:
    r"""Return the least cost of removal where p1, p2 and p are Gaussians of one covariance.

    The least ``epsilon = KL(p2, p)`` over all p with ``KL(p1, p) >= alpha`` is
    :math:`(\sqrt\alpha - \sqrt D)^2` with ``D = KL(p1, p2)``: p is on the line from p1 through p2,
    beyond p2.

    Parameters
    ----------
    alpha : float or array-like
        Removal to reach, in nats; 0 or more.
    divergence : float
        ``KL(p1, p2)`` of the unwanted and the wanted domain, in nats; of Gaussians half the
        squared Mahalanobis distance of their means.

    Returns
    -------
    float or ndarray of the shape of `alpha`
        The least epsilon. Below ``alpha = divergence`` it is 0.0: p2 itself, which is what is left
        when the whole domain is deleted, removes more than alpha at no cost. There is no largest
        alpha.

    Raises
    ------
    InvalidParameterError
        A number that is negative or not finite.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, Proposition 1.

    Examples
    --------
    >>> gaussian_frontier([1.0, 2.0, 4.5], divergence=2.0)
    array([0. , 0. , 0.5])
    """
    targets = read_targets(alpha)
    apart = read_number(divergence, "divergence", 0.0, np.inf, ends="[)")
    epsilon = np.maximum(np.sqrt(targets) - np.sqrt(apart), 0.0) ** 2
    return float(epsilon) if epsilon.ndim == 0 else epsilon
