"""The number of k exchangeable owners who stay: the paper's recursion, in logarithms.

`r_a` is the probability that `a` of `k` owners stay (section 3.2). The probability that exactly a
given subset of size `a` of `t` owners stays is `p_t(a)`, with ``p_k(a) = r_a / binom(k, a)`` and
``p_t(a) = p_{t+1}(a) + p_{t+1}(a + 1)`` (corollary 1). For k in the hundreds these numbers leave
the range of floats; the sums below have the same values and do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from erasable.core.arrays import Floats, Ints


class Sizes(ABC):
    """The distribution of the number of exchangeable owners who stay.

    Of t owners, any, it has the margin of one distribution over all of them.

    Examples
    --------
    >>> BetaBinomialSizes(1, 1).size_pmf(3)
    array([0.25, 0.25, 0.25, 0.25])
    """

    @abstractmethod
    def log_subset_pmf(self, t: int) -> Floats:
        """Return log p_t(a) for a = 0..t, shape (t + 1,); minus infinity for probabilities of 0."""

    @abstractmethod
    def rank_weights(self, n: int) -> Floats:
        """Return p_r(1) for r = 1..n: the probability that of r owners only the last one stays."""

    @abstractmethod
    def next_stays(self, t: int, stayed: Ints) -> Floats:
        """Return the probability that one more owner stays where `stayed` of t do."""

    def subset_pmf(self, t: int) -> Floats:
        """Return p_t(a) for a = 0..t; the smallest become 0."""
        return np.exp(self.log_subset_pmf(t))

    def size_pmf(self, t: int) -> Floats:
        """Return the probability that a of t stay, for a = 0..t."""
        logs = log_binomial(t, np.arange(t + 1)) + self.log_subset_pmf(t)
        return np.asarray(np.exp(logs), dtype=np.float64)

    def expectations(self, values: Floats) -> Floats:
        """Return E values[a] where a of t stay, for t = 0..len(values) - 1."""
        each = [float(values[: t + 1] @ self.size_pmf(t)) for t in range(len(values))]
        return np.array(each)


class BinomialSizes(Sizes):
    """Each owner stays with probability `s`, independently."""

    def __init__(self, s: float) -> None:
        self.s = s

    def log_subset_pmf(self, t: int) -> Floats:
        stay = np.arange(t + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(stay > 0, stay * np.log(self.s), 0.0)
            logs = logs + np.where(stay < t, (t - stay) * np.log1p(-self.s), 0.0)
        return np.asarray(logs, dtype=np.float64)

    def rank_weights(self, n: int) -> Floats:
        return self.s * np.asarray((1.0 - self.s) ** np.arange(n), dtype=np.float64)

    def next_stays(self, t: int, stayed: Ints) -> Floats:
        return np.full(len(stayed), self.s)


class BetaBinomialSizes(Sizes):
    """Each owner stays with one common probability, drawn from Beta(alpha, beta).

    Examples
    --------
    >>> BetaBinomialSizes(1, 1).subset_pmf(1)
    array([0.5, 0.5])
    """

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha, self.beta = alpha, beta

    def log_subset_pmf(self, t: int) -> Floats:
        stay = np.arange(t + 1)
        logs: Floats = betaln(self.alpha + stay, self.beta + t - stay)
        logs -= betaln(self.alpha, self.beta)
        return logs

    def rank_weights(self, n: int) -> Floats:
        # B(alpha + 1, r - 1 + beta) / B(alpha, beta), by the ratio of one to the next.
        total = self.alpha + self.beta
        r = np.arange(1, n)
        ratios = (r - 1 + self.beta) / (r + total)
        return np.concatenate([[1.0], np.cumprod(ratios)])[:n] * (self.alpha / total)

    def next_stays(self, t: int, stayed: Ints) -> Floats:
        return np.asarray((self.alpha + stayed) / (self.alpha + self.beta + t), dtype=np.float64)


class GivenSizes(Sizes):
    """`r[a]` is the probability that a of k stay; fewer than k owners are any part of k.

    Examples
    --------
    >>> GivenSizes(np.array([0.0, 0.5, 0.5])).size_pmf(1)
    array([0.25, 0.75])
    """

    def __init__(self, r: Floats) -> None:
        self.r, self.k = r, len(r) - 1
        self._logs: dict[int, Floats] = {}

    def log_subset_pmf(self, t: int) -> Floats:
        if t not in self._logs:
            b = np.flatnonzero(self.r)
            a = np.arange(t + 1)[:, None]
            each = np.log(self.r[b]) - log_binomial(self.k, b) + log_binomial(self.k - t, b - a)
            self._logs = {t: logsumexp(each, axis=1), **dict(list(self._logs.items())[:1])}
        return self._logs[t]

    def rank_weights(self, n: int) -> Floats:
        a = np.arange(self.k + 1)
        here = self.r * a / self.k  # that of a who stay the first is one, summed below
        weights = np.empty(min(n, self.k))
        for r in range(1, len(weights) + 1):
            weights[r - 1] = here.sum()
            if r < self.k:
                here = here * np.maximum(self.k - r - a + 1, 0) / (self.k - r)
        return np.concatenate([weights, np.zeros(n - len(weights))])

    def expectations(self, values: Floats) -> Floats:
        # Of t + 1 owners one, any, was not chosen yet: from more to fewer nothing is subtracted.
        pmf, out = self.r, np.zeros(len(values))
        for t in range(self.k, -1, -1):
            if t < len(values):
                out[t] = values[: t + 1] @ pmf
            if t:
                stay = np.arange(t)
                pmf = pmf[:-1] * (t - stay) / t + pmf[1:] * (stay + 1) / t
        return out

    def next_stays(self, t: int, stayed: Ints) -> Floats:
        now, then = self.log_subset_pmf(t), self.log_subset_pmf(t + 1)
        with np.errstate(invalid="ignore"):
            ratio = np.exp(then[1:] - now)
        return np.nan_to_num(ratio)[stayed]


def log_binomial(n: int, a: Ints) -> Floats:
    """Return log binom(n, a): minus infinity where a is below 0 or above n."""
    possible = (a >= 0) & (a <= n)
    inside = np.clip(a, 0, n)
    logs = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    return np.where(possible, logs, -np.inf)
