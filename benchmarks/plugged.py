"""Objects of the user's, named as ``module:name``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


def load(text: str, names: Iterable[str] = ()) -> tuple[str, Any]:
    """Import what a text names, from the current folder, too; return its name, and the object.

    A text that is one of `names` is its own name, with None.
    """
    if text in names:
        return text, None
    if ":" not in text:
        known = "".join(f"{each}, " for each in names)
        raise argparse.ArgumentTypeError(f"there is no {text!r}; expected {known}or module:name")
    module, _, name = text.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return name, getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be imported: {error}; expected one of those listed, or module:name"
        ) from None
    finally:
        sys.path.pop(0)


class Clustering:
    """A clustering of the user's, called as the estimators of erasable are.

    Without `delete`, which is given rows of the fitted array, it is fitted again on what is left;
    without `digest` it is known by the bytes of its centroids.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, ids: np.ndarray | None = None) -> Clustering:
        """Fit the model; ids are of no use to it."""
        self._X, self._there = X, np.ones(len(X), bool)
        self.model.fit(X)
        return self

    def delete(self, records: Any, digest: bool = True) -> SimpleNamespace:
        """Delete rows."""
        rows = np.atleast_1d(records)
        self._there[rows] = False
        again = not hasattr(self.model, "delete")
        if again:
            self.model.fit(self._X[self._there])
        else:
            self.model.delete(rows.tolist())
        touched = int(self._there.sum()) if again else len(rows)
        action = "refit" if again else "updated"
        return SimpleNamespace(action=action, rows_touched=touched, counts={})

    def digest(self) -> str:
        """Return the model's digest, or its centroids."""
        if hasattr(self.model, "digest"):
            return str(self.model.digest())
        return np.asarray(self.model.cluster_centers_).tobytes().hex()

    @property
    def cluster_centers_(self) -> Any:
        """Centroids."""
        return self.model.cluster_centers_

    @property
    def labels_(self) -> Any:
        """The cluster of every record that is left."""
        return self.model.labels_
