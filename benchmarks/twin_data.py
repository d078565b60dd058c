"""Records that estimators and their twins are measured on, each of a stated kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import sklearn.datasets
import sklearn.preprocessing
from data import FOLDER

Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Data:
    """Records, with what is asked of a model on them.

    Attributes
    ----------
    X, y : what `fit` takes
    hurtful : positions of records whose deletion should cost most
    """

    X: Any
    y: Any
    hurtful: np.ndarray

    def take(self, rows: np.ndarray) -> Pair:
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return X, None if self.y is None else self.y[rows]

    def __len__(self) -> int:
        return self.X.shape[0]


def _extremes(X: np.ndarray) -> np.ndarray:
    """Rows at an extreme of some column, column after column."""
    order = np.argsort(X, axis=0)
    rows = np.column_stack([order[:20].T, order[-20:].T]).T.ravel()
    return np.array(list(dict.fromkeys(rows.tolist())))


@cache
def numbers(n: int | None, kind: str) -> Data:
    n, rng = n or 100_000, np.random.default_rng(7)
    X = rng.normal(size=(n, 50)) * np.exp(rng.normal(size=50)) + rng.normal(size=50)
    score = (X - X.mean(0)) / X.std(0) @ rng.normal(size=50) / 4.0
    if kind == "regression":
        return Data(X, score + rng.normal(size=n), _extremes(X))
    y = np.digitize(score + rng.logistic(size=n), [0.0] if kind == "two" else [-1.0, 1.0])
    if kind == "counts":
        counts = rng.poisson(np.exp(0.5 * np.outer(y, rng.normal(size=50))))
        return Data(counts.astype(float), y, _extremes(counts.astype(float)))
    if kind == "codes":
        codes = rng.integers(0, 8 + y[:, None], size=(n, 50))
        return Data(codes.astype(float), y, _extremes(codes.astype(float)))
    if kind == "gaps":
        return Data(np.where(rng.random(X.shape) < 0.05, np.nan, X), None, _extremes(X))
    return Data(X, y, _extremes(X))


@cache
def near(n: int, d: int, classes: bool) -> Data:
    """Records whose targets are smooth in a few of their features."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + np.sin(2.0 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n)
    return Data(X, np.digitize(score, [-1.0, 1.0]) if classes else score, _extremes(X))


@cache
def blobs(n: int) -> Data:
    """Records in thirty dense places; deletions of those amid a place change most lists."""
    X, own, centers = sklearn.datasets.make_blobs(
        n, 10, centers=30, random_state=7, return_centers=True
    )
    return Data(X, None, np.argsort(((X - centers[own]) ** 2).sum(axis=1))[:200])


@cache
def million(n: int | None) -> Data:
    """So many that each of 32 shards has enough for boosting: its trees cost what they cost."""
    n, rng = n or 1_000_000, np.random.default_rng(11)
    X = rng.normal(size=(n, 10))
    score = X @ rng.normal(size=10) + X[:, 0] * X[:, 1] + np.abs(X[:, 2])
    return Data(X, (score + rng.logistic(size=n) > 0).astype(int), _extremes(X))


@cache
def adult(n: int | None) -> Data:
    frame = pd.read_csv(FOLDER / "adult" / "adult.csv.gz").replace("?", np.nan).dropna()
    frame = frame[frame["split"] == "train"].head(n).reset_index(drop=True)
    y = (frame["income"] == ">50K").to_numpy().astype(int)
    X = frame.drop(columns=["income", "split"])
    texts = X.select_dtypes(exclude="number")
    rare = texts.apply(lambda column: column.map(column.value_counts())).min(axis=1)
    return Data(X, y, np.argsort(rare.to_numpy(), kind="stable")[:200])


@cache
def adult_codes(n: int | None) -> Data:
    """Categories as whole numbers, as trees of both sides take them."""
    data = adult(n)
    codes = [data.X[name].astype("category").cat.codes for name in data.X.select_dtypes("object")]
    X = np.column_stack([data.X.select_dtypes("number"), *codes]).astype(float)
    return Data(X, data.y, data.hurtful)


@cache
def covertype(n: int | None) -> Data:
    frame = pd.read_csv(FOLDER / "covertype" / "covertype_train_15120.csv.gz").head(n)
    X = frame.drop(columns=["Id", "Cover_Type"]).to_numpy(float)
    return Data(X, frame["Cover_Type"].to_numpy(), _extremes(X[:, :10]))


@cache
def housing(n: int | None) -> Data:
    frame = pd.read_csv(FOLDER / "california_housing" / "cal_housing.csv.gz")
    frame = frame.sample(frac=1.0, random_state=0).head(n)
    X = frame.drop(columns="medianHouseValue").to_numpy(float)
    return Data(X, frame["medianHouseValue"].to_numpy(float) / 1e5, _extremes(X))


@cache
def clusters(n: int | None) -> Data:
    """20 continuous columns, half of them informative."""
    X, y = sklearn.datasets.make_classification(
        10_000 if n is None else n, 20, n_informative=10, random_state=0
    )
    return Data(X, y, _extremes(X))


def adult_texts(n: int | None) -> Data:
    data = adult(n)
    return Data(data.X.select_dtypes(exclude="number"), None, data.hurtful)


@cache
def sms(n: int | None) -> Data:
    path = FOLDER / "sms_spam" / "SMSSpamCollection.tsv.gz"
    frame = pd.read_csv(path, sep="\t", header=None, quoting=3).head(n)
    lengths = frame[1].str.len().to_numpy()
    return Data(frame[1].to_numpy(), frame[0].to_numpy(), np.argsort(-lengths)[:200])


def of_kind(kind: str) -> Callable[[int | None], Data]:
    return lambda n: numbers(n, kind)
