"""How well probabilities are calibrated, and how much better they are made."""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from erasable.linear_model import LogisticRegression
from erasable.naive_bayes import GaussianNB

X, y = make_classification(
    n_samples=4000, n_features=20, n_informative=2, n_redundant=10, random_state=42
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=42)
lr = LogisticRegression(C=1.0)
gnb = GaussianNB()
gnb_isotonic = CalibratedClassifierCV(gnb, cv=2, method="isotonic")
gnb_sigmoid = CalibratedClassifierCV(gnb, cv=2, method="sigmoid")
clf_list = [
    (lr, "Logistic"),
    (gnb, "Naive Bayes"),
    (gnb_isotonic, "Naive Bayes + Isotonic"),
    (gnb_sigmoid, "Naive Bayes + Sigmoid"),
]
scores = {}
for clf, name in clf_list:
    clf.fit(X_train, y_train)
    CalibrationDisplay.from_estimator(clf, X_test, y_test, n_bins=10, name=name)
    y_prob = clf.predict_proba(X_test)
    for metric in (brier_score_loss, log_loss, roc_auc_score):
        scores[f"{name} {metric.__name__}"] = metric(y_test, y_prob[:, 1])
plt.show()
tolerance = 1e-3
