"""Fixtures for the examples of the pages: an empty folder with the data files."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from command_blocks import lay_out

# Notebooks are run by tests/test_gallery.py; what makes pages of them needs the extra `docs`.
collect_ignore_glob = ["gallery/*.py", "notebooks.py", "reference.py"]

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _own_folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run each page in its own folder; skip it if it needs what is not installed, or real data."""
    if request.path.suffix != ".md":
        return
    if "torch" in request.path.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    if "import LGBM" in request.path.read_text(encoding="utf-8"):
        for name in ("lightgbm", "xgboost"):
            pytest.importorskip(name, reason=f"{name} is not installed: make boosting")
    if "ERASABLE_DATA" in request.path.read_text(encoding="utf-8"):
        data = Path(os.environ.get("ERASABLE_DATA") or ROOT.parent / "shared" / "data").resolve()
        if not data.is_dir():
            pytest.skip(f"no real data at {data}; set ERASABLE_DATA to the folder that holds it")
        monkeypatch.setenv("ERASABLE_DATA", str(data))
    if "import mlflow" in request.path.read_text(encoding="utf-8"):
        pytest.importorskip("mlflow", reason="MLflow is not installed: extra mlflow")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
        monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        for category in (DeprecationWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category)  # of MLflow about others
    if "import SqliteStore" in request.path.read_text(encoding="utf-8"):
        for name in ("langchain_community", "langgraph.store.sqlite", "llama_index.core"):
            pytest.importorskip(name, reason=f"{name} is not installed", exc_type=ImportError)
        warnings.simplefilter("ignore")  # of these packages about others
    if "dask" in request.path.read_text(encoding="utf-8"):
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of Dask about pandas
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
