"""Boundaries of a tree on pairs of features, and a drawing of the tree."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.tree import export_text, plot_tree

from erasable.tree import DecisionTreeClassifier

iris = load_iris()
for pairidx, pair in enumerate([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]):
    X, y = iris.data[:, pair], iris.target
    clf = DecisionTreeClassifier().fit(X, y)
    ax = plt.subplot(2, 3, pairidx + 1)
    DecisionBoundaryDisplay.from_estimator(
        clf, X, response_method="predict", ax=ax, grid_resolution=20,
        xlabel=iris.feature_names[pair[0]], ylabel=iris.feature_names[pair[1]],
    )  # fmt: skip
    for i in range(3):
        plt.scatter(X[y == i, 0], X[y == i, 1], label=iris.target_names[i], s=15)

plt.figure()
clf = DecisionTreeClassifier(max_depth=2, random_state=0).fit(iris.data, iris.target)
boxes = plot_tree(clf.to_sklearn(), filled=True, feature_names=iris.feature_names)
plt.show()
words = export_text(clf.to_sklearn(), feature_names=iris.feature_names)
n_nodes = clf.tree_.node_count
assert words.count("class:") == clf.get_n_leaves() == (n_nodes + 1) // 2
scores = {
    "accuracy": clf.score(iris.data, iris.target),
    "impurity": clf.tree_.impurity[0],
    "leaves": float(clf.get_n_leaves()),
    "samples": clf.tree_.n_node_samples[0] / 150,
}
tolerance = 0.05
