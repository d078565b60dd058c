"""What is tested only where an optional dependency is installed: `make neural` installs torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

TORCH = find_spec("torch") is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot be imported; its tests say themselves why. A plugin of pytest."""
    of_torch = "neural" in collection_path.parts and collection_path.suffix == ".py"
    return True if of_torch and not TORCH and collection_path.name[:5] != "test_" else None
