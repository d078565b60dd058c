"""Fifty deletions from real data: every model is, bit for bit, a fit of the rest."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cluster.lawful import assert_lawful, seeds_of
from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans


def covertype(folder: Path) -> tuple[np.ndarray, int]:
    frame = pd.read_csv(folder / "covertype" / "covertype_train_15120.csv.gz", nrows=6_000)
    return frame.drop(columns=["Id", "Cover_Type"]).to_numpy(np.float64), 7


def mnist(folder: Path) -> tuple[np.ndarray, int]:
    with gzip.open(folder / "mnist" / "train-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(16 + 2_000 * 784), np.uint8, offset=16)
    return pixels.reshape(-1, 784) / np.float32(255.0), 10


@pytest.mark.parametrize("make", [KMeans, QuantizedKMeans, DivideAndConquerKMeans])
@pytest.mark.parametrize("read", [covertype, mnist])
def test_fifty_deletions_equal_a_fit_of_the_rest(read: Any, make: Any, data_dir: Path) -> None:
    name = read.__name__
    if not (data_dir / name).is_dir():
        pytest.skip(f"no folder {name} in {data_dir}")
    X, k = read(data_dir)
    model = make(k, random_state=0).fit(X)
    rng = np.random.default_rng(1)
    actions = set()
    order = rng.permutation(len(X)).tolist()
    for step in range(40):
        record = order.pop()
        if step in (7, 21):
            record = seeds_of(model)[step % k]
            order.remove(record)
        actions.add(model.delete([record], digest=step % 5 == 0).action)
        if step % 20 == 19:
            assert_lawful(model, X)
    model.delete([order.pop() for _ in range(10)])
    assert_lawful(model, X)
    assert actions & {"updated", "resumed"}
    again = model.inertia_
    assert again == pytest.approx(-model.score(X[model.ids_]), rel=1e-12)
