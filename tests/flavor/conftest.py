from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def store(empty_mlflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The client of a store of our own, to which MLflow logs; its files are in `tmp_path`."""
    import mlflow

    shutil.copy(empty_mlflow, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    client = mlflow.MlflowClient(uri, uri)
    experiment = client.create_experiment("tests", artifact_location=(tmp_path / "files").as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", experiment)
    yield client
    mlflow.end_run()
