"""Tables of Iceberg: rows, older snapshots, and the files that only they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("pyiceberg", reason="Iceberg is read by pyiceberg (extra: iceberg)")

import pyarrow as pa
from beside import ICEBERG, Beside, spent_at
from lakes import (
    GREATEST,
    LEAST,
    ODD,
    OF_ODD,
    Writer,
    check_overwritten,
    full,
    killed_at,
    left_in,
    mail,
    visits,
    without,
)
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile
from refusals import refused
from s3_server import installed, running

from erasable.workspace.targets import iceberg
from erasable.workspace.targets.iceberg import IcebergTarget
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import PURGED
from people import Named, erased, erased_in_two_attempts


@pytest.fixture(autouse=True)
def _closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the catalogs of a test, whose databases say so when they are not."""
    found: list[SqlCatalog] = []
    true = SqlCatalog.__init__

    def init(self: SqlCatalog, *args: Any, **more: Any) -> None:
        true(self, *args, **more)
        found.append(self)

    monkeypatch.setattr(SqlCatalog, "__init__", init)
    yield
    for each in found:
        each.close()


def catalog_of(folder: Path) -> SqlCatalog:
    return SqlCatalog("mine", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/house")


def target(folder: Path, *fields: str, **settings: Any) -> IcebergTarget:
    subjects = tuple(Subject(each, "email") for each in fields or ("mail",))
    return IcebergTarget(place_of(folder), Settings(subjects, **settings))


def place_of(folder: Path) -> str:
    return f"iceberg:sqlite:///{folder}/cat.db#shop.visits"


def created(folder: Path, schema: pa.Schema, by: str | None = None, **properties: str) -> Any:
    folder.mkdir(exist_ok=True)
    catalog = catalog_of(folder)
    catalog.create_namespace("shop")
    properties["write.parquet.compression-codec"] = "uncompressed"
    table = catalog.create_table("shop.visits", schema=schema, properties=properties)
    if by is not None:
        with table.update_spec() as spec:
            spec.add_identity(by)
    return table


def written(folder: Path, n_parts: int = 3, n_rows: int = 100, by: str | None = None) -> Any:
    table = created(folder, visits(1, 1).schema, by)
    for n in range(n_parts):
        table.append(visits(n_rows, 60, first=n * n_rows))
    return table


def rows_of(folder: Path) -> list[dict[str, Any]]:
    read = catalog_of(folder).load_table("shop.visits").scan().to_arrow().to_pylist()
    return sorted(read, key=lambda row: str(row["visit"]))


@pytest.mark.parametrize("partition", [None, "mail"])
def test_no_file_and_no_manifest_has_the_people(tmp_path: Path, partition: str | None) -> None:
    written(tmp_path, 2, 40, partition)
    people = [LEAST, GREATEST, mail(7)]
    hidden = [*people, "00000-least", "zzzzz-greatest"]
    assert len(left_in(tmp_path, hidden)) > 2
    others = [row for row in rows_of(tmp_path) if row["mail"] not in people]
    plan, verdict = erased(target(tmp_path), *people)
    assert verdict.word == PURGED, verdict.reason
    assert rows_of(tmp_path) == others
    assert plan.changed == {"shop.visits": 80 - len(others)}
    assert not left_in(tmp_path, hidden)
    assert left_in(tmp_path, [mail(8)])


def test_older_snapshots_cannot_be_read(tmp_path: Path) -> None:
    before = written(tmp_path)
    snapshots = [each.snapshot_id for each in before.snapshots()]
    erased(target(tmp_path), LEAST)
    for each in snapshots:
        with pytest.raises(FileNotFoundError):
            before.scan(snapshot_id=each).to_arrow()
    table = catalog_of(tmp_path).load_table("shop.visits")
    assert len(table.snapshots()) == 1
    folder = tmp_path / "house" / "shop" / "visits" / "metadata"
    assert len(list(folder.glob("*.metadata.json"))) == 1


def test_branches_and_tags_are_told(tmp_path: Path) -> None:
    table = written(tmp_path)
    with table.manage_snapshots() as snapshots:
        snapshots.create_tag(table.snapshots()[0].snapshot_id, "audited")
    _, verdict = erased(target(tmp_path), LEAST)
    assert "the branches and tags audited keep older snapshots" in str(verdict.reason)
    assert left_in(tmp_path, [LEAST])
    read = catalog_of(tmp_path).load_table("shop.visits")
    assert read.scan().use_ref("audited").to_arrow().num_rows == 100
    with read.manage_snapshots() as snapshots:
        snapshots.remove_tag("audited")
    assert not target(tmp_path).compact()
    assert not left_in(tmp_path, [LEAST])


def test_statistics_of_older_snapshots_leave(tmp_path: Path) -> None:
    table = written(tmp_path)
    path = tmp_path / "house" / "shop" / "visits" / "metadata" / "of-a-column.puffin"
    path.write_bytes(f"PFA1 {LEAST} PFA1".encode())
    snapshot = table.current_snapshot().snapshot_id
    with table.update_statistics() as update:
        update.set_statistics(
            StatisticsFile(
                snapshot_id=snapshot, statistics_path=f"file://{path}", file_size_in_bytes=9,
                file_footer_size_in_bytes=2, blob_metadata=[
                    BlobMetadata(
                        type="apache-datasketches-theta-v1", snapshot_id=snapshot,
                        sequence_number=3, fields=[2], properties={},
                    )
                ],
            )
        )  # fmt: skip
    _, verdict = erased(target(tmp_path), LEAST)
    assert verdict.word == PURGED, verdict.reason
    assert not path.exists()
    assert not catalog_of(tmp_path).load_table("shop.visits").metadata.statistics
    assert not left_in(tmp_path, [LEAST])


def test_files_that_no_snapshot_names_stay_and_are_searched(tmp_path: Path) -> None:
    written(tmp_path)
    data = tmp_path / "house" / "shop" / "visits" / "data"
    stray = data / "of-a-writer-that-has-not-committed.txt"
    stray.write_bytes(LEAST.encode())
    _, verdict = erased(target(tmp_path), LEAST)
    assert f"still in {stray.name}" in str(verdict.reason)
    assert stray.exists()


def test_files_outside_of_the_table_stay_and_are_told(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = created(tmp_path, visits(1, 1).schema)
    pq.write_table(visits(100, 60), tmp_path / "of-others.parquet")
    table.add_files([f"file://{tmp_path}/of-others.parquet"])
    _, verdict = erased_in_two_attempts(target(tmp_path), LEAST)
    assert "files of earlier versions lie outside of its folder" in str(verdict.reason)
    assert (tmp_path / "of-others.parquet").exists()


def test_a_table_whose_own_folder_has_nothing(tmp_path: Path) -> None:
    folders = {
        f"write.{each}.path": f"file://{tmp_path}/house/{each}" for each in ("data", "metadata")
    }
    table = created(tmp_path, visits(1, 1).schema, "mail", **folders)
    table.append(visits(40, 60))
    assert not (tmp_path / "house" / "shop").exists()
    others = [row for row in rows_of(tmp_path) if row["mail"] != LEAST]
    _, verdict = erased(target(tmp_path), LEAST)
    assert rows_of(tmp_path) == others
    assert verdict.word == PURGED, verdict.reason
    assert not left_in(tmp_path, [LEAST, "00000-least"])
    assert left_in(tmp_path, [mail(1)])
    assert not [path for path in (tmp_path / "house").rglob("*") if "least" in path.name]


def test_columns_and_values_of_several_kinds(tmp_path: Path) -> None:
    for field, who, row in OF_ODD:
        folder = tmp_path / field.split()[0]
        created(folder, ODD.schema).append(ODD)
        plan, verdict = erased(target(folder, field), who)
        assert sum(plan.n_records.values()) == 1
        read = catalog_of(folder).load_table("shop.visits").scan().to_arrow()
        assert read.to_pylist() == without(ODD, row)
        assert verdict.word == PURGED, verdict.reason


@pytest.mark.parametrize("action", ["null", "mask"])
def test_rows_are_overwritten(tmp_path: Path, action: str) -> None:
    written(tmp_path)
    before = rows_of(tmp_path)
    _, verdict = erased(target(tmp_path, action=action, keep=("visit",)), LEAST)
    check_overwritten(before, rows_of(tmp_path), action)
    assert not left_in(tmp_path, [LEAST, "00000-least"])
    assert verdict.word == PURGED, verdict.reason


# -- other writers ---------------------------------------------------------------------------------

APPEND = """
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
def append(folder, rows):
    warehouse = f"file://{folder}/house"
    catalog = SqlCatalog("mine", uri=f"sqlite:///{folder}/cat.db", warehouse=warehouse)
    while True:
        try:
            return catalog.load_table("shop.visits").append(rows)
        except CommitFailedException:
            continue
"""


def test_what_another_process_appends_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    others = [row for row in rows_of(tmp_path) if row["mail"] != LEAST]
    writer = Writer(tmp_path, APPEND)

    def before(owner: Any, name: str) -> None:
        true = getattr(owner, name)
        left = [1]

        def call(*args: Any, **more: Any) -> Any:
            if left:
                left.pop()
                writer.write()
            return true(*args, **more)

        monkeypatch.setattr(owner, name, call)

    for name in ("_change", "_remove_files", "scan"):
        before(IcebergTarget, name)
    for name in ("_renew", "_expire", "_history", "_add"):
        before(iceberg, name)
    try:
        _, verdict = erased(target(tmp_path), LEAST)
    finally:
        writer.close()
    assert writer.n >= 6
    found = rows_of(tmp_path)
    assert len(found) == len(others) + 5 * writer.n
    assert len({row["visit"] for row in found}) == len(found)
    assert verdict.word == PURGED, verdict.reason
    assert not left_in(tmp_path, [LEAST])


def test_a_writer_of_an_older_snapshot_loses_nothing(tmp_path: Path) -> None:
    table = written(tmp_path)
    erased(target(tmp_path), LEAST)
    with pytest.raises((CommitFailedException, FileNotFoundError)):  # told, and so tried again
        table.append(visits(5, 60, first=9000))
    catalog_of(tmp_path).load_table("shop.visits").append(visits(5, 60, first=9000))
    assert len(rows_of(tmp_path)) == 299 + 5


def test_another_writer_is_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    true = IcebergTarget._change
    n = 0

    def change(self: IcebergTarget, table: Any, where: Any) -> None:
        nonlocal n
        if n < 2:
            n += 1
            other = catalog_of(tmp_path).load_table("shop.visits")
            other.delete(EqualTo("mail", mail(n)))
        true(self, table, where)

    monkeypatch.setattr(IcebergTarget, "_change", change)
    erased(target(tmp_path), LEAST)
    assert n == 2
    assert len(rows_of(tmp_path)) == 299 - 10
    assert not left_in(tmp_path, [LEAST, mail(1)])


# -- kills and full disks --------------------------------------------------------------------------

POINTS = """
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
for owner, name in ((SqlCatalog, "commit_table"), (PyArrowFileIO, "delete"),
                    (PyArrowFileIO, "new_output")):
    def wrapped(self, *args, true=getattr(owner, name), **more):
        die()
        found = true(self, *args, **more)
        die()
        return found
    setattr(owner, name, wrapped)
"""


def test_a_killed_erasure_is_finished_by_the_next(tmp_path: Path) -> None:
    done, n = None, 1
    while done is None:
        folder = tmp_path / str(n)
        written(folder, 1)
        others = [row for row in rows_of(folder) if row["mail"] not in (LEAST, mail(4))]
        done = killed_at(n, place_of(folder), [LEAST, mail(4)], POINTS)
        found = [row for row in rows_of(folder) if row["mail"] not in (LEAST, mail(4))]
        assert found == others
        erased(target(folder), LEAST, mail(4))
        target(folder).compact()
        assert rows_of(folder) == others
        assert not left_in(folder, [LEAST, mail(4)])
        table = catalog_of(folder).load_table("shop.visits")
        named = {table.metadata_location.rpartition("/")[2]}
        assert {path.name for path in folder.rglob("*.json")} == named
        n += 8
    assert n > 40


def test_metadata_of_others_stay_in_the_same_folder(tmp_path: Path) -> None:
    written(tmp_path, 1)
    own = tmp_path / "house" / "shop" / "visits" / "metadata"
    folder = str(own)
    other = catalog_of(tmp_path).create_table(
        "shop.other", visits(1, 1).schema, properties={"write.metadata.path": folder}
    )
    other.append(visits(10, 10))
    was_cut_off = own / f"00000-{UUID(int=7)}.metadata.json"
    was_cut_off.write_text("{")
    erased(target(tmp_path), LEAST)
    assert catalog_of(tmp_path).load_table("shop.other").scan().to_arrow().num_rows == 10
    assert was_cut_off.exists()


def test_metadata_that_was_cut_off_goes_where_the_table_is_alone(tmp_path: Path) -> None:
    written(tmp_path, 2)
    own = tmp_path / "house" / "shop" / "visits" / "metadata"
    older, newer = (own / f"{n:05}-{UUID(int=7)}.metadata.json" for n in (1, 99))
    for each in (older, newer):
        each.write_text("{")
    erased(target(tmp_path), LEAST)
    assert (older.exists(), newer.exists()) == (False, True)


def test_a_disk_that_is_full_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    before = rows_of(tmp_path)

    monkeypatch.setattr("pyiceberg.io.pyarrow.PyArrowFileIO.new_output", full)
    with refused(r"could not be changed \(OSError\)"):
        erased(target(tmp_path), LEAST)
    assert rows_of(tmp_path) == before
    monkeypatch.undo()
    _, verdict = erased(target(tmp_path), LEAST)
    assert verdict.word == PURGED, verdict.reason


# -- bad input -------------------------------------------------------------------------------------


def _one(folder: Path) -> None:
    written(folder, 1, 3)


BAD: list[tuple[str, Callable[[Path], Any], str, str]] = [
    ("no name", _one, "iceberg:sqlite:///{0}/cat.db", "has no catalog or name"),
    ("no table", _one, "iceberg:sqlite:///{0}/cat.db#shop.other", "there are 0 tables"),
    ("no file", _one, "iceberg:sqlite:///{0}/other.db#shop.visits", "there is no catalog"),
    ("no catalog", _one, "iceberg:unknown#shop.visits", "could not be opened"),
    ("no url", _one, "iceberg:://x#shop.visits", "is no URL"),
    (
        "no column",
        lambda folder: created(folder, pa.schema([("a", pa.int64())])),
        "iceberg:sqlite:///{0}/cat.db#shop.visits",
        "none of the columns 'mail'",
    ),
    (
        "lists",
        lambda folder: created(folder, pa.schema([("mail", pa.list_(pa.string()))])),
        "iceberg:sqlite:///{0}/cat.db#shop.visits",
        "has the type",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "place", "message"), BAD, ids=[each[0] for each in BAD])
def test_bad_input_is_one_error(
    tmp_path: Path, name: str, make: Callable[[Path], Any], place: str, message: str
) -> None:
    make(tmp_path)
    with refused(message):
        IcebergTarget(place.format(tmp_path), Settings((Subject("mail", "email"),)))
    assert not (tmp_path / "other.db").exists()


def test_a_file_that_is_gone_is_one_error(tmp_path: Path) -> None:
    written(tmp_path)
    next((tmp_path / "house" / "shop" / "visits" / "data").iterdir()).unlink()
    with refused("could not be read"):
        target(tmp_path).find(Named(LEAST))


def test_a_table_in_a_bucket(tmp_path: Path) -> None:
    if not installed():
        pytest.skip("nothing that speaks S3 to bring up; install moto, flask and s3fs (extra: dev)")
    with running() as server:
        bucket = server.bucket()
        catalog = SqlCatalog(
            "mine", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"s3://{bucket}/house",
            **{"s3.endpoint": server.url},
        )  # fmt: skip
        catalog.create_namespace("shop")
        table = catalog.create_table(
            "shop.visits", schema=visits(1, 1).schema,
            properties={"write.parquet.compression-codec": "uncompressed"},
        )  # fmt: skip
        table.append(visits(40, 60))
        _, verdict = erased(target(tmp_path), LEAST, mail(7))
        read = catalog.load_table("shop.visits").scan().to_arrow()
        assert read.num_rows == 38
        left = server.everything(bucket)
        assert left
        assert not [key for key, data in left.items() if LEAST.encode() in data]
        assert verdict.word == PURGED, verdict.reason


@pytest.mark.soak
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside a writer"])
def test_a_million_rows(tmp_path: Path, is_alone: bool) -> None:
    table = created(tmp_path, visits(1, 1).schema)
    parts = [visits(125_000, 100_000, first=125_000 * n) for n in range(8)]
    for part in parts:
        table.append(part)
    people = [LEAST, GREATEST, *(mail(97 * n) for n in range(998))]
    others = spent_at(pa.concat_tables(parts), people)
    writer = Beside(ICEBERG, tmp_path, pause=0.5)  # else its commits take all of the time
    with nullcontext() if is_alone else writer:
        plan, verdict = erased(target(tmp_path), *people)
    read = catalog_of(tmp_path).load_table("shop.visits")
    assert spent_at(read.scan().to_arrow()) == writer.applied(others)
    assert plan.changed["shop.visits"] == 1_000_000 - len(others)
    assert is_alone or len(writer.steps) > 10
    left = {Path(name) for name in left_in(tmp_path, people)}  # of commits that failed: it is told
    assert not {Path(each.file.file_path).name for each in read.scan().plan_files()} & {
        each.name for each in left
    }
    assert {each.parent.name for each in left} <= {"data"}
    assert (verdict.word == PURGED) == (not left), verdict.reason
    assert not left or (not is_alone and "still in " in str(verdict.reason))
    assert left_in(tmp_path, [mail(1)])
