"""Columns of images and arrays: what comes in, what models learn from, and that nothing stays."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sqlalchemy import select

from erasable.core.errors import SourceError, WorkspaceError
from erasable.naive_bayes import GaussianNB
from erasable.workspace import Workspace
from erasable.workspace.data import array_files, arrays, catalogue
from erasable.workspace.ledger.schema import dataset as dataset_table

N, PEOPLE = 24, 6


def gray(n=N):
    return np.random.default_rng(3).integers(0, 255, (n, 6, 5), dtype=np.uint8)


@pytest.fixture
def workspace(tmp_path):
    return Workspace.create(tmp_path / "ws")


def source(folder, names, name="scans.csv", first=0):
    """Write a CSV that names a file for each record."""
    rows = ["id,who,age,scan,ill"]
    rows += [f"{i},p{i % PEOPLE},{20 + i},{each},{i % 2}" for i, each in enumerate(names, first)]
    (folder / name).write_text("\n".join(rows) + "\n")
    return folder / name


def png(folder, images, first=0):
    (folder / "scans").mkdir(exist_ok=True)
    names = [f"scans/{i}.png" for i, _ in enumerate(images, first)]
    for name, image in zip(names, images, strict=True):
        Image.fromarray(image).save(folder / name)
    return names


def add(workspace, path, **more):
    given = {"id_column": "id", "subjects": ["who"], "files": ["scan"], **more}
    return workspace.add_dataset("d", path, **given)


def kept(workspace, column="scan"):
    """Return what a data set has in a column, by id."""
    with workspace.context.ledger.reading() as connection:
        known = catalogue.find(connection, "d")
        table = catalogue.read_version(workspace.context, connection, known.id)
    return {int(i): x for i, x in zip(*(table[c].to_pylist() for c in ("id", column)), strict=True)}


def described(workspace):
    with workspace.context.ledger.reading() as connection:
        return connection.execute(select(dataset_table)).one()


def found_in(folder, wanted):
    return [p for p in folder.rglob("*") if p.is_file() and wanted in p.read_bytes()]


# -- what comes in ---------------------------------------------------------------------------------


@pytest.mark.parametrize("colours", [False, True])
def test_images_come_in_as_their_bytes(workspace, tmp_path, colours):
    images = np.random.default_rng(1).integers(0, 255, (4, 6, 5, 3), dtype=np.uint8)
    images = images if colours else images[..., 0]
    add(workspace, source(tmp_path, png(tmp_path, images)))
    first = np.moveaxis(images[2], -1, 0) if colours else images[2]
    assert kept(workspace)[2] == first.tobytes()
    assert described(workspace).source["files"] == {"scan": [3 if colours else 1, 6, 5]}


@pytest.mark.parametrize("kind", [np.uint8, np.bool_, np.float32, np.float64, np.int16])
def test_arrays_come_in_as_their_numbers(workspace, tmp_path, kind):
    made = np.arange(12).reshape(2, 2, 3).astype(kind)
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.asfortranarray(made[i]))
    add(workspace, source(tmp_path, ["0.npy", "1.npy"]))
    assert list(kept(workspace)[1]) == made[1].ravel().tolist()


def test_a_jpeg_comes_in_as_it_is_decoded(workspace, tmp_path):
    Image.fromarray(gray()[0]).save(tmp_path / "0.jpg")
    add(workspace, source(tmp_path, ["0.jpg"]))
    assert kept(workspace)[0] == np.asarray(Image.open(tmp_path / "0.jpg")).tobytes()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1, 2], [3, 4]], [[1.0, 2.0], [3.0, 4.0]]),
        ([[1.5, 2.0], None], [[1.5, 2.0], None]),
        ([b"ab", b"cd"], [b"ab", b"cd"]),
        (pa.array([[1, 2], [3, 255]], pa.list_(pa.uint8())), [b"\1\2", b"\3\xff"]),
        (pa.array([[1, 2], None], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None]),
        (pa.array([b"ab", None], pa.large_binary()), [b"ab", None]),
        (pa.array([[True, False], [True, True]], pa.large_list(pa.bool_())), [b"\1\0", b"\1\1"]),
    ],
)
def test_lists_and_bytes_of_parquet_come_in(workspace, tmp_path, values, expected):
    pq.write_table(pa.table({"id": [0, 1], "scan": values}), tmp_path / "x.parquet")
    add(workspace, tmp_path / "x.parquet", subjects=[], files=[])
    assert [kept(workspace)[i] for i in range(2)] == expected


def test_many_records_are_read_some_at_a_time(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr(array_files, "_BYTES", 8 * 30 * 5)
    add(workspace, source(tmp_path, [*png(tmp_path, gray())[:20], "", *[""] * 3]))
    images = gray()
    assert kept(workspace) == {i: images[i].tobytes() if i < 20 else None for i in range(N)}


def test_columns_that_are_not_named_stay_text(workspace, tmp_path):
    add(workspace, source(tmp_path, ["a.png", "b.png"]), files=[])
    assert kept(workspace) == {0: "a.png", 1: "b.png"}


def test_rows_are_those_of_slices_and_gaps():
    whole = pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2))
    lists = pa.array([[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64(), 2))
    for each, expected in ((whole, [[99, 100]]), (lists, [[3, 4]])):
        column = pa.chunked_array([each.slice(1, 2), each.slice(1, 1)])
        np.testing.assert_array_equal(
            arrays.array_rows(column), [[np.nan] * 2, *expected, [np.nan] * 2]
        )


# -- versions, models and erasure ------------------------------------------------------------------


def test_append_and_sync_read_files_and_find_what_changed(workspace, tmp_path):
    images = gray(30)
    add(workspace, source(tmp_path, png(tmp_path, images[:20])))
    more = source(tmp_path, png(tmp_path, images[20:], 20), "more.csv", 20)
    assert workspace.append("d", more).n_added == 10
    names = [f"scans/{i}.png" for i in range(30)]
    assert workspace.sync("d", source(tmp_path, names)).n_changed == 0
    images[7, 0, 0] ^= 1
    png(tmp_path, images)
    assert workspace.sync("d").n_changed == 1
    assert kept(workspace) == {i: images[i].tobytes() for i in range(30)}


def test_sync_finds_what_changed_in_lists(workspace, tmp_path):
    values = [[1.0, float("nan")], None, [0.0, 2.0]]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [0, 1, 2], "scan": values}), path)
    add(workspace, path, subjects=[], files=[])
    assert workspace.sync("d").n_changed == 0
    pq.write_table(pa.table({"id": [0, 1, 2], "scan": [*values[:2], [-0.0, 2.0]]}), path)
    assert workspace.sync("d").n_changed == 1


def test_a_person_leaves_with_all_images(workspace, tmp_path):
    images = gray()
    path = source(tmp_path, png(tmp_path, images))
    add(workspace, path)
    given = {"datasets": ["d"], "features": ["age", "scan"], "target": "ill"}
    workspace.fit("m", "naive_bayes.GaussianNB", **given)
    workspace.fit("n", "neighbors.KNeighborsClassifier", **given)
    workspace.fit("s", "sklearn.tree.DecisionTreeClassifier", **given)
    root, gone = workspace.context.root, range(2, N, PEOPLE)
    assert all(found_in(root, images[i].tobytes()) for i in range(N))
    workspace.request(["p2"])
    workspace.process()
    for i in gone:
        assert found_in(root, images[i].tobytes()) == []
        assert found_in(root, images[i].ravel().astype(float).tobytes()) == []
        assert found_in(root, f"scans/{i}.png".encode()) == []
    assert found_in(root, images[3].tobytes())
    assert {each.verdict for each in workspace.verify()} == {"equal"}
    left = [i for i in range(N) if i not in gone]
    X = np.column_stack([20 + np.array(left), images[left].reshape(len(left), -1)]).astype(float)
    twin = GaussianNB().fit(X, [i % 2 for i in left])
    told = workspace.predict("m", path).to_pydict()
    assert [told["prediction"][i] for i in left] == twin.predict(X).tolist()
    assert workspace.export("n", tmp_path / "n.model")  # it holds records
    assert workspace.sync("d").n_suppressed == len(gone)
    assert found_in(root, images[2].tobytes()) == []


def test_entries_are_handed_arrays_as_they_are_kept(workspace, tmp_path, monkeypatch):
    (tmp_path / "reads_scans.py").write_text(
        "def fit(table):\n    return b''.join(table['scan'].to_pylist())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    add(workspace, source(tmp_path, png(tmp_path, gray(3))))
    workspace.fit("e", "reads_scans:fit", datasets=["d"])
    workspace.export("e", tmp_path / "e")
    assert (tmp_path / "e").read_bytes() == gray(3).tobytes()


# -- what is refused -------------------------------------------------------------------------------


def npy(value):
    held = io.BytesIO()
    np.save(held, value, allow_pickle=True)
    return held.getvalue()


def image(value, kind="PNG", **more):
    held = io.BytesIO()
    Image.fromarray(value).save(held, kind, **more)
    return held.getvalue()


class _Runs:
    def __reduce__(self):
        return (Path.touch, (Path("was-run"),))


FILES = {
    "nothing": (None, "is not there; expected one, by its name relative to the folder"),
    "pickle": (pickle.dumps(_Runs()), "is of another kind"),
    "objects": (npy(np.array([_Runs()], object)), "is damaged, or holds objects of Python"),
    "texts": (npy(np.array(["Bloggs"])), "holds <U6"),
    "complex": (npy(np.ones(3, complex)), "holds complex128"),
    "empty array": (npy(np.ones((0, 3))), "has 0 numbers; expected from 1"),
    "huge": (npy(np.ones(3))[:-24].replace(b"(3,)", b"(9999999999,)"), "is damaged"),
    "cut array": (npy(np.ones(3))[:-4], "is damaged"),
    "empty": (b"", "is of another kind"),
    "cut image": (image(gray()[0])[:-30], "is a damaged image"),
    "no image": (b"\x89PNG\r\n\x1a\n" + b"0" * 99, "is a damaged image"),
    "gif": (image(gray()[0], "GIF"), "is of another kind"),
    "transparent": (image(np.zeros((2, 2, 4), np.uint8)), "is an image of mode RGBA"),
    "other size": (image(gray()[0].T), "is of shape 1x5x6 (uint8); expected 1x6x5 (uint8)"),
    "other colours": (image(np.zeros((6, 5, 3), np.uint8)), "is of shape 3x6x5"),
    "other kind": (npy(np.zeros((1, 6, 5))), "is of shape 1x6x5 (float64); expected 1x6x5 (uint8)"),
}


def left_by(workspace):
    found = workspace.context.root.rglob("*")
    return sorted(p for p in found if p.name != "lock" and "ledger" not in p.name)


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read_are_refused(workspace, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    data, message = FILES[name]
    names = png(tmp_path, gray(3))
    if data is None:
        (tmp_path / names[1]).unlink()
    else:
        (tmp_path / names[1]).write_bytes(data)
    path = source(tmp_path, names)
    workspace.datasets()
    before = left_by(workspace)
    with pytest.raises(SourceError) as raised:
        add(workspace, path)
    assert f"the file that column 'scan' names in record 2 {message}" in str(raised.value)
    assert "scans/" not in str(raised.value)
    assert "Bloggs" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert left_by(workspace) == before
    assert workspace.datasets() == []
    assert not Path("was-run").exists()


@pytest.mark.parametrize(
    "name", ["../secret.npy", "/etc/passwd", "scans/../../secret.npy", "scans"]
)
def test_files_elsewhere_are_not_opened(workspace, tmp_path, name):
    np.save(tmp_path / "secret.npy", np.ones(3))
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "scans").mkdir()
    with pytest.raises(SourceError, match=r"is not in the folder of the source|is not there"):
        add(workspace, source(folder, [name]))


def test_links_are_followed_inside_of_the_folder_alone(workspace, tmp_path):
    np.save(tmp_path / "secret.npy", np.ones(3))
    folder = tmp_path / "given"
    (folder / "scans").mkdir(parents=True)
    (tmp_path / "by-link").symlink_to(folder)
    np.save(folder / "own.npy", np.arange(3.0))
    (folder / "scans" / "own").symlink_to("../own.npy")
    (folder / "scans" / "out").symlink_to(tmp_path / "secret.npy")
    (folder / "up").symlink_to("..")
    (folder / "round").symlink_to("round")
    for name in ("scans/out", "up/secret.npy", "round"):
        with pytest.raises(SourceError, match=r"no link to elsewhere|is not there"):
            add(workspace, source(folder, [name]))
    with pytest.raises(SourceError, match="expected a name relative to that"):
        add(workspace, source(folder, [str(folder / "own.npy")]))
    source(folder, ["scans/own"])
    add(workspace, tmp_path / "by-link" / "scans.csv")
    assert workspace.datasets()[0]["n_records"] == 1


def test_images_of_too_many_numbers_are_refused(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr(array_files, "MOST", 29)
    with pytest.raises(SourceError, match="has 30 numbers; expected from 1 to 29"):
        add(workspace, source(tmp_path, png(tmp_path, gray(1))))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0], [3.0]], "holds arrays of 1 to 2 numbers; expected as many in each record"),
        ([b"abc", b"a"], "holds arrays of 1 to 3 numbers"),
        (pa.array([[], []], pa.list_(pa.int64())), "holds arrays of 0 numbers"),
        ([[1.0, None], [1.0, 2.0]], "has 1 gaps inside its arrays"),
        ([[2**60 + 1], [1]], "holds whole numbers that floats do not"),
    ],
)
def test_lists_that_are_no_arrays_are_refused(workspace, tmp_path, values, message):
    pq.write_table(pa.table({"id": [0, 1], "scan": values}), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match=f"column 'scan' {message}"):
        add(workspace, tmp_path / "x.parquet", subjects=[], files=[])


def test_arrays_of_other_lengths_in_other_files_are_refused(workspace, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, n in enumerate((2, 3)):
        pq.write_table(pa.table({"id": [i], "scan": [[1.0] * n]}), folder / f"{i}.parquet")
    with pytest.raises(SourceError, match="arrays of 2 to 3 numbers"):
        add(workspace, folder, subjects=[], files=[])


def test_what_does_not_suit_a_data_set_is_refused(workspace, tmp_path):
    add(workspace, source(tmp_path, png(tmp_path, gray(3))))
    turned = source(tmp_path, png(tmp_path, gray(5)[3:].transpose(0, 2, 1), 3), "t.csv", 3)
    with pytest.raises(SourceError, match="record 1 is of shape 1x5x6"):
        workspace.append("d", turned)
    small = pa.table({"id": ["9"], "who": ["a"], "age": [1], "scan": [b"abc"], "ill": [0]})
    pq.write_table(small, tmp_path / "small.parquet")
    with pytest.raises(SourceError, match=r"column 'scan' holds .*\[3\]; expected .*\[30\]"):
        workspace.append("d", tmp_path / "small.parquet")
    with pytest.raises(SourceError, match=r"column 'scan' holds .*expected a column of numbers"):
        workspace.request(where="scan = 'a'", dataset="d")
    assert len(kept(workspace)) == 3


def test_columns_that_name_no_files_are_refused(workspace, tmp_path):
    path = source(tmp_path, png(tmp_path, gray(3)))
    for files, message in ((["x"], "has no column 'x'"), (["who"], "name one twice")):
        with pytest.raises(SourceError, match=message):
            add(workspace, path, files=files)
    pq.write_table(pa.table({"id": [1], "scan": [2]}), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="holds int64; expected names of files, or arrays"):
        add(workspace, tmp_path / "x.parquet", subjects=[])
    with pytest.raises(SourceError, match="is in no folder of this machine"):
        add(workspace, "sqlite:///shop.db#visits")


@pytest.mark.parametrize(
    ("estimator", "features", "target", "message"),
    [
        ("linear_model.Ridge", ["scan", "note"], "ill", "were named beside text"),
        ("feature_extraction.CountVectorizer", ["scan"], None, "learns from texts"),
        ("linear_model.Ridge", ["age"], "scan", "the target 'scan' holds arrays"),
    ],
)
def test_models_that_do_not_suit_arrays_are_refused(
    workspace, tmp_path, estimator, features, target, message
):
    table = {
        "id": [0, 1], "age": [1, 2], "ill": [0, 1], "note": ["a", "b"], "scan": [b"ab", b"cd"],
    }  # fmt: skip
    pq.write_table(pa.table(table), tmp_path / "x.parquet")
    add(workspace, tmp_path / "x.parquet", subjects=[], files=[])
    with pytest.raises(WorkspaceError, match=message):
        workspace.fit("m", estimator, datasets=["d"], features=features, target=target)


def test_records_without_an_array_are_refused_by_models(workspace, tmp_path):
    add(workspace, source(tmp_path, [*png(tmp_path, gray(5)), ""]))
    with pytest.raises(Exception, match="1 of 6 records have gaps, in 'scan'"):
        workspace.fit("m", "cluster.KMeans", datasets=["d"], features=["scan"])


def test_arrays_are_held_in_memory_or_refused(workspace, tmp_path):
    add(workspace, source(tmp_path, png(tmp_path, gray())))
    workspace = Workspace.open(workspace.context.root, memory=100)
    with pytest.raises(WorkspaceError, match=r"24 records of 31 features .* --memory 100"):
        workspace.fit(
            "m", "linear_model.Ridge", datasets=["d"], features=["age", "scan"], target="ill"
        )
