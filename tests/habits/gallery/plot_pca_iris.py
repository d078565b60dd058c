"""The directions of the iris data, in space and in a plane."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from erasable.decomposition import PCA

iris = load_iris(as_frame=True)
fig = plt.figure(1, figsize=(8, 6))
ax = fig.add_subplot(111, projection="3d", elev=-150, azim=110)
X_reduced = PCA(n_components=3).fit_transform(iris.data)
ax.scatter(X_reduced[:, 0], X_reduced[:, 1], X_reduced[:, 2], c=iris.target, s=40)

pca = PCA(n_components=2, svd_solver="full", random_state=0)
X_r = pca.fit(iris.data).transform(iris.data)
plt.figure()
for i, target_name in enumerate(iris.target_names):
    plt.scatter(X_r[iris.target == i, 0], X_r[iris.target == i, 1], label=target_name)
plt.legend(loc="best")
plt.show()
scores = {f"share {i}": share for i, share in enumerate(pca.explained_variance_ratio_)}
scores |= {f"mean {i}": mean for i, mean in enumerate(pca.mean_)}
scores |= {f"weight {i}": abs(weight) for i, weight in enumerate(pca.components_[0])}
scores["noise"] = pca.noise_variance_
scores["rebuilt"] = float(np.abs(pca.inverse_transform(X_r) - iris.data.to_numpy()).mean())
assert pca.get_feature_names_out().tolist() == ["pca0", "pca1"]
tolerance = 1e-6
