"""Folders, files and prefixes of Parquet, CSV and JSON lines."""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import io
import json
import lzma
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("pyarrow", reason="Parquet is read by Arrow")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apart import run
from beside import FILES, Beside, spent_at
from lakes import GREATEST, LEAST, killed_at, left_in, mail, visits
from refusals import refused
from s3_server import Server, installed, running

from erasable.core.errors import SourceError
from erasable.workspace.store import crash_points
from erasable.workspace.targets import blobs
from erasable.workspace.targets.files import FilesTarget
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.text_files import CsvFormat, Lines
from erasable.workspace.targets.verdicts import PURGED
from people import Named, erased, erased_in_two_attempts

MAIL = Subject("mail", "email")


def target(place: Path | str, *fields: str, **settings: Any) -> FilesTarget:
    subjects = tuple(Subject(each, "email") for each in fields) or (MAIL,)
    return FilesTarget(str(place), Settings(subjects, **settings))


def small() -> pa.Table:
    return visits(100, 20)


# -- CSV and JSON lines ----------------------------------------------------------------------------

LINES = [
    ("plain", "utf-8", "id,mail,text\n", "{n},{mail},hello\n"),
    ("crlf", "utf-8", "id;mail;text\r\n", '"{n}";"{mail}";"a ""b"" ;\r\n {n}"\r\n'),
    ("mark", "utf-8-sig", "mail|näme\n", "{mail}|Jürgen {n}\n"),
    ("quoted mark", "utf-8-sig", '"mail","text"\n', '"{mail}","ü {n}"\n'),
    ("old", "cp1252", "mail\ttext\r", "{mail}\tJürgen … {n} €\r"),
    ("wide", "utf-16", "mail,text\r\n", '{mail},"ü {n}"\r\n'),
    ("no end", "utf-8", 'text,"mail"\n', '5" pipe {n},{mail}\n'),
]


@pytest.mark.parametrize(("name", "encoding", "header", "line"), LINES, ids=[e[0] for e in LINES])
@pytest.mark.parametrize("end", ["", ".gz", ".zst", ".bz2", ".xz"])
def test_csv_keeps_the_bytes_of_other_lines(
    tmp_path: Path, name: str, encoding: str, header: str, line: str, end: str
) -> None:
    rows = [line.format(n=n, mail=mail(n)) for n in range(30)]
    path = tmp_path / f"visits.csv{end}"
    if name == "no end":
        rows[-1] = rows[-1].rstrip()
    path.write_bytes(_packed((header + "".join(rows)).encode(encoding), end))
    plan, verdict = erased(target(path), mail(0), mail(7), mail(28))
    rest = "".join(row for n, row in enumerate(rows) if n not in (0, 7, 28))
    assert _unpacked(path.read_bytes(), end) == (header + rest).encode(encoding)
    assert sum(plan.changed.values()) == 3
    assert plan.n_records == {mail(0): 1, mail(7): 1, mail(28): 1}
    assert os.listdir(tmp_path) == [path.name]
    if not end and encoding != "utf-16":
        assert verdict.word == PURGED


def _packed(data: bytes, end: str) -> bytes:
    if end == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as out:
            out.write(data)
        return bytes(sink.getvalue())
    ways: dict[str, Callable[[bytes], bytes]] = {
        "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
    }  # fmt: skip
    return ways[end](data)


def _unpacked(data: bytes, end: str) -> bytes:
    if end == ".zst":
        return bytes(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read())
    ways: dict[str, Callable[[bytes], bytes]] = {
        "": bytes, ".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress,
    }  # fmt: skip
    return ways[end](data)


def test_a_file_of_one_person_keeps_its_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,mail\n1,ann@example.org\n")
    (tmp_path / "b.jsonl").write_bytes(b'{"mail": "ann@example.org"}\n')
    pq.write_table(small().slice(1, 1), tmp_path / "c.parquet")
    erased(target(tmp_path), "ann@example.org", mail(1))
    assert (tmp_path / "a.csv").read_bytes() == b"id,mail\n"
    assert (tmp_path / "b.jsonl").read_bytes() == b""
    assert pq.read_table(tmp_path / "c.parquet").schema == small().schema
    assert pq.read_metadata(tmp_path / "c.parquet").num_rows == 0
    assert not target(tmp_path).find(Named("ann@example.org", mail(1)))


def test_json_lines_keep_the_bytes_of_other_lines(tmp_path: Path) -> None:
    lines = [
        b'{"person": {"mail": "%s"},  "tags": ["a", {"b": 1}]}\r\n' % mail(n).encode()
        for n in range(9)
    ]
    lines.insert(4, b"\n")
    lines.append('{"person":{"mail":null},"text":"ü \\u00fc"}'.encode())
    path = tmp_path / "visits.ndjson"
    path.write_bytes(b"".join(lines))
    _, verdict = erased(target(path, "person.mail"), mail(3), mail(8))
    stay = [each for each in lines if mail(3).encode() not in each and mail(8).encode() not in each]
    assert path.read_bytes() == b"".join(stay)
    assert verdict.word == PURGED


def test_numbers_and_texts_of_json_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "visits.jsonl"
    path.write_bytes(b'{"id": 1000017}\n{"id": "1000017"}\n{"id": 1000018}\n{"id": true}\n')
    erased(target(path, "id"), 1000017)
    assert path.read_bytes() == b'{"id": "1000017"}\n{"id": 1000018}\n{"id": true}\n'


