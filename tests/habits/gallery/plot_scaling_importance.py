"""What neighbours and directions gain by scaled columns; frames that stay frames."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from erasable.decomposition import PCA
from erasable.linear_model import LogisticRegression
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True, as_frame=True)
scaler = StandardScaler().set_output(transform="pandas")
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.30, random_state=42)
X_train_scaled = scaler.fit_transform(X_train)
assert X_train_scaled.columns.tolist() == X.columns.tolist()
assert X_train_scaled.index.equals(X_train.index)

X_plot = X[["proline", "hue"]]
X_plot_scaled = scaler.fit_transform(X_plot)
clf = KNeighborsClassifier(n_neighbors=20)
scores = {}
for name, table in (("plain", X_plot), ("scaled", X_plot_scaled)):
    clf.fit(table, y)
    scores[f"neighbours {name}"] = clf.score(table, y)
    DecisionBoundaryDisplay.from_estimator(clf, table, response_method="predict", grid_resolution=9)

pca = PCA(n_components=2).fit(X_train)
scaled_pca = PCA(n_components=2).fit(X_train_scaled)
for name, each in (("plain", pca), ("scaled", scaled_pca)):
    scores[f"first weight {name}"] = float(np.abs(each.components_[0]).max())
projected = scaled_pca.transform(X_train_scaled)
plt.scatter(*projected.T, c=y_train)
plt.show()

for name, steps in (("plain", ()), ("scaled", (StandardScaler(),))):
    model = make_pipeline(*steps, PCA(n_components=2), LogisticRegression(C=1.0, max_iter=10_000))
    model.fit(X_train, y_train)
    scores[f"accuracy {name}"] = accuracy_score(y_test, model.predict(X_test))
    scores[f"log loss {name}"] = log_loss(y_test, model.predict_proba(X_test))
tolerance = 5e-3
