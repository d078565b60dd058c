"""K-means on handwritten digits: scores of the clusters, and a plane of them."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import metrics
from sklearn.datasets import load_digits

from erasable.cluster import KMeans
from erasable.decomposition import PCA
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

data, labels = load_digits(return_X_y=True)
(n_samples, n_features), n_digits = data.shape, np.unique(labels).size

scores = {"inertia": 0.0, "homogeneity_score": 0.0, "v_measure_score": 0.0}
for seed in range(10):
    kmeans = KMeans(
        init="k-means++", n_clusters=n_digits, n_init=1, max_iter=300, tol=1e-4, random_state=seed
    )
    estimator = make_pipeline(StandardScaler(), kmeans).fit(data)
    found = estimator[-1].labels_
    scores["inertia"] += estimator[-1].inertia_ / 695_000
    for measure in (metrics.homogeneity_score, metrics.v_measure_score):
        scores[measure.__name__] += measure(labels, found) / 10
    assert estimator[-1].n_iter_ <= 300

reduced_data = PCA(n_components=2).fit_transform(data)
kmeans = KMeans(init="k-means++", n_clusters=n_digits, n_init="auto").fit(reduced_data)
low, high = reduced_data.min() - 1, reduced_data.max() + 1
xx, yy = np.meshgrid(np.arange(low, high, 1.0), np.arange(low, high, 1.0))
Z = kmeans.predict(np.c_[xx.ravel(), yy.ravel()]).reshape(xx.shape)
plt.imshow(Z, interpolation="nearest", extent=(low, high, low, high), origin="lower")
plt.plot(reduced_data[:, 0], reduced_data[:, 1], "k.", markersize=2)
centroids = kmeans.cluster_centers_
plt.scatter(centroids[:, 0], centroids[:, 1], marker="x", s=169, color="w")
plt.show()
tolerance = 0.06