@pytest.mark.parametrize("action", ["delete", "mask"])
def test_halves_of_pairs_in_json(tmp_path: Path, action: str) -> None:
    """A text that was cut within a character has no bytes of its own."""
    path = tmp_path / "visits.jsonl"
    first, second = (f'{{"mail": "{who}", "ü": "cut off \\ud83d"}}\n' for who in (LEAST, mail(1)))
    path.write_text(first + second)
    _, verdict = erased(target(path, action=action, keep=("ü",)), LEAST)
    kept = "".join(path.read_text().splitlines(keepends=True)[:-1])
    assert path.read_text() == kept + second
    left = [json.loads(line) for line in kept.splitlines()]
    assert left == ([] if action == "delete" else [json.loads(first) | {"mail": "erased"}])
    assert verdict.word == PURGED, verdict.reason


@pytest.mark.parametrize("action", ["null", "mask"])
def test_rows_are_overwritten(tmp_path: Path, action: str) -> None:
    (tmp_path / "a.csv").write_bytes(
        b'id,mail,name,n\r\n1,"ann@example.org",Ann,5\r\n2,bob@example.org,Bob,6\r\n'
    )
    (tmp_path / "b.jsonl").write_bytes(
        b'{"id": 1, "mail": "ann@example.org", "in": {"id": 2, "t": "x"}, "l": [1]}\n{"id":3}\n'
    )
    table = pa.table(
        {
            "id": [1, 2], "mail": ["ann@example.org", "bob@example.org"],
            "name": pa.array(["Ann", "Bob"]).dictionary_encode(), "n": [5, 6],
            "in": [{"t": "x", "k": [1]}, {"t": "y", "k": [2]}],
        }
    )  # fmt: skip
    pq.write_table(table, tmp_path / "c.parquet")
    settings = {"action": action, "keep": ("id", "in.id")}
    _, verdict = erased(target(tmp_path, **settings), "ann@example.org")
    text = "erased" if action == "mask" else ""
    none = "erased" if action == "mask" else None
    assert (tmp_path / "a.csv").read_bytes().splitlines() == [
        b"id,mail,name,n", f"1,{text},{text},".encode(), b"2,bob@example.org,Bob,6",
    ]  # fmt: skip
    first, second = (tmp_path / "b.jsonl").read_text().splitlines()
    assert json.loads(first) == {"id": 1, "mail": none, "in": {"id": 2, "t": none}, "l": None}
    assert second == '{"id":3}'
    found = pq.read_table(tmp_path / "c.parquet")
    assert found.schema == table.schema
    assert found.slice(1).to_pylist() == table.slice(1).to_pylist()
    within = {"t": none, "k": None}
    assert found.to_pylist()[0] == {"id": 1, "mail": none, "name": none, "n": None, "in": within}
    assert not left_in(tmp_path, ["ann@example.org", "Ann"])
    assert verdict.word == PURGED


# -- Parquet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["list", "large", "fixed", "struct"])
def test_a_vector_that_others_have_as_well_is_not_looked_for(tmp_path: Path, kind: str) -> None:
    vectors = np.random.default_rng(7).normal(size=(20, 16)).astype(np.float32)
    vectors[9] = vectors[2]
    vectors[10] = -vectors[4]
    types = {"large": pa.large_list(pa.float32()), "fixed": pa.list_(pa.float32(), 16)}
    column = pa.array(vectors.tolist(), types.get(kind, pa.list_(pa.float32())))
    if kind == "struct":
        column = pa.StructArray.from_arrays([column], ["inner"])
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"mail": [mail(n) for n in range(20)], "vector": column}), path)
    plan, verdict = erased(target(path), mail(2), mail(4))
    looked_for = [numbers for _, numbers in plan.marks.pieces()]
    assert len(looked_for) == 1
    assert looked_for[0] in np.lib.stride_tricks.sliding_window_view(vectors[4], 12)
    assert verdict.word == PURGED


def test_parquet_keeps_its_schema_and_settings(tmp_path: Path) -> None:
    mails = [mail(n % 40) for n in range(400)]
    table = pa.table(
        {
            "person": [{"mail": each, "tags": [each, "b"]} for each in mails],
            "word": pa.array([f"{each} has it" for each in mails]).dictionary_encode(),
            "at": pa.array(range(400), pa.timestamp("us", "UTC")), "n": range(400),
            "vector": pa.array(
                np.random.default_rng(7).normal(size=(400, 8)).tolist(), pa.list_(pa.float32())
            ),
        }
    ).replace_schema_metadata({"by": "a program"})  # fmt: skip
    path = tmp_path / "visits.parquet"
    pq.write_table(
        table, path, row_group_size=130, write_page_index=True, version="2.4",
        compression={"person.mail": "gzip", "n": "zstd", "at": "none"},
        use_dictionary=["word"], column_encoding={"n": "DELTA_BINARY_PACKED"},
        sorting_columns=[pq.SortingColumn(4)], write_statistics=["n", "person.mail"],
    )  # fmt: skip
    before = pq.ParquetFile(path)
    path.chmod(0o640)
    plan, verdict = erased(target(path, "person.mail"), mail(0), mail(39))
    after = pq.ParquetFile(path)
    assert after.schema.equals(before.schema)
    assert after.schema_arrow.equals(before.schema_arrow, check_metadata=True)
    assert after.metadata.metadata.keys() == before.metadata.metadata.keys()
    assert after.metadata.metadata[b"by"] == b"a program"
    assert path.stat().st_mode & 0o777 == 0o640
    assert after.num_row_groups == before.num_row_groups
    for at in range(after.metadata.num_columns):
        old, new = (each.metadata.row_group(1).column(at) for each in (before, after))
        assert (new.compression, new.has_dictionary_page) == (
            old.compression,
            old.has_dictionary_page,
        )
        assert set(new.encodings) == set(old.encodings)
        assert new.is_stats_set == old.is_stats_set
        assert new.has_offset_index
    assert (
        after.metadata.row_group(0).sorting_columns == before.metadata.row_group(0).sorting_columns
    )
    stay = [at for at, each in enumerate(mails) if each not in (mail(0), mail(39))]
    assert after.read().to_pylist() == table.take(stay).to_pylist()
    assert not left_in(tmp_path, [mail(0), mail(39)])
    assert left_in(tmp_path, [mail(1)])
    assert sum(plan.changed.values()) == 20
    assert verdict.word == PURGED, verdict.reason


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.int32(), pa.float64(), pa.large_string(), pa.string_view(), "category"]
)
def test_columns_of_identities_have_several_types(tmp_path: Path, kind: Any) -> None:
    numbers = pa.array([1000000 + n // 2 for n in range(20)] + [None])
    if kind == "category":
        column = numbers.cast(pa.string()).dictionary_encode()
    else:
        column = (
            numbers.cast(pa.string()).cast(kind) if "string" in str(kind) else numbers.cast(kind)
        )
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"id": column, "n": range(21)}), path)
    is_text = kind == "category" or "string" in str(kind)
    erased(target(path, "id"), "1000003" if is_text else 1000003)
    found = pq.read_table(path)
    assert found["n"].to_pylist() == [n for n in range(21) if n not in (6, 7)]
    assert found.schema.field("id").type == column.type


