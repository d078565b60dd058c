"""What the benchmark of selection selects from, and values by formulas of their own."""

from __future__ import annotations

import gzip
import heapq

import numpy as np
from data import FOLDER
from scipy.special import betaln, gammaln
from sklearn.metrics import pairwise_distances

SIDE = 784


def fashion(name: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Read Fashion-MNIST: pixels / 255 as float32, and classes."""
    folder = FOLDER / "fashion_mnist"
    with gzip.open(folder / f"{name}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, SIDE)
    with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return pixels.astype(np.float32) / 255, labels


def bent(n: int, d: int = 64, *, parts: int = 200, inner: int = 8) -> np.ndarray:
    """Draw a mixture of flat clusters: each of few dimensions of its own, with little noise."""
    rng = np.random.default_rng([0, d])
    centers = rng.normal(size=(parts, d))
    axes = rng.normal(size=(parts, inner, d)) / 2
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 100_000):
        label = rng.integers(0, parts, min(100_000, n - start))
        place = rng.normal(size=(len(label), inner))
        for part in range(parts):
            here = np.flatnonzero(label == part)
            X[start + here] = centers[part] + place[here] @ axes[part]
        X[start : start + len(label)] += rng.normal(0, 0.05, (len(label), d))
    return X


def similarities(X: np.ndarray) -> np.ndarray:
    """Return the largest distance less the distance, float32, of shape (n, n)."""
    kernel = pairwise_distances(X).astype(np.float32)
    return np.subtract(kernel.max(), kernel, out=kernel)


def numpy_heap(kernel: np.ndarray, k: int) -> list[int]:
    """Choose by lazy greedy in ten lines of NumPy: what everybody would write."""
    best, chosen = np.zeros(kernel.shape[1], kernel.dtype), []
    heap = [(-gain, j) for j, gain in enumerate(kernel.sum(axis=1).tolist())]
    heapq.heapify(heap)
    while len(chosen) < k:
        _, j = heapq.heappop(heap)
        gain = float(np.maximum(kernel[j] - best, 0).sum())
        if heap and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, j))
            continue
        chosen.append(j)
        np.maximum(best, kernel[j], out=best)
    return chosen


def value(kernel: np.ndarray, chosen: np.ndarray) -> float:
    """Return the utility of a selection that stays."""
    return float(kernel[chosen].max(axis=0).sum(dtype=np.float64))


def mean_distance(X: np.ndarray, chosen: np.ndarray) -> float:
    """Return how far records are from the nearest chosen, on average."""
    return float(pairwise_distances(X, chosen).min(axis=1).mean(dtype=np.float64))


def expected_value(kernel: np.ndarray, chosen: np.ndarray, weights: np.ndarray) -> float:
    """Return the expected utility: of each target the chosen by similarity, weighted by rank."""
    ranked = -np.sort(-kernel[chosen].astype(np.float64), axis=0)
    return float(weights @ ranked.sum(axis=1))


def ranks_of_independent(s: float, k: int) -> np.ndarray:
    """Return the probability that the r-th stays and none before it: s (1 - s)^(r - 1)."""
    return s * (1 - s) ** np.arange(k)


def ranks_of_sizes(pmf: np.ndarray) -> np.ndarray:
    """Return the same where pmf[a] is the probability that a of k stay, all subsets alike."""
    k = len(pmf) - 1
    ranks, a = np.arange(1, k + 1)[:, None], np.arange(1, k + 1)[None]
    possible = a - 1 <= k - ranks
    log = (
        gammaln(k - ranks + 1) - gammaln(a) - gammaln(np.where(possible, k - ranks - a + 2, 1))
        - gammaln(k + 1) + gammaln(a + 1) + gammaln(k - a + 1)
    )  # fmt: skip
    return np.where(possible, np.exp(log), 0.0) @ pmf[1:]


def beta_binomial(alpha: float, beta: float, k: int) -> np.ndarray:
    """Return the probabilities that 0 to k stay."""
    a = np.arange(k + 1)
    log = gammaln(k + 1) - gammaln(a + 1) - gammaln(k - a + 1)
    return np.exp(log + betaln(a + alpha, k - a + beta) - betaln(alpha, beta))
