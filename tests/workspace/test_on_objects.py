"""The life of a workspace whose data and models are on a server that speaks S3."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from aiobotocore.client import AioBaseClient
from contexts import visits, write_csv
from crashes import ENDED, EXPECTED, LEFT, MARKERS, die_at, fork, make_workspace, referred_to
from s3_server import Server

from erasable.core.errors import NotInWorkspaceError, WorkspaceError, WorkspaceServerError
from erasable.workspace import Workspace
from erasable.workspace.context import LEDGER
from erasable.workspace.evidence import receipts
from erasable.workspace.store import crash_points
from erasable.workspace.store.artifacts import ARTIFACTS
from erasable.workspace.store.buckets import S3Bucket
from erasable.workspace.store.location import STORE
from erasable.workspace.store.objects import CLAIM

BYTES = [marker.encode() for marker in MARKERS]


@pytest.fixture
def bucket(s3: Server) -> str:
    return s3.bucket(versions="Enabled")


@pytest.fixture
def made(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with two data sets, four models and requests, with versions in its bucket."""
    create = Workspace.create
    monkeypatch.setattr(
        Workspace, "create", lambda path, **more: create(path, store=f"s3://{bucket}/ws", **more)
    )
    path = make_workspace(tmp_path)
    monkeypatch.undo()
    return path


def holding(server: Server, bucket: str) -> set[str]:
    """Return the markers that are in any version of any object."""
    held = list(server.everything(bucket).values())
    return {m.decode() for m in BYTES if any(m in data for data in held)}


def keys_of(server: Server, bucket: str) -> list[str]:
    return sorted(key.partition("?")[0] for key in server.everything(bucket))


def done(workspace: Workspace, server: Server, bucket: str) -> None:
    """See that everything is done, once, and can be proved; and that nothing is left."""
    requests = workspace.requests()
    assert {request.state for request in requests} == ENDED
    assert sorted(request.matched for request in requests) == EXPECTED
    assert {row["name"]: row["n_records"] for row in workspace.datasets()} == LEFT
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    assert workspace.verify_log() == []
    assert holding(server, bucket) == set()
    assert keys_of(server, bucket) == sorted(
        [f"ws/{CLAIM}", *(f"ws/{k}" for k in referred_to(workspace))]
    )
    assert server.uploads(bucket) == []


