"""The data of the experiments: one drawn, the others from the files of `data_sets`."""

from __future__ import annotations

import gzip
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "experiments"))
data_sets: Any = importlib.import_module("data_sets")
N_HEART = 768  # of 1,025: three quarters


@dataclass(frozen=True)
class Data:
    """Records to choose from, and validation data.

    Attributes
    ----------
    X, y : ndarray of shape (n_records, n_features), (n_records,)
        Classes count from 0.
    X_new, y_new : ndarray
    """

    X: Any
    y: Any
    X_new: Any
    y_new: Any


def synthetic(seed: int = 0) -> Data:
    """Draw two classes of 50 points in the plane; class 1 has clusters of 35 and 15."""
    rng = np.random.default_rng([seed, 2])
    centers = np.array([[0.0, 0.0], [5.0, 3.0], [4.0, -2.5]])
    cluster = np.repeat([0, 1, 2], [50, 35, 15])
    X = centers[cluster] + rng.normal(0.0, 0.8, (100, 2))
    none = np.zeros((0, 2))
    return Data(X, (cluster > 0).astype(np.int64), none, np.zeros(0, dtype=np.int64))


def heart(seed: int = 0, *, copies_together: bool = False) -> Data:
    """Read heart disease, combined: 768 patients to choose from, 257 for validation.

    Columns are scaled to [0, 1] by all the patients. Most rows are copies of others: with
    `copies_together`, all of a patient's are on one side, a quarter of the patients set aside.
    """
    frame = pd.read_csv(data_sets.path("heart_disease/heart.csv.gz"))
    y = frame.pop("target").to_numpy(np.int64)
    X = frame.to_numpy(np.float64)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    rng = np.random.default_rng(seed)
    if copies_together:
        patients, of_row = np.unique(X, axis=0, return_inverse=True)
        aside = rng.permutation(len(patients))[: len(patients) // 4]
        is_new = np.isin(of_row, aside)
        train, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
    else:
        order = rng.permutation(len(X))
        train, new = order[:N_HEART], order[N_HEART:]
    return Data(X[train], y[train], X[new], y[new])


def fashion(n_class: int | None = None) -> Data:
    """Read Fashion-MNIST, pixels from 0 to 255; of each class the first n_class to choose from."""
    read = []
    for part in ("train", "t10k"):
        with gzip.open(data_sets.path(f"fashion_mnist/{part}-images-idx3-ubyte.gz")) as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
        with gzip.open(data_sets.path(f"fashion_mnist/{part}-labels-idx1-ubyte.gz")) as file:
            labels = np.frombuffer(file.read(), np.uint8, offset=8)
        read += [pixels.astype(np.float32), labels.astype(np.int64)]
    X, y, X_new, y_new = read
    if n_class is not None:
        first = np.concatenate([np.flatnonzero(y == label)[:n_class] for label in range(10)])
        X, y = X[np.sort(first)], y[np.sort(first)]
    return Data(X, y, X_new, y_new)
