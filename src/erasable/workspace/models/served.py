"""Prediction with a published model that MLflow loads, without the workspace.

MLflow calls `_load_pyfunc`. The law kept here: predictions equal those of `erasable model predict`.
Nothing is unpickled: the folder holds the exported model, and the names of its columns.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.core.errors import InvalidDataError
from erasable.mlflow import _flavor as flavor
from erasable.workspace.data.admission import plain_columns
from erasable.workspace.models.model_columns import ModelColumns
from erasable.workspace.models.published import DESIGN


class Served(flavor.Served):
    """A fitted model, and the columns that it learned from, which predicts for tables."""

    def __init__(self, fitted: Any, design: ModelColumns) -> None:
        super().__init__(fitted, "predict")
        self._design = design

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Predict for the rows of a table; return an array of shape (n_rows,).

        `model_input` is a pandas DataFrame, or anything that pyarrow makes a table of; other
        columns are ignored, and so is `params`, which MLflow passes.
        """
        wanted = list(self._design.features)
        table = _table(model_input)
        missing = [each for each in wanted if each not in table.column_names]
        if missing:
            raise InvalidDataError(
                f"the table lacks the columns {', '.join(missing)}; expected all that the model "
                "learned from"
            )
        given = self._design.given(plain_columns(table.select(wanted)))
        return np.asarray(super().predict(given))


def _table(given: Any) -> Any:
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "columns"):
        return pa.Table.from_pandas(given, preserve_index=False)
    if isinstance(given, dict):
        return pa.table(given)
    if isinstance(given, list) and all(isinstance(each, dict) for each in given):
        return pa.Table.from_pylist(given)
    raise InvalidDataError(
        f"the model was given a {type(given).__name__}; expected a table with the names of its "
        "columns; pass a pandas.DataFrame"
    )


def _load_pyfunc(path: str | os.PathLike[str]) -> Served:
    """Load a model from the folder that was registered; MLflow calls it."""
    said = json.loads(Path(path, DESIGN).read_bytes())
    design = ModelColumns(tuple(said["features"]), said["target"], said["documents"])
    return Served(flavor.open_data(path)[0], design)
