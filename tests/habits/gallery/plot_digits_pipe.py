"""How many directions of digits does a regression need: a search over a pipeline."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import GridSearchCV

from erasable.decomposition import PCA
from erasable.linear_model import LogisticRegression
from erasable.pipeline import Pipeline
from erasable.preprocessing import StandardScaler

pca = PCA()
scaler = StandardScaler()
logistic = LogisticRegression(max_iter=10000, tol=1e-6)
pipe = Pipeline(steps=[("scaler", scaler), ("pca", pca), ("logistic", logistic)])
X_digits, y_digits = datasets.load_digits(n_class=4, return_X_y=True)
X_digits, y_digits = X_digits[:360], y_digits[:360]
param_grid = {"pca__n_components": [2, 5, 15], "logistic__C": np.logspace(-3, 1, 3)}
search = GridSearchCV(pipe, param_grid, n_jobs=1, cv=3)
search.fit(X_digits, y_digits)

pca.fit(X_digits)
fig, (ax0, ax1) = plt.subplots(nrows=2, sharex=True, figsize=(6, 6))
ax0.plot(np.arange(1, pca.n_components_ + 1), pca.explained_variance_ratio_, "+", linewidth=2)
ax0.axvline(search.best_estimator_.named_steps["pca"].n_components, linestyle=":")
results = pd.DataFrame(search.cv_results_)
components_col = "param_pca__n_components"
best_clfs = results.groupby(components_col)[["mean_test_score", "std_test_score"]].max()
ax1.errorbar(best_clfs.index, best_clfs["mean_test_score"], yerr=best_clfs["std_test_score"])
plt.show()
scores = {
    "best": search.best_score_,
    "components": float(search.best_params_["pca__n_components"]),
    "first": float(pca.explained_variance_ratio_[0]),
    **results["mean_test_score"].add_prefix("mean ").to_dict(),
}
tolerance = 0.004
