"""What fitting, deleting from and asking compositions costs: ``python benchmarks/compositions.py``.

Medians of processor time; deletions are without digests. To compare two versions, run it in turns
with ``PYTHONPATH`` at the source of each.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from erasable.cluster import KMeans
from erasable.compose import make_column_transformer
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    SimpleImputer,
    StandardScaler,
)

N, DELETIONS = 20_000, 30


def cases() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield names, compositions, records and targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 10))
    y = (X[:, 0] > 0).astype(int)
    yield "scaler, k-means", make_pipeline(StandardScaler(), KMeans(8, random_state=0)), X, None
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    frame["u"], frame["v"] = rng.choice(list("xyzw"), N), rng.choice(list("pq"), N)
    frame.loc[::50, "a"] = np.nan
    mixed = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), list("abcdefghij")),
        (OneHotEncoder(), ["u", "v"]),
    )
    yield "mixed columns, logistic regression", make_pipeline(mixed, LogisticRegression()), frame, y
    some = make_column_transformer((StandardScaler(), [0, 1, 2]), remainder="passthrough")
    yield (
        "some columns, scaler, kNN",
        make_pipeline(some, MinMaxScaler(), KNeighborsClassifier()),
        X,
        y,
    )
    words = [f"w{number}" for number in range(500)]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(4000)]
    yield "TF-IDF, ridge", make_pipeline(TfidfVectorizer(), Ridge()), texts, np.arange(4000.0) % 7


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def main() -> None:
    """Print a line for each composition."""
    for name, model, X, y in cases():
        clone(model).fit(X, y).delete([0], digest=False)  # compiles
        fit = statistics.median(
            seconds(lambda model=model, X=X, y=y: model.fit(X, y)) for _ in range(7)
        )
        model.delete([0], digest=False)
        delete = statistics.median(
            seconds(lambda model=model, i=i: model.delete([i], digest=False))
            for i in range(1, DELETIONS + 1)
        )
        asked = X.iloc[:200] if isinstance(X, pd.DataFrame) else X[:200]
        predict = statistics.median(
            seconds(lambda model=model, asked=asked: model.predict(asked)) for _ in range(20)
        )
        print(
            f"{name}: fit {1e3 * fit:.1f} ms, delete {1e3 * delete:.2f} ms, "
            f"predict 200 rows {1e3 * predict:.2f} ms"
        )


if __name__ == "__main__":
    main()
