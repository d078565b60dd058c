"""How accurate shards are, what they save, and what a shard costs of so many records."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import sklearn.ensemble
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
from data import FOLDER
from scipy import optimize, stats
from sklearn.base import clone, is_classifier
from twin_data import adult_codes, clusters

from erasable.ensemble import ShardedClassifier, ShardedRegressor

SHARDS = (1, 2, 4, 8, 16, 32)
SPLITS = 5
DELETIONS = 5
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
REPEATS = 3
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


def _clusters() -> Table:
    data = clusters(100_000)
    return data.X, data.y, None


def _scaled(model: Any) -> Any:
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), model)


@dataclass(frozen=True)
class Case:
    """The same data for one estimator on all records, and for shards.

    Attributes
    ----------
    title : str
    whole : estimator of scikit-learn
        What learns from all records, and what everything is measured against.
    read : callable
        Returns records, targets, and groups or None.
    shard : estimator of scikit-learn, or None
        What learns from a shard, where it is another.
    """

    title: str
    whole: Any
    read: Callable[[], Table]
    shard: Any = None


_boosting = sklearn.ensemble.HistGradientBoostingClassifier
BOOSTED = _boosting(random_state=0)
FOREST = sklearn.ensemble.RandomForestClassifier(50, random_state=0)
LOGISTIC = sklearn.linear_model.LogisticRegression(max_iter=1000)
# A shard has fewer records to spread over leaves, and pays for each leaf all the same.
SHORT = {
    leaves: _boosting(max_iter=20, learning_rate=0.3, max_leaf_nodes=leaves, random_state=0)
    for leaves in (8, 16)
}
CASES: dict[str, Case] = {
    "adult-boosting": Case("Adult, histogram boosting", BOOSTED, _adult),
    "adult-short": Case(
        "Adult, shards of 20 rounds of 8 leaves against histogram boosting",
        BOOSTED,
        _adult,
        SHORT[8],
    ),
    "clusters-boosting": Case("100,000 x 20, histogram boosting", BOOSTED, _clusters),
    "clusters-short": Case(
        "100,000 x 20, shards of 20 rounds of 16 leaves against histogram boosting",
        BOOSTED,
        _clusters,
        SHORT[16],
    ),
    "adult-logistic": Case("Adult, logistic regression", _scaled(LOGISTIC), _adult),
    "covertype-forest": Case("Covertype, 50 random trees", FOREST, _covertype),
    "wisdm-forest": Case("WISDM by person, 50 random trees", FOREST, _moves),
    "movielens-boosting": Case(
        "MovieLens by user, histogram boosting (R2)",
        sklearn.ensemble.HistGradientBoostingRegressor(random_state=0),
        _ratings,
    ),
}
COSTS: dict[str, tuple[str, Any]] = {
    "boosting": ("histogram boosting", BOOSTED),
    "boosting-16": ("histogram boosting, 20 rounds of 16 leaves", SHORT[16]),
    "forest": ("50 random trees", FOREST),
    "logistic": ("logistic regression", _scaled(LOGISTIC)),
}


def _split(groups: Any, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fifths to learn from, the rest to test; of groups, whole ones."""
    owners = np.arange(n) if groups is None else groups
    known = np.unique(owners)
    order = np.random.default_rng(seed).permutation(known)
    learned = np.isin(owners, order[: known.size * 4 // 5])
    return np.flatnonzero(learned), np.flatnonzero(~learned)


def compare(case: Case) -> dict[str, Any]:
    """Measure a case on as many shards as `SHARDS` says."""
    X, y, groups = case.read()
    base = case.whole if case.shard is None else case.shard
    wrapper = ShardedClassifier if is_classifier(base) else ShardedRegressor
    found: dict[int, list[list[float]]] = {n: [] for n in SHARDS}
    alone: list[list[float]] = []
    for seed in range(SPLITS):
        rows, others = _split(groups, len(y), seed)
        own = None if groups is None else groups[rows]
        began = time.perf_counter()
        plain = clone(case.whole).fit(X[rows], y[rows])
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
    return {"title": case.title, "lines": lines}


def cost(title: str, base: Any) -> dict[str, Any]:
    """Measure what scikit-learn's fit costs of so many records, and draw a line through it.

    The line is ``fixed + record * n`` seconds; it has the least sum of squared relative errors.
    """
    data = clusters(SIZES[-1])
    seconds = []
    clone(base).fit(data.X[: SIZES[0]], data.y[: SIZES[0]])
    for n in SIZES:
        times = []
        for _ in range(REPEATS):
            began = time.process_time()
            clone(base).fit(data.X[:n], data.y[:n])
            times.append(time.process_time() - began)
        seconds.append(float(np.median(times)))
    n, measured = np.array(SIZES, dtype=float), np.array(seconds)
    parts, _ = optimize.nnls(np.column_stack([1.0 / measured, n / measured]), np.ones(n.size))
    fixed, record = (float(part) for part in parts)
    errors = np.abs((fixed + record * n) / measured - 1.0)
    return {
        "title": title,
        "d": data.X.shape[1],
        "n": list(SIZES),
        "seconds": seconds,
        "fixed": fixed,
        "record": record,
        "error": float(errors.max()),
    }
