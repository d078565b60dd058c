"""Who is measured: the estimators of erasable, and the scikit-learn models that are refitted."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import plugged
import sklearn.cluster
import sklearn.pipeline
import sklearn.preprocessing

import erasable.cluster
from erasable.core.estimator import Erasable

ITERATIONS = 10
UNTIL_CONVERGENCE = 10_000

TITLES = {
    "kmeans": "KMeans",
    "quantized": "QuantizedKMeans",
    "divide": "DivideAndConquerKMeans",
    "pipeline": "StandardScaler -> KMeans",
}
OTHERS: dict[str, tuple[str, Callable[..., Any]]] = {}
"""What makes models of the user's, and its name with that of its module: see `chosen`."""


def chosen(text: str) -> str:
    """Return the name of a model; ``module:name`` makes it, given k, max_iter and random_state.

    It has `fit`, `cluster_centers_` and `labels_`; without `delete` it is fitted again.
    """
    name, make = plugged.load(text, TITLES)
    if make is not None:
        TITLES[name] = name
        OTHERS[name] = text, make
    return name


def peer_of(name: str) -> str:
    """Name the scikit-learn model that a model is compared with."""
    return "pipeline" if name == "pipeline" else "kmeans"


def _pipeline(k: int, seed: int, **params: Any) -> Any:
    from erasable.pipeline import make_pipeline
    from erasable.preprocessing import StandardScaler

    kmeans = erasable.cluster.KMeans(k, max_iter=ITERATIONS, random_state=seed, **params)
    return make_pipeline(StandardScaler(), kmeans)


def make(name: str, k: int, seed: int, **params: Any) -> Any:
    """Make an unfitted estimator of erasable."""
    if name == "pipeline":
        return _pipeline(k, seed, **params)
    factory = OTHERS[name][1] if name in OTHERS else getattr(erasable.cluster, TITLES[name])
    made = factory(k, max_iter=ITERATIONS, random_state=seed, **params)
    return made if isinstance(made, Erasable) else plugged.Clustering(made)


def make_peer(kind: str, k: int, seed: int, max_iter: int = ITERATIONS) -> Any:
    """Make an unfitted scikit-learn model."""
    kmeans = sklearn.cluster.KMeans(k, n_init=1, max_iter=max_iter, tol=0, random_state=seed)
    if kind == "kmeans":
        return kmeans
    return sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), kmeans)


def present(names: Iterable[str]) -> list[str]:
    """Keep the estimators that this version of erasable has; say which it has not."""
    found = []
    for name in names:
        try:
            make(name, 2, 0)
        except (AttributeError, ImportError):
            print(f"{TITLES[name]}: erasable does not have it; skipped", flush=True)
        else:
            found.append(name)
    return found


def clusterer(model: Any) -> Any:
    """Return the model, or the last step of a pipeline."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def centers(model: Any) -> np.ndarray:
    """Return the centroids, of a pipeline in the scaled space."""
    return np.asarray(clusterer(model).cluster_centers_)


def labels(model: Any) -> np.ndarray:
    """Return the cluster of every record, in row order."""
    return np.asarray(clusterer(model).labels_)


def warm_up(names: Iterable[str], X: np.ndarray, k: int) -> None:
    """Call everything once on a few rows, so that no time counts compiling or loading."""
    few = X[np.random.default_rng(0).choice(len(X), min(len(X), 1_000), replace=False)]
    for name in names:
        model = make(name, k, 0).fit(few)
        most = min(100, len(few) - k)
        for record in range(most // 3):
            model.delete([record], digest=False)
        model.delete(np.arange(most // 3, most))
    for kind in {peer_of(name) for name in names}:
        make_peer(kind, k, 0).fit(few)
    # Hundreds of thousands of objects of the compiler, which no collection needs to look at.
    gc.collect()
    gc.freeze()
