"""Clients of stores leave sockets and files open, which other tests would be blamed for."""

from __future__ import annotations

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_IGNORED = ("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed:ResourceWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of this folder pass over what clients leave open."""
    for item in items:
        if item.path.parent == _HERE:
            item.add_marker(pytest.mark.filterwarnings(*_IGNORED))
