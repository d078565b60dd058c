"""The Adult income data, in categories: 30,718 people to choose from, 15,315 for validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from data import Data, data_sets

NEEDED = ("workclass", "occupation")  # people of whom one is missing are left out
TEXTS = ("education", "marital-status", "occupation", "relationship", "race", "sex")
Bins = Mapping[str, Sequence[float]]
BINS: Bins = {
    "age": range(20, 80, 5),
    "hours-per-week": (30, 40, 41, 50),
    "capital-gain": (1, 5000),
    "capital-loss": (1, 1800),
}
"""Where the classes of numbers begin. The paper names the columns, and no numbers."""


def adult(bins: Bins = BINS) -> Data:
    """Read the data: ten features, each with categories that count from 0; class 1 is above 50k."""
    frame = pd.read_csv(data_sets.path("adult/adult.csv.gz"), na_values="?")
    frame = frame.dropna(subset=NEEDED)
    columns = [np.unique(frame[name].to_numpy(str), return_inverse=True)[1] for name in TEXTS]
    columns += [np.digitize(frame[name], list(edges)) for name, edges in bins.items()]
    X = np.stack(columns, axis=1).astype(np.int64)
    y = (frame["income"] == ">50K").to_numpy(np.int64)
    train = (frame["split"] == "train").to_numpy()
    return Data(X[train], y[train], X[~train], y[~train])
