"""What was recorded: the same digests, and files that load and delete as before."""

from __future__ import annotations

import io
import json
import tarfile
import warnings
import zipfile
from itertools import islice
from pathlib import Path

import pytest
import recorded

import erasable
from effort import THOROUGH
from erasable.core.records import Records
from erasable.preprocessing import StandardScaler
from erasable.workspace import Workspace

KEPT = json.loads(recorded.DIGESTS.read_text())


@pytest.fixture(scope="module")
def every() -> list[tuple[str, recorded.Life]]:
    """All lives, whose data takes seconds to make."""
    return list(recorded.lives())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_digests_are_what_they_were(part: int, every: list[tuple[str, recorded.Life]]) -> None:
    assert {name for name, _ in every} == KEPT.keys()
    some = islice(every, part, None, 8 * (1 if THOROUGH else 12))
    assert [name for name, life in some if life() != KEPT[name]] == []


def test_another_digest_is_noticed(
    every: list[tuple[str, recorded.Life]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    name, life = next(each for each in every if each[0].startswith("StandardScaler"))
    assert life() == KEPT[name]
    monkeypatch.setattr(StandardScaler, "algorithm_version", 999)
    assert all(now != then for now, then in zip(life(), KEPT[name], strict=True))


def test_files_load_and_delete_as_before() -> None:
    with zipfile.ZipFile(recorded.MODELS) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = {name: archive.read(name) for name in archive.namelist()}
        for name, model, data in recorded.files():
            if name in kept:
                file = kept.pop(name)
                records = Records(data.X, data.y, ids=data.ids, groups=data.groups)
                loaded = erasable.load(io.BytesIO(file), records)
                again = io.BytesIO()
                loaded.save(again)
                assert again.getvalue() == file, name
                twin = model.fit(data.X, data.y, ids=data.ids, groups=data.groups)
                for each in (loaded, twin):
                    each.delete(data.of(data.ids, data.doomed[:3]))
                assert loaded.digest() == twin.digest(), name
    assert not kept


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    with tarfile.open(recorded.WORKSPACE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def _finished(workspace: Workspace) -> None:
    assert {each.verdict for each in workspace.verify(retrain=True)} == {"equal"}
    assert workspace.verify_log() == []
    assert len(workspace.process().requests) == 1
    assert workspace.subject(recorded.PEOPLE[1], type="id")["datasets"] == {}
    assert {each.verdict for each in workspace.verify(retrain=True)} == {"equal"}
    assert workspace.verify_log() == []


# Accelerators are of the version that wrote them: another one reads the records once.
@pytest.mark.filterwarnings("ignore::erasable.core.errors.AcceleratorWarning")
def test_a_workspace_goes_on(unpacked: Path) -> None:
    _finished(Workspace.open(unpacked / "workspace"))


def test_a_backup_is_restored(unpacked: Path) -> None:
    listed = json.loads((unpacked / "list.json").read_text())
    Workspace.restore(unpacked / "backup", unpacked / "restored", suppressions=listed)
    workspace = Workspace.open(unpacked / "restored")
    workspace.request(recorded.PEOPLE[1:])
    _finished(workspace)
