"""What an earlier commit wrote: the same digests, and files that load and delete as before."""

from __future__ import annotations

import io
import json
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest
import written

import erasable
from effort import skip
from erasable.core.records import Records
from erasable.preprocessing import StandardScaler
from erasable.workspace import Workspace

KEPT = json.loads(written.DIGESTS.read_text())


@pytest.mark.thorough
def test_digests_are_what_they_were() -> None:
    every = skip(1)
    found = written.digests(every)
    assert found.keys() <= KEPT.keys()
    assert len(found) == -(-len(KEPT) // every)
    assert [name for name, digests in found.items() if digests != KEPT[name]] == []


def test_another_digest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    name, estimator, records, _ = next(
        each for each in written.cases() if isinstance(each[1], StandardScaler)
    )
    assert written.fitted(estimator, records).digest() == KEPT[name][0]
    monkeypatch.setattr(StandardScaler, "algorithm_version", 999)
    assert written.fitted(estimator, records).digest() != KEPT[name][0]


def test_files_load_and_delete_as_before() -> None:
    with zipfile.ZipFile(written.MODELS) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = {name: archive.read(name) for name in archive.namelist()}
        for name, _, (X, y, ids), doomed in written.cases():
            if name in files:
                file = files.pop(name)
                model = erasable.load(io.BytesIO(file), Records(X, y, ids=ids))
                again = io.BytesIO()
                model.save(again)
                assert again.getvalue() == file, name
                assert written.digests_of(model, doomed) == KEPT[name], name
    assert not files


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    with tarfile.open(written.WORKSPACE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def _finished(workspace: Workspace) -> None:
    assert {each.verdict for each in workspace.verify(retrain=True)} == {"equal"}
    assert workspace.verify_log() == []
    assert len(workspace.process().requests) == 1
    assert workspace.subject(written.PEOPLE[1], type="id")["datasets"] == {}
    assert {each.verdict for each in workspace.verify(retrain=True)} == {"equal"}
    assert workspace.verify_log() == []


def test_a_workspace_goes_on(unpacked: Path) -> None:
    _finished(Workspace.open(unpacked / "workspace"))


def test_a_backup_is_restored(unpacked: Path) -> None:
    listed = json.loads((unpacked / "list.json").read_text())
    Workspace.restore(unpacked / "backup", unpacked / "restored", suppressions=listed)
    workspace = Workspace.open(unpacked / "restored")
    workspace.request(written.PEOPLE[1:])
    _finished(workspace)
