"""Density clustering of blobs: core records, others, and noise."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import metrics
from sklearn.datasets import make_blobs

from erasable.cluster import DBSCAN
from erasable.preprocessing import StandardScaler

centers = [[1, 1], [-1, -1], [1, -1]]
X, labels_true = make_blobs(n_samples=750, centers=centers, cluster_std=0.4, random_state=0)
X = StandardScaler().fit_transform(X)

db = DBSCAN(eps=0.3, min_samples=10, algorithm="auto", leaf_size=30).fit(X)
labels = db.labels_
n_clusters_ = len(set(labels)) - (1 if -1 in labels else 0)
core_samples_mask = np.zeros_like(labels, dtype=bool)
core_samples_mask[db.core_sample_indices_] = True
for k in set(labels):
    xy = X[(labels == k) & core_samples_mask]
    plt.plot(xy[:, 0], xy[:, 1], "o", markeredgecolor="k", markersize=14)
    xy = X[(labels == k) & ~core_samples_mask]
    plt.plot(xy[:, 0], xy[:, 1], "o", markeredgecolor="k", markersize=6)
plt.title(f"Estimated number of clusters: {n_clusters_}")
plt.show()
scores = {
    "clusters": float(n_clusters_),
    "noise": float(np.sum(labels == -1)),
    "core": float(core_samples_mask.sum()),
    "components": float(np.abs(db.components_).sum()),
    "homogeneity": metrics.homogeneity_score(labels_true, labels),
    "silhouette": metrics.silhouette_score(X, labels),
}
tolerance = 1e-6
