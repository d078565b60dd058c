"""The file of a backup: any tar unpacks it, and no byte of it can be altered."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from erasable.core.errors import EvidenceError, NotInWorkspaceError, WorkspaceError
from erasable.workspace import Workspace
from erasable.workspace.backups import archive
from erasable.workspace.backups.archive import MANIFEST, Archive, Writer
from erasable.workspace.identity.keys import Keys


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workspace in a file, and its keys beside it."""
    folder = tmp_path_factory.mktemp("archive")
    rows = "visit,patient,age,sick\n" + "".join(f"v{i},p{i},{30 + i},{i % 2}\n" for i in range(12))
    (folder / "visits.csv").write_text(rows)
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset("visits", folder / "visits.csv", id_column="visit", subjects=["patient"])
    workspace.fit("risk", "naive_bayes.GaussianNB", datasets=["visits"], target="sick")
    workspace.back_up(folder / "backup.tar")
    return folder / "backup.tar"


def read(path: Path, keys: Path) -> archive.Manifest:
    return archive.read_manifest(Archive(path), Keys.read(keys))


def keys_of(backup: Path) -> Path:
    return backup.parent / "ws" / "keys.json"


def test_any_tar_unpacks_it(backup: Path) -> None:
    said = read(backup, keys_of(backup))
    with tarfile.open(backup) as found:
        names = found.getnames()
        for each in said.members:
            data = found.extractfile(each["name"]).read()  # type: ignore[union-attr]
            assert len(data) == each["size"]
            assert hashlib.sha256(data).hexdigest() == each["sha256"]
    assert names == [*(each["name"] for each in said.members), MANIFEST]
    assert "ledger/log_entry/000000.jsonl" in names
    assert "keys.json" not in names
    assert backup.stat().st_mode & 0o077 == 0


@given(data=st.data())
def test_whatever_byte_is_altered_it_is_refused(backup: Path, data: st.DataObject) -> None:
    whole = backup.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    spoiled = bytearray(whole)
    spoiled[place] ^= 1 << data.draw(st.integers(0, 7))
    path = backup.with_name("spoiled.tar")
    path.write_bytes(spoiled)
    with pytest.raises(EvidenceError) as told:
        read(path, keys_of(backup))
    assert "; expected " in str(told.value)
    path.write_bytes(whole)
    read(path, keys_of(backup))  # as it was it is taken


@given(data=st.data())
def test_whatever_is_cut_off_or_added_it_is_refused(backup: Path, data: st.DataObject) -> None:
    whole = backup.read_bytes()
    path = backup.with_name("cut.tar")
    cut = data.draw(st.one_of(st.integers(0, len(whole) - 1), st.just(len(whole) - 512)))
    for spoiled in (whole[:cut], whole + bytes(512), whole[:cut] + bytes(512) + whole[cut:]):
        path.write_bytes(spoiled)
        with pytest.raises(EvidenceError):
            read(path, keys_of(backup))


def test_members_are_not_exchanged_without_the_key(backup: Path, tmp_path: Path) -> None:
    """A member is altered, and the hashes are made to fit: the signature is not."""
    was = Archive(backup)
    pieces: list[bytes] = []
    writer = Writer(pieces.append)
    for each in was.members:
        data = was.read(each.name)
        writer.add(each.name, data.replace(b"risk", b"rusk"))
    writer.end(was.read(MANIFEST))
    (tmp_path / "made_up.tar").write_bytes(b"".join(pieces))
    assert len(Archive(tmp_path / "made_up.tar").members) == len(was.members)
    with pytest.raises(EvidenceError, match="something else than its manifest says"):
        read(tmp_path / "made_up.tar", keys_of(backup))


def test_the_keys_of_another_workspace(backup: Path, tmp_path: Path) -> None:
    Workspace.create(tmp_path / "other")
    with pytest.raises(EvidenceError, match="keys are not those of the workspace"):
        read(backup, tmp_path / "other" / "keys.json")


def test_there_is_none(tmp_path: Path) -> None:
    for name in ("missing.tar", "."):
        with pytest.raises(NotInWorkspaceError, match="there is no backup"):
            Archive(tmp_path / name)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(EvidenceError, match="is cut off"):
        Archive(tmp_path / "empty")


def test_places_that_are_refused(backup: Path, tmp_path: Path) -> None:
    workspace = Workspace.open(backup.parent / "ws")
    (tmp_path / "there").write_text("mine")
    for place, words in (
        (workspace.context.root / "backup.tar", "is in the folder of the workspace"),
        (workspace.context.root, "is in the folder of the workspace"),
        (tmp_path / "there", "is there already"),
        (tmp_path / "missing" / "backup.tar", "make it first"),
    ):
        with pytest.raises(WorkspaceError, match=words):
            workspace.back_up(place)
    assert (tmp_path / "there").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_in_a_folder_it_gets_a_name(backup: Path, tmp_path: Path) -> None:
    made = Workspace.open(backup.parent / "ws").back_up(tmp_path)
    (path,) = tmp_path.iterdir()
    assert str(path) == made.path
    assert path.name.startswith("erasable-")
    assert path.suffix == ".tar"
    assert made.size == path.stat().st_size
