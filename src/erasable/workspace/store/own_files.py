"""Own files of a workspace, whose place files that are written for the user never take."""

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
_LEDGER = "ledger.db"  # and what SQLite keeps beside it
_MADE = re.compile(rf"{re.escape(_LEDGER)}(\.new)?(-wal|-shm|-journal)?|{UNFINISHED}")
_KEYS = "ERASABLE_KEYS"


def is_made(name: str) -> bool:
    """Tell whether a name in the folder of a workspace is one that erasable gives.

    `refuse_own` refuses more, which SQLite or a later version may use. Nothing else is removed.

    >>> is_made("ledger.db-wal"), is_made("ledger.db-copy"), is_made("notes.txt")
    (True, False, False)
    """
    return name in _OWN or _MADE.fullmatch(name) is not None


def refuse_own(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> None:
    """Raise WorkspaceError if a path to be written is one of the workspace itself; follow links.

    Beside its own files the folder may hold those of the user: it is the current one by default.

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
    """Write a file beside or outside of the workspace, whole; one that is there is replaced.

    >>> write_for_user("missing/report.html", ".", b"")
    Traceback (most recent call last):
    erasable.core.errors.WorkspaceError: 'missing/report.html' cannot be written; ...
    """
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
        # What would be replaced is the link; what would be written through it is its target.
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
    """Return where links lead that stand in the place of the workspace's own, and its keys."""
    keys = os.environ.get(_KEYS)
    own = [root / name for name in (*sorted(_OWN), _LEDGER)]
    return [place.resolve() for place in ([*own, Path(keys)] if keys else own)]
