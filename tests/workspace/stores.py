"""Workspaces of tests whose data and models are in an object store, and copies of these.

The cheap one is a folder within the workspace's, behind fsspec's interface: it survives a fork and
is looked through as any file is. The other is a real server.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from s3_server import Server

from erasable.workspace.context import Context
from erasable.workspace.ledger.address import Address
from erasable.workspace.store import crash_points
from erasable.workspace.store.location import STORE, Location

_folders: dict[str, Path] = {}
_server: Server | None = None
_made = 0


class FolderObjects(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Objects that are files: put and deleted at once, and at a point, or the test fails."""

    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("memory://")

    def _file(self, path: str) -> Path:
        bucket, _, key = path.partition("/")
        return _folders[bucket] / key

    def pipe_file(self, path: str, value: bytes, **more: Any) -> None:
        assert crash_points.inside()
        self._file(path).parent.mkdir(parents=True, exist_ok=True)
        self._file(path).write_bytes(value)

    def cat_file(self, path: str, **more: Any) -> bytes:
        return self._file(path).read_bytes()

    def rm_file(self, path: str) -> None:
        assert crash_points.inside()
        self._file(path).unlink()

    def find(self, path: str, **more: Any) -> list[str]:
        start = path.partition("/")[0]
        files = [each for each in self._file(path).rglob("*") if each.is_file()]
        return [f"{start}/{each.relative_to(_folders[start]).as_posix()}" for each in files]


def _next() -> str:
    global _made
    _made += 1
    return f"t{_made}"


def _folder_of(workspace: Path) -> str:
    name = _next()
    _folders[name] = workspace / "objects"
    return f"memory://{name}/ws"


@contextmanager
def in_folders() -> Iterator[None]:
    """Have workspaces made with a folder for an object store inside the block."""
    with _registered(), _made_at(_folder_of):
        yield


@contextmanager
def in_folder(folder: Path) -> Iterator[str]:
    """Have a folder be an object store inside the block; return the URL of a place in it."""
    name = _next()
    with _registered():
        _folders[name] = folder
        yield f"memory://{name}/ws"


@contextmanager
def _registered() -> Iterator[None]:
    fsspec.register_implementation("memory", FolderObjects, clobber=True)
    try:
        yield
    finally:
        fsspec.register_implementation("memory", MemoryFileSystem, clobber=True)
        _folders.clear()


@contextmanager
def on(server: Server) -> Iterator[None]:
    """Have workspaces made on a server that speaks S3 inside the block."""
    global _server
    bucket, _server = server.bucket(), server
    try:
        with _made_at(lambda workspace: f"s3://{bucket}/{_next()}"):
            yield
    finally:
        _server = None


@contextmanager
def _made_at(place: Any) -> Iterator[None]:
    made = Context.__dict__["create"]

    def create(
        cls: type[Context], root: Any, address: Address | None = None, location: Any = None
    ) -> Context:
        location = location or Location.parse(place(Path(root)))
        found: Context = made.__func__(cls, root, address, location)
        return found

    Context.create = classmethod(create)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Context.create = made


def move_copy(folder: Path) -> None:
    """Give a workspace that was copied a copy of the objects, if it has any."""
    if not (folder / STORE).is_file():
        return
    said = json.loads((folder / STORE).read_text())
    before = said["url"]
    if before.startswith("memory:"):
        said["url"] = _folder_of(folder)  # which was copied along, but has another name
    else:
        assert _server is not None
        bucket, _, prefix = before.removeprefix("s3://").partition("/")
        said["url"] = f"s3://{bucket}/{_next()}"
        _server.copy(bucket, f"{prefix}/", said["url"].removeprefix(f"s3://{bucket}/") + "/")
    (folder / STORE).write_text(json.dumps(said))


def objects_of(folder: Path) -> list[Path]:
    """Return copies of all objects of a workspace that are on a server, each a file."""
    if not (folder / STORE).is_file():
        return []
    url = json.loads((folder / STORE).read_text())["url"]
    if url.startswith("memory:"):
        return []  # they lie in the folder
    assert _server is not None
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    held = Path(tempfile.mkdtemp(dir=folder.parent))
    assert not [key for key in _server.uploads(bucket) if key.startswith(f"{prefix}/")]
    found = []
    for key, data in _server.everything(bucket).items():
        if key.startswith(f"{prefix}/"):
            found.append(held / key.replace("/", "_"))
            found[-1].write_bytes(data)
    return found
