"""What the workspace benchmark is run on: drawn records, and ten models beside scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

N_FEATURES, N_WORDS, WORDS_EACH = 20, 30_000, 40
FEATURES = [f"x{j:02d}" for j in range(N_FEATURES)]
_ITERATIONS = 10  # of k-means, the same on both sides: its stopping rules differ
_AT_ONCE = 100_000  # records drawn together
_FOREST: dict[str, Any] = {"n_estimators": 20, "max_depth": 12, "min_samples_leaf": 20}
_ROUNDS: dict[str, Any] = {"max_iter": 40, "learning_rate": 0.2}  # of boosting


@dataclass(frozen=True)
class Model:
    """A model of the mix, and its twin of scikit-learn with the same parameters.

    Attributes
    ----------
    recipe, params, target, features
        As `Workspace.fit` takes them.
    twin : estimator
    how : str
        What deleting a batch from it takes.
    """

    recipe: str
    twin: BaseEstimator
    how: str
    target: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    features: list[str] = field(default_factory=lambda: FEATURES)


def _kmeans() -> KMeans:
    return KMeans(8, n_init=1, max_iter=_ITERATIONS, tol=0, random_state=0)


MODELS = {
    "value": Model("linear_model.Ridge", Ridge(), "sums", "value"),
    "bayes": Model("naive_bayes.GaussianNB", GaussianNB(), "sums", "risk"),
    "axes": Model(
        "preprocessing.StandardScaler,decomposition.PCA",
        make_pipeline(StandardScaler(), PCA(5)), "sums", None, {"pca__n_components": 5},
    ),
    "topics": Model(
        "feature_extraction.CountVectorizer,naive_bayes.MultinomialNB",
        make_pipeline(CountVectorizer(), MultinomialNB()), "sums", "risk", features=["text"],
    ),
    "segments": Model(
        "cluster.KMeans", _kmeans(), "its rounds again where they change", None,
        {"n_clusters": 8, "max_iter": _ITERATIONS},
    ),
    "scaled-segments": Model(
        "preprocessing.StandardScaler,cluster.KMeans", make_pipeline(StandardScaler(), _kmeans()),
        "its rounds again where they change", None,
        {"kmeans__n_clusters": 8, "kmeans__max_iter": _ITERATIONS},
    ),
    "risk": Model(
        "preprocessing.StandardScaler,linear_model.LogisticRegression",
        make_pipeline(StandardScaler(), LogisticRegression()), "steps from where it was", "risk",
    ),
    "notes": Model(
        "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression",
        make_pipeline(TfidfVectorizer(), LogisticRegression()),
        "all texts read again; steps from where it was", "risk", features=["text"],
    ),
    "forest": Model(
        "ensemble.RandomForestClassifier", RandomForestClassifier(**_FOREST, random_state=0),
        "nodes asked again where their test may change", "risk", _FOREST,
    ),
    "boosting": Model(
        "ensemble.HistGradientBoostingClassifier",
        HistGradientBoostingClassifier(**_ROUNDS, early_stopping=False, random_state=0),
        "all rounds again, as so many leave", "risk",
        {**_ROUNDS, "max_depth": 9, "n_thresholds": 64},
    ),
}  # fmt: skip
"""Sums of numbers and of words, k-means, logistic regression, trees; three of them pipelines."""


def write_records(
    path: Path, n: int, n_subjects: int, seed: int = 0, *, texts: bool = True
) -> None:
    """Write records: overlapping clusters, a linear and a logistic target, texts by Zipf's law."""
    writer = None
    for part in _parts(n, n_subjects, np.random.default_rng(seed)):
        if not texts:
            part = part.drop_columns("text")
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def _parts(n: int, n_subjects: int, draw: np.random.Generator) -> Iterator[pa.Table]:
    centers = draw.normal(scale=1.2, size=(8, N_FEATURES))
    spread = draw.lognormal(sigma=1.0, size=N_FEATURES)
    weights = draw.normal(size=N_FEATURES) / (spread * np.sqrt(1 + centers.var(axis=0)))
    middle = float((centers.mean(axis=0) * spread) @ weights)
    words = np.array([f"w{j:x}" for j in range(N_WORDS)], dtype=object)
    shares = 1.0 / np.arange(2, N_WORDS + 2)
    shares /= shares.sum()
    for start in range(0, n, _AT_ONCE):
        m = min(_AT_ONCE, n - start)
        X = (centers[draw.integers(8, size=m)] + draw.normal(size=(m, N_FEATURES))) * spread
        value = X @ weights + draw.normal(size=m)
        risk = (value + draw.normal(scale=3.0, size=m) > middle).astype(np.int64)
        lengths = np.maximum(3, draw.lognormal(np.log(WORDS_EACH) - 0.3, 0.7, size=m)).astype(int)
        drawn = words[draw.choice(N_WORDS, size=int(lengths.sum()), p=shares)]
        ends = np.cumsum(lengths)
        yield pa.table(
            {
                "record": pa.array([f"record-{i:07d}" for i in range(start, start + m)]),
                "person": pa.array([person(i) for i in draw.integers(n_subjects, size=m)]),
                **{name: X[:, j] for j, name in enumerate(FEATURES)},
                "value": value,
                "risk": risk,
                "text": pa.array(
                    [" ".join(drawn[e - k : e]) for e, k in zip(ends, lengths, strict=True)]
                ),
            }
        )


def person(number: int) -> str:
    """Return who has a number."""
    return f"person-{number:06d}"


def leaving(n_subjects: int, n_requests: int, seed: int = 1) -> list[str]:
    """Draw who asks to be erased: anybody, each once."""
    order = np.random.default_rng(seed).permutation(n_subjects)
    return [person(i) for i in order[:n_requests].tolist()]
