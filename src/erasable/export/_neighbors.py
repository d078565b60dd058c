"""Exports of models that are their records: nearest neighbours and densities."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, KNeighborsRegressor

from erasable.core.arrays import Floats
from erasable.core.errors import ExportError, ExportWarning
from erasable.export._source import Source


def warn_of_records(source: Source, name: str) -> None:
    """Warn that what is exported holds records, unless the caller knows."""
    if not source.records:
        warnings.warn(
            f"the exported {name} holds the values of records, and is to be protected, and "
            "replaced after a deletion, as they are; pass records=True to say that you know",
            ExportWarning,
            stacklevel=6,  # of the caller of `to_sklearn`
        )


def _records(source: Source) -> tuple[Floats, dict[str, Any]]:
    """Return the live records as the model sees them, and their targets, in the order of ``ids_``.

    What the model learns behind a scaler of a pipeline, it keeps unscaled.
    """
    warn_of_records(source, type(source.model).__name__)
    kept, scaling = dict(source.state["records"]), source.state.get("map")
    places = {one: place for place, one in enumerate(source.model.ids_.tolist())}
    order = np.argsort([places[one] for one in kept.pop("ids").tolist()])
    rows = kept.pop("X")[order]
    targets = {name: part if name == "classes" else part[order] for name, part in kept.items()}
    if scaling is not None:
        rows = (rows - scaling["shift"]) / scaling["scale"]
    return rows, targets


def _params(source: Source, theirs: type[Any]) -> dict[str, Any]:
    params = source.shared(theirs)
    if params["algorithm"] == "auto":
        # scikit-learn's "brute" subtracts squares, and loses digits where records are far from 0.
        params["algorithm"] = "kd_tree"
    return params


def neighbors_classifier(source: Source) -> KNeighborsClassifier:
    """Export the records with their classes."""
    matrix, kept = _records(source)
    made = KNeighborsClassifier(**_params(source, KNeighborsClassifier)).fit(matrix, kept["codes"])
    labels: list[NDArray[Any]] = kept["classes"]
    made.classes_ = labels[0] if kept["codes"].ndim == 1 else labels
    return made


def neighbors_regressor(source: Source) -> KNeighborsRegressor:
    """Export the records with their targets."""
    matrix, kept = _records(source)
    params = _params(source, KNeighborsRegressor)
    return KNeighborsRegressor(**params).fit(matrix, kept["y"])


def kernel_density(source: Source) -> KernelDensity:
    """Export the records with their weights."""
    if source.at_fit("kernel") == "cosine" and source.model.n_features_in_ % 2 == 0:
        raise ExportError(
            "the kernel of the KernelDensity is 'cosine', and it has "
            f"{source.model.n_features_in_} features; expected an odd number of them: for an even "
            "one, densities of scikit-learn do not integrate to 1; fit with another kernel"
        )
    matrix, kept = _records(source)
    weights = kept["weights"]
    made = KernelDensity(**source.shared(KernelDensity))
    return made.fit(matrix, sample_weight=None if (weights == 1.0).all() else weights)
