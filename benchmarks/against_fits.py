"""What a deletion costs against a fit of the same model, digests included.

    python benchmarks/against_fits.py                 every case, 30 deletions each
    python benchmarks/against_fits.py --only kmeans   those whose name has this in it
    python benchmarks/against_fits.py --shares        from which share of the records on a fit is
                                                      faster than a deletion: `_refit_from`

A deletion with both of its digests and a fit of what is left with its digest take turns; a line
has the medians, and what the deletion costs in fits. Exit status 1 means that a
deletion takes more than 1.1 fits somewhere, or that a model was not what a fit gives.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

# One thread, for everybody. The libraries read this when they are imported.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.compose import ColumnTransformer
from erasable.core.estimator import NEVER
from erasable.decomposition import PCA
from erasable.ensemble import RandomForestClassifier
from erasable.feature_extraction import TfidfVectorizer
from erasable.linear_model import LogisticRegression, Ridge
from erasable.naive_bayes import GaussianNB, MultinomialNB
from erasable.neighbors import KNeighborsClassifier
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier

AIM = 1.1
Case = tuple[Any, Any, Any, int]


def numbers(n: int, d: int = 10) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(8, d)) * 4
    codes = rng.integers(0, 8, size=n)
    X = centers[codes] + rng.normal(size=(n, d))
    return X, (codes + (rng.random(n) < 0.1)) % 2


def texts(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(4000)])
    weights = 1 / np.arange(1, 4001)
    weights /= weights.sum()
    y = rng.integers(0, 2, size=n)
    drawn = rng.choice(4000, size=(n, 30), p=weights)
    drawn[:, :3] = (drawn[:, :3] // 2) * 2 + y[:, None]
    return [" ".join(words[row]) for row in drawn], y


def mixed(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X, y = numbers(n, 4)
    table = np.empty((n, 6), dtype=object)
    table[:, :4] = X
    table[:, 4] = rng.choice(list("abcdefgh"), size=n)
    table[:, 5] = rng.choice(list("xyz"), size=n)
    return table, y


def cases() -> dict[str, Callable[[], Case]]:
    """Make the cases: estimator, X, y, how many records leave at a time."""
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), [0, 1, 2, 3]),
            ("words", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), [4, 5]),
        ]
    )

    def on(data: Callable[..., Any], n: int, *steps: Any, gone: int = 1) -> Callable[[], Case]:
        def make() -> Case:
            X, y = data(n)
            return make_pipeline(*steps) if len(steps) > 1 else steps[0], X, y, gone

        return make

    forest = RandomForestClassifier(n_estimators=20, random_state=0)
    quantized = QuantizedKMeans(8, random_state=0)
    kmeans = KMeans(8, random_state=0)
    scaler = StandardScaler()
    return {
        "scaler -> QuantizedKMeans": on(numbers, 4000, scaler, quantized),
        "quantized scaler -> QuantizedKMeans": on(
            numbers, 4000, StandardScaler(quantize=True, random_state=0), quantized
        ),
        "MinMaxScaler -> QuantizedKMeans": on(numbers, 4000, MinMaxScaler(), quantized),
        "PCA -> QuantizedKMeans": on(numbers, 4000, PCA(4), quantized),
        "scaler -> DivideAndConquerKMeans": on(
            numbers, 4000, scaler, DivideAndConquerKMeans(8, random_state=0)
        ),
        "PCA -> kNN": on(numbers, 5000, PCA(4), KNeighborsClassifier()),
        "PCA -> forest": on(numbers, 3000, PCA(4), forest),
        "PCA -> tree": on(numbers, 3000, PCA(4), DecisionTreeClassifier(random_state=0)),
        "PCA -> KMeans": on(numbers, 5000, PCA(4), kmeans),
        "PCA -> LogisticRegression": on(numbers, 5000, PCA(4), LogisticRegression()),
        "PCA -> GaussianNB": on(numbers, 5000, PCA(4), GaussianNB()),
        "TF-IDF -> LogisticRegression": on(texts, 4000, TfidfVectorizer(), LogisticRegression()),
        "TF-IDF -> MultinomialNB": on(texts, 4000, TfidfVectorizer(), MultinomialNB()),
        "columns -> LogisticRegression": on(mixed, 4000, columns, LogisticRegression()),
        "columns -> scaler -> KMeans": on(mixed, 4000, columns, StandardScaler(), kmeans),
        "columns -> QuantizedKMeans": on(mixed, 4000, columns, quantized),
        "scaler -> KMeans": on(numbers, 4000, scaler, kmeans),
        "KMeans, 10 % at once": on(numbers, 5000, kmeans, gone=500),
        "KMeans, 30 % at once": on(numbers, 5000, kmeans, gone=1500),
        "scaler -> KMeans, 10 % at once": on(numbers, 5000, scaler, kmeans, gone=500),
        "QuantizedKMeans, 10 % at once": on(numbers, 5000, quantized, gone=500),
        "DivideAndConquerKMeans, 10 % at once": on(
            numbers, 5000, DivideAndConquerKMeans(8, random_state=0), gone=500
        ),
        "forest, 10 % at once": on(numbers, 3000, forest, gone=300),
        "tree, 10 % at once": on(numbers, 3000, DecisionTreeClassifier(random_state=0), gone=300),
        "LogisticRegression, 10 % at once": on(numbers, 5000, LogisticRegression(), gone=500),
        "kNN, 10 % at once": on(numbers, 5000, KNeighborsClassifier(), gone=500),
        "Ridge, 10 % at once": on(numbers, 5000, Ridge(), gone=500),
        "GaussianNB, 10 % at once": on(numbers, 5000, GaussianNB(), gone=500),
        "TF-IDF -> LogisticRegression, 10 % at once": on(
            texts, 4000, TfidfVectorizer(), LogisticRegression(), gone=400
        ),
    }


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    value = call()
    return time.perf_counter() - began, value


def measure(
    case: Case, repeats: int, *, first: bool = True, named: bool = False
) -> tuple[float, float, bool, dict[str, int]]:
    """Return the medians of fits and deletions, whether models are equal, and what was done.

    `first` deletions are those of models that have just been fitted, and have no digest yet;
    others follow each other in one model. Ids are numbers, or strings where `named`.
    """
    estimator, X, y, gone = case
    n = len(X)
    names = np.array([f"record-{i}" for i in range(n)], dtype=object) if named else np.arange(n)
    order = np.random.default_rng(1).permutation(n)
    fits, deletions, same = [], [], True
    actions: dict[str, int] = {}

    def fit(rows: Any) -> Any:
        part = [X[i] for i in rows] if isinstance(X, list) else X[rows]
        return clone(estimator).fit(part, y[rows], ids=names[rows])

    def fit_and_digest(rows: Any) -> str:
        return fit(rows).digest()

    model = fit(np.arange(n))
    for repeat in range(repeats + 1):
        if first:
            doomed = np.sort(np.random.default_rng(repeat).permutation(n)[:gone])
            which = fit(np.arange(n))
        else:
            doomed, which = order[repeat * gone : (repeat + 1) * gone], model
        asked = names[doomed].tolist()
        seconds, done = timed(lambda which=which, asked=asked: which.delete(asked))
        gone_by_now = doomed if first else order[: (repeat + 1) * gone]
        left = np.setdiff1d(np.arange(n), gone_by_now)
        took, digest = timed(lambda left=left: fit_and_digest(left))
        same &= digest == which.digest()
        if repeat:  # the first one compiles
            deletions.append(seconds)
            fits.append(took)
            actions[done.action] = actions.get(done.action, 0) + 1
    return statistics.median(fits), statistics.median(deletions), same, actions


SHARES = (0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6)


def sweep(repeats: int, only: str) -> None:
    """Print what deletions of a share of the records cost where none of them learns again."""
    kinds = {
        "KMeans": KMeans(8, random_state=0),
        "QuantizedKMeans": QuantizedKMeans(8, random_state=0),
        "DivideAndConquerKMeans": DivideAndConquerKMeans(8, random_state=0),
        "DecisionTreeClassifier": DecisionTreeClassifier(random_state=0),
        "RandomForestClassifier": RandomForestClassifier(n_estimators=20, random_state=0),
        "LogisticRegression": LogisticRegression(),
        "KNeighborsClassifier": KNeighborsClassifier(),
        "Ridge": Ridge(),
        "GaussianNB": GaussianNB(),
        "PCA": PCA(4),
        "StandardScaler": StandardScaler(),
        "MinMaxScaler": MinMaxScaler(),
        "RobustScaler": RobustScaler(),
        "OneHotEncoder": OneHotEncoder(),
        "SimpleImputer": SimpleImputer(),
        "TfidfVectorizer": TfidfVectorizer(),
        "MultinomialNB": MultinomialNB(),
    }
    data = {"OneHotEncoder": mixed, "TfidfVectorizer": texts}
    print(f"{'':28}{'n':>8}" + "".join(f"{share:>8.1%}" for share in SHARES))
    for name, estimator in kinds.items():
        if only not in name:
            continue
        type(estimator)._refit_from = NEVER
        for n in (1000, 5000, 40_000):
            X, y = data.get(name, numbers)(n)
            X = np.abs(X) if name == "MultinomialNB" else X
            X = X[:, 4:] if name == "OneHotEncoder" else X
            told = ""
            for share in SHARES:
                case = (estimator, X, y, max(2, int(share * n)))
                fit, deletion, _, _ = measure(case, repeats)
                told += f"{deletion / fit:8.2f}"
            print(f"{name:28}{n:8}{told}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--shares", action="store_true")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if chosen.shares:
        sweep(chosen.repeats, chosen.only)
        return 0
    wrong = 0
    print(f"{'':44}{'fit':>10}{'deletion':>12}{'in fits':>9}{'later':>9}")
    for name, make in cases().items():
        if chosen.only not in name:
            continue
        case = make()
        fit, deletion, same, actions = measure(case, chosen.repeats)
        ratio, later = deletion / fit, ""
        if case[3] == 1:
            again_fit, again, same_again, _ = measure(case, chosen.repeats, first=False)
            same &= same_again
            later = f"{again / again_fit:.2f}"
        wrong += ratio > AIM or not same
        told = ", ".join(f"{action} {count}" for action, count in actions.items())
        mark = "" if same else "  NOT A REFIT"
        slow = "  *" if ratio > AIM else ""
        print(
            f"{name:44}{1e3 * fit:8.1f}ms{1e3 * deletion:10.2f}ms{ratio:9.2f}{later:>9}  "
            f"{told}{slow}{mark}",
            flush=True,
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
