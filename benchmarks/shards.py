"""How accurate shards are, and what they save: the same estimator on 1, 2, 4, ... shards."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import sklearn.ensemble
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
from data import FOLDER
from scipy import stats
from sklearn.base import clone, is_classifier
from twins import adult_codes

from erasable.ensemble import ShardedClassifier, ShardedRegressor

SHARDS = (1, 2, 4, 8, 16, 32)
SPLITS = 5
DELETIONS = 5
Table = tuple[np.ndarray, np.ndarray, Any]


def _adult() -> Table:
    data = adult_codes(None)
    return data.X, data.y, None


def _covertype() -> Table:
    frame = pd.read_csv(FOLDER / "covertype" / "covertype_train_15120.csv.gz")
    X = frame.drop(columns=["Id", "Cover_Type"]).to_numpy(dtype=float)
    return X, frame["Cover_Type"].to_numpy(), None


def _ratings() -> Table:
    """Ratings by what is known of the film, in groups of the users who gave them."""
    ratings = pd.read_csv(FOLDER / "movielens_small" / "ratings.csv.gz")
    films = pd.read_csv(FOLDER / "movielens_small" / "movies.csv.gz").set_index("movieId")
    genres = films["genres"].str.get_dummies("|")
    genres["year"] = films["title"].str.extract(r"\((\d{4})\)\s*$")[0].astype(float).fillna(1990)
    X = genres.loc[ratings["movieId"]].to_numpy(dtype=float)
    return X, ratings["rating"].to_numpy(), ratings["userId"].to_numpy()


def _moves() -> Table:
    """Windows of a phone's movement, in groups of the people who carried it."""
    frame = pd.read_csv(FOLDER / "wisdm_activity" / "wisdm_transformed.csv.gz")
    X = frame.drop(columns=["UNIQUE_ID", "user", "class"]).dropna(axis=1).to_numpy(dtype=float)
    return X, frame["class"].to_numpy(), frame["user"].to_numpy()


def _scaled(model: Any) -> Any:
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), model)


BOOSTED = sklearn.ensemble.HistGradientBoostingClassifier(random_state=0)
CASES: dict[str, tuple[str, Any, Callable[[], Table]]] = {
    "adult-boosting": ("Adult, histogram boosting", BOOSTED, _adult),
    "adult-logistic": (
        "Adult, logistic regression",
        _scaled(sklearn.linear_model.LogisticRegression(max_iter=1000)),
        _adult,
    ),
    "covertype-forest": (
        "Covertype, 50 random trees",
        sklearn.ensemble.RandomForestClassifier(50, random_state=0),
        _covertype,
    ),
    "wisdm-forest": (
        "WISDM by person, 50 random trees",
        sklearn.ensemble.RandomForestClassifier(50, random_state=0),
        _moves,
    ),
    "movielens-boosting": (
        "MovieLens by user, histogram boosting (R2)",
        sklearn.ensemble.HistGradientBoostingRegressor(random_state=0),
        _ratings,
    ),
}


def _split(groups: Any, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths to learn from, the rest to test; of groups, whole ones."""
    owners = np.arange(n) if groups is None else groups
    known = np.unique(owners)
    order = np.random.default_rng(seed).permutation(known)
    learned = np.isin(owners, order[: known.size * 4 // 5])
    return np.flatnonzero(learned), np.flatnonzero(~learned)


def _case(base: Any, read: Callable[[], Table]) -> list[dict[str, float]]:
    X, y, groups = read()
    wrapper = ShardedClassifier if is_classifier(base) else ShardedRegressor
    found: dict[int, list[list[float]]] = {n: [] for n in SHARDS}
    alone: list[list[float]] = []
    for seed in range(SPLITS):
        rows, others = _split(groups, len(y), seed)
        own = None if groups is None else groups[rows]
        began = time.perf_counter()
        plain = clone(base).fit(X[rows], y[rows])
        whole = time.perf_counter() - began
        alone.append([plain.score(X[others], y[others]), whole])
        for n_shards in SHARDS:
            model = wrapper(base, n_shards, random_state=seed)
            began = time.perf_counter()
            model.fit(X[rows], y[rows], groups=own)
            fitted = time.perf_counter() - began
            score = model.score(X[others], y[others])
            gone = np.random.default_rng(seed).permutation(rows.size)[:DELETIONS].tolist()
            began = time.perf_counter()
            for record in gone[: 1 if n_shards < 4 else DELETIONS]:
                model.delete([record], digest=False)
            deleting = (time.perf_counter() - began) / (1 if n_shards < 4 else DELETIONS)
            found[n_shards].append([score, fitted / whole, whole / deleting])
    reference = np.array(alone)[:, 0]
    lines = []
    for n_shards, values in found.items():
        scores, fits, speed = np.array(values).T
        differs = bool(np.any(scores != reference))
        lines.append(
            {
                "shards": n_shards,
                "score": float(scores.mean()),
                "whole": float(reference.mean()),
                "p": float(stats.ttest_rel(scores, reference).pvalue) if differs else 1.0,
                "fit": float(np.mean(fits)),
                "speedup": float(np.mean(speed)),
            }
        )
    return lines


def measure() -> dict[str, Any]:
    """Measure all cases."""
    return {
        "cases": [
            {"title": title, "lines": _case(base, read)} for title, base, read in CASES.values()
        ]
    }
