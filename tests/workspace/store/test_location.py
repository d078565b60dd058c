"""Where the artifacts are said to be: what a URL may be, and that it holds no key."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fsspec import AbstractFileSystem
from fsspec.registry import _registry as known

from erasable.core.errors import WorkspaceError, WorkspaceServerError
from erasable.workspace import Workspace
from erasable.workspace.store.buckets import Bucket, explained, open_bucket
from erasable.workspace.store.disk import Disk
from erasable.workspace.store.location import STORE, Location


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("s3://clinic", "s3://clinic"),
        ("s3://clinic/", "s3://clinic"),
        ("s3://clinic.eu-1/models/v=1/", "s3://clinic.eu-1/models/v=1"),
        ("gs://clinic/models", "gs://clinic/models"),
        ("abfs://box@account.dfs.core.windows.net/x", "abfs://box@account.dfs.core.windows.net/x"),
    ],
)
def test_a_url_is_kept(url: str, kept: str, tmp_path: Path) -> None:
    location = Location.parse(url)
    assert location.url == kept
    assert location.kind == url.partition(":")[0]
    location.write(Disk(tmp_path))
    assert Location.read(Disk(tmp_path)) == location
    assert Location.parse(url).claim != location.claim


@pytest.mark.parametrize(
    "url",
    [
        "", "clinic", "/clinic/models", "s3:/clinic", "s3://", "s3:///models", "s3://clinic//a",
        "s3://clinic/../other", "s3://clinic/./a", "s3://clinic/a b", "s3://clinic/a*",
        "s3://clinic/a?versionId=1", "s3://zq:zq-secret@clinic/a", "s3://zq-secret@clinic/a",
        "s3://clinic/a#b", "s3://clinic\n/a", "file:///clinic", "https://clinic/a", "hdfs://clinic/a",
        "simplecache::s3://clinic/a", "S3://clinic",
    ],
)  # fmt: skip
def test_a_url_is_refused_and_not_repeated(url: str, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="expected s3://BUCKET/PREFIX") as told:
        Workspace.create(tmp_path / "ws", store=url)
    assert "\n" not in str(told.value)
    assert "zq" not in str(told.value)
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(
    "said",
    [
        "", "[]", "{}", "\xff", '{"version": 2, "url": "s3://a", "claim": "%s"}' % ("0" * 32),
        '{"version": 1, "url": "s3://a"}', '{"version": 1, "url": "s3://a", "claim": "7"}',
        '{"version": 1, "url": 7, "claim": "%s"}' % ("0" * 32),
    ],
)  # fmt: skip
def test_a_file_that_does_not_say_it(said: str, tmp_path: Path) -> None:
    (tmp_path / STORE).write_bytes(said.encode("latin-1"))
    with pytest.raises(WorkspaceError, match="does not say where data and models are"):
        Location.read(Disk(tmp_path))


@pytest.mark.parametrize("package", ["fsspec.core", "s3fs"])
def test_a_package_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(known, "s3", raising=False)
    with pytest.raises(WorkspaceError, match=r"install 'erasable\[s3\]'") as told:
        Workspace.create(tmp_path / "ws", store="s3://clinic/models")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "ws").exists()


def test_a_package_that_finds_nothing_to_connect_with(monkeypatch: pytest.MonkeyPatch) -> None:
    class Needy(AbstractFileSystem):  # type: ignore[misc]
        def __init__(self, **more: object) -> None:
            raise ValueError("Must provide an account\nor so")

    monkeypatch.setitem(known, "gs", Needy)
    with pytest.raises(WorkspaceServerError, match="Must provide an account") as told:
        open_bucket(Location.parse("gs://clinic/models"))
    assert "\n" not in str(told.value)


class NotAllowedError(Exception):
    pass


NotAllowedError.__module__ = "azure.core.exceptions"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PermissionError("Access Denied"), "may list, read, put"),
        (FileNotFoundError("no bucket"), "a bucket that is there"),
        (ConnectionResetError("reset"), "can be reached"),
        (TimeoutError(), "(TimeoutError); expected an object store that can be reached"),
        (OSError(5, "InternalError\nand more"), "that works"),
        (NotAllowedError("409 Conflict"), "that works"),
    ],
)
def test_what_a_library_says_is_one_line(error: Exception, expected: str) -> None:
    location = Location.parse("gs://clinic/models")
    with pytest.raises(WorkspaceServerError) as told, explained(location):
        raise error
    assert expected in str(told.value)
    assert "\n" not in str(told.value)


def test_an_error_of_ours_is_no_server_s() -> None:
    location = Location.parse("gs://clinic/models")
    with pytest.raises(ZeroDivisionError), explained(location):
        raise ZeroDivisionError
    with pytest.raises(WorkspaceError, match="mine"), explained(location):
        raise WorkspaceError("mine")


def test_no_listing_is_remembered() -> None:
    bucket = open_bucket(Location.parse("memory://listings/a"))
    assert type(bucket) is Bucket
    assert not bucket.fs.dircache.use_listings_cache