def test_columns_of_uuids(tmp_path: Path) -> None:
    given = [UUID(int=n + (7 << 80)) for n in range(3)]
    plain = pa.array([*(each.bytes for each in given), None], pa.binary(16))
    path = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"id": plain.cast(pa.uuid()), "n": range(4)}), path)
    _, verdict = erased(target(path, "id"), str(given[1]))
    found = pq.read_table(path)
    assert found["id"].to_pylist() == [given[0], given[2], None]
    assert found["n"].to_pylist() == [0, 2, 3]
    assert verdict.word == PURGED, verdict.reason


def test_a_partition_of_a_person_leaves(tmp_path: Path) -> None:
    pq.write_to_dataset(small(), tmp_path / "lake", partition_cols=["mail"])
    (tmp_path / "lake" / "_SUCCESS").touch()
    people = [mail(3), LEAST]
    keep = {
        p: p.read_bytes()
        for p in (tmp_path / "lake").rglob("*.parquet")
        if "=person-000004" in str(p)
    }
    plan, verdict = erased(target(tmp_path / "lake"), *people)
    assert plan.changed == {"mail=*/*": 6}
    assert verdict.word == PURGED
    assert not [
        p
        for p in (tmp_path / "lake").rglob("*")
        if any(each in str(p) for each in ("least", "000003"))
    ]
    assert keep
    assert all(path.read_bytes() == data for path, data in keep.items())
    # Another file of the person, whose name alone tells: the search says so.
    with refused("would stay, as that of a folder"):
        target(tmp_path / "lake", action="mask").find(Named(mail(5)))


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_dictionaries_within_other_columns(tmp_path: Path, kind: str) -> None:
    words = pa.array([f"word of {each}" for each in small()["mail"].to_pylist()])
    words = words.dictionary_encode()
    offsets = pa.array(range(101), pa.int32())
    within = {
        "struct": lambda: pa.StructArray.from_arrays([words], ["word"]),
        "list": lambda: pa.ListArray.from_arrays(offsets, words),
        "map": lambda: pa.MapArray.from_arrays(offsets, small()["visit"].combine_chunks(), words),
    }[kind]()
    table = small().append_column("in", within)
    pq.write_table(table, tmp_path / "a.parquet", compression="none")
    _, verdict = erased(target(tmp_path), LEAST)
    found = pq.read_table(tmp_path / "a.parquet")
    assert found.schema == table.schema
    assert found.to_pylist() == [row for row in table.to_pylist() if row["mail"] != LEAST]
    assert LEAST.encode() not in (tmp_path / "a.parquet").read_bytes()
    assert verdict.word == PURGED, verdict.reason


ENCRYPTED = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

class Keys(pe.KmsClient):
    def wrap_key(self, key, name):
        return key.hex()
    def unwrap_key(self, key, name):
        return bytes.fromhex(key)

table = pa.table({"mail": ["ann@example.org"] * int(sys.argv[2])}, pa.schema({"mail": pa.string()}))
settings = pe.EncryptionConfiguration(
    footer_key="one", column_keys={"two": ["mail"]}, plaintext_footer=sys.argv[3] == "plain"
)
made = pe.CryptoFactory(lambda _: Keys()).file_encryption_properties(
    pe.KmsConnectionConfig(), settings
)
with pq.ParquetWriter(sys.argv[1], table.schema, encryption_properties=made) as writer:
    writer.write_table(table)
"""
READ = """
import sys
from pathlib import Path
from erasable.core.errors import SourceError
from erasable.workspace.targets import decoding
from erasable.workspace.targets.files import FilesTarget
from erasable.workspace.targets.inspection import Inspection, Undecodable
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.protocol import Settings, Subject
from people import Named
try:
    decoding.inspect(Path(sys.argv[1]), Inspection(Marks(), Marks()))
except Undecodable as error:
    print(error)
try:
    FilesTarget(sys.argv[1], Settings((Subject("mail", "email"),))).find(Named("ann@example.org"))
except SourceError as error:
    print(error)
