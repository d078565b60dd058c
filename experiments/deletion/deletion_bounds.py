"""The theory of *Making AI Forget You* as functions, with the constants of its proofs.

Ginart, Guan, Valiant and Zou, NeurIPS 2019: theorem 4.1 by lemma C.3, corollary 4.1.1,
proposition 4.2 and corollaries 4.2.1 and 4.2.2. Data lie in the unit cube. Runtimes count products
of a coordinate of a record and one of a centroid.
"""

from __future__ import annotations

import math

from erasable.core.errors import InvalidParameterError

__all__ = [
    "divide_runtime",
    "divide_threshold",
    "leaf_size",
    "least_runtime",
    "loss_bound",
    "quantized_runtime",
    "quantized_threshold",
    "unstable_as_printed",
    "unstable_bound",
]


def unstable_bound(
    n: int, d: int, k: int, n_iter: int, epsilon: float, gamma: float, n_deleted: int = 1
) -> float:
    """Bound the probability that some centroid of Q-k-means changes, whichever records leave.

    Lemma C.3, for the phases at random and records that are no seeds. A centroid is a mean of a
    mass of at least ``gamma n / k``, also with the balance correction, so that each of its
    coordinates moves by at most ``k / (gamma n)`` for every record that leaves the cluster, and by
    ``1 / n`` for every one that leaves, where a correction follows n. A coordinate that
    moves by x is rounded elsewhere with probability ``x / epsilon``; the bound is the sum over
    coordinates, centroids and iterations. It is less than what the lemma prints by a factor of
    ``2 sqrt(d) / (1 + gamma)``.

    Parameters
    ----------
    n, d, k, n_iter : int
        Numbers of records, features, clusters and iterations.
    epsilon : float
        Step of the lattice.
    gamma : float
        Of the balance correction.
    n_deleted : int, default=1

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> round(unstable_bound(10**6, 2, 5, 10, epsilon=0.125, gamma=0.2), 4)
    0.0048
    """
    _check(n=n, d=d, k=k, n_iter=n_iter, epsilon=epsilon, gamma=gamma, n_deleted=n_deleted)
    moved = n_deleted * (k / (gamma * n) + k / n)  # all centroids together
    return min(1.0, n_iter * d * moved / epsilon)


def unstable_as_printed(
    n: int, d: int, k: int, n_iter: int, epsilon: float, gamma: float, n_deleted: int = 1
) -> float:
    """Return what lemma C.3 prints: ``2 m T k d^(3/2) / (epsilon gamma n)``.

    See `unstable_bound` for the parameters.
    """
    _check(n=n, d=d, k=k, n_iter=n_iter, epsilon=epsilon, gamma=gamma, n_deleted=n_deleted)
    return min(1.0, 2.0 * n_deleted * n_iter * k * d**1.5 / (epsilon * gamma * n))


def loss_bound(optimum: float, n: int, d: int, k: int, epsilon: float) -> float:
    """Bound the expected loss of Q-k-means by the least loss there is (corollary 4.1.1).

    With ``C = (8 ln k + 16)`` times the optimum, what k-means++ guarantees:
    ``C + epsilon sqrt(n d C) + n d epsilon^2 / 4``.

    Examples
    --------
    >>> round(loss_bound(100.0, 1000, 2, 5, epsilon=0.0))
    2888
    """
    _check(n=n, d=d, k=k)
    if not optimum >= 0.0 or not epsilon >= 0.0:
        raise InvalidParameterError(
            f"optimum={optimum} and epsilon={epsilon} were given; expected 0 or more"
        )
    seeded = (8.0 * math.log(k) + 16.0) * optimum
    return seeded + epsilon * math.sqrt(n * d * seeded) + n * d * epsilon**2 / 4.0


def leaf_size(n: int, n_leaves: int) -> float:
    """Return the mean size of the leaf in which a record of DC-k-means is (proposition 4.2).

    It is a size-biased mean of a binomial distribution, ``1 + (n - 1) / n_leaves``.

    Examples
    --------
    >>> leaf_size(10_001, 16)
    626.0
    """
    _check(n=n, n_leaves=n_leaves)
    return 1.0 + (n - 1) / n_leaves


def divide_runtime(n: int, d: int, k: int, n_iter: int, n_leaves: int) -> float:
    """Return the mean cost of a deletion from DC-k-means: its leaf, and the root."""
    _check(n=n, d=d, k=k, n_iter=n_iter, n_leaves=n_leaves)
    return n_iter * k * d * (leaf_size(n, n_leaves) + k * n_leaves)


def quantized_runtime(
    n: int, d: int, k: int, n_iter: int, epsilon: float, gamma: float, n_deleted: int
) -> float:
    """Bound the mean cost of `n_deleted` deletions from Q-k-means (theorem 4.1).

    Each checks k centroids in each iteration; where a centroid may have changed in any of them, or
    a seed has left, all are counted as trainings, as in the proof, which leaves seeds out.
    """
    unstable = unstable_bound(n, d, k, n_iter, epsilon, gamma, n_deleted)
    failed = min(1.0, unstable + n_deleted * k / n)
    return n_iter * k * d * n_deleted * (1.0 + failed * n)


def least_runtime(n: int, d: int, n_deleted: int) -> float:
    """Return the least amortised cost: a training, which reads all, shared by the deletions."""
    _check(n=n, d=d, n_deleted=n_deleted)
    return n * d / n_deleted


def quantized_threshold(beta: float) -> float:
    """Return the greatest alpha for which Q-k-means is deletion efficient (corollary 4.2.1).

    There are ``n**alpha`` deletions, and epsilon is ``n**-beta``.

    Examples
    --------
    >>> quantized_threshold(0.5)
    0.25
    """
    _check_share(beta=beta)
    return (1.0 - beta) / 2.0


def divide_threshold(rho: float) -> float:
    """Return the greatest alpha for which DC-k-means is deletion efficient (corollary 4.2.2).

    There are ``n**alpha`` deletions, and ``n**rho`` leaves.

    Examples
    --------
    >>> divide_threshold(0.5)
    0.5
    """
    _check_share(rho=rho)
    return 1.0 - max(rho, 1.0 - rho)


def _check(**given: float) -> None:
    for name, value in given.items():
        if not (value > 0 and math.isfinite(value)):
            raise InvalidParameterError(f"{name}={value} was given; expected a number above 0")


def _check_share(**given: float) -> None:
    for name, value in given.items():
        if not 0.0 < value < 1.0:
            raise InvalidParameterError(f"{name}={value} was given; expected more than 0, below 1")
