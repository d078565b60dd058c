"""Columns of numbers and of categories, prepared apart; a search over all of it."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector as selector
from sklearn.model_selection import RandomizedSearchCV, train_test_split

from erasable.compose import ColumnTransformer
from erasable.linear_model import LogisticRegression
from erasable.pipeline import Pipeline
from erasable.preprocessing import OneHotEncoder, SimpleImputer, StandardScaler

rng = np.random.default_rng(0)
n = 400
X = pd.DataFrame(
    {
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(30, 12, n)),
        "fare": rng.lognormal(3, 1, n),
        "embarked": pd.Categorical(rng.choice(["S", "C", "Q"], n)),
        "sex": pd.Categorical(rng.choice(["female", "male"], n)),
        "pclass": pd.Categorical(rng.choice(["1", "2", "3"], n)),
        "name": "not used",
    }
)
chance = 1.5 * (X.sex == "female") - (X.pclass == "3") + 0.3 * np.log(X.fare) - 1.2
y = (rng.random(n) < 1 / (1 + np.exp(-2 * chance))).astype(int)

numeric_features = ["age", "fare"]
numeric_transformer = Pipeline(
    steps=[("imputer", SimpleImputer(strategy="median")), ("scaler", StandardScaler())]
)
categorical_features = ["embarked", "sex", "pclass"]
categorical_transformer = Pipeline(steps=[("encoder", OneHotEncoder(handle_unknown="ignore"))])
preprocessor = ColumnTransformer(
    transformers=[
        ("num", numeric_transformer, numeric_features),
        ("cat", categorical_transformer, categorical_features),
    ],
    n_jobs=None,
)
clf = Pipeline(steps=[("preprocessor", preprocessor), ("classifier", LogisticRegression())])
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
clf.fit(X_train, y_train)
scores = {"accuracy": clf.score(X_test, y_test)}
assert "OneHotEncoder" in clf._repr_html_()
names = clf[:-1].get_feature_names_out()
assert len(names) == clf[-1].n_features_in_ == clf[-1].coef_.shape[1]
assert [name for name, _, _ in clf[0].transformers_] == ["num", "cat", "remainder"]

by_type = ColumnTransformer(
    transformers=[
        ("num", numeric_transformer, selector(dtype_include="number")),
        ("cat", categorical_transformer, selector(dtype_include="category")),
    ]
)
clf = Pipeline(steps=[("preprocessor", by_type), ("classifier", LogisticRegression())])
scores["accuracy by type"] = clf.fit(X_train, y_train).score(X_test, y_test)

param_grid = {
    "preprocessor__num__imputer__strategy": ["mean", "median"],
    "classifier__C": np.logspace(-2, 2, 5),
}
search_cv = RandomizedSearchCV(clf, param_grid, n_iter=6, cv=3, random_state=0)
search_cv.fit(X_train, y_train)
scores["search"] = search_cv.best_score_
scores["C"] = float(np.log10(search_cv.best_params_["classifier__C"]))
tolerance = 1e-6
