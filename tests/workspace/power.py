"""A disk that loses power: what was not synced is gone, bytes and names alike."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from erasable.workspace import Workspace
from erasable.workspace.context import LEDGER
from erasable.workspace.store import crash_points
from erasable.workspace.store.artifacts import ARTIFACTS, LocalStore
from erasable.workspace.store.disk import Disk


class Died(BaseException):
    """Stands in for a process that is killed: nothing catches it."""


class ForgetfulDisk(Disk):
    """A disk that loses power: what was not synced is gone, bytes and names alike.

    It keeps what is durable beside what is there: the bytes of each file at its last sync, and
    the names of each folder at the folder's last sync.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.synced: dict[int, bytes] = {}  # inode: bytes
        self.names: dict[Path, dict[str, int | None]] = {}  # folder: names, None for a folder

    def settle(self) -> None:
        """Take all that is there for durable: it was there for long."""
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = Path(folder, name)
                self.synced[path.stat().st_ino] = path.read_bytes()
            self._remember(Path(folder))

    def _sync(self, path: Path, handle: int) -> None:
        super()._sync(path, handle)
        self.synced[path.stat().st_ino] = path.read_bytes()

    def _sync_folder(self, path: Path) -> None:
        super()._sync_folder(path)
        self._remember(path)

    def _remember(self, path: Path) -> None:
        self.names[path] = {
            entry.name: None if entry.is_dir() else entry.inode() for entry in os.scandir(path)
        }

    def after_power_loss(self) -> dict[str, bytes]:
        """Return the files that are found again, by key."""
        found: dict[str, bytes] = {}

        def walk(folder: Path) -> None:
            for name, inode in self.names.get(folder, {}).items():
                if inode is None:
                    walk(folder / name)
                else:
                    key = (folder / name).relative_to(self.root).as_posix()
                    found[key] = self.synced.get(inode, b"")

        walk(self.root)
        return found


def losses(
    path: Path,
    action: Callable[[Workspace], object],
    folder: Path,
    kind: type[ForgetfulDisk] = ForgetfulDisk,
) -> list[tuple[str, Path]]:
    """Run an action; keep, for each of its points and its end, what a power loss there leaves.

    Artifacts are as the disk has them then. The ledger is what SQLite vouches for: a commit is
    durable when it has returned, and what comes before one does not count.

    Returns
    -------
    list of (effect, Path)
        The effect that did not happen any more, and the workspace as it is found again.
    """
    workspace = Workspace.open(path)
    disk = kind(path / ARTIFACTS)
    disk.settle()
    workspace.context.store = LocalStore(disk)
    left: list[tuple[str, Path]] = []

    def keep(effect: str, where: str) -> None:
        found = folder / f"{len(left)}" / "ws"
        for key, data in disk.after_power_loss().items():
            target = found / ARTIFACTS / key
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        (found / ARTIFACTS).mkdir(parents=True, exist_ok=True)
        for name in (LEDGER, f"{LEDGER}-wal", "keys.json"):
            if (path / name).exists():
                shutil.copy(path / name, found / name)
        left.append((effect, found))

    with crash_points.watch(keep):
        action(workspace)
    keep("nothing", "")
    workspace.context.ledger.close()
    return left
