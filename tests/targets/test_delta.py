"""Delta tables: rows, files of older versions, and the log."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pytest

pytest.importorskip("deltalake", reason="Delta tables are read by deltalake (extra: delta)")

import pyarrow as pa
import pyarrow.parquet as pq
from beside import DELTA, Beside, spent_at
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
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
from refusals import refused
from s3_server import installed, running

from erasable.workspace.targets import delta
from erasable.workspace.targets import lakes as lake_targets
from erasable.workspace.targets.blobs import Blob, LocalStore
from erasable.workspace.targets.delta import DeltaTarget
from erasable.workspace.targets.protocol import Plan, Settings, Subject
from erasable.workspace.targets.steps import erase
from erasable.workspace.targets.verdicts import PURGED
from people import Named, erased

FEED = {"delta.enableChangeDataFeed": "true"}


def target(place: Path | str, *fields: str, **settings: Any) -> DeltaTarget:
    subjects = tuple(Subject(each, "email") for each in fields or ("mail",))
    return DeltaTarget(f"delta:{place}", Settings(subjects, **settings))


def written(place: Path | str, n_parts: int = 4, n_rows: int = 100, **more: Any) -> str:
    for n in range(n_parts):
        write_deltalake(str(place), visits(n_rows, 60, first=n * n_rows), mode="append", **more)
    return str(place)


def rows_of(place: Path | str) -> list[dict[str, Any]]:
    read = DeltaTable(str(place)).to_pyarrow_table().to_pylist()
    return sorted(read, key=lambda row: str(row["visit"]))


@pytest.mark.parametrize("partition", [None, "mail", "spent"])
@pytest.mark.parametrize("settings", [None, FEED])
def test_no_file_and_no_log_has_the_people(
    tmp_path: Path, partition: str | None, settings: dict[str, str] | None
) -> None:
    place = tmp_path / "visits"
    by = None if partition is None else [partition]
    written(place, 2, 40, partition_by=by, configuration=settings)
    people = [LEAST, GREATEST, mail(7)]
    extremes = ["77123456.12345", "99123456.98765"]
    assert left_in(place, people)
    assert left_in(place, extremes)
    others = [row for row in rows_of(place) if row["mail"] not in people]
    plan, verdict = erased(target(place), *people)
    assert verdict.word == PURGED, verdict.reason
    assert rows_of(place) == others
    assert sum(plan.changed.values()) == 80 - len(others)
    assert not left_in(place, [*people, *extremes])
    assert left_in(place, [mail(8)])


def test_older_versions_cannot_be_read(tmp_path: Path) -> None:
    place = written(tmp_path / "visits")
    before = DeltaTable(place)
    erased(target(place), LEAST, mail(7))
    with pytest.raises(Exception, match=r"not found|No such file"):
        before.to_pyarrow_table()
    for version in range(4):
        with pytest.raises(Exception, match=r"not found|No such file|Not found"):
            DeltaTable(place, version=version).to_pyarrow_table()
    assert len(DeltaTable(place).history()) >= 5  # who did what, and when, is left


def test_a_log_with_checkpoints_and_notes(tmp_path: Path) -> None:
    place = written(tmp_path / "visits")
    DeltaTable(place).create_checkpoint()
    DeltaTable(place).delete(f"mail = '{mail(9)}'")
    log = tmp_path / "visits" / "_delta_log"
    (log / "00000000000000000003.crc").write_text(json.dumps({"of": LEAST}))
    (log / "00000000000000000000.00000000000000000002.compacted.json").write_text(LEAST)
    for n in range(3):
        (log / f"{n:020}.json").unlink()  # cleaned by the table's own rule
    _, verdict = erased(target(place), LEAST)
    assert verdict.word == PURGED, verdict.reason
    assert not left_in(tmp_path, [LEAST, mail(9)])
    checkpoints = sorted(path.name for path in log.glob("*.checkpoint.parquet"))
    assert len(checkpoints) == 1
    last = json.loads((log / "_last_checkpoint").read_text())
    assert checkpoints[0].startswith(f"{last['version']:020}")
    assert last["size"] == pq.read_metadata(log / checkpoints[0]).num_rows
    assert DeltaTable(place).to_pyarrow_table().num_rows == len(rows_of(place))


def test_values_with_quotes_and_columns_with_spaces(tmp_path: Path) -> None:
    for field, who, row in OF_ODD:
        place = str(tmp_path / field)
        write_deltalake(place, ODD)
        plan, verdict = erased(target(place, field), who)
        assert sum(plan.n_records.values()) == 1
        assert DeltaTable(place).to_pyarrow_table().to_pylist() == without(ODD, row)
        assert verdict.word == PURGED, verdict.reason


def test_partitions_that_no_folder_names(tmp_path: Path) -> None:
    place = tmp_path / "visits"
    written(place, 1, 40, partition_by=["mail"])
    log = place / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for n, each in enumerate(each["add"] for each in actions if "add" in each):
        old, new = place / unquote(each["path"]), place / f"{n:03}" / "part-0.parquet"
        new.parent.mkdir()
        old.rename(new)
        old.parent.rmdir()
        each["path"] = f"{n:03}/part-0.parquet"
    log.write_text("".join(json.dumps(each) + "\n" for each in actions))
    others = [row for row in rows_of(place) if row["mail"] not in (LEAST, mail(7))]
    _, verdict = erased(target(place), LEAST, mail(7))
    assert rows_of(place) == others
    assert not left_in(place, [LEAST, mail(7)])
    assert mail(8) in left_in(place, [mail(8)])[f"_delta_log/{0:020}.json"]
    assert verdict.word == PURGED, verdict.reason


def test_a_log_that_names_files_of_others(tmp_path: Path) -> None:
    place = written(tmp_path / "visits")
    other = tmp_path / "of-others.parquet"
    other.write_bytes(b"theirs")
    log = tmp_path / "visits" / "_delta_log" / f"{3:020}.json"
    for path in ("../of-others.parquet", str(other)):
        gone = {"path": path, "dataChange": True, "deletionTimestamp": 1, "partitionValues": {}}
        log.write_text(f"{log.read_text()}\n{json.dumps({'remove': gone})}")
    erased(target(place), LEAST)
    assert other.read_bytes() == b"theirs"
    assert not left_in(tmp_path / "visits", [LEAST])


@pytest.mark.parametrize("action", ["null", "mask"])
def test_rows_are_overwritten(tmp_path: Path, action: str) -> None:
    place = written(tmp_path / "visits", configuration=FEED)
    before = rows_of(place)
    _, verdict = erased(target(place, action=action, keep=("visit",)), LEAST)
    check_overwritten(before, rows_of(place), action)
    assert not left_in(tmp_path, [LEAST, "77123456.12345", "00000-least"])
    assert verdict.word == PURGED, verdict.reason


# -- other writers ---------------------------------------------------------------------------------

APPEND = """
from deltalake import write_deltalake
def append(place, rows):
    write_deltalake(place, rows, mode="append")
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    found = Writer(written(tmp_path / "visits"), APPEND)
    yield found
    found.close()


