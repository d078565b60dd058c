"""The data sets of the benchmark: four real ones from files, two drawn.

The files are looked for in ``../shared/data`` beside the repository, or where the environment
variable ``ERASABLE_DATA`` points.
"""

from __future__ import annotations

import gzip
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plugged

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "experiments"))
data_sets: Any = importlib.import_module("data_sets")
FOLDER = data_sets.folder()


@dataclass(frozen=True)
class DataSet:
    """Records with the labels they are judged by.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64, in the unit cube unless said otherwise
    labels : ndarray of shape (n,), int64
        Classes; used for the mutual information only.
    k : int
        Number of clusters: the number of classes.
    """

    name: str
    X: np.ndarray
    labels: np.ndarray
    k: int


@dataclass(frozen=True)
class Source:
    """Where a data set comes from, and what is affordable on it."""

    title: str
    what: str
    read: Callable[[], tuple[np.ndarray, np.ndarray]]
    refits: int  # of scikit-learn, in one stream; --full measures as many as there are deletions


def unit_cube(X: np.ndarray) -> np.ndarray:
    """Scale every column to [0, 1], as the paper does before it clusters."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray((X - low) / np.where(high > low, high - low, 1.0))


def _covertype() -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(FOLDER / "covertype" / "covertype_train_15120.csv.gz")
    # Soil_Type7 and Soil_Type15 are 0 in every row: without them d is the paper's 52.
    X = frame.drop(columns=["Id", "Cover_Type", "Soil_Type7", "Soil_Type15"])
    return unit_cube(X.to_numpy(np.float64)), frame["Cover_Type"].to_numpy()


def _mnist() -> tuple[np.ndarray, np.ndarray]:
    with gzip.open(FOLDER / "mnist" / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / "mnist" / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return pixels / 255.0, labels


def _adult() -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(FOLDER / "adult" / "adult.csv.gz")
    return unit_cube(frame.select_dtypes("number").to_numpy(np.float64)), frame["income"].to_numpy()


def _wisdm() -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(FOLDER / "wisdm_activity" / "wisdm_transformed.csv.gz")
    X = frame.drop(columns=["UNIQUE_ID", "user", "class"]).dropna(axis="columns")
    X = X.loc[:, X.nunique() > 1]
    return unit_cube(X.to_numpy(np.float64)), frame["class"].to_numpy()


def gaussian(n: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw the paper's mixture: 5 centres in the unit cube of 25 dimensions, variance 0.8."""
    rng = np.random.default_rng([seed, 25])
    centers = rng.random((5, 25))
    labels = rng.permutation(np.arange(n) % 5)
    return unit_cube(centers[labels] + rng.normal(0.0, np.sqrt(0.8), (n, 25))), labels


def separated(n: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw 10 clusters of standard deviation 0.1 around centres in the unit cube, d = 10."""
    rng = np.random.default_rng([seed, 10])
    centers = rng.random((10, 10))
    labels = rng.permutation(np.arange(n) % 10)
    return centers[labels] + rng.normal(0.0, 0.1, (n, 10)), labels


SOURCES = {
    "covertype": Source(
        "covertype",
        "forest cover type, without its two constant columns, scaled to [0, 1]",
        _covertype,
        100,
    ),
    "gaussian": Source(
        "Gaussian",
        "the paper's mixture: 5 spherical clusters of 20,000, variance 0.8, centres uniform in the "
        "unit cube, then scaled to [0, 1]",
        lambda: gaussian(100_000),
        40,
    ),
    "mnist": Source("MNIST", "handwritten digits, training images, pixels / 255", _mnist, 10),
    "million": Source(
        "1,000,000 x 10",
        "10 separated spherical clusters, standard deviation 0.1, centres uniform in the unit cube",
        lambda: separated(1_000_000),
        20,
    ),
    "adult": Source(
        "Adult",
        "Adult income, its six numeric columns, scaled to [0, 1]: integers, many equal rows, two "
        "columns that are nearly always 0",
        _adult,
        100,
    ),
    "wisdm": Source(
        "WISDM",
        "activities from a phone's accelerometer, without the columns that are constant or have "
        "gaps, scaled to [0, 1]: few records for their width",
        _wisdm,
        200,
    ),
}


def chosen(text: str) -> str:
    """Return the name of a data set; ``module:name`` is a function that returns X and labels."""
    name, read = plugged.load(text, SOURCES)
    if read is not None:
        what = " ".join((read.__doc__ or "a data set of the user's").split("\n")[0].split())
        SOURCES[name] = Source(name, what, read, 20)
    return name


def load(name: str) -> DataSet:
    """Read or draw a data set by its name; one that is not there ends the program with a line."""
    try:
        X, labels = SOURCES[name].read()
    except FileNotFoundError as error:
        print(f"{name}: {data_sets.missing(Path(error.filename))}", file=sys.stderr)
        raise SystemExit(2) from None
    X = np.asarray(X, dtype=np.float64)
    classes, codes = np.unique(labels, return_inverse=True)
    return DataSet(name, np.ascontiguousarray(X), codes, len(classes))
