"""Paths that data is read from: told apart, and told of where they are not there."""

from __future__ import annotations

from pathlib import Path

from erasable.core.errors import SourceError


def is_folder(path: Path) -> bool:
    """Tell whether a path is that of a folder; one that cannot be is not."""
    try:
        return path.is_dir()
    except OSError:  # a name too long
        return False


def check_there(path: Path) -> None:
    """Refuse a path at which there is no file or folder."""
    try:
        there = path.exists()
    except OSError:
        there = False
    if not there:
        raise SourceError(f"{str(path)!r} is not there; expected a file or folder")
