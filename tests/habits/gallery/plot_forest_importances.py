"""Importances of features by a forest: of impurity, with deviations, and of permutations."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from erasable.ensemble import RandomForestClassifier

X, y = make_classification(
    n_samples=1000, n_features=10, n_informative=3, n_redundant=0, n_repeated=0, n_classes=2,
    random_state=0, shuffle=False,
)  # fmt: skip
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
feature_names = [f"feature {i}" for i in range(X.shape[1])]
forest = RandomForestClassifier(n_estimators=30, random_state=0, n_jobs=1, verbose=0)
forest.fit(X_train, y_train)

importances = forest.feature_importances_
std = np.std([tree.feature_importances_ for tree in forest.estimators_], axis=0)
forest_importances = pd.Series(importances, index=feature_names)
fig, ax = plt.subplots()
forest_importances.plot.bar(yerr=std, ax=ax)
result = permutation_importance(forest, X_test, y_test, n_repeats=3, random_state=42)
pd.Series(result.importances_mean, index=feature_names).plot.bar(yerr=result.importances_std)
plt.show()
scores = {
    "importance of what informs": float(importances[:3].sum()),
    "deviation": float(std[:3].mean()),
    "permutation of what informs": float(result.importances_mean[:3].sum()),
    "permutation of noise": float(result.importances_mean[3:].sum()),
}
assert set(np.argsort(importances)[-3:]) == {0, 1, 2}
tolerance = 0.1
