"""What is tested only where an optional dependency is installed: torch, MLflow, clients."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

TORCH = find_spec("torch") is not None
_NEEDS = {"mlflow": find_spec("mlflow") is not None, "neural": TORCH}
"""Packages of erasable that cannot be imported without another one, and whether that is there."""

_CLIENTS = {
    "chroma": "chromadb", "delta": "deltalake", "duckdb_file": "duckdb", "faiss": "faiss",
    "iceberg": "pyiceberg", "lance": "lancedb", "milvus": "pymilvus", "milvus_files": "pymilvus",
    "qdrant": "qdrant_client", "qdrant_edge": "qdrant_edge", "redis": "redis",
}  # fmt: skip
"""Modules of targets, and what each imports."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot be imported; its tests say themselves why. A plugin of pytest."""
    lacks = any(name in collection_path.parts and not there for name, there in _NEEDS.items())
    if collection_path.parent.name == "targets" and collection_path.stem in _CLIENTS:
        lacks = lacks or find_spec(_CLIENTS[collection_path.stem]) is None
    is_module = collection_path.suffix == ".py" and collection_path.name[:5] != "test_"
    return True if lacks and is_module else None