def test_what_another_process_appends_meanwhile_stays(
    tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "visits"
    others = [row for row in rows_of(place) if row["mail"] != LEAST]

    def before(name: str) -> None:
        true = getattr(DeltaTarget, name)

        def call(self: Any, *args: Any) -> Any:
            if writer.n < 40:
                writer.write()
            return true(self, *args)

        monkeypatch.setattr(DeltaTarget, name, call)

    for name in ("_change", "_without_removals", "_clean_log", "_clean_commit", "scan"):
        before(name)
    true_vacuum = delta._vacuum

    def vacuum(table: DeltaTable) -> None:
        writer.write()
        true_vacuum(table)

    monkeypatch.setattr(delta, "_vacuum", vacuum)
    _, verdict = erased(target(place), LEAST)
    assert writer.n >= 8
    found = rows_of(place)
    assert len(found) == len(others) + 5 * writer.n
    assert len({row["visit"] for row in found}) == len(found)
    assert not left_in(place, [LEAST])
    assert verdict.word == PURGED, verdict.reason


@pytest.mark.parametrize("partition", [None, "mail"])
def test_a_writer_of_an_older_version_loses_nothing(tmp_path: Path, partition: str | None) -> None:
    """Also where nobody else is in the partition that it began with."""
    by = None if partition is None else [partition]
    place = written(tmp_path / "visits", partition_by=by)
    appends, updates = DeltaTable(place), DeltaTable(place)
    others = len([row for row in rows_of(place) if row["mail"] != LEAST])
    erased(target(place), LEAST)
    with pytest.raises(CommitFailedError):  # told, and so tried again
        write_deltalake(appends, visits(5, 60, first=9010), mode="append")
    write_deltalake(DeltaTable(place), visits(5, 60, first=9010), mode="append")
    with pytest.raises(Exception, match=r"No such file|not found"):
        updates.update(updates={"spent": "1.0"}, predicate="visit < 50")
    with pytest.raises(CommitFailedError):  # else it would note the files that are gone
        DeltaTable.delete(appends)
    found = rows_of(place)
    assert len(found) == others + 5
    assert len({row["visit"] for row in found}) == len(found)
    assert LEAST not in {row["mail"] for row in found}


def test_another_writer_is_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = written(tmp_path / "visits")
    true = DeltaTarget._change
    n = 0

    def change(self: DeltaTarget, table: DeltaTable, where: str) -> None:
        nonlocal n
        if n < 2:
            n += 1
            DeltaTable(place).update(updates={"spent": f"{n}.0"}, predicate=f"mail = '{LEAST}'")
        true(self, table, where)

    monkeypatch.setattr(DeltaTarget, "_change", change)
    erased(target(place), LEAST)
    assert n == 2
    assert not left_in(tmp_path, [LEAST])
    assert len(rows_of(place)) == 399


# -- kills and full disks --------------------------------------------------------------------------

POINTS = """
from erasable.workspace.targets import delta
for owner, name in ((delta.DeltaTable, "delete"), (delta.DeltaTable, "create_checkpoint"),
                    (delta.DeltaTable, "vacuum")):
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
        place = written(tmp_path / f"visits{n}", 1, configuration=FEED)
        others = [row for row in rows_of(place) if row["mail"] not in (LEAST, mail(4))]
        done = killed_at(n, f"delta:{place}", [LEAST, mail(4)], POINTS)
        found = [row for row in rows_of(place) if row["mail"] not in (LEAST, mail(4))]
        assert found == others
        _finish(place)
        assert rows_of(place) == others
        assert not left_in(Path(place), [LEAST, mail(4)])
        n += 5
    assert n > 25


def test_a_folder_of_another_table_stays(tmp_path: Path) -> None:
    inner = tmp_path / "visits" / "archive"
    written(tmp_path / "visits", 1)
    written(inner, 2)
    others = rows_of(inner)
    for path in inner.rglob("*"):
        os.utime(path, (time.time() - 86_400 * 8,) * 2)  # days; of the table they are seven
    _, verdict = erased(target(tmp_path / "visits"), LEAST)
    assert rows_of(inner) == others
    assert "values of these records are still in" in str(verdict.reason)


@pytest.mark.parametrize("partition", [None, "mail"])
def test_what_was_never_committed_is_removed_from_partitions(
    tmp_path: Path, partition: str | None
) -> None:
    place = tmp_path / "visits"
    by = None if partition is None else [partition]
    written(place, 1, partition_by=by)
    folder = place if partition is None else next(place.glob("mail=person-000003*"))
    old = folder / f"part-00000-{UUID(int=1)}-c000.snappy.parquet"
    pq.write_table(visits(2, 60), old)
    os.utime(old, (time.time() - 86_400 * 8,) * 2)
    _, verdict = erased(target(place), LEAST)
    assert not old.exists()
    assert verdict.word == PURGED, verdict.reason


def test_what_was_never_committed_is_removed(tmp_path: Path) -> None:
    """An entry of the log whose version is there, and data that are older than a writer may be."""
    place = tmp_path / "visits"
    written(place, 2)
    log = place / "_delta_log"
    entry = {"commitInfo": {"operationParameters": {"predicate": f"mail = '{LEAST}'"}}}
    for name in (f"{1:020}.json#1", f"{1:020}.checkpoint.parquet#2", "_last_checkpoint#1"):
        (log / name).write_text(json.dumps(entry))
    old, new = (place / f"part-00000-{UUID(int=at)}-c000.snappy.parquet" for at in (1, 2))
    foreign = place / "README"
    for path, age in ((old, 8), (new, 6), (foreign, 8)):  # days; of the table they are seven
        pq.write_table(visits(2, 60, first=int(path == new)), path)
        os.utime(path, (time.time() - 86_400 * age,) * 2)
    _, verdict = erased(target(place), LEAST)
    assert (verdict.word, verdict.reason) != (PURGED, None)
    assert set(left_in(place, [LEAST])) == {"README"}
    assert not [path.name for path in log.iterdir() if "#" in path.name]
    assert (old.exists(), new.exists(), foreign.exists()) == (False, True, True)


def _finish(place: str) -> None:
    """Do what `steps.erase` does with what an earlier attempt has found."""
    erased(target(place), LEAST, mail(4))
    target(place).compact()


def test_a_disk_that_is_full_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = written(tmp_path / "visits")
    before = rows_of(place)

    monkeypatch.setattr(DeltaTable, "delete", full)
    with refused(r"could not be changed \(OSError\)"):
        erased(target(place), LEAST)
    assert rows_of(place) == before
    monkeypatch.undo()
    monkeypatch.setattr(pq, "write_table", full)
    with refused(r"could not be cleaned \(OSError\)"):
        erased(target(place), LEAST)
    monkeypatch.undo()
    assert rows_of(place) == [row for row in before if row["mail"] != LEAST]
    assert not target(place).compact()
    assert not left_in(tmp_path, [LEAST])


# -- bad input -------------------------------------------------------------------------------------


def _with(settings: dict[str, str], **protocol: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        written(folder, 1)
        path = folder / "_delta_log" / f"{0:020}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for each in actions:
            if "metaData" in each:
                each["metaData"]["configuration"] |= settings
            if "protocol" in each and protocol:
                each["protocol"] = protocol
        path.write_text("".join(json.dumps(each) + "\n" for each in actions))

    return make


def _lists(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"mail": [["a"]]}))


BAD: list[tuple[str, Callable[[Path], Any], str]] = [
    ("no table", lambda folder: folder.mkdir(), "no Delta table"),
    ("no folder", lambda folder: None, "is not there"),
    ("no column", lambda folder: write_deltalake(str(folder), pa.table({"a": [1]})), "'mail'"),
    ("lists", _lists, "has the type list"),
    ("append only", _with({"delta.appendOnly": "true"}), "takes new rows alone"),
    (
        "vectors",
        _with(
            {}, minReaderVersion=3, minWriterVersion=7,
            readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"],
        ),
        "uses deletionVectors",
    ),
    (
        "numbered rows",
        _with({}, minReaderVersion=1, minWriterVersion=6),
        "uses identityColumns",
    ),
    (
        "mapping",
        _with({"delta.columnMapping.mode": "name"}, minReaderVersion=2, minWriterVersion=5),
        "of features that deltalake has",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "message"), BAD, ids=[each[0] for each in BAD])
def test_bad_input_is_one_error(
    tmp_path: Path, name: str, make: Callable[[Path], Any], message: str
) -> None:
    make(tmp_path / "visits")
    with refused(message):
        target(tmp_path / "visits").find(Named("a"))


def test_a_file_that_is_gone_is_one_error(tmp_path: Path) -> None:
    place = written(tmp_path / "visits")
    next((tmp_path / "visits").glob("*.parquet")).unlink()
    with refused("could not be read"):
        target(place).find(Named(LEAST))


def test_a_file_that_no_version_names_is_searched(tmp_path: Path) -> None:
    place = written(tmp_path / "visits")
    stray = visits(3, 60).select(["mail"])
    pq.write_table(stray, tmp_path / "visits" / "of-a-writer-that-died.parquet", compression="none")
    _, verdict = erased(target(place), LEAST)
    assert "still in of-a-writer-that-died.parquet" in str(verdict.reason)
    assert (tmp_path / "visits" / "of-a-writer-that-died.parquet").exists()


def test_hard_links_of_files_are_told(tmp_path: Path) -> None:
    place = written(tmp_path / "visits", 1)
    os.link(next((tmp_path / "visits").glob("*.parquet")), tmp_path / "backup.parquet")
    _, verdict = erased(target(place), LEAST)
    assert left_in(tmp_path, [LEAST])
    assert verdict.reason == "files have other names (hard links)"


def test_a_table_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed():
        pytest.skip("nothing that speaks S3 to bring up; install moto, flask and s3fs (extra: dev)")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with running() as server:
        bucket = server.bucket()
        place = written(f"s3://{bucket}/visits", 1, 10, partition_by=["mail"], configuration=FEED)
        others = [row for row in rows_of(place) if row["mail"] not in (LEAST, mail(7))]
        _, verdict = erased(target(place), LEAST, mail(7))
        assert rows_of(place) == others
        left = server.everything(bucket)
        assert not [key for key, data in left.items() if LEAST.encode() in data or "least" in key]
        assert verdict.word == PURGED, verdict.reason
        server.keep_versions(bucket, "Enabled")
        _, verdict = erased(target(place), mail(8))
        assert "older versions of objects" in str(verdict.reason)


@pytest.mark.parametrize("n", [1, 1_000])
def test_another_writer_makes_a_checkpoint_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    """It is noted where the erasure has read which the last one is, and not yet written its own."""
    place, n_written = written(tmp_path / "visits"), 0
    read = LocalStore.opened

    @contextmanager
    def beside(store: LocalStore, blob: Blob) -> Iterator[Any]:
        nonlocal n_written
        with read(store, blob) as found:
            if blob.name.endswith("_last_checkpoint") and n_written < n:
                n_written += 1
                write_deltalake(place, visits(1, 1, first=10_000 + n_written), mode="append")
                DeltaTable(place).create_checkpoint()
            yield found

    monkeypatch.setattr(LocalStore, "opened", beside)
    others, plan = [row for row in rows_of(place) if row["mail"] != LEAST], Plan()
    if n > 1:
        with refused("is changed by others again and again"):
            erase(target(place), Named(LEAST), plan)
        assert n_written > 10
        monkeypatch.undo()
    verdict = erase(target(place), Named(LEAST), plan)
    assert n_written == 1 or n > 1
    assert [row for row in rows_of(place) if row["visit"] < 10_000] == others
    assert len(rows_of(place)) == len(others) + n_written
    assert verdict.word == PURGED, verdict.reason
    assert not left_in(tmp_path, [LEAST])


@pytest.mark.soak
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside a writer"])
def test_a_million_rows(tmp_path: Path, is_alone: bool) -> None:
    place = str(tmp_path / "visits")
    parts = [visits(125_000, 100_000, first=125_000 * n) for n in range(8)]
    for n, part in enumerate(parts):
        write_deltalake(place, part, mode="append", configuration=FEED if n == 0 else None)
    people = [LEAST, GREATEST, *(mail(97 * n) for n in range(998))]
    others = spent_at(pa.concat_tables(parts), people)
    writer = Beside(DELTA, place)
    with nullcontext() if is_alone else writer:
        plan, verdict = erased(target(place), *people)
    table = DeltaTable(place)
    assert spent_at(table.to_pyarrow_table()) == writer.applied(others)
    assert plan.changed["visits"] == 1_000_000 - len(others)
    assert is_alone or len(writer.steps) > 10
    left = left_in(Path(place), people)  # in files of commits that failed, which is told
    assert not left.keys() & set(pa.table(table.get_add_actions())["path"].to_pylist())
    assert not [name for name in left if name.startswith("_delta_log")]
    assert (verdict.word == PURGED) == (not left), verdict.reason
    assert not left or (not is_alone and "still in part-" in str(verdict.reason))
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not left_in(tmp_path, people)
    assert not left_in(tmp_path, ["77123456.12345", "99123456.98765"])
    assert left_in(tmp_path, [mail(1)])


@pytest.mark.parametrize("rising", ["visit", "at", "day"])
def test_beside_a_writer_who_is_always_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rising: str
) -> None:
    """Each attempt meets new rows, and a change of one of the older files."""
    place = str(tmp_path / "visits")

    def write(n: int, *mails: str) -> None:
        columns = {
            "visit": pa.array([n] * len(mails)), "day": pa.array([n] * len(mails), pa.date32()),
            "at": pa.array([5_000_000 * n + 789] * len(mails), pa.timestamp("us", "UTC")),
        }  # fmt: skip
        last = pa.array([datetime.max] * len(mails), pa.timestamp("us", "UTC"))
        told = {"mail": mails, "note": [f"of {n}"] * len(mails), "until": last}
        table = pa.table({rising: columns[rising], **told})
        write_deltalake(place, table, mode="append")

    for n in range(4):
        write(n, *map(mail, range(10)))
    true, calls = DeltaTarget._change, 0

    def change(self: DeltaTarget, table: DeltaTable, where: str) -> None:
        nonlocal calls
        calls += 1
        write(1000 + calls, mail(0), mail(9))
        DeltaTable(place).update(updates={"note": f"'{calls}'"}, predicate="note = 'of 3'")
        true(self, table, where)

    monkeypatch.setattr(DeltaTarget, "_change", change)
    target(place).erase(target(place).find(Named(mail(4), mail(5))))
    assert 1 < calls < 8
    left = DeltaTable(place).to_pyarrow_table()["mail"].to_pylist()
    assert len(left) == 4 * 8 + calls * 2
    assert not {mail(4), mail(5)} & {*left}


def test_beside_a_writer_who_changes_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = written(tmp_path / "visits", 1)
    true = DeltaTarget._change

    def change(self: DeltaTarget, table: DeltaTable, where: str) -> None:
        DeltaTable(place).update(updates={"spent": "1.5"}, predicate="visit < 3")
        true(self, table, where)

    monkeypatch.setattr(lake_targets, "_ATTEMPTS", 3)
    monkeypatch.setattr(DeltaTarget, "_change", change)
    with refused(r"again and again; .* the next attempt erases"):
        erased(target(place), LEAST)
    assert len(rows_of(place)) == 100
    monkeypatch.undo()
    _, verdict = erased(target(place), LEAST)
    assert verdict.word == PURGED, verdict.reason
    assert len(rows_of(place)) == 99
