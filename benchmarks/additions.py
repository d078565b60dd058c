"""What adding, correcting and replacing a record cost, against deleting one, refits and river.

    python benchmarks/additions.py            100,000 records, and docs/how-to/add-and-correct.md
    python benchmarks/additions.py --quick    5,000 records, and nothing is written

Medians of the processor's time, with one thread, of changes that take turns in one model. With
digests, each call computes that before (which is known from the last) and after. The window needs
`pip install river`, which learns each record once and forgets none, but for its neighbours.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

# One thread, for everybody. The libraries read this when they are imported.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from parts import ROOT, Found, run
from twin_data import sms
from twin_pairs import sms_pipelines

from erasable.cluster import DivideAndConquerKMeans, KMeans, QuantizedKMeans
from erasable.compose import ColumnTransformer
from erasable.decomposition import PCA
from erasable.ensemble import RandomForestClassifier
from erasable.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    SegmentedRegression,
)
from erasable.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from erasable.neighbors import KNeighborsClassifier, NearestCentroid
from erasable.pipeline import make_pipeline
from erasable.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
)
from erasable.tree import DecisionTreeClassifier

PAGE = ROOT / "docs" / "how-to" / "add-and-correct.md"
REPEATS, FEW = 60, 15
CODES = {"`CategoricalNB`", "`OneHotEncoder`", "`OrdinalEncoder`"}
SLOW = {
    "`LogisticRegression`",
    "`StandardScaler` and `LogisticRegression`",
    "`DecisionTreeClassifier`",
    "`RandomForestClassifier(20)`",
    "one-hot and scaled columns, `LogisticRegression`",
}
MODELS: dict[str, Any] = {
    "`Ridge`": Ridge(),
    "`LinearRegression`": LinearRegression(),
    "`GaussianNB`": GaussianNB(),
    "`MultinomialNB`": MultinomialNB(),
    "`BernoulliNB`": BernoulliNB(),
    "`NearestCentroid`": NearestCentroid(),
    "`KNeighborsClassifier`": KNeighborsClassifier(),
    "`StandardScaler`": StandardScaler(),
    "`MinMaxScaler`": MinMaxScaler(),
    "`MaxAbsScaler`": MaxAbsScaler(),
    "`RobustScaler`": RobustScaler(),
    "`SimpleImputer`": SimpleImputer(),
    '`SimpleImputer(strategy="median")`': SimpleImputer(strategy="median"),
    "`OneHotEncoder`": OneHotEncoder(),
    "`OrdinalEncoder`": OrdinalEncoder(),
    "`CategoricalNB`": CategoricalNB(),
    "`PCA(5)`": PCA(5),
    "`StandardScaler` and `Ridge`": make_pipeline(StandardScaler(), Ridge()),
    "`LogisticRegression`": LogisticRegression(),
    "`StandardScaler` and `LogisticRegression`": make_pipeline(
        StandardScaler(), LogisticRegression()
    ),
    "one-hot and scaled columns, `LogisticRegression`": make_pipeline(
        ColumnTransformer(
            [
                ("codes", OneHotEncoder(handle_unknown="ignore"), [0, 1]),
                ("numbers", StandardScaler(quantize=True, random_state=0), list(range(2, 20))),
            ]
        ),
        LogisticRegression(),
    ),
    "`KMeans`": KMeans(random_state=0),
    "`QuantizedKMeans`": QuantizedKMeans(random_state=0),
    "`DivideAndConquerKMeans`": DivideAndConquerKMeans(random_state=0),
    "`SegmentedRegression`": SegmentedRegression(random_state=0),
    "`DecisionTreeClassifier`": DecisionTreeClassifier(random_state=0),
    "`RandomForestClassifier(20)`": RandomForestClassifier(20, random_state=0),
}


def seconds(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def changes(quick: bool) -> Found:
    """Measure all models, with digests and without."""
    n = 5_000 if quick else 100_000
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(n + 1, 20)))
    y = (X[:, 0] + rng.normal(size=n + 1) > 1).astype(np.int64)
    codes = np.floor(X * 4.0)
    mixed = np.column_stack([codes[:, :2], X[:, 2:]])
    found: Found = {"n": n}
    for name, model in MODELS.items():
        rows = codes if name in CODES else mixed if "one-hot and" in name else X
        found[name] = {}
        for digest in (True, False):
            model.fit(rows[:n], y[:n], ids=np.arange(n))
            repeats = FEW if name in SLOW else REPEATS
            found[name]["digests" if digest else "none"] = _of(model, rows, y, n, digest, repeats)
    return found


def _of(model: Any, X: Any, y: Any, n: int, digest: bool, repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {}

    def take(kind: str, call: Callable[[], Any]) -> None:
        times.setdefault(kind, []).append(seconds(call))

    model.add(X[[0]], y[[0]], ids=[n], digest=digest)  # which makes room, and all that is late
    model.delete([n], digest=digest)
    learns = model.__sklearn_tags__().target_tags.required
    for step in range(repeats):
        at, row, new = step + 100, [step + 1000], n + 1 + step
        take("delete", lambda at=at: model.delete([at], digest=digest))
        take("add", lambda row=row, new=new: model.add(X[row], y[row], ids=[new], digest=digest))
        told = y[row] if learns else None
        take(
            "correct",
            lambda at=at, row=row, told=told: model.correct(
                [at + 5000 if n > 5000 else at + 500], X[row], told, digest=digest
            ),
        )
        take(
            "replace",
            lambda at=at, row=row, new=new: model.replace(
                [at + 2000], X[row], y[row], ids=[new + 10**6], digest=digest
            ),
        )
    return {kind: statistics.median(of) * 1e6 for kind, of in times.items()}


def texts(quick: bool) -> Found:
    """Add a message with new words to TF-IDF and a logistic regression; refit scikit-learn's."""
    data = sms(500 if quick else None)
    texts, classes = data.X.tolist(), np.asarray(data.y)
    ours, theirs = sms_pipelines()
    n = len(texts) - FEW
    ours.fit(texts[:n], classes[:n], ids=range(n))
    times: dict[str, list[float]] = {"add": [], "delete": [], "refit": []}
    for step in range(n, n + FEW):
        text = f"{texts[step]} brandnew{step} neverseen{step}"
        times["add"].append(
            seconds(lambda text=text, at=step: ours.add([text], classes[[at]], ids=[at]))
        )
        times["delete"].append(
            seconds(lambda at=step: ours.delete([at - 1000 if at > 1500 else at - n]))
        )
        times["refit"].append(seconds(lambda at=step: theirs.fit(texts[:at], classes[:at])))
    return {"n": n, **{kind: statistics.median(of) for kind, of in times.items()}}


