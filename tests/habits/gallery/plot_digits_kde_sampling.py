"""Digits that nobody wrote: a density of projected digits, found by a search, and drawn from."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from erasable.decomposition import PCA
from erasable.neighbors import KernelDensity

digits = load_digits()
pca = PCA(n_components=5, whiten=False)
data = pca.fit_transform(digits.data[:300])

# Below, scikit-learn's sums lose what is far away.
params = {"bandwidth": np.logspace(0.8, 1.5, 6)}
grid = GridSearchCV(KernelDensity(rtol=1e-4), params, cv=3)
grid.fit(data)
kde = grid.best_estimator_
new_data = pca.inverse_transform(kde.sample(44, random_state=0))
fig, ax = plt.subplots(2, 4, subplot_kw={"xticks": [], "yticks": []})
for place, each in enumerate(ax.ravel()):
    each.imshow(new_data[place].reshape((8, 8)), cmap=plt.cm.binary, interpolation="nearest")
plt.show()
scores = {
    "bandwidth": grid.best_params_["bandwidth"],
    "density": kde.score(data) / 300,
    **{f"mean {i}": score / 100 for i, score in enumerate(grid.cv_results_["mean_test_score"])},
}
assert 4.0 < new_data.mean() < 6.0  # a seed draws other digits
tolerance = 1e-6
