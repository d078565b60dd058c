"""What every store of artifacts does: in a folder, in memory, on a server that speaks S3."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from erasable.core.errors import NotInWorkspaceError, WorkspaceError
from erasable.workspace.store import crash_points
from erasable.workspace.store.artifacts import ArtifactStore, LocalStore, StoredArtifact
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import Location
from erasable.workspace.store.objects import CLAIM, ObjectStore

KINDS = [
    "folder",
    "memory",
    "s3",
    pytest.param("s3 that keeps versions", marks=pytest.mark.soak),
    pytest.param("s3 that kept versions", marks=pytest.mark.soak),
]

Make = Callable[[], tuple[ArtifactStore, Callable[[str, bytes], None]]]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make a store; return it, and how to write over an artifact behind its back."""

    def in_folder() -> tuple[ArtifactStore, Callable[[str, bytes], None]]:
        return LocalStore(Disk(tmp_path)), lambda key, data: _overwrite(tmp_path / key, data)

    def in_memory() -> tuple[ArtifactStore, Callable[[str, bytes], None]]:
        store = taken(f"memory://{tmp_path.name}/prefix")
        return store, lambda key, data: store._bucket().write(key, data)

    def on_s3() -> tuple[ArtifactStore, Callable[[str, bytes], None]]:
        server: Any = request.getfixturevalue("s3")
        bucket = server.bucket(versions="" if request.param == "s3" else "Enabled")
        store = taken(f"s3://{bucket}/some/prefix")
        if "kept" in request.param:
            store.write("data/old", b"from then")
            server.keep_versions(bucket, "Suspended")
            store.delete("data/old")
        return store, lambda key, data: put(server, bucket, f"some/prefix/{key}", data)

    return {"folder": in_folder, "memory": in_memory}.get(request.param, on_s3)


def taken(url: str) -> ObjectStore:
    store = ObjectStore(Location.parse(url))
    store.take()
    return store


def put(server: Any, bucket: str, key: str, data: bytes) -> None:
    server.client.put_object(Bucket=bucket, Key=key, Body=data)


def _overwrite(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def test_what_a_store_does(make: Make) -> None:
    store, overwrite = make()
    assert list(store.list()) == []
    data = bytes(range(256)) * 40
    one, two = store.put("models/1", data), store.put("models/1", memoryview(data))
    assert one.key != two.key
    assert one.key.startswith("models/1/")
    assert one.sha256 == two.sha256 == hashlib.sha256(data).hexdigest()
    assert store.open(one) == store.open(two) == data
    store.write("data/x/7", b"under its own key")
    assert list(store.list()) == sorted([one.key, two.key, "data/x/7"])
    overwrite(one.key, data[:-1] + b"x")
    with pytest.raises(WorkspaceError, match="altered or damaged"):
        store.open(one)
    assert store.open(two) == data
    for key in (one.key, one.key, "models/1/never-there"):
        store.delete(key)
    assert list(store.list()) == ["data/x/7", two.key]
    with pytest.raises(NotInWorkspaceError, match="restore it from a backup"):
        store.open(StoredArtifact(one.key, one.sha256))
    assert store.open(store.put("models/2", b"")) == b""


def test_an_object_passes_a_point_when_it_is_put_and_when_it_is_deleted(make: Make) -> None:
    store, _ = make()
    passed: list[tuple[str, str]] = []

    def stop(effect: str, where: str) -> None:
        passed.append((effect, where))
        raise OSError(5, "Input/output error")

    kept = store.put("models", b"abc")
    with crash_points.watch(stop):
        with pytest.raises(WorkspaceError, match="Input/output"):
            store.put("models", b"abc")
        with pytest.raises(WorkspaceError, match="Input/output"):
            store.delete(kept.key)
    effects = [effect for effect, _ in passed]
    assert (effects[0], effects[-1]) in (("put", "delete"), ("open", "remove"))
    assert list(store.list()) == [kept.key]
    assert store.open(kept) == b"abc"


def test_what_somebody_else_put_is_listed_at_once(make: Make) -> None:
    """A listing that is remembered would hide it, and nobody would ever delete it."""
    store, overwrite = make()
    store.write("models/a", b"1")
    assert list(store.list()) == ["models/a"]
    overwrite("models/b", b"2")
    assert list(store.list()) == ["models/a", "models/b"]


def test_the_claim_is_no_artifact() -> None:
    store = taken("memory://claims/prefix")
    assert CLAIM not in list(store.list())
    assert CLAIM in list(store._bucket().names())
    store.leave()
    assert list(store._bucket().names()) == []
