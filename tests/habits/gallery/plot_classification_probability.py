"""Probabilities of three classes in a plane, by several classifiers."""

import matplotlib.pyplot as plt
from sklearn import datasets
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures

from erasable.ensemble import HistGradientBoostingClassifier
from erasable.linear_model import LogisticRegression
from erasable.naive_bayes import GaussianNB
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

iris = datasets.load_iris()
X, y = iris.data[:, 0:2], iris.target
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=42)

classifiers = {
    "Logistic regression\n(C=0.01)": LogisticRegression(C=0.1),
    "Logistic regression\n(C=1)": LogisticRegression(C=100, max_iter=1000, solver="lbfgs"),
    "Gaussian naive Bayes": GaussianNB(),
    "Logistic regression\n(polynomials)": make_pipeline(
        StandardScaler(), PolynomialFeatures(degree=2), LogisticRegression(C=10, max_iter=1000)
    ),
    "Gradient boosting": HistGradientBoostingClassifier(
        max_iter=20, min_samples_leaf=5, random_state=0
    ),
}
fig, axes = plt.subplots(nrows=len(classifiers), ncols=3, figsize=(6, 10))
scores = {}
for row, (name, classifier) in enumerate(classifiers.items()):
    y_pred = classifier.fit(X_train, y_train).predict(X_test)
    y_pred_proba = classifier.predict_proba(X_test)
    scores[f"accuracy {name}"] = accuracy_score(y_test, y_pred)
    scores[f"auc {name}"] = roc_auc_score(y_test, y_pred_proba, multi_class="ovr")
    if name != "Gradient boosting":
        scores[f"log loss {name}"] = log_loss(y_test, y_pred_proba)
    for label in classifier.classes_:
        DecisionBoundaryDisplay.from_estimator(
            classifier, X_train, response_method="predict_proba", class_of_interest=label,
            ax=axes[row, label], vmin=0, vmax=1, grid_resolution=20,
        )  # fmt: skip
plt.show()
tolerance = 0.03
