"""Surfaces of trees and forests on pairs of features of the iris data."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris

from erasable.ensemble import ExtraTreesClassifier, RandomForestClassifier
from erasable.tree import DecisionTreeClassifier

n_estimators, plot_step = 8, 0.2
iris = load_iris()
models = [
    DecisionTreeClassifier(max_depth=None),
    RandomForestClassifier(n_estimators=n_estimators),
    ExtraTreesClassifier(n_estimators=n_estimators),
]
scores = {}
for pair in ([0, 1], [0, 2], [2, 3]):
    for model in models:
        X, y = iris.data[:, pair], iris.target
        idx = np.arange(X.shape[0])
        np.random.seed(13)
        np.random.shuffle(idx)
        X, y = X[idx], y[idx]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        model = clone(model)
        model.fit(X, y)
        title = f"{type(model).__name__} {pair}"
        scores[title] = model.score(X, y)
        low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
        xx, yy = np.meshgrid(*(np.arange(a, b, plot_step) for a, b in zip(low, high, strict=True)))
        plane = np.c_[xx.ravel(), yy.ravel()]
        if isinstance(model, DecisionTreeClassifier):
            plt.contourf(xx, yy, model.predict(plane).reshape(xx.shape))
        else:
            estimator_alpha = 1.0 / len(model.estimators_)
            for tree in model.estimators_:
                plt.contourf(xx, yy, tree.predict(plane).reshape(xx.shape), alpha=estimator_alpha)
        plt.scatter(X[:, 0], X[:, 1], c=y, edgecolor="k", s=20)
        plt.title(title)
        plt.close()
tolerance = 0.06
