"""Names of a workspace's own files, which no file written for the user may take."""

from __future__ import annotations

import os
import re
from pathlib import Path

from erasable.core.errors import WorkspaceError
from erasable.core.mapped.disk import PARTIAL
from erasable.workspace.store.disk import UNFINISHED, Disk

_OWN = frozenset(
    {
        "accelerators", "artifacts", "keys.json", "ledger.json", "lock", "restoring.json",
        "restoring.lock", "scratch", "store.json",
    }
)  # fmt: skip
_LEDGER = "ledger.db"  # SQLite has others beside it
_MADE = re.compile(rf"{re.escape(_LEDGER)}(\.new)?(-wal|-shm|-journal)?|{UNFINISHED}")
_KEYS = "ERASABLE_KEYS"


def is_own_name(name: str) -> bool:
    """Tell whether erasable gives a name in the folder of a workspace; others are never removed.

    `refuse_own` refuses more names, which SQLite or a later version may use.
    """
    return name in _OWN or _MADE.fullmatch(name) is not None


def refuse_own(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> None:
    """Raise WorkspaceError if a path to be written is one of the workspace itself; follow links.

    >>> refuse_own("report.html", ".")
    >>> refuse_own("./ledger.db-wal", ".")
    Traceback (most recent call last):
    erasable.core.errors.WorkspaceError: './ledger.db-wal' is a file of the workspace itself; ...
    """
    if _is_own(Path(path), Path(root)):
        raise WorkspaceError(
            f"{os.fspath(path)!r} is a file of the workspace itself; expected another place"
        )


def write_for_user(path: str | os.PathLike[str], root: str | os.PathLike[str], data: bytes) -> None:
    """Write a file of the user's, whole; one that is there is replaced."""
    refuse_own(path, root)
    target, named = Path(path).absolute(), os.fspath(path)
    if target.is_dir():
        raise WorkspaceError(f"{named!r} is a folder; expected the name of a file")
    if not target.parent.is_dir():
        raise WorkspaceError(
            f"{named!r} cannot be written; expected a folder {str(target.parent)!r}; make it first"
        )
    Disk(target.parent).write(target.name, data)


def _is_own(path: Path, root: Path) -> bool:
    try:
        root = root.resolve()
        # Replacing the path affects the link, writing through it its target.
        return any(
            _is_named_own(place, root)
            or any(place.is_relative_to(own) for own in _own_places(root))
            for place in (path.parent.resolve() / path.name, path.resolve())
        )
    except (OSError, RuntimeError, ValueError):  # no path at all
        return False


def _is_named_own(place: Path, root: Path) -> bool:
    if not place.is_relative_to(root) or place == root:
        return False
    first = place.relative_to(root).parts[0].casefold()  # some disks take "Lock" for "lock"
    return first in _OWN or first.startswith((_LEDGER, PARTIAL))


def _own_places(root: Path) -> list[Path]:
    """Return the targets of links among the workspace's own files, and the place of its keys."""
    keys = os.environ.get(_KEYS)
    own = [root / name for name in (*sorted(_OWN), _LEDGER)]
    return [place.resolve() for place in ([*own, Path(keys)] if keys else own)]
