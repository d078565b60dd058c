"""Models of a workspace delete from their accelerators, and where these are gone, without them."""

from __future__ import annotations

import errno
import gc
import json
import os
import shutil
import sys
import warnings
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from contexts import visits as visit_records
from contexts import write_csv

from erasable.core.errors import AcceleratorWarning, WorkspaceError
from erasable.core.mapped.pages import MappedFile
from erasable.core.persistent import UnsavableError
from erasable.workspace import Workspace
from erasable.workspace.identity.keys import Keys
from erasable.workspace.models import reading
from erasable.workspace.store.accelerators import (
    FOLDER,
    folder_of,
    folders,
    secret_of,
    settle_all,
)
from erasable.workspace.store.disk import Disk
from guarded_memory import guarded

MODELS = {
    "risk": ("naive_bayes.GaussianNB", "sick"),
    "cost": ("preprocessing.StandardScaler,linear_model.Ridge", "weight"),
    "tree": ("tree.DecisionTreeClassifier", "sick"),
    "groups": ("cluster.KMeans", None),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ws"


@pytest.fixture
def workspace(folder: Path, tmp_path: Path) -> Workspace:
    made = Workspace.create(folder)
    write_csv(tmp_path / "visits.csv", visit_records(120))
    made.add_dataset("visits", tmp_path / "visits.csv", id_column="visit", subjects=["patient"])
    for name, (estimator, target) in MODELS.items():
        made.fit(name, estimator, datasets=["visits"], target=target, features=["age"])
    return made


def person(number: int) -> str:
    return f"marker-patient-{number}"


def _erase(workspace: Workspace, *people: str) -> Any:
    workspace.request(people)
    return workspace.process()


def _arrays(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).glob("*/arrays"))


def _assert_equal(workspace: Workspace) -> None:
    assert {each.verdict for each in workspace.verify()} == {"equal"}


def test_nothing_is_read_but_what_a_person_has(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    monkeypatch.setattr(reading, "read_parts", lambda *args: pytest.fail("data was read"))
    for each in map(person, (1, 2, 3)):
        done = _erase(workspace, each)
        assert {each["treatment"] for each in done.treatments} == {"deleted"}
        assert len(_arrays(folder)) == len(MODELS)
    monkeypatch.undo()
    _assert_equal(workspace)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-4096])


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 8
    path.write_bytes(data)


def _of_another(path: Path) -> None:
    other = next(each for each in path.parent.parent.iterdir() if each != path.parent)
    shutil.rmtree(path.parent)
    shutil.copytree(other, path.parent)


def _garbled(path: Path) -> None:
    (path.parent / "now").write_bytes(b"{}")


