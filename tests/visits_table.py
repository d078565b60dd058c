"""A table of visits, and the estimators that learn from it block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.base import clone

from erasable import Records
from erasable.utils import all_estimators
from law_instances import instances_of

N, D = 900, 4
OF_DOCUMENTS = {"CountVectorizer", "TfidfVectorizer"}
WITH_TESTS_OF_THEIR_OWN = {*OF_DOCUMENTS, "Embedding"}
BLOCKWISE = {
    name: cls
    for name, cls, _ in all_estimators()
    if cls._reads_blocks and name not in WITH_TESTS_OF_THEIR_OWN
}
OF_OTHERS = {
    name: instances_of(name, BLOCKWISE[name], tags)[0]
    for name, _, tags in all_estimators()
    if name in BLOCKWISE and tags["meta"]
}
OF_COUNTS = {
    name
    for name, cls in BLOCKWISE.items()
    if name not in OF_OTHERS and cls().__sklearn_tags__().input_tags.positive_only
}


def make(name: str, **wanted: Any) -> Any:
    model = clone(OF_OTHERS[name]) if name in OF_OTHERS else BLOCKWISE[name]()
    few = {} if name in OF_OTHERS else {"n_estimators": 10}
    params = {"random_state": 0, **few, **wanted}
    return model.set_params(**{key: params[key] for key in params.keys() & model.get_params()})


class Visits:
    def __init__(self, *, counts: bool = False, narrow: bool = False, n: int = N) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal([0.0, 3.0, 1e6, 0.0], size=(n, D)).astype("f4" if narrow else "f8")
        if counts:
            X[:] = rng.geometric([0.1, 0.3, 0.5, 0.5], size=(n, D)) - 1
        X[:, 3] = rng.integers(0, 3, n)
        self.ids = np.array([f"visit-{i}" for i in rng.permutation(10 * n)[:n]], object)
        self.y, self.groups = rng.integers(0, 3, n), np.arange(n) // 7
        self.frame = pd.DataFrame({f"x{j}": X[:, j] for j in range(D)})
        columns = {name: self.frame[name].to_numpy() for name in self.frame}
        others = {"id": self.ids.tolist(), "label": self.y, "person": self.groups}
        self.table = pa.table({**columns, **others, "city": ["Bonn"] * n})
        self.furthest = self.ids[np.abs(X - X.mean(axis=0)).argmax(axis=0)]

    def in_memory(self) -> Records:
        return Records(self.frame, self.y, ids=self.ids, groups=self.groups)

    def requests(self) -> list[Any]:
        return [self.ids[:1], self.furthest, self.ids[100:130], self.ids[::3]]


def live(model: Any, ids: Any) -> list[Any]:
    held = set(model.ids_.tolist())
    return [each for each in dict.fromkeys(np.asarray(ids, object).tolist()) if each in held]