@pytest.fixture
def strays(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count what the library was told to change, by operation, outside of a point."""
    found: dict[str, int] = {}
    call = AioBaseClient._make_api_call

    async def watched(self: Any, operation: str, *more: Any) -> Any:
        if not operation.startswith(("Get", "Head", "List")):
            found[operation] = found.get(operation, 0) + (not crash_points.inside())
        return await call(self, operation, *more)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", watched)
    return found


def test_the_life_of_a_workspace(
    s3: Server, bucket: str, made: Path, tmp_path: Path, strays: dict[str, int]
) -> None:
    said = json.loads((made / STORE).read_text())
    assert (said["version"], said["url"]) == (1, f"s3://{bucket}/ws")
    assert (made / STORE).stat().st_mode & 0o077 == 0
    assert not (made / ARTIFACTS).exists()
    assert not [p for p in made.rglob("*") if p.is_file() and b"s3cret" in p.read_bytes()]
    assert holding(s3, bucket) == set(MARKERS)  # so they can be found

    # The server goes away in the middle: nothing changes, and what is asked again is done.
    workspace = Workspace.open(made)
    before = workspace.requests(), keys_of(s3, bucket)
    with s3.away(), pytest.raises(WorkspaceServerError, match="check the network") as told:
        workspace.process()
    assert "\n" not in str(told.value)
    with s3.away():  # which is no sign that a file is damaged
        for look in (workspace.verify, workspace.verify_log):
            with pytest.raises(WorkspaceServerError, match="check the network"):
                look()
    assert [each.state for each in workspace.requests()] == ["pending"] * 5
    assert (workspace.requests(), keys_of(s3, bucket)) == before

    workspace.process()
    done(Workspace.open(made), s3, bucket)
    more = [each for each in workspace.status()["unreached"] if "object store" in each]
    assert [each.partition(" of ")[0] for each in more] == [
        "what the object store keeps", "replicas and backups", "the access logs",
    ]  # fmt: skip
    for request in workspace.requests():
        body = workspace.receipt(request.id)
        assert receipts.check(body, workspace.public_key).request == request.id
        assert receipts.show(body)["out_of_reach"] == workspace.status()["unreached"]
    write_csv(tmp_path / "more.csv", visits(9, start=500))
    assert workspace.append("visits", tmp_path / "more.csv").n_added == 9
    assert workspace.fit("risk").version == 3
    assert workspace.predict("risk", tmp_path / "more.csv").num_rows == 9
    assert strays == {"PutObject": 0, "DeleteObject": 0}
    workspace.context.store._bucket().fs.pipe_file(f"{bucket}/stray", b"x")  # type: ignore[attr-defined]
    assert strays == {"PutObject": 1, "DeleteObject": 0}


@pytest.mark.soak
def test_without_deleting_versions_records_stay(
    s3: Server, bucket: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(S3Bucket, "_versions", lambda self, prefix: iter(()))
    workspace = Workspace.open(made)
    workspace.process()
    assert holding(s3, bucket) == set(MARKERS)
    monkeypatch.undo()
    workspace.process()  # the next one finds them
    done(workspace, s3, bucket)


@pytest.mark.soak
@pytest.mark.parametrize("nth", range(6, 22, 2))
def test_killed_in_a_bucket_with_versions(s3: Server, bucket: str, made: Path, nth: int) -> None:
    assert die_at(nth, lambda workspace: workspace.process(), made)
    workspace = Workspace.open(made)
    if {request.state for request in workspace.requests()} & {*ENDED, "purged"}:
        assert holding(s3, bucket) == set()
    workspace.process()
    done(workspace, s3, bucket)


@pytest.mark.soak
@pytest.mark.parametrize("nth", [1, 3, 6])
@pytest.mark.parametrize("effect", ["put", "delete", "commit"])
def test_the_server_goes_away_at_an_effect(
    s3: Server, bucket: str, made: Path, effect: str, nth: int
) -> None:
    left = nth

    def leave(passed: str, where: str) -> None:
        nonlocal left
        left -= passed == effect
        if left == 0 and passed == effect:
            s3.tell("away")

    workspace = Workspace.open(made)
    try:
        # Of the commits the first comes before objects are put; after the last nothing is asked.
        with crash_points.watch(leave), contextlib.suppress(WorkspaceServerError):
            workspace.process()
    finally:
        s3.tell("back")
    assert left <= 0
    workspace.process()
    done(workspace, s3, bucket)


@pytest.mark.soak
def test_what_is_refused(s3: Server, bucket: str, tmp_path: Path) -> None:
    url = f"s3://{bucket}/ws"
    Workspace.create(tmp_path / "ws", store=url)
    for place in (url, f"s3://{bucket}", f"{url}/data"):
        with pytest.raises(WorkspaceError, match="is in use"):
            Workspace.create(tmp_path / "other", store=place)
    with pytest.raises(WorkspaceError, match="cannot be used"):
        Workspace.create(tmp_path / "other", store="s3://a:b@bucket/ws")
    assert not (tmp_path / "other").exists()
    for asked in (url, f"{url}2", None):
        with pytest.raises(WorkspaceError, match="holds a workspace already"):
            Workspace.create(tmp_path / "ws", store=asked)
    said = json.loads((tmp_path / "ws" / STORE).read_text())
    (tmp_path / "ws" / STORE).write_text(json.dumps(said | {"claim": "0" * 32}))
    with pytest.raises(WorkspaceServerError, match="does not bear the claim"):
        Workspace.open(tmp_path / "ws").process()
    (tmp_path / "ws" / STORE).write_text("{}")
    with pytest.raises(WorkspaceError, match="does not say where data and models are"):
        Workspace.open(tmp_path / "ws")
    assert keys_of(s3, bucket) == [f"ws/{CLAIM}"]


@pytest.mark.soak
def test_a_making_that_is_cut_off_goes_on(s3: Server, bucket: str, tmp_path: Path) -> None:
    url, ws = f"s3://{bucket}/ws", tmp_path / "ws"
    number = 1
    while die_while_making(number, ws, url):
        if not (ws / LEDGER).exists():
            with pytest.raises(NotInWorkspaceError):
                Workspace.open(ws)
        if (ws / STORE).exists():
            with pytest.raises(WorkspaceError, match="holds a workspace already"):
                Workspace.create(ws, store=f"{url}2")
        if (ws / LEDGER).exists():
            break
        number += 1
    assert number > 15
    assert set(keys_of(s3, bucket)) == {f"ws/{CLAIM}"}
    assert Workspace.open(ws).verify_log() == []


@pytest.mark.soak
@pytest.mark.parametrize("number", [8, 20])
def test_of_a_making_that_fails_nothing_is_left(
    s3: Server, bucket: str, tmp_path: Path, number: int
) -> None:
    passed = 0

    def fail(effect: str, where: str) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            raise OSError(28, "No space left on device")

    with crash_points.watch(fail), pytest.raises(WorkspaceError, match="No space left"):
        Workspace.create(tmp_path / "ws", store=f"s3://{bucket}/ws")
    assert not (tmp_path / "ws" / STORE).exists()
    assert s3.everything(bucket) == {}


@pytest.mark.soak
def test_copies_from_store_to_store(
    s3: Server, server: Any, database: str, bucket: str, made: Path, tmp_path: Path
) -> None:
    """Into a database and another place, and from there into a folder."""
    url, before = server.url(database), keys_of(s3, bucket)
    workspace = Workspace.open(made)
    with pytest.raises(WorkspaceError, match="is in use"):
        workspace.copy(tmp_path / "copy", database=url, store=f"s3://{bucket}/ws/copy")
    assert not (tmp_path / "copy").exists()
    copied = workspace.copy(
        tmp_path / "copy", database=url, schema="one", store=f"s3://{bucket}/copy"
    )
    assert copied.n_files == len(referred_to(workspace)) > 4
    there = Workspace.open(tmp_path / "copy")
    assert sorted(there.context.store.list()) == sorted(referred_to(workspace))
    again = there.copy(tmp_path / "again", database=url, schema="two")
    assert not (tmp_path / "again" / STORE).exists()
    local = Workspace.open(again.path)
    assert sorted(local.context.store.list()) == sorted(referred_to(workspace))
    for each in (there, local):
        each.process()
        assert {one.verdict for one in each.verify()} == {"equal"}
    assert [key for key in keys_of(s3, bucket) if key.startswith("ws/")] == before
    workspace.process()
    assert holding(s3, bucket) == set()


@pytest.mark.soak
@pytest.mark.parametrize("what", ["lost", "altered", "full"])
def test_of_a_copy_that_fails_nothing_is_left(
    s3: Server, server: Any, database: str, bucket: str, made: Path, tmp_path: Path, what: str
) -> None:
    workspace = Workspace.open(made)
    key = referred_to(workspace)[-1]
    if what == "lost":
        workspace.context.store.delete(key)
    elif what == "altered":
        s3.client.put_object(Bucket=bucket, Key=f"ws/{key}", Body=b"x")

    def fail(effect: str, where: str) -> None:
        if what == "full" and effect == "commit":
            raise OSError(28, "No space left on device")

    url, before = server.url(database), s3.everything(bucket)
    with crash_points.watch(fail), pytest.raises(WorkspaceError, match=r"not in|altered|No space"):
        workspace.copy(tmp_path / "copy", database=url, store=f"s3://{bucket}/copy")
    assert not (tmp_path / "copy").exists()
    assert s3.everything(bucket) == before


@pytest.mark.soak
def test_beside_a_ledger_in_postgresql(
    s3: Server, server: Any, database: str, bucket: str, tmp_path: Path
) -> None:
    url = f"s3://{bucket}/ws"
    workspace = Workspace.create(tmp_path / "ws", database=server.url(database), store=url)
    write_csv(tmp_path / "visits.csv", visits(60))
    workspace.add_dataset(
        "visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"]
    )
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.request(["marker-patient-7"])
    held = lambda: [k for k, d in s3.everything(bucket).items() if b"marker-patient-7" in d]  # noqa: E731
    assert held() != []
    workspace.process()
    assert held() == []
    told = " ".join(workspace.status()["unreached"])
    assert "database server" in told
    assert "object store" in told


def die_while_making(number: int, path: Path, url: str) -> bool:
    """Have a process die at a point while it makes a workspace; return whether it got there."""

    def in_child() -> None:
        passed = 0

        def kill(effect: str, where: str) -> None:
            nonlocal passed
            passed += 1
            if passed == number:
                os.kill(os.getpid(), signal.SIGKILL)

        with crash_points.watch(kill):
            Workspace.create(path, store=url)

    return fork(in_child) == -signal.SIGKILL