def _emptied(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("damage", [_truncated, _flipped, _of_another, _garbled, _emptied])
def test_a_damaged_accelerator_is_made_again(
    folder: Path, workspace: Workspace, damage: Any
) -> None:
    twin = shutil.copytree(folder, f"{folder}-twin")
    for path in _arrays(folder):
        if path.exists():
            damage(path)
    for place in (folder, twin):
        each = Workspace.open(place)
        n_told = {_emptied: 0, _garbled: 1, _of_another: 1}.get(damage, len(MODELS))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            done = _erase(each, person(1), person(5))
        assert [w.category for w in told] == [AcceleratorWarning] * n_told * (place == folder)
        assert len(done.treatments) == len(MODELS)
        assert len(_arrays(Path(place))) == len(MODELS)
        _assert_equal(each)
        assert {each["treatment"] for each in _erase(each, person(2)).treatments} == {"deleted"}
        _assert_equal(each)


@pytest.mark.parametrize("damage", [_truncated, _of_another, _garbled])
def test_another_command_tells_of_them_in_one_line(
    folder: Path, workspace: Workspace, damage: Any
) -> None:
    """What it can see without reading all of it; the rest is found when a model is deleted from."""
    for path in _arrays(folder)[: 1 if damage is _of_another else 2]:
        damage(path)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        workspace.process()
    lines = [str(each.message) for each in told]
    n = {_truncated: 0, _of_another: 1}.get(damage, 2)
    assert [line.count("'") for line in lines] == [2 * n] * bool(n)
    assert len(_arrays(folder)) == len(MODELS) - n


def test_one_whose_making_was_cut_off_is_removed_at_once(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    from erasable.core.mapped import pages

    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pages, "write", die)
        with pytest.raises(KeyboardInterrupt):
            workspace.fit("risk")
    assert len(_arrays(folder)) == len(MODELS) - 1
    workspace.process()
    _erase(workspace, person(1))
    assert len(_arrays(folder)) == len(MODELS)
    _assert_equal(workspace)


def test_what_a_process_that_was_killed_has_not_finished_is_removed(
    folder: Path, workspace: Workspace
) -> None:
    """It may hold records that the model never learned from, which no erasure would look for."""
    left = [each.with_name(".partial-change-0a7f") for each in _arrays(folder)]
    for each in left:
        each.write_bytes(b"marker")
    workspace.process()
    assert not any(each.exists() for each in left)
    assert len(_arrays(folder)) == len(MODELS)


def test_what_others_are_writing_stays(tmp_path: Path) -> None:
    disk, place = Disk(tmp_path), f"{FOLDER}/07f3-{'2c' * 12}"
    disk.owner = "07f3"
    with disk.writing(f"{place}/change") as append:
        append(b"records")
        (own,) = folders(disk)[place]
        disk.write(f"{place}/.partial-08a1-change-00", b"records of who is dead")
        found = folders(disk)
        assert len(found[place]) == 2
        settle_all(disk, found, set(), set(), {"07f3"}, Keys.new)
        assert folders(disk) == {place: [own]}
    assert folders(disk) == {place: []}


def test_one_of_another_version_of_software_is_told_of(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    from erasable.workspace.models import deleting

    newer = {**deleting.software(), "numpy": "0"}
    monkeypatch.setattr(deleting, "software", lambda: newer)
    monkeypatch.setattr(deleting, "software", lambda: newer)
    with pytest.warns(AcceleratorWarning, match=r"cannot be used \(other versions") as told:
        _erase(workspace, person(1))
    assert len(told) == len(MODELS)


def test_what_is_older_than_its_model_is_removed(folder: Path, workspace: Workspace) -> None:
    """It holds who was erased since: nothing of it is left, and a line says so."""
    place = folder / FOLDER
    older = shutil.copytree(place, folder.parent / "older")
    _erase(workspace, person(1))
    for new, old in zip(sorted(place.iterdir()), sorted(older.iterdir()), strict=True):
        shutil.rmtree(new)
        shutil.copytree(old, new)
    with pytest.warns(AcceleratorWarning, match="damaged, or of another version"):
        workspace.process()
    assert not _arrays(folder)
    assert len(_erase(workspace, person(2)).treatments) == len(_arrays(folder)) == len(MODELS)
    _assert_equal(workspace)


def test_a_fragment_that_changed_behind_the_ledger_is_found(
    folder: Path, workspace: Workspace
) -> None:
    (path,) = (each for each in (folder / "artifacts" / "data").rglob("*") if each.is_file())
    data = path.read_bytes()
    before = _arrays(folder)
    workspace.request([person(1)])
    path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    with pytest.raises(WorkspaceError, match="has been altered or damaged"):
        workspace.process()
    assert _arrays(folder) == before
    path.write_bytes(data)
    assert {each["treatment"] for each in workspace.process().treatments} == {"deleted"}
    _assert_equal(workspace)


def test_what_others_have_written_is_not_taken(folder: Path, workspace: Workspace) -> None:
    """Whoever writes into the folder, but has not the keys, changes no model."""
    from erasable.workspace.context import Context
    from erasable.workspace.models import catalogue, deleting

    context = Context.open(folder)
    with context.ledger.reading() as connection:
        version = catalogue.current(connection, catalogue.find(connection, "risk"))
    assert version is not None
    assert version.key is not None
    found = deleting.find_accelerator(context, version)
    assert not isinstance(found, str)
    _, model = found
    model._held.records.matrix[:] = 7.0
    for secret, is_taken in ((b"", False), (b"guess", False), (secret_of(context.keys), True)):
        MappedFile.make(context.disk, folder_of(version.key), version.key, model, secret)
        assert isinstance(deleting.find_accelerator(context, version), str) is not is_taken


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_change_that_others_have_written_is_not_carried_out(
    folder: Path, workspace: Workspace, has_keys: bool
) -> None:
    """The next command would patch the arrays, and vouch for them; with the keys it does."""
    secret = secret_of(workspace.context.keys) if has_keys else b""
    altered = {}
    for path in _arrays(folder):
        now, before = path.with_name("now").read_bytes(), path.read_bytes()
        label = json.loads(now.splitlines()[1])["label"]
        page = bytes(byte ^ 1 for byte in before[:4096])
        head = json.dumps(
            {"from": label, "to": label, "now": len(now), "runs": [[0, len(page)]]}
        ).encode()
        body = len(head).to_bytes(8, "little") + head + now + page
        closing = blake2b(body, digest_size=16, key=secret).digest()
        path.with_name("change").write_bytes(body + closing)
        altered[path] = page + before[4096:]
    Workspace.open(folder).process()
    assert [path.read_bytes() == data for path, data in altered.items()] == [has_keys] * len(MODELS)
    if not has_keys:
        again = Workspace.open(folder)
        assert {each["treatment"] for each in _erase(again, person(1)).treatments} == {"deleted"}
        _assert_equal(again)


def test_a_file_with_another_name_is_not_written_to(folder: Path, workspace: Workspace) -> None:
    """The file of an accelerator that is another's is not used, and what it held is not changed."""
    foreign = [folder.parent / f"foreign-{n}" for n, _ in enumerate(_arrays(folder))]
    for path, other in zip(_arrays(folder), foreign, strict=True):
        other.write_bytes(b"precious" * 100_000)
        path.unlink()
        os.link(other, path)
    with pytest.warns(AcceleratorWarning, match="cannot be used"):
        _erase(workspace, person(1))
    assert {other.read_bytes() for other in foreign} == {b"precious" * 100_000}
    assert {other.stat().st_nlink for other in foreign} == {1}
    _assert_equal(workspace)


def test_accelerators_go_with_their_models(folder: Path, workspace: Workspace) -> None:
    workspace.retire("tree")
    assert len(_arrays(folder)) == len(MODELS) - 1
    before = set(_arrays(folder))
    workspace.fit("risk")
    assert len(before & set(_arrays(folder))) == len(MODELS) - 2
    _erase(workspace, *map(person, range(40)))
    assert not _arrays(folder)


def test_a_restored_workspace_makes_them_again(
    folder: Path, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.back_up(tmp_path / "backup", with_keys=True)
    Workspace.restore(tmp_path / "backup", tmp_path / "again", suppressions=None)
    again = Workspace.open(tmp_path / "again")
    assert not _arrays(tmp_path / "again")
    _erase(again, person(1))
    assert len(_arrays(tmp_path / "again")) == len(MODELS)
    _assert_equal(again)


@pytest.mark.parametrize("effect", ["_append", "_sync", "_rename", "_patch"])
def test_a_full_disk_costs_the_accelerators_alone(
    folder: Path, workspace: Workspace, effect: str, monkeypatch: Any
) -> None:
    """Whether there is no room to prepare a change, to carry it out, or for a new accelerator."""
    right, n_full = getattr(Disk, effect), 0

    def full(disk: Disk, path: Path, *given: Any) -> Any:
        nonlocal n_full
        if FOLDER in str(path):
            n_full += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return right(disk, path, *given)

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(Disk, effect, full)
        _erase(workspace, person(1))
        assert n_full == len(MODELS)
        assert not _arrays(folder)
        if effect != "_patch":
            workspace.fit("risk")
            assert n_full == len(MODELS) + 1
    _assert_equal(workspace)
    for n in (2, 3):
        assert {each["treatment"] for each in _erase(workspace, person(n)).treatments} == {
            "deleted"
        }
        assert len(_arrays(folder)) == len(MODELS)
    _assert_equal(workspace)


def test_what_cannot_be_kept_any_more_costs_the_accelerator_alone(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    def unkept(*args: Any) -> None:
        raise UnsavableError("a function")

    with monkeypatch.context() as patch:
        patch.setattr(MappedFile, "prepare", unkept)
        _erase(workspace, person(1))
    assert not _arrays(folder)
    _assert_equal(workspace)


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_a_correction_of_texts_at_rest(tmp_path: Path) -> None:
    """Nothing reads what the change of an accelerator has left out; of few records or many."""
    made = Workspace.create(tmp_path / "ws")
    texts = {
        "visit": [f"v{n}" for n in range(20)],
        "patient": [f"p{n}" for n in range(20)],
        "note": [f"word{n} common red" for n in range(20)],
        "sick": [n % 2 for n in range(20)],
    }
    write_csv(tmp_path / "texts.csv", texts)
    made.add_dataset("texts", tmp_path / "texts.csv", id_column="visit", subjects=["patient"])
    recipe = "feature_extraction.TfidfVectorizer,linear_model.LogisticRegression"
    with guarded(strict=True):
        made.fit("m", recipe, datasets=["texts"], target="sick", features=["note"])
        made.correct("texts", ids=["v5"], values={"note": "common red"})
        assert [each["treatment"] for each in made.process().treatments] == ["corrected"]
        texts["note"][6] = "common blue"
        write_csv(tmp_path / "texts.csv", texts)
        made.sync("texts", tmp_path / "texts.csv", update_models=True)
        assert [each["treatment"] for each in _erase(made, "p7").treatments] == ["deleted"]
        gc.collect()
    _assert_equal(made)


def test_a_process_that_dies_between_the_model_and_its_accelerator(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    """The ledger has the new model, and the accelerator of before is on the disk, with a change."""
    from erasable.workspace.requests import process

    def die(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(process, "finish", die)
        workspace.request([person(1)])
        with pytest.raises(KeyboardInterrupt):
            workspace.process()
    assert len(list(folder.glob(f"{FOLDER}/*/change"))) == len(MODELS)
    again = Workspace.open(folder)
    again.process()
    assert not list(folder.glob(f"{FOLDER}/*/change"))
    assert len(_arrays(folder)) == len(MODELS)
    _assert_equal(again)
    assert {each["treatment"] for each in _erase(again, person(2)).treatments} == {"deleted"}
    _assert_equal(again)


def test_a_small_batch_changes_accelerators(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    from erasable.workspace.requests import process

    people = [person(number) for number in (10, 11, 12)]
    monkeypatch.setattr(reading, "read_parts", lambda *args: pytest.fail("data was read"))
    with monkeypatch.context() as patch:
        patch.setattr(process, "finish", lambda *args: [])
        assert {each["treatment"] for each in _erase(workspace, *people).treatments} == {"deleted"}
    assert len(list(folder.glob(f"{FOLDER}/*/change"))) == len(MODELS) == len(_arrays(folder))
    again = Workspace.open(folder)
    again.process()
    assert len(_arrays(folder)) == len(MODELS)
    _refuse_other_records(again, folder, 120 - 3 * len(people))
    assert {each["treatment"] for each in _erase(again, person(2)).treatments} == {"deleted"}
    monkeypatch.undo()
    _assert_equal(again)


def test_a_large_batch_leaves_accelerators_to_the_next_small_one(
    folder: Path, workspace: Workspace, monkeypatch: Any
) -> None:
    """Of a large batch most pages change: to write them takes longer than the deletion."""
    people = [person(number) for number in range(10, 30)]
    with monkeypatch.context() as patch:
        patch.setattr(reading, "read_parts", lambda *args: pytest.fail("data was read"))
        assert {each["treatment"] for each in _erase(workspace, *people).treatments} == {"deleted"}
    assert not _arrays(folder)
    _assert_equal(workspace)
    told = {each["treatment"] for each in _erase(workspace, person(2)).treatments}
    assert told == {"deleted"}
    assert len(_arrays(folder)) == len(MODELS)
    _refuse_other_records(workspace, folder, 120 - 3 * 21)
    monkeypatch.setattr(reading, "read_parts", lambda *args: pytest.fail("data was read"))
    assert {each["treatment"] for each in _erase(workspace, person(3)).treatments} == {"deleted"}
    monkeypatch.undo()
    _assert_equal(workspace)


def _refuse_other_records(workspace: Workspace, folder: Path, n_left: int) -> None:
    """Assert that accelerators hold so many records, and nothing of others."""
    for path in _arrays(folder):
        key = next(
            str(each.relative_to(folder / "artifacts"))
            for each in folder.rglob(path.parent.name)
            if "artifacts" in str(each)
        )
        _, model = MappedFile.open(
            workspace.context.disk, folder_of(key), key, secret_of(workspace.context.keys)
        )
        held = model._held
        assert held.n_live == n_left
        assert held.records.matrix[held.live].any()
        assert not held.records.matrix[~held.live].any()


def test_files_that_were_copied_are_taken_for_what_they_are(
    folder: Path, workspace: Workspace
) -> None:
    for path in _arrays(folder):
        os.utime(path)
    assert {each["treatment"] for each in _erase(workspace, person(1)).treatments} == {"deleted"}
    _assert_equal(workspace)