"""


@pytest.mark.parametrize("footer", ["plain", "encrypted"])
@pytest.mark.parametrize("n_rows", [0, 3])
def test_encrypted_parquet_is_one_error(tmp_path: Path, footer: str, n_rows: int) -> None:
    """Arrow ends the process where it is asked for what it cannot decrypt."""
    path = tmp_path / "a.parquet"
    assert run(ENCRYPTED, path, n_rows, footer) == ""
    of_search, of_target = str(run(READ, path)).splitlines()
    assert "encrypted Parquet" in of_search
    assert "or is encrypted" in of_target


@pytest.mark.parametrize("name", ["a.csv", f"mail={LEAST}/a.csv"])
def test_hard_links_are_told_although_the_file_is_written_anew(tmp_path: Path, name: str) -> None:
    path = tmp_path / "lake" / name
    path.parent.mkdir(parents=True)
    path.write_text(f"mail,n\n{LEAST},1\n")
    (tmp_path / "lake" / "b.csv").write_text(f"mail,n\n{mail(1)},2\n")
    os.link(path, tmp_path / "backup.csv")
    _, verdict = erased_in_two_attempts(target(tmp_path / "lake"), LEAST)
    assert not left_in(tmp_path / "lake", [LEAST])
    assert left_in(tmp_path, [LEAST])
    assert verdict.reason == "files have other names (hard links)"


def test_long_values_are_read_with_the_limit_of_the_process_as_it_was(tmp_path: Path) -> None:
    """It is one for all files; which is read to its end first does not matter."""
    path, limit = tmp_path / "a.csv", csv.field_size_limit()
    rows = [f"{mail(at)},{'x' * (2 * limit)}\n" for at in range(2)]
    path.write_text("mail,text\n" + "".join(rows))
    form = CsvFormat("a.csv", "a.csv", Settings((Subject("mail", "email"),)), {})
    with path.open("rb") as one, path.open("rb") as other:
        records = [form._records(Lines(each), ",") for each in (one, other)]  # type: ignore[arg-type]
        for each in records:
            assert next(each)[1] == ["mail", "text"]
            assert csv.field_size_limit() == limit
        for each in records:
            assert [len(row[1]) for _, row in each] == [2 * limit] * 2
    assert csv.field_size_limit() == limit
    erased(target(tmp_path), mail(1))
    assert path.read_text() == f"mail,text\n{rows[0]}"


def test_names_that_are_long_or_no_text(tmp_path: Path) -> None:
    names = [b"\xff\xfe.csv", b"x" * 251 + b".csv", "ü".encode() * 122 + b".parquet"]
    table = pa.table({"mail": [LEAST, mail(1)]})
    for name in names[:2]:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(
            f"mail\n{LEAST}\n{mail(1)}\n"
        )
    pq.write_table(table, tmp_path / names[2].decode())
    plan, verdict = erased(target(tmp_path), LEAST)
    assert {os.fsencode(each) for each in os.listdir(tmp_path)} == {*names}
    assert sum(plan.changed.values()) == 3
    assert all(each.encode().decode() == each for each in plan.changed)  # it can be kept
    assert not left_in(tmp_path, [LEAST])
    assert verdict.word == PURGED, verdict.reason


def test_pipes_and_sockets_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"mail\n{LEAST}\n{mail(1)}\n")
    os.mkfifo(tmp_path / "b.csv")
    with closing(socket.socket(socket.AF_UNIX)) as own, chdir(tmp_path):
        own.bind("c.csv")
    _, verdict = erased(target(tmp_path), LEAST)
    assert (tmp_path / "a.csv").read_text() == f"mail\n{mail(1)}\n"
    assert verdict.word == PURGED, verdict.reason


def test_a_partition_without_files_leaves(tmp_path: Path) -> None:
    """Its name is that of a person, and another program may have removed the files."""
    for name in (f"mail={LEAST}/day=1", f"mail={LEAST}/day=2", f"mail={mail(1)}/day=1", "new"):
        (tmp_path / name).mkdir(parents=True)
        if name != "new" and name[-1] == "1":
            pq.write_table(small().select(["spent"]), tmp_path / name / "a.parquet")
    _, verdict = erased(target(tmp_path), LEAST)
    assert sorted(os.listdir(tmp_path)) == [f"mail={mail(1)}", "new"]
    assert verdict.word == PURGED, verdict.reason


@pytest.mark.parametrize("kind", ["folder", "link", "linked folder"])
def test_names_of_what_is_no_file_are_searched(tmp_path: Path, kind: str) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "a.csv").write_text(f"mail\n{LEAST}\n{mail(1)}\n")
    if kind == "folder":
        (lake / f"of {LEAST}").mkdir()
    else:
        (lake / f"of {LEAST}").symlink_to(tmp_path if kind == "linked folder" else tmp_path / "x")
    _, verdict = erased(target(lake), LEAST)
    assert "1 of 1 values of these records are still in the name of a file or folder" in str(
        verdict.reason
    )


def test_notes_about_a_file_leave_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "country=de"
    folder.mkdir()
    pq.write_table(small(), folder / "a.parquet")
    pq.write_table(small().slice(3, 1), folder / "b.parquet")
    for name in (".a.parquet.crc", ".b.parquet.crc", "_metadata"):
        (folder / name).write_bytes(f"{LEAST}".encode())
    (tmp_path / "_metadata").write_bytes(LEAST.encode())
    _, verdict = erased(target(tmp_path), LEAST)
    assert sorted(p.name for p in folder.iterdir()) == [".b.parquet.crc", "a.parquet", "b.parquet"]
    assert not (tmp_path / "_metadata").exists()
    assert verdict.word != PURGED  # that of the other file is left, and tells
    assert verdict.reason is not None
    assert ".b.parquet.crc" in verdict.reason


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("notes.txt", b"ask ANN@example.org", "still in notes.txt"),
        ("ann@example.org.txt", b"hello", "the name of a file"),
        ("old.orc", b"ORC\0\1\2\3", "files of no kind that can be read: 1"),
    ],
)
def test_what_else_is_in_the_folder_is_told(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    (tmp_path / "a.csv").write_bytes(b"mail\nann@example.org\nbob@example.org\n")
    (tmp_path / name).write_bytes(data)
    _, verdict = erased(target(tmp_path), "ann@example.org")
    assert reason in str(verdict.reason)


def test_a_hard_link_is_told(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    path = tmp_path / "lake" / "b.csv"
    path.write_bytes(b"mail\nbob@example.org\n")
    path.with_name("a.csv").write_bytes(b"mail\nann@example.org\n")
    (tmp_path / "c.csv").hardlink_to(path)
    _, verdict = erased(target(tmp_path / "lake"), "ann@example.org")
    assert "files have other names" in str(verdict.reason)


# -- others, kills and full disks ------------------------------------------------------------------


@pytest.mark.parametrize("exchange", [True, False])
def test_what_another_program_writes_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"mail\nann@example.org\nbob@example.org\n")
    changes = [b"mail\nann@example.org\ncarl@example.org\n", None]

    def other(effect: str, where: str) -> None:
        if effect == "rename" and len(changes) == 2 and (data := changes.pop(0)):
            new = tmp_path / "new"
            new.write_bytes(data)
            new.rename(path)

    if not exchange:
        monkeypatch.setattr(blobs, "_exchange", lambda one, other: False)
    with crash_points.watch(other):
        erased(target(path), "ann@example.org")
    assert path.read_bytes() == b"mail\ncarl@example.org\n"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_a_file_replaced_at_the_last_moment_gets_its_name_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"mail\nann@example.org\nbob@example.org\n")
    true = blobs._exchange
    calls: list[Path] = []

    def late(one: Path, two: Path) -> bool:
        if not calls:
            (tmp_path / "new").write_bytes(b"mail\nann@example.org\ncarl@example.org\n")
            (tmp_path / "new").rename(path)
        calls.append(one)
        return true(one, two)

    monkeypatch.setattr(blobs, "_exchange", late)
    erased(target(path), "ann@example.org")
    assert path.read_bytes() == b"mail\ncarl@example.org\n"
    assert len(calls) == 3  # there, back, and once more


def test_a_file_that_always_changes_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"mail\nann@example.org\n")

    def other(effect: str, where: str) -> None:
        if effect == "rename":
            with path.open("ab") as file:
                file.write(b"bob@example.org\n")

    with (
        crash_points.watch(other),
        refused("again and again"),
    ):
        erased(target(path), "ann@example.org")
    assert path.read_bytes() == b"mail\nann@example.org\n" + 5 * b"bob@example.org\n"


def _lake(folder: Path) -> list[str]:
    """Write files, and return the rows of all others."""
    folder.mkdir()
    table = small()
    for n in range(2):
        pq.write_table(table.slice(50 * n, 50), folder / f"{n}.parquet", row_group_size=20)
    text = table.select(["visit", "mail"])
    with (folder / "c.csv").open("wb") as file:
        file.write(b"visit,mail\n")
        file.writelines(f"{r['visit']},{r['mail']}\n".encode() for r in text.to_pylist())
    with gzip.open(folder / "d.jsonl.gz", "wb") as file:
        file.writelines(json.dumps(row).encode() + b"\n" for row in text.to_pylist())
    return sorted(3 * [r["visit"] for r in text.to_pylist() if r["mail"] not in (LEAST, mail(4))])


def _visits_in(folder: Path) -> list[str]:
    found = [v for p in folder.glob("*.parquet") for v in pq.read_table(p)["visit"].to_pylist()]
    found += [int(line.split(",")[0]) for line in (folder / "c.csv").read_text().splitlines()[1:]]
    lines = gzip.decompress((folder / "d.jsonl.gz").read_bytes()).splitlines()
    return sorted(found + [json.loads(line)["visit"] for line in lines])


def test_a_killed_erasure_is_finished_by_the_next(tmp_path: Path) -> None:
    n, step = 1, 2
    while True:
        folder = tmp_path / f"lake{n}"
        others = _lake(folder)
        done = killed_at(n, str(folder), [LEAST, mail(4)])
        if done is not None:
            break
        assert set(_visits_in(folder)) >= set(others)
        assert len(_visits_in(folder)) <= 300
        erased(target(folder), LEAST, mail(4))
        assert _visits_in(folder) == others
        assert not left_in(folder, [LEAST, mail(4)])
        n += step
    assert n >= 15
    assert done[1] == PURGED


class _Fault:
    """A disk that is full at one effect."""

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __call__(self, effect: str, where: str) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise OSError(errno.ENOSPC, "no space")


def test_a_full_disk_leaves_the_old_files(tmp_path: Path) -> None:
    errors = []
    for n in range(1, 100, 3):
        folder = tmp_path / f"lake{n}"
        others = _lake(folder)
        fault = _Fault(n)
        with crash_points.watch(fault):
            try:
                erased(target(folder), LEAST, mail(4))
            except SourceError as error:
                errors.append(str(error))
        assert set(_visits_in(folder)) >= set(others)
        erased(target(folder), LEAST, mail(4))
        assert _visits_in(folder) == others
        if fault.seen < n:
            break
    assert len(errors) >= 5
    for each in errors:
        assert "could not be read and written (OSError)" in each
        assert len(each.splitlines()) == 1


def test_room_that_ends_while_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = _lake(tmp_path / "lake")
    before = {path: path.read_bytes() for path in (tmp_path / "lake").iterdir()}

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with refused("room for the largest"):
        erased(target(tmp_path / "lake"), LEAST, mail(4))
    assert {path: path.read_bytes() for path in (tmp_path / "lake").iterdir()} == before
    monkeypatch.undo()
    erased(target(tmp_path / "lake"), LEAST, mail(4))
    assert _visits_in(tmp_path / "lake") == others


# -- bad input -------------------------------------------------------------------------------------


def _damaged(folder: Path) -> None:
    data = io.BytesIO()
    pq.write_table(small(), data, row_group_size=20)
    half = bytearray(data.getvalue())
    half[600:900] = bytes(300)
    (folder / "z.parquet").write_bytes(bytes(half))


BAD: list[tuple[str, Callable[[Path], Any], str]] = [
    ("no folder", lambda f: (f / "z.csv").unlink(), "has no file that can be read"),
    ("no column", lambda f: (f / "z.csv").write_bytes(b"a,b\n1,2\n"), "none of the columns 'mail'"),
    ("no header", lambda f: (f / "z.csv").write_bytes(b""), "is empty; expected a header"),
    (
        "twice",
        lambda f: (f / "z.csv").write_bytes(b"mail,mail\n1,2\n"),
        "has the column 'mail' more than once",
    ),
    (
        "short row",
        lambda f: (f / "z.csv").write_bytes(b"mail,n\na,1\nb\n"),
        "row 3 of 'z.csv' in .* cannot be read: it has 1 values; expected 2",
    ),
    (
        "open quote",
        lambda f: (f / "z.csv").write_bytes(b'mail,n\na,1\n"b,2\n'),
        "row 3 of 'z.csv' in .* cannot be read",
    ),
    (
        "no json",
        lambda f: (f / "z.jsonl").write_bytes(b'{"mail": "a"}\n[1]\n'),
        "row 2 of 'z.jsonl' in .* cannot be read: expected an object",
    ),
    (
        "no key",
        lambda f: (f / "z.jsonl").write_bytes(b'{"a": "a"}\n'),
        "none of the keys 'mail'",
    ),
    (
        "key twice",
        lambda f: (f / "z.jsonl").write_bytes(
            b'{"mail": "a", "in": {"mail": "b"}}\n{"mail": "ann@example.org", "mail": "b"}\n'
        ),
        "row 2 of 'z.jsonl' in .* the key 'mail' more than once",
    ),
    (
        "list of json",
        lambda f: (f / "z.jsonl").write_bytes(b'{"mail": ["a"]}\n'),
        "row 1 of 'z.jsonl' in .* cannot be read: 'mail' is a list",
    ),
    (
        "cut gzip",
        lambda f: (f / "z.csv.gz").write_bytes(gzip.compress(b"mail\n" + 9 * b"a\n")[:-9]),
        "'z.csv.gz' in .* cannot be read: the file is damaged",
    ),
    (
        "no parquet",
        lambda f: (f / "z.parquet").write_bytes(b"hello, world"),
        "'z.parquet' in .* is no Parquet file",
    ),
    ("damaged parquet", _damaged, "'z.parquet' in .*"),
    (
        "lists",
        lambda f: pq.write_table(pa.table({"mail": [["a"]]}), f / "z.parquet"),
        "the column 'mail' of 'z.parquet' in .* has the type list",
    ),
    (
        "delta",
        lambda f: (
            (f / "_delta_log").mkdir(), (f / "_delta_log" / "0.json").write_bytes(b"{}"),
        ),
        "holds a Delta table",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spoil", "message"), BAD, ids=[each[0] for each in BAD])
def test_bad_input_is_one_error_and_changes_nothing(
    tmp_path: Path, name: str, spoil: Callable[[Path], Any], message: str
) -> None:
    (tmp_path / "z.csv").write_bytes(b"mail\nann@example.org\n")
    if name != "no folder":
        (tmp_path / "a.csv").write_bytes(b"mail\nann@example.org\n")
    spoil(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with refused(message):
        erased(target(tmp_path), "ann@example.org")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_subject_that_no_file_has(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"mail\nann@example.org\n")
    with refused("has the column 'phone'"):
        target(tmp_path, "mail", "phone").find(Named("ann@example.org"))
    with refused("is not there"):
        target(tmp_path / "away")
    (tmp_path / "a.csv").rename(tmp_path / "shop.db")
    with refused("a database by URL, as in sqlite:///shop.db"):
        target(tmp_path / "shop.db").find(Named("ann@example.org"))


def test_columns_that_cannot_be_overwritten(tmp_path: Path) -> None:
    schema = pa.schema([("mail", pa.string()), pa.field("n", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"mail": ["a"], "n": [1]}, schema=schema), tmp_path / "a.parquet")
    with refused(r"'n' of .* may not be null"):
        target(tmp_path, action="mask").find(Named("a"))
    target(tmp_path, action="mask", keep=("n",)).find(Named("a"))
    with refused(r"'mail' of .* would stay"):
        target(tmp_path, action="null", keep=("n", "mail")).find(Named("a"))


@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_is_read_only_is_refused_first(tmp_path: Path, which: str) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.csv").write_bytes(b"mail\nann@example.org\n")
    protected = tmp_path / "b" / "b.csv" if which == "file" else tmp_path / "b"
    protected.chmod(0o444 if which == "file" else 0o555)
    try:
        with refused("is read-only"):
            erased(target(tmp_path), "ann@example.org")
    finally:
        protected.chmod(0o755)
    assert (tmp_path / "a" / "a.csv").read_bytes() == b"mail\nann@example.org\n"


# -- object stores ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3() -> Iterator[Server]:
    if not installed():
        pytest.skip("nothing that speaks S3 to bring up; install moto, flask and s3fs (extra: dev)")
    with running() as server:
        yield server


def _put(s3: Server, bucket: str, key: str, data: bytes, **more: Any) -> None:
    s3.client.put_object(Bucket=bucket, Key=key, Body=data, **more)


def _parquet() -> bytes:
    data = io.BytesIO()
    pq.write_table(small(), data)
    return data.getvalue()


def test_a_prefix_of_a_bucket(s3: Server) -> None:
    bucket = s3.bucket()
    _put(s3, bucket, "lake/a.parquet", _parquet())
    _put(
        s3, bucket, "lake/in/b.csv", f"mail\n{LEAST}\n{mail(1)}\n".encode(),
        ContentType="text/csv", Metadata={"by": "me"}, Tagging="a=b",
    )  # fmt: skip
    _put(s3, bucket, "lake/c.csv", f"mail\n{mail(1)}\n".encode())
    _put(s3, bucket, "lakes/d.csv", f"mail\n{LEAST}\n".encode())
    before = s3.client.head_object(Bucket=bucket, Key="lake/c.csv")
    plan, verdict = erased(target(f"s3://{bucket}/lake"), LEAST)
    assert verdict.word == PURGED, verdict.reason
    assert plan.changed == {"a.parquet": 1, "in/b.csv": 1}
    head = s3.client.head_object(Bucket=bucket, Key="lake/in/b.csv")
    assert (head["ContentType"], head["Metadata"]) == ("text/csv", {"by": "me"})
    tags = s3.client.get_object_tagging(Bucket=bucket, Key="lake/in/b.csv")["TagSet"]
    assert tags == [{"Key": "a", "Value": "b"}]
    objects = {key.partition("?")[0]: data for key, data in s3.everything(bucket).items()}
    assert objects["lake/in/b.csv"] == f"mail\n{mail(1)}\n".encode()
    assert objects["lakes/d.csv"] == f"mail\n{LEAST}\n".encode()
    assert pq.read_table(pa.BufferReader(objects["lake/a.parquet"])).num_rows == 99
    after = s3.client.head_object(Bucket=bucket, Key="lake/c.csv")
    assert after["LastModified"] == before["LastModified"]


def test_older_versions_that_hold_people_are_deleted(s3: Server) -> None:
    bucket = s3.bucket(versions="Enabled")
    with_ann, without = b"mail\nann@example.org\nbob@example.org\n", b"mail\nbob@example.org\n"
    for data in (without, with_ann, with_ann):
        _put(s3, bucket, "lake/a.csv", data)
    for data in (with_ann, without):
        _put(s3, bucket, "lake/b.csv", data)
    _put(s3, bucket, "lake/c.csv", with_ann)
    s3.client.delete_object(Bucket=bucket, Key="lake/c.csv")
    plan, verdict = erased(target(f"s3://{bucket}/lake"), "ann@example.org")
    assert verdict.word == PURGED, verdict.reason
    assert plan.changed["a.csv"] == 1
    left = s3.everything(bucket)
    assert not [data for data in left.values() if b"ann@" in data]
    assert sorted(left.values()) == [b"", without, without, without]
    assert s3.client.get_object(Bucket=bucket, Key="lake/a.csv")["Body"].read() == without


def test_a_partition_of_a_bucket_with_versions(s3: Server) -> None:
    bucket = s3.bucket(versions="Enabled")
    for data in (b"n\n1\n", b"n\n2\n"):
        _put(s3, bucket, "lake/mail=ann@example.org/a.csv", data)
    _put(s3, bucket, "lake/mail=bob@example.org/a.csv", b"n\n1\n")
    _, verdict = erased(target(f"s3://{bucket}/lake"), "ann@example.org")
    told = s3.client.list_objects_v2(Bucket=bucket)["Contents"]
    assert [each["Key"] for each in told] == ["lake/mail=bob@example.org/a.csv"]
    left = s3.everything(bucket)
    assert not [key for key, data in left.items() if data and "ann@" in key]
    assert verdict.word == PURGED, verdict.reason


def test_an_object_that_another_program_puts_meanwhile_stays(s3: Server) -> None:
    bucket = s3.bucket()
    _put(s3, bucket, "a.csv", b"mail\nann@example.org\nbob@example.org\n")
    rest = [b"mail\nann@example.org\nbob@example.org\ncarl@example.org\n"]
    opened = target(f"s3://{bucket}")
    call = opened._store.fs.call_s3  # type: ignore[attr-defined]

    def late(method: str, *args: Any, **more: Any) -> Any:
        if method == "put_object" and rest:
            _put(s3, bucket, "a.csv", rest.pop())
        return call(method, *args, **more)

    opened._store.fs.call_s3 = late  # type: ignore[attr-defined]
    _, verdict = erased(opened, "ann@example.org")
    read = s3.client.get_object(Bucket=bucket, Key="a.csv")["Body"].read()
    assert read == b"mail\nbob@example.org\ncarl@example.org\n"
    assert not rest
    assert verdict.word == PURGED, verdict.reason


def test_a_place_that_is_one_object(s3: Server) -> None:
    bucket = s3.bucket(versions="Enabled")
    for _ in range(2):
        _put(s3, bucket, "a.csv", b"mail\nann@example.org\nbob@example.org\n")
    plan, verdict = erased(target(f"s3://{bucket}/a.csv"), "ann@example.org")
    assert verdict.word == PURGED, verdict.reason
    assert plan.changed == {"a.csv": 1, "a.csv (older version)": 1}
    assert [*s3.everything(bucket).values()] == [b"mail\nbob@example.org\n"]


@pytest.mark.parametrize("versions", ["", "Enabled"])
def test_nothing_in_a_bucket_has_the_name_of_a_partition(s3: Server, versions: str) -> None:
    """As objects that stand for a folder, and as delete markers."""
    bucket = s3.bucket(versions=versions)
    for who in ("ann", "bob"):
        for name in ("/", "/day=3/", "/day=3/a.csv", "_$folder$"):
            data = b"n\n1\n" if name.endswith(".csv") else b""
            _put(s3, bucket, f"lake/mail={who}@example.org{name}", data)
    _put(s3, bucket, "lake/empty/", b"")
    s3.client.delete_object(Bucket=bucket, Key="lake/mail=bob@example.org/day=3/")
    before = s3.everything(bucket)
    _, verdict = erased(target(f"s3://{bucket}/lake"), "ann@example.org")
    assert s3.everything(bucket) == {k: data for k, data in before.items() if "ann@" not in k}
    assert verdict.word == PURGED, verdict.reason


@pytest.mark.parametrize("n", [1, 100])
def test_an_object_that_is_put_while_it_is_copied_is_searched(s3: Server, n: int) -> None:
    """It was passed over, whatever it held."""
    bucket = s3.bucket()
    _put(s3, bucket, "a.csv", b"mail\nann@example.org\nbob@example.org\n")
    notes = [f"ann@example.org said {at}".encode() for at in range(n)]
    _put(s3, bucket, "notes.txt", b"nobody said")
    opened = target(f"s3://{bucket}")
    call, n_asked = opened._store.fs.call_s3, 0  # type: ignore[attr-defined]

    def late(method: str, *args: Any, **more: Any) -> Any:
        nonlocal n_asked
        if method == "head_object" and more["Key"] == "notes.txt" and notes:
            n_asked += 1
            if n_asked % 2 == 0:  # after it was copied
                _put(s3, bucket, "notes.txt", notes.pop())
        return call(method, *args, **more)

    plan = opened.find(Named("ann@example.org"))
    opened.erase(plan)
    opened._store.fs.call_s3 = late  # type: ignore[attr-defined]
    if n == 1:
        assert opened.scan(plan.marks, plan.living).where == ["notes.txt"]
    else:
        with refused("'notes.txt' in .* is changed by another program again and again"):
            opened.scan(plan.marks, plan.living)


def test_objects_with_names_that_no_file_can_have() -> None:
    """Nor two files in one folder."""
    fsspec = pytest.importorskip("fsspec.implementations.memory")
    fs = fsspec.MemoryFileSystem()
    end = f"{'y' * 150}/{'z' * 300}/notes.txt"
    for name in (f"a/{end}", f"b/{end}", "../../notes.txt", "./a//notes.txt"):
        said = b"ann@example.org said" if name.startswith("a/") else b"nobody said"
        fs.store[f"/with-names/{name}"] = fsspec.MemoryFile(fs, f"/with-names/{name}", said)
    fs.pipe_file("/with-names/a.csv", b"mail\nann@example.org\nbob@example.org\n")
    opened = target("memory://with-names")
    _, verdict = erased(opened, "ann@example.org")
    assert verdict.reason == "1 of 1 values of these records are still in notes.txt"
    with opened._store.paths() as paths:  # type: ignore[attr-defined]
        said = sorted(path.read_bytes() for path in paths)
        assert all(path.resolve().is_relative_to(root) for path, root in paths.items())
    assert said == [b"ann@example.org said", b"mail\nbob@example.org\n", *[b"nobody said"] * 3]


def test_stores_without_a_bucket_or_a_driver(s3: Server) -> None:
    with refused("is not there"):
        target("s3://no-such-bucket/lake").find(Named("a"))
    with refused("no driver for 'oss'"):
        target("oss://bucket/lake")


def test_another_store_of_fsspec() -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe_file("/of-a-test/a.csv", b"mail\nann@example.org\nbob@example.org\n")
    _, verdict = erased(target("memory://of-a-test"), "ann@example.org")
    assert fs.cat_file("/of-a-test/a.csv") == b"mail\nbob@example.org\n"
    assert verdict.word == PURGED


# -- at full size ----------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside a writer"])
def test_a_million_rows(tmp_path: Path, is_alone: bool) -> None:
    parts = [visits(125_000, 100_000, first=125_000 * n) for n in range(8)]
    for n, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{n}.parquet", row_group_size=50_000)
    people = [LEAST, GREATEST, *(mail(97 * n) for n in range(998))]
    others = spent_at(pa.concat_tables(parts), people)
    writer = Beside(FILES, tmp_path, "append")
    with nullcontext() if is_alone else writer:
        plan, verdict = erased(target(tmp_path), *people)
    assert verdict.word == PURGED, verdict.reason
    read = pa.concat_tables(pq.read_table(path) for path in tmp_path.glob("*.parquet"))
    assert spent_at(read) == writer.applied(others)
    assert sum(plan.changed.values()) == 1_000_000 - len(others)
    assert is_alone or len(writer.steps) > 10
    assert not left_in(tmp_path, people)
    assert left_in(tmp_path, [mail(1)])


def test_objects_in_a_list_are_not_passed_over(tmp_path: Path) -> None:
    lines = '{"by": {"mail": "ann@example.org"}}\n{"by": [{"mail": "ann@example.org"}]}\n'
    (tmp_path / "z.jsonl").write_text(lines)
    with (
        refused(r"row 2 of 'z\.jsonl' in .* cannot be read: 'by\.mail' is a list"),
        FilesTarget(str(tmp_path), Settings((Subject("by.mail", "email"),))) as target,
    ):
        erased(target, "ann@example.org")
    assert (tmp_path / "z.jsonl").read_text() == lines
