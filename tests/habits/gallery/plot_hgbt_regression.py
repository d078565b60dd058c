"""Gradient boosting with early stopping, gaps, categories and other losses."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import PartialDependenceDisplay
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import TimeSeriesSplit, cross_validate, train_test_split

from erasable.ensemble import HistGradientBoostingRegressor

rng = np.random.default_rng(42)
n = 1200
X = pd.DataFrame(
    {
        "day": pd.Categorical(rng.choice(["mon", "tue", "sat"], n)),
        "period": rng.integers(0, 48, n) / 47.0,
        "demand": rng.normal(0.4, 0.1, n),
        "noise": rng.random(n),
    }
)
y = np.sin(6 * X["period"]) + 2 * X["demand"] + 0.5 * (X["day"] == "sat") + rng.normal(0, 0.1, n)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, shuffle=False)

common_params = {"learning_rate": 0.3, "categorical_features": ["day"], "random_state": 42}
scores = {}
for early in (False, True):
    hgbt = HistGradientBoostingRegressor(
        max_iter=60, early_stopping=early, validation_fraction=0.2, n_iter_no_change=5, tol=1e-3,
        verbose=0, scoring="loss", **common_params,
    )  # fmt: skip
    hgbt.fit(X_train, y_train)
    scores[f"error, early={early}"] = root_mean_squared_error(y_test, hgbt.predict(X_test))
    assert hgbt.do_early_stopping_ is early
    assert hgbt.is_categorical_.tolist() == [True, False, False, False]
    assert (hgbt.n_iter_ < 60) is early
    errors = [root_mean_squared_error(y_test, each) for each in hgbt.staged_predict(X_test)]
    assert len(errors) == hgbt.n_iter_
plt.plot(errors)

for fraction in (0.0, 0.05):
    gaps = X_train.copy()
    gaps.loc[rng.random(len(gaps)) < fraction, "demand"] = np.nan
    hgbt = HistGradientBoostingRegressor(max_iter=40, **common_params).fit(gaps, y_train)
    scores[f"error with gaps, {fraction}"] = root_mean_squared_error(y_test, hgbt.predict(X_test))

PartialDependenceDisplay.from_estimator(
    hgbt, X_test.iloc[:50], ["period", "demand"], grid_resolution=5
)
found = cross_validate(
    HistGradientBoostingRegressor(loss="squared_error", max_iter=20, **common_params), X, y,
    cv=TimeSeriesSplit(n_splits=3), scoring="neg_root_mean_squared_error",
)  # fmt: skip
scores["cross-validated"] = -found["test_score"].mean()
plt.show()
tolerance = 0.03
