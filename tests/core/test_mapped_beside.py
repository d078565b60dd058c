"""Models that are saved with their records, by what a user does and does wrong."""

from __future__ import annotations

import errno
import io
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge as OtherRidge

import erasable
from erasable import Records, Refit, load
from erasable.cluster import KMeans
from erasable.core.artifact import write_artifact
from erasable.core.digest import id_set_hash
from erasable.core.errors import ArtifactError, ArtifactFileError, DetachedError, InvalidInputError
from erasable.core.lookup import _HASHES, HashIndex
from erasable.core.mapped import beside, description, disk, memory
from erasable.core.mapped.disk import Folder
from erasable.decomposition import PCA
from erasable.linear_model import Ridge
from erasable.neighbors import KNeighborsRegressor
from erasable.pipeline import make_pipeline
from erasable.preprocessing import StandardScaler

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(400, 3)), RNG.normal(size=400)
IDS = [f"visit-{n}" for n in range(400)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "risk.model"


def _fit(gone: int = 0) -> Any:
    return Ridge().fit(X[gone:], Y[gone:], ids=IDS[gone:])


def test_a_model_deletes_from_its_files(path: Path) -> None:
    _fit().save(path, records=True)
    for n in range(4):
        model = load(path, records=True)
        model.delete([IDS[n]])
        model.save(path, records=True)
    assert load(path, True).digest() == _fit(4).digest()
    assert load(path).digest() == _fit(4).digest()
    folder = path.with_name("risk.model.records")
    assert sorted(each.name for each in folder.iterdir()) == ["arrays", "now"]
    for each in folder.iterdir():
        assert b"visit-3" in each.read_bytes() or b"visit-0" not in each.read_bytes()


def test_groups_can_be_deleted(path: Path) -> None:
    groups = [f"p{n % 40}" for n in range(400)]
    Ridge().fit(X, Y, ids=IDS, groups=groups).save(path, records=True)
    model = load(path, True)
    assert model.delete(groups=["p3"]).ids.size == 10
    kept = [n for n in range(400) if n % 40 != 3]
    assert model.digest() == Ridge().fit(X[kept], Y[kept], ids=[IDS[n] for n in kept]).digest()


def test_a_model_that_learns_again_keeps_its_records(path: Path) -> None:
    model = Refit(OtherRidge(), random_state=0).fit(X, Y, ids=IDS)
    model.save(path, records=True)
    again = load(path, True, trusted=True)
    again.delete(IDS[:2])
    again.save(path, records=True)
    expected = Refit(OtherRidge(), random_state=0).fit(X[2:], Y[2:], ids=IDS[2:])
    assert load(path, True, trusted=True).digest() == expected.digest()


def test_a_pipeline_deletes_from_its_files(path: Path) -> None:
    model = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(X, ids=IDS)
    model.save(path, records=True)
    again = load(path, True)
    for each in (again, model):
        each.delete(IDS[5:9])
    assert again.digest() == model.digest()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("head", [[], [StandardScaler()], [StandardScaler(), PCA(2)]], ids=len)
def test_no_hash_of_a_deleted_id_is_left_in_the_files(path: Path, head: list[Any]) -> None:
    """Nor in what is kept of the tables between the steps of a pipeline."""
    make_pipeline(*head, KNeighborsRegressor()).fit(X, Y, ids=IDS).save(path, records=True)
    keys = _HASHES.record_keys(np.array(IDS, dtype=object))
    for n in range(2):
        model = load(path, True)
        model.delete(IDS[n : n + 1])
        model.save(path, records=True)
        folder = path.with_name("risk.model.records")
        kept = b"".join(each.read_bytes() for each in folder.iterdir())
        assert [key.tobytes() in kept for key in keys] == [False] * (n + 1) + [True] * (399 - n)
    for each in (model, *(step for _, step in model.steps)):
        assert IDS[0] not in each._held.records.ids
        assert np.array_equal(each._held.id_set(), id_set_hash(model.ids_))


@pytest.mark.parametrize("ids", [np.array(IDS, dtype=object), np.arange(400) * 7], ids=str)
def test_records_that_come_are_written_into_the_room_that_was_kept(path: Path, ids: Any) -> None:
    """The first that come have room made; those after them change a few pages."""
    model = Ridge().fit(X[:300], Y[:300], ids=ids[:300])
    model.save(path, records=True)
    for first in range(300, 330, 10):
        again = load(path, True)
        before, some = again._held.records, slice(first, first + 10)
        arrays = {name: getattr(before, name) for name in ("matrix", "y")}
        again.add(X[some], Y[some], ids=ids[some])
        inside = [np.shares_memory(getattr(before, name), was) for name, was in arrays.items()]
        assert inside == [first > 300] * 2
        assert (
            again.digest()
            == Ridge().fit(X[: first + 10], Y[: first + 10], ids=ids[: first + 10]).digest()
        )
        again.delete(ids[[first]])
        again.add(X[[first]], Y[[first]], ids=ids[[first]])
        again.save(path, records=True)
    again = load(path, True)
    for name, buffer in again._held.records._spare.items():
        assert not buffer[330:].any(), name
    assert set(again._held.records._spare) >= {"matrix", "y"}
    again.delete(ids[:200])
    assert again.digest() == Ridge().fit(X[200:330], Y[200:330], ids=ids[200:330]).digest()


def test_an_array_that_only_begins_like_a_longer_one_is_given_no_room(path: Path) -> None:
    """Of an array of somebody else's, what follows is no room."""
    whole = RNG.normal(size=(500, 3))
    model = Ridge().fit(whole[:400], Y, ids=IDS)
    model.save(path, records=True)
    again = load(path, True)
    assert again._held.records._spare == {}
    again.add(X[:1], Y[:1], ids=["one more"])
    expected = Ridge().fit(np.vstack([whole[:400], X[:1]]), [*Y, Y[0]], ids=[*IDS, "one more"])
    assert again.digest() == expected.digest()


def test_what_another_model_still_holds_is_not_kept(path: Path) -> None:
    records = Records(X, Y, ids=IDS)
    model, other = Ridge().fit(records), Ridge().fit(records)
    model.delete(IDS[:2])
    model.save(path, records=True)
    data = b"".join(each.read_bytes() for each in path.with_name("risk.model.records").iterdir())
    assert X[1].tobytes() not in data
    assert X[2].tobytes() in data
    assert b"visit-1" + b"visit-2" not in data
    assert load(path, True).digest() == model.digest() == _fit(2).digest()
    assert other.delete(IDS[:2]).action == "updated"


def test_saving_without_records_removes_them(path: Path) -> None:
    _fit().save(path, records=True)
    model = load(path, True)
    model.save(path)
    assert not path.with_name("risk.model.records").exists()
    with pytest.raises(ArtifactError, match=r"missing, or those of another .* load\(path, records"):
        load(path, True)


def test_saving_elsewhere_keeps_all(path: Path) -> None:
    _fit().save(path, records=True)
    other = path.with_name("other.model")
    model = load(path, True)
    model.delete(IDS[:1])
    model.save(other, records=True)
    assert load(other, True).digest() == _fit(1).digest()
    assert load(path, True).digest() == _fit().digest()


def test_a_copy_does_not_write_to_the_files(path: Path) -> None:
    import copy
    import pickle

    _fit().save(path, records=True)
    model = load(path, True)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.delete(IDS[:3])
        assert twin.digest() == _fit(3).digest()
        twin.save(path, records=True)
        assert load(path, True).digest() == _fit(3).digest()
        _fit().save(path, records=True)


def test_the_files_of_another_model_are_refused(path: Path) -> None:
    _fit().save(path, records=True)
    _fit(1).save(path.with_name("other"))
    path.with_name("other").replace(path)
    with pytest.raises(ArtifactError, match="of another model"):
        load(path, True)


def test_equal_models_of_other_values_are_not_mixed_up(path: Path) -> None:
    from erasable.preprocessing import MinMaxScaler

    one = MinMaxScaler().fit([[0.0], [1.0], [3.0]])
    other = MinMaxScaler().fit([[0.0], [2.0], [3.0]])
    assert one.digest() == other.digest()
    one.save(path, records=True)
    beside.save_records(other, path)  # and the file is not written any more
    assert load(path, True).delete([2]).action == "updated"
    np.testing.assert_array_equal(load(path, True)._held.records.matrix[:, 0], [0.0, 1.0, 3.0])


@pytest.mark.parametrize("from_files", [False, True])
def test_a_process_that_dies_has_saved_all_or_nothing(
    path: Path, monkeypatch: Any, from_files: bool
) -> None:
    _fit().save(path, records=True)
    for last, expected in (("save_records", _fit()), ("write", _fit()), ("settle", _fit(2))):
        _fit().save(path, records=True)
        model = load(path, True) if from_files else _fit()
        model.delete(IDS[:2])
        with monkeypatch.context() as patch:
            if last == "write":
                patch.setattr("erasable.core.estimator.write_artifact", _die)
            elif last == "settle":
                patch.setattr(beside, "recover_records", _die)
            else:
                patch.setattr(beside, "save_records", _die)
            with pytest.raises(KeyboardInterrupt):
                model.save(path, records=True)
        assert load(path, True).digest() == expected.digest()


def _die(*args: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("made", [Ridge, KNeighborsRegressor], ids=str)
def test_two_who_load_the_same_files_do_not_see_each_others_changes(path: Path, made: Any) -> None:
    made().fit(X, Y, ids=IDS).save(path, records=True)
    one, other = load(path, True), load(path, True)
    before = other.predict(X)
    one.delete(IDS[:50])
    one.save(path, records=True)
    assert one.digest() == made().fit(X[50:], Y[50:], ids=IDS[50:]).digest()
    np.testing.assert_array_equal(other.predict(X), before)
    other.delete(IDS[-3:])
    expected = made().fit(X[:-3], Y[:-3], ids=IDS[:-3])
    assert other.digest() == expected.digest()
    other.save(path, records=True)  # the last who saves is right, as with any file
    again = load(path, True)
    assert again.digest() == expected.digest()
    np.testing.assert_array_equal(again.predict(X), expected.predict(X))


@pytest.mark.parametrize("effect", ["writing", "patch"])
def test_a_full_disk_costs_no_records(
    path: Path, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was saved last is there, or what is saved now once there is room."""
    _fit().save(path, records=True)
    model = load(path, True)
    model.delete(IDS[:2])
    with monkeypatch.context() as patch:
        patch.setattr(Folder, effect, _full)
        with pytest.raises(ArtifactFileError, match=r"cannot be written \(No space"):
            model.save(path, records=True)
        if effect == "patch":
            with pytest.raises(ArtifactError, match=r"cannot be used: .*No space"):
                load(path, True)
    assert load(path, True).digest() == _fit(2 if effect == "patch" else 0).digest()


def _full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_mistakes(path: Path) -> None:
    model = _fit()
    with pytest.raises(InvalidInputError, match="file that is open; expected a path"):
        model.save(io.BytesIO(), records=True)
    with pytest.raises(InvalidInputError, match="file that is open; expected a path"):
        load(io.BytesIO(), True)
    model.save(path)
    with pytest.raises(DetachedError):
        load(path).save(path, records=True)
    with pytest.raises(ArtifactError, match="missing"):
        load(path, True)
    with pytest.raises(ArtifactError, match="is not there"):
        load(path.with_name("none"), True)
    path.write_bytes(b"no model")
    with pytest.raises(ArtifactError, match="damaged, or no model"):
        load(path, True)
    model.save(path, records=True)
    with pytest.raises(ArtifactError, match="expected a KMeans"):
        KMeans.load(path, True)
    step = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)[-1]
    with pytest.raises(DetachedError):
        step.save(path, records=True)


def test_a_damaged_folder_is_named(path: Path) -> None:
    _fit().save(path, records=True)
    arrays = path.with_name("risk.model.records") / "arrays"
    data = bytearray(arrays.read_bytes())
    data[5000] ^= 1
    arrays.write_bytes(data)
    with pytest.raises(ArtifactError, match=r"damaged; expected the folder 'risk.model.records'"):
        load(path, True)


def test_a_header_without_a_digest_is_refused(path: Path) -> None:
    write_artifact(path, {"class": "a.B"}, {})
    with pytest.raises(ArtifactError, match="damaged, or no model"):
        load(path, True)
    assert erasable.load is load


def test_records_of_the_layout_before_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index had one part then; what is written now, an earlier erasable does not take."""

    def one_part(index: HashIndex) -> dict[str, Any]:
        return {name: getattr(index, name) for name in ("ids", "keys", "rows")}

    with monkeypatch.context() as patch:
        patch.setattr(description, "_FORMAT", description._EARLIER)
        patch.setattr(HashIndex, "_kept_attributes", one_part)
        _fit().save(path, records=True)
        assert b'"later"' not in b"".join(_contents(path).values())
    model = load(path, True)
    model.add(X[:2] + 1.0, Y[:2], ids=["new", "newer"])
    model.delete(["new", IDS[0]])
    model.save(path, records=True)
    left = np.concatenate([X[1:], X[1:2] + 1.0])
    expected = Ridge().fit(left, np.concatenate([Y[1:], Y[1:2]]), ids=[*IDS[1:], "newer"])
    assert load(path, True).digest() == expected.digest()
    monkeypatch.setattr(description, "_FORMAT", description._EARLIER)
    monkeypatch.setattr(description, "_EARLIER", None)
    with pytest.raises(ArtifactError, match="of another model or version of erasable"):
        load(path, True)


@pytest.mark.parametrize("n_added", [5, 100])
def test_what_came_and_went_leaves_no_trace(path: Path, n_added: int) -> None:
    """Neither in what was there nor in what came since: not the id, its hash, or the group."""
    groups = [f"patient-{n}" for n in range(400)]
    model = Ridge().fit(X, Y, ids=IDS, groups=groups)
    model.save(path, records=True)
    (key,) = _HASHES.record_keys(np.array(["later-3."]))
    found = []
    for step in ("come", "come too", "go"):
        model = load(path, True)
        if step == "go":
            model.delete(["later-3.", IDS[3]])
        else:
            names, persons = (
                [f"{kind}{step[4:]}-{n}." for n in range(n_added)] for kind in ("later", "person")
            )
            model.add(X[:n_added], Y[:n_added], ids=names, groups=persons)
        model.save(path, records=True)
        held = b"".join(_contents(path).values())
        index: Any = load(path, True)._attached().records._id_index
        keys = np.concatenate([index.keys, index.later.keys if index.later else index.keys])
        found.append([b"later-3." in held, b"person-3." in held, key in keys])
    assert found == [[True] * 3, [True] * 3, [False] * 3]


def _contents(path: Path) -> dict[str, bytes]:
    folder = path.with_name("risk.model.records")
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("written_by", ["another version", "another model"])
def test_records_that_cannot_be_used_are_kept(
    path: Path, written_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be the only ones: a version of erasable that can read them still finds them."""
    with monkeypatch.context() as patch:
        if written_by == "another version":
            patch.setattr(description, "_FORMAT", [2, "0.0.1"])
        _fit().save(path, records=True)
    before = _contents(path)
    if written_by == "another model":
        _fit(1).save(path.with_name("other"))
        path.with_name("other").replace(path)
    for _ in range(2):
        with pytest.raises(ArtifactError, match="of another model or version of erasable"):
            load(path, True)
        assert _contents(path) == before
    _fit(2).save(path, records=True)  # which is meant to take their place
    assert load(path, True).digest() == _fit(2).digest()


# -- what others have put there ------------------------------------------------------------------


def _with_a_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Save a model in a process that dies before its records are changed; return their file."""
    _fit().save(path, records=True)
    model = load(path, True)
    model.delete(IDS[:1])
    with monkeypatch.context() as patch:
        patch.setattr(beside, "recover_records", _die)
        with pytest.raises(KeyboardInterrupt):
            model.save(path, records=True)
    return path.with_name("risk.model.records") / "arrays"


def test_what_a_link_points_at_is_not_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control comes last."""
    for is_checked in (True, False):
        arrays, other = _with_a_change(path, monkeypatch), path.with_name("other")
        before = arrays.read_bytes()
        shutil.move(arrays, other)
        arrays.symlink_to(other)
        if not is_checked:
            monkeypatch.setattr(disk, "link_in", lambda root, key: None)
            for module in (disk, memory):
                monkeypatch.setattr(module, "open_no_link", os.open)
            load(path, True)
        else:
            with pytest.raises(ArtifactError, match="is a symbolic link; expected a file"):
                load(path, True)
        assert (other.read_bytes() == before) is is_checked
        shutil.rmtree(arrays.parent)


def test_another_name_of_the_file_is_not_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control comes last."""
    for is_checked in (True, False):
        arrays, other = _with_a_change(path, monkeypatch), path.with_name(f"other-{is_checked}")
        before = arrays.read_bytes()
        os.link(arrays, other)
        if not is_checked:
            monkeypatch.setattr(disk, "separate", lambda *given: None)
        assert load(path, True).digest() == _fit(1).digest()
        assert (other.read_bytes() == before) is is_checked


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("suffix", [".records", ".records.next"])
def test_a_link_in_the_place_of_the_folder_is_refused_first(
    path: Path, suffix: str, records: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control is refused when the model has been written already."""
    _fit().save(path)
    before, other = path.read_bytes(), path.with_name("other")
    other.mkdir()
    (other / "arrays").write_bytes(b"precious")
    path.with_name(path.name + suffix).symlink_to(other)
    with pytest.raises(ArtifactError, match="is a symbolic link; expected a file or folder"):
        _fit(1).save(path, records=records)
    assert path.read_bytes() == before
    monkeypatch.setattr(beside, "refuse_others", lambda *given, records: None)
    with pytest.raises(ArtifactError, match="is a symbolic link"):
        _fit(1).save(path, records=records)
    assert (path.read_bytes() == before) is (records and suffix == ".records.next")
    assert (other / "arrays").read_bytes() == b"precious"


def test_a_folder_of_others_is_not_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = path.with_name("risk.model.records") / "notes"
    notes.parent.mkdir()
    notes.write_bytes(b"precious")
    with pytest.raises(ArtifactError, match=r"is not what save.* wrote; expected nothing there"):
        _fit().save(path, records=True)
    assert not path.exists()
    _fit().save(path)
    assert notes.read_bytes() == b"precious"
    monkeypatch.setattr(beside, "_is_made", lambda place: True)  # the negative control
    _fit().save(path)
    assert not notes.exists()
