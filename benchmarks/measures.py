"""How good a clustering is: loss, silhouette and mutual information, as in the paper's 5.1."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import euclidean_distances, normalized_mutual_info_score

BLOCK = 16_384


def loss(X: np.ndarray, centers: np.ndarray) -> float:
    """Sum the squared distances of the rows to their nearest centroids."""
    total = 0.0
    for start in range(0, len(X), BLOCK):
        squared = euclidean_distances(X[start : start + BLOCK], centers, squared=True)
        total += float(squared.min(axis=1).sum())
    return total


def mutual_information(truth: np.ndarray, labels: np.ndarray) -> float:
    """Agree with the classes: 0 to 1, up to a renaming of the clusters."""
    return float(normalized_mutual_info_score(truth, labels))


class Silhouette:
    """The silhouette of a fixed sample, whose distances are computed once.

    Equals ``sklearn.metrics.silhouette_score`` of the sample to five digits (the distances are
    float32).
    """

    def __init__(self, sample: np.ndarray) -> None:
        n = len(sample)
        self._distances = np.empty((n, n), np.float32)
        for start in range(0, n, 2_000):
            rows = slice(start, start + 2_000)
            self._distances[rows] = euclidean_distances(sample[rows], sample)
        np.fill_diagonal(self._distances, 0.0)

    def score(self, labels: np.ndarray) -> float:
        """Return the mean silhouette of the sample under these labels; NaN for one cluster."""
        names, codes = np.unique(labels, return_inverse=True)
        if len(names) < 2:
            return float("nan")
        member = np.zeros((len(labels), len(names)), np.float32)
        rows = np.arange(len(labels))
        member[rows, codes] = 1.0
        sizes = member.sum(axis=0)
        sums = np.asarray(self._distances @ member, np.float64)
        own = sums[rows, codes] / np.maximum(sizes[codes] - 1, 1)
        means = sums / sizes
        means[rows, codes] = np.inf
        other = means.min(axis=1)
        width = np.maximum(own, other)
        scores = np.where(width > 0, (other - own) / np.where(width > 0, width, 1.0), 0.0)
        return float(np.where(sizes[codes] > 1, scores, 0.0).mean())