WINDOWS: dict[str, tuple[Any, int]] = {
    "`Ridge`": (Ridge(), 4000),
    "`GaussianNB`": (GaussianNB(), 2000),
    "`KNeighborsClassifier`": (KNeighborsClassifier(), 2000),
    "`RandomForestClassifier(10)`": (RandomForestClassifier(10, random_state=0), 200),
}


def window(quick: bool) -> Found:
    """Move a window of 10,000 over a stream of 100,000; give updates a second."""
    size, n = (1000, 3000) if quick else (10_000, 100_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    X[:, 0] = np.arange(n)  # a timestamp
    y = (X[:, 1] + X[:, 2] * X[:, 3] + rng.normal(size=n) > 0).astype(np.int64)
    found: Found = {"size": size, "n": n}
    for name, (model, most) in WINDOWS.items():
        target = y + X[:, 1] if name == "`Ridge`" else y
        model.fit(X[:size], target[:size], ids=np.arange(size))
        steps = min(most, n - 2 * size if quick else n)

        def move(
            first: int, steps: int, asks: bool, model: Any = model, target: Any = target
        ) -> None:
            for at in range(first, first + steps):
                new = slice(size + at, size + at + 1)
                if asks:
                    model.predict(X[new])
                model.replace([at], X[new], target[new], ids=[size + at], digest=False)

        move(0, 1, True)
        few = max(steps // 20, 10)
        found[name] = {
            "ours": steps / seconds(lambda move=move, steps=steps: move(1, steps, False)),
            "asked": few / seconds(lambda move=move, few=few, at=1 + steps: move(at, few, True)),
        }
    if importlib.util.find_spec("river") is not None:
        _with_river(found, X, y, size, 200 if quick else 2000)
    return found


def _with_river(found: Found, X: Any, y: Any, size: int, most: int) -> None:
    from river import forest, linear_model, naive_bayes, neighbors

    theirs = {
        "`Ridge`": linear_model.LinearRegression(l2=1e-3),
        "`GaussianNB`": naive_bayes.GaussianNB(),
        "`KNeighborsClassifier`": neighbors.KNNClassifier(
            engine=neighbors.LazySearch(window_size=size)
        ),
        "`RandomForestClassifier(10)`": forest.ARFClassifier(n_models=10, seed=0),
    }
    rows = [dict(enumerate(row)) for row in X[: size + most + 50].tolist()]
    targets = y.tolist()
    for name, model in theirs.items():
        warm = size if "Forest" not in name else most

        def learn(first: int, last: int, asks: bool, model: Any = model) -> None:
            for at in range(first, last):
                if asks:
                    model.predict_one(rows[at])
                model.learn_one(rows[at], targets[at])

        learn(0, warm, False)
        found[name]["river"] = most / seconds(
            lambda learn=learn, warm=warm: learn(warm, warm + most, False)
        )
        found[name]["river asked"] = 50 / seconds(
            lambda learn=learn, at=warm + most: learn(at, at + 50, True)
        )


def section(found: Found) -> str:
    """Write the section of the page."""
    told = found["changes"]
    rows = []
    for name in MODELS:
        for kind, label in (("digests", "yes"), ("none", "no")):
            times = told[name][kind]
            ratio = times["add"] / times["delete"]
            rows.append(
                f"| {name} | {label} | {times['delete']:,.0f} | {times['add']:,.0f} | {ratio:.1f} "
                f"| {times['correct']:,.0f} | {times['replace']:,.0f} |"
            )
    return "\n".join(
        [
            "## Measured",
            "",
            f"Times for one record of {told['n']:,} with 20 features, in microseconds of processor "
            f"time (median of {REPEATS}, of slow models {FEW}, one thread): "
            "`python benchmarks/additions.py`.",
            "",
            "| model | digests | delete | add | add / delete | correct | replace |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            *_of_texts(found["texts"]),
            *_of_window(found["window"]),
        ]
    )


def _of_texts(told: Found) -> list[str]:
    ratio = told["refit"] / told["add"]
    return [
        f"TF-IDF and a logistic regression of {told['n']:,} messages: adding a message with two "
        f"new words takes {told['add'] * 1e3:.0f} ms, including digests, and deleting one takes "
        f"{told['delete'] * 1e3:.0f} ms; a refit with scikit-learn takes "
        f"{told['refit'] * 1e3:.0f} ms, {ratio:.1f} times as long as adding.",
        "",
    ]


def _of_window(told: Found) -> list[str]:
    lines = []
    for name in WINDOWS:
        kinds = ("ours", "asked", "river", "river asked")
        numbers = [f"{told[name][kind]:,.0f}" if kind in told[name] else "" for kind in kinds]
        lines.append(f"| {name} | {' | '.join(numbers)} |")
    return [
        f"A window of {told['size']:,} records with 20 columns, one of them a timestamp, moves "
        "over a stream. The table has updates per second of processor time. Each update deletes "
        "the oldest record and adds a new one, without digests; the columns *with predictions* add "
        "a prediction before each update. The models of [river](https://riverml.xyz) differ: its "
        "linear model takes a step of gradient descent, its forest is adaptive, none of them "
        "deletes, and only its neighbours have a window.",
        "",
        "| model | updates | with predictions | river | with predictions |",
        "|---|---|---|---|---|",
        *lines,
        "",
    ]


if __name__ == "__main__":
    parts = {"changes": changes, "texts": texts, "window": window}
    run("additions", PAGE, parts, section, __doc__)
