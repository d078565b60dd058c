"""What is tested only where an optional dependency is installed: `make neural` installs torch."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

TORCH = find_spec("torch") is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the examples of a package out that cannot be imported; a plugin of pytest."""
    parts = collection_path.parts[-3:]
    return True if not TORCH and parts[1:] == ("erasable", "neural") else None
