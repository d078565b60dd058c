"""The California housing data, in two sets drawn at random, and a few blocks apart from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from data import Data, data_sets

N, N_PUBLIC = 6000, 500


@dataclass(frozen=True)
class Housing(Data):
    """Blocks to choose from and for validation; others that are public.

    Attributes
    ----------
    income : ndarray of shape (n_records,)
        The median income of the blocks to choose from, scaled to [0, 1].
    X_public, y_public : ndarray
    """

    income: Any
    X_public: Any
    y_public: Any


def housing(seed: int, n: int = N) -> Housing:
    """Draw blocks; each feature, and the value of a house, has mean 0 and variance 1 on the first.

    The features are those of scikit-learn: median income, age of the houses, rooms and bedrooms by
    household, population, people by household, latitude and longitude.
    """
    frame = pd.read_csv(data_sets.path("california_housing/cal_housing.csv.gz"))
    homes = frame["households"]
    X = np.column_stack([
        frame["medianIncome"], frame["housingMedianAge"], frame["totalRooms"] / homes,
        frame["totalBedrooms"] / homes, frame["population"], frame["population"] / homes,
        frame["latitude"], frame["longitude"],
    ])  # fmt: skip
    y = frame["medianHouseValue"].to_numpy(np.float64)
    order = np.random.default_rng([seed, 24]).permutation(len(y))
    first, new, public = np.split(order[: 2 * n + N_PUBLIC], [n, 2 * n])
    income = X[first, 0]
    X = (X - X[first].mean(axis=0)) / X[first].std(axis=0)
    y = (y - y[first].mean()) / y[first].std()
    scaled = (income - income.min()) / np.ptp(income)
    return Housing(X[first], y[first], X[new], y[new], scaled, X[public], y[public])
