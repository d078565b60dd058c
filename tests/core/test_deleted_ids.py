"""A driver that starts again does not bring back what was deleted."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from erasable import Records
from erasable.core import deleted_ids
from erasable.core.deleted_ids import DeletedIds
from erasable.core.errors import ArtifactError, InvalidInputError
from simulated_workers import Simulated, even, spread
from visits_table import N, Visits, make


def as_ids(values: list[Any]) -> Any:
    return np.array(values, None if all(isinstance(each, int) for each in values) else object)


@pytest.mark.parametrize(
    ("some", "others"), [([3, 0], [1, -3]), (["a", "ab"], ["b", ""]), ([7, "a"], ["7", 8])]
)
def test_what_was_added_is_among(some: list[Any], others: list[Any], tmp_path: Path) -> None:
    listed = DeletedIds(tmp_path / "list")
    assert not listed.among(as_ids(some)).any()
    assert not (tmp_path / "list").exists()
    for each in some:
        listed.add(as_ids([each]))
    for known in (listed, DeletedIds(tmp_path / "list")):
        assert known.among(as_ids(some + others)).tolist() == [True] * 2 + [False] * 2
    _, *lines = (tmp_path / "list").read_text().splitlines()
    assert [set(line) <= set("0123456789abcdef") for line in lines] == [True, True]


def test_lines_that_a_crash_has_cut_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "list"
    DeletedIds(path).add(np.arange(5))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        known = DeletedIds(path)
        n_lines = max(0, whole[:size].count(b"\n") - 1)
        assert known.among(np.arange(5)).sum() == n_lines
        known.add(np.array([9]))
        assert DeletedIds(path).among(np.arange(10)).sum() == n_lines + 1


@pytest.mark.parametrize(
    "data", [b"a,b\n1,2\n", b"erasable: ids that were deleted 1\n", b"\xff\xfe\n"]
)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(data)
    with pytest.raises(InvalidInputError, match="is no list of deleted ids"):
        DeletedIds(tmp_path / "list")
    assert (tmp_path / "list").read_bytes() == data
    with pytest.raises(InvalidInputError, match="cannot be read from"):
        DeletedIds(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list"
    DeletedIds(path).add(np.arange(3))
    text = path.read_text()
    for broken in (text[:-2] + "x\n", text[:-5] + "\n", text + "\n"):
        path.write_text(broken)
        with pytest.raises(InvalidInputError, match="is damaged"):
            DeletedIds(path)


def test_a_disk_that_is_full_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "list"
    listed = DeletedIds(path)
    listed.add(np.array([1]))

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(deleted_ids.os, "fsync", full)
        with pytest.warns(RuntimeWarning, match="could not be written"):
            listed.add(np.array([2]))
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", full)
        with pytest.warns(RuntimeWarning, match="could not be written"):
            listed.add(np.array([3]))
    listed.add(np.array([4]))
    assert DeletedIds(path).among(np.arange(6)).tolist() == [False, *[True] * 4, False]


def records_of(visits: Visits, workers: Simulated, path: Path) -> Records:
    records = spread(visits.table, even(N, 7), workers)
    records._keep_out(DeletedIds(path))
    return records


def test_another_driver_makes_the_records_without_them(tmp_path: Path) -> None:
    visits, path = Visits(), tmp_path / "list"
    records = records_of(visits, Simulated(2), path)
    model, other = make("KMeans").fit(records), make("GaussianNB").fit(records)
    model.save(tmp_path / "before")
    model.delete(visits.ids[:5])
    other.delete(visits.ids[3:9])
    model.delete(visits.ids[7:9])
    other.save(tmp_path / "model")
    twin = make("GaussianNB").fit(visits.in_memory())
    twin.delete(visits.ids[3:9])

    workers = Simulated(3)  # a cluster that has read the files again
    again = records_of(visits, workers, path)
    gone = set(visits.ids[:9])
    assert set(again.ids[~again._withdrawn]) == set(visits.ids) - gone
    values = np.concatenate([held.matrix for held in workers.blocks().values()])
    assert np.count_nonzero(~values.any(axis=1)) == len(gone)
    clusters = make("KMeans").fit(again)
    expected = make("KMeans").fit(visits.in_memory())
    expected.delete(visits.ids[:9])
    assert clusters.digest() == expected.digest()
    with pytest.raises(ArtifactError, match="expected those it was fitted on"):
        type(model).load(tmp_path / "before", again)
    with pytest.raises(ArtifactError, match="expected those it was fitted on"):
        type(other).load(tmp_path / "model", again)  # another model has deleted more
    other.delete(visits.ids[:3])
    other.save(tmp_path / "model")
    loaded = type(other).load(tmp_path / "model", again)
    loaded.delete(visits.ids[20:22])
    twin.delete([*visits.ids[:3], *visits.ids[20:22]])
    assert loaded.digest() == twin.digest()


def test_without_the_list_they_would_be_back(tmp_path: Path) -> None:
    visits, path = Visits(), tmp_path / "list"
    model = make("GaussianNB").fit(records_of(visits, Simulated(2), path))
    model.delete(visits.ids[:5])
    assert visits.ids[0] in spread(visits.table, even(N, 7), Simulated(2)).ids
    assert visits.ids[0] not in records_of(visits, Simulated(2), path).ids


def test_the_list_needs_ids(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="without the column of ids"):
        Records.from_dask(None, deleted=tmp_path / "list")
