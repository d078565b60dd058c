"""Which database the workspaces of a test have their ledger in, and copies of such workspaces.

A test that runs on both says nothing of it: where a workspace is made without an address, the
backend gives it one, a database of its own.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import stores
from postgres_server import Server
from sqlalchemy import make_url

from erasable.workspace.context import Context
from erasable.workspace.ledger.address import PLACE, Address

_server: Server | None = None


@contextmanager
def on(server: Server) -> Iterator[None]:
    """Have workspaces made on a server inside the block, unless they are given an address."""
    global _server
    made = Context.__dict__["create"]

    def create(
        cls: type[Context], root: Any, address: Address | None = None, location: Any = None
    ) -> Context:
        if address is None:
            address = Address.parse(server.url(server.database()), "ws")
        found: Context = made.__func__(cls, root, address, location)
        return found

    _server, Context.create = server, classmethod(create)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        _server, Context.create = None, made


def after_fork() -> None:
    """Forget, in a child, the session of its parent with the server."""
    if _server is not None:
        _server.__dict__.pop("_admin", None)  # psycopg ends none that another process began


def database_of(workspace: Path) -> str | None:
    """Return the name of the database that holds the ledger of a workspace, if one does."""
    if not (workspace / PLACE).is_file():
        return None
    return make_url(json.loads((workspace / PLACE).read_text())["url"]).database


def copy_of(workspace: Path, folder: Path) -> Path:
    """Copy a workspace, to spoil the copy."""
    shutil.copytree(workspace, folder)
    name = database_of(workspace)
    if name is not None:
        assert _server is not None
        said = json.loads((folder / PLACE).read_text())
        said["url"] = said["url"].replace(f"/{name}?", f"/{_server.database(like=name)}?")
        (folder / PLACE).write_text(json.dumps(said))
    stores.move_copy(folder)
    return folder


def files_of(folder: Path) -> list[Path]:
    """Return all files of a workspace, those included in which its database keeps the tables."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for place in [path for path in found if path.name == PLACE]:
        name = database_of(place.parent)
        assert _server is not None
        assert name is not None
        found += _server.files(name)
    return found + stores.objects_of(folder)


def name_of(path: Path, folder: Path) -> str:
    """Return the path of a file as it is told: within the folder, or the server's."""
    return os.path.relpath(path, folder) if path.is_relative_to(folder) else f"server/{path.name}"


def suppression_files(workspace: Path) -> set[str]:
    """Return the names of the server's files that hold the list of whom to keep out."""
    name = database_of(workspace)
    if name is None:
        return set()
    assert _server is not None
    return _server.files_of_table(name, "ws", "suppression")
