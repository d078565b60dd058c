"""What S3 keeps of what is deleted, whose a place is, and what goes wrong on the way there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from s3_server import Server

from erasable.core.errors import ErasableError, WorkspaceError, WorkspaceServerError
from erasable.workspace.store import crash_points
from erasable.workspace.store.buckets import S3Bucket
from erasable.workspace.store.location import Location
from erasable.workspace.store.objects import CLAIM, ObjectStore

MARKER = b"marker-patient-007"


def taken(url: str) -> ObjectStore:
    store = ObjectStore(Location.parse(url))
    store.take()
    return store


def holding(server: Server, bucket: str) -> list[str]:
    return [key for key, data in server.everything(bucket).items() if MARKER in data]


# -- what is deleted is gone -----------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("versions", ["", "Enabled"])
def test_nothing_is_left_of_what_is_deleted(s3: Server, versions: str) -> None:
    bucket = s3.bucket(versions=versions)
    store = taken(f"s3://{bucket}/ws")
    stored = store.put("data/visits", MARKER)
    assert len(holding(s3, bucket)) == 1
    store.delete(stored.key)
    assert [key.partition("?")[0] for key in s3.everything(bucket)] == [f"ws/{CLAIM}"]


@pytest.mark.soak
@pytest.mark.parametrize("purges", [True, False], ids=["ours", "one that deletes once"])
def test_a_version_outlives_a_deletion(
    s3: Server, monkeypatch: pytest.MonkeyPatch, purges: bool
) -> None:
    if not purges:
        monkeypatch.setattr(S3Bucket, "_versions", lambda *_: ())
    bucket = s3.bucket(versions="Enabled")
    store = ObjectStore(Location.parse(f"s3://{bucket}/ws"))
    if not purges:
        store._is_claimed = True
        store._bucket()
    else:
        store.take()
    stored = store.put("data/visits", MARKER)
    store.delete(stored.key)
    assert (holding(s3, bucket) == []) is purges


@pytest.mark.soak
def test_a_neighbour_whose_key_begins_the_same_stays(s3: Server) -> None:
    bucket = s3.bucket(versions="Enabled")
    store = taken(f"s3://{bucket}/ws")
    store.write("models/a", b"1")
    store.write("models/ab", b"2")
    store.delete("models/a")
    assert list(store.list()) == ["models/ab"]


@pytest.mark.soak
def test_versions_that_nothing_shows_are_listed_and_deleted(s3: Server) -> None:
    """Somebody hid an object with another tool, or we were killed after the first deletion."""
    bucket = s3.bucket(versions="Enabled")
    store = taken(f"s3://{bucket}/ws")
    stored = store.put("data/visits", MARKER)
    s3.client.delete_object(Bucket=bucket, Key=f"ws/{stored.key}")
    assert list(store.list()) == [stored.key]
    assert len(holding(s3, bucket)) == 1
    store.delete(stored.key)
    assert list(store.list()) == []
    assert holding(s3, bucket) == []


@pytest.mark.soak
def test_versions_that_are_switched_on_later(s3: Server) -> None:
    bucket = s3.bucket()
    store = taken(f"s3://{bucket}/ws")
    before = store.put("data/visits", MARKER)
    s3.keep_versions(bucket, "Enabled")
    after = store.put("data/visits", MARKER)
    for each in (before, after):
        store.delete(each.key)
    assert holding(s3, bucket) == []
    assert list(store.list()) == []


@pytest.mark.soak
def test_more_objects_than_a_page(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3.bucket(versions="Enabled")
    store = taken(f"s3://{bucket}/ws")
    for name in ("a", "b", "c", "d", "e"):
        store.write(name, MARKER)
    pages: list[str] = []
    call = S3Bucket._call

    def short(self: Any, method: str, **arguments: Any) -> Any:
        if method.startswith("list_obj"):
            pages.append(method)
            arguments["MaxKeys"] = 2
        return call(self, method, **arguments)

    monkeypatch.setattr(S3Bucket, "_call", short)
    assert list(store.list()) == ["a", "b", "c", "d", "e"]
    assert pages.count("list_objects_v2") > 1
    assert pages.count("list_object_versions") > 1


def test_an_upload_that_was_cut_off_is_listed_and_deleted(s3: Server) -> None:
    bucket = s3.bucket()
    store = taken(f"s3://{bucket}/ws")
    for key in ("ws/data/visits/7", "ws/data/visits/7", "elsewhere/8"):
        upload = s3.client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
        s3.client.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=MARKER)
    assert s3.uploads(bucket).count("ws/data/visits/7") == 2
    assert list(store.list()) == ["data/visits/7"]
    passed: list[str] = []
    with crash_points.watch(lambda effect, where: passed.append(effect)):
        store.delete("data/visits/7")
    assert passed == ["delete", "abort", "abort"]
    assert s3.uploads(bucket) == ["elsewhere/8"]  # is somebody else's
    assert list(store.list()) == []


@pytest.mark.soak
def test_a_large_one_is_put_in_parts_and_comes_back(s3: Server) -> None:
    bucket = s3.bucket(versions="Enabled")
    store = taken(f"s3://{bucket}/ws")
    fs = store._bucket().fs
    whole = fs.pipe_file
    calls: list[str] = []
    call = fs._call_s3

    async def counted(method: str, *rest: Any, **more: Any) -> Any:
        calls.append(method)
        return await call(method, *rest, **more)

    fs._call_s3 = counted
    fs.pipe_file = lambda path, data, **more: whole(path, data, chunksize=1000, **more)
    data = bytes(range(256)) * 20
    stored = store.put("models", data)
    assert calls.count("upload_part") == 6
    assert store.open(stored) == data
    store.delete(stored.key)
    assert s3.uploads(bucket) == []
    assert next(iter(s3.everything(bucket))).startswith(f"ws/{CLAIM}?")
    assert len(s3.everything(bucket)) == 1


# -- whose a place is ------------------------------------------------------------------------------


def refused(error: type[ErasableError], match: str, run: Callable[[], object]) -> None:
    with pytest.raises(error, match=match) as told:
        run()
    assert "\n" not in str(told.value)
    assert "; expected " in str(told.value)


@pytest.mark.soak
def test_a_place_is_one_workspace_s_alone(s3: Server) -> None:
    bucket = s3.bucket()
    first = taken(f"s3://{bucket}/team/ws")
    kept = first.put("models", b"abc")
    for url in (f"s3://{bucket}/team/ws", f"s3://{bucket}/team", f"s3://{bucket}",
                f"s3://{bucket}/team/ws/models"):  # fmt: skip
        refused(WorkspaceError, "is in use", lambda url=url: taken(url))  # type: ignore[misc]
    beside = taken(f"s3://{bucket}/team/ws2")
    assert list(beside.list()) == []
    assert first.open(kept) == b"abc"


@pytest.mark.soak
@pytest.mark.parametrize("versions", ["", "Enabled"])
def test_of_two_who_take_a_place_at_once_one_has_it(s3: Server, versions: str) -> None:
    """The other has seen it to be free, too."""
    location = Location.parse(f"s3://{s3.bucket(versions=versions)}/ws")
    first, passed = ObjectStore(Location.parse(location.url)), []

    def overtake(effect: str, where: str) -> None:
        passed.append(effect)
        if len(passed) == 1:
            first.take()

    with crash_points.watch(overtake):
        refused(WorkspaceError, "is in use", lambda: ObjectStore(location).take())
    kept = first.put("models", b"abc")
    ObjectStore(location).leave()
    assert first.open(kept) == b"abc"
    assert list(ObjectStore(first._location).list()) == [kept.key]


@pytest.mark.soak
def test_a_taking_that_was_cut_off_goes_on(s3: Server) -> None:
    class Died(BaseException):
        pass

    bucket = s3.bucket(versions="Enabled")
    location = Location.parse(f"s3://{bucket}/ws")
    for nth in range(1, 99):
        passed = 0

        def stop(effect: str, where: str, nth: int = nth) -> None:
            nonlocal passed
            passed += 1
            if passed == nth:
                raise Died

        try:
            with crash_points.watch(stop):
                ObjectStore(location).take()
        except Died:
            continue
        break
    assert nth > 4
    assert {key.partition("?")[0] for key in s3.everything(bucket)} == {f"ws/{CLAIM}"}
    refused(WorkspaceError, "is in use", lambda: taken(location.url))


def test_another_s_place_is_never_touched(s3: Server) -> None:
    """The same name at another endpoint, or what came there when ours was removed."""
    bucket = s3.bucket()
    other = taken(f"s3://{bucket}/ws")
    kept = other.put("models", b"abc")
    ours = ObjectStore(Location.parse(f"s3://{bucket}/ws"))
    for run in (
        lambda: list(ours.list()),
        lambda: ours.open(kept),
        lambda: ours.put("models", b"x"),
        lambda: ours.delete(kept.key),
    ):
        refused(WorkspaceServerError, "does not bear the claim", run)
    ours.leave()
    assert list(other.list()) == [kept.key]


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.soak
def test_no_such_bucket(s3: Server) -> None:
    refused(WorkspaceServerError, "does not exist", lambda: taken("s3://nobody-made-this/ws"))


@pytest.mark.soak
def test_no_credentials(s3: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    bucket = s3.bucket()
    refused(WorkspaceServerError, "credentials", lambda: taken(f"s3://{bucket}/ws"))


@pytest.mark.soak
def test_credentials_and_endpoint_of_a_profile(
    s3: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = s3.bucket()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    lines = ["[profile clinic]", "aws_access_key_id = a", "aws_secret_access_key = b"]
    (tmp_path / "config").write_text("\n".join([*lines, f"endpoint_url = {s3.url}"]))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "clinic")
    assert list(taken(f"s3://{bucket}/ws").list()) == []


@pytest.mark.soak
@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"])
def test_what_the_server_does_not_allow(s3: Server, action: str) -> None:
    bucket = s3.bucket()
    said = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Deny", "Principal": "*", "Action": action,
                "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
            }
        ],
    }  # fmt: skip
    s3.client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(said))
    refused(WorkspaceServerError, "may list, read, put", lambda: taken(f"s3://{bucket}/ws"))


@pytest.mark.soak
def test_a_server_that_is_away(s3: Server) -> None:
    bucket = s3.bucket()
    store = taken(f"s3://{bucket}/ws")
    kept = store.put("models", b"abc")
    with s3.away():
        for run in (
            lambda: store.put("models", b"x"),
            lambda: store.open(kept),
            lambda: store.delete(kept.key),
            lambda: list(store.list()),
        ):
            refused(WorkspaceServerError, "check the network", run)
    assert store.open(kept) == b"abc"
    assert list(store.list()) == [kept.key]


@pytest.mark.soak
def test_a_bucket_whose_versions_need_a_second_factor(
    s3: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket(versions="Enabled")
    told = {"Status": "Enabled", "MFADelete": "Enabled"}
    monkeypatch.setattr(S3Bucket, "_versioning", lambda self: told)
    refused(WorkspaceError, "second factor", lambda: taken(f"s3://{bucket}/ws"))
    assert s3.everything(bucket) == {}


@pytest.mark.soak
def test_a_bucket_that_locks_its_objects(s3: Server) -> None:
    """What cannot be deleted is found out before there is a record in it."""
    s3.client.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    rule = {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 1}}
    s3.client.put_object_lock_configuration(
        Bucket="locked", ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    refused(WorkspaceError, "cannot be used|kept what", lambda: taken("s3://locked/ws"))
