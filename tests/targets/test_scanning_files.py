"""The search of files finds every value that a file holds, however it is packed, and no other."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, orc, parquet

from effort import examples
from erasable.core._byte_search import ByteSearch
from erasable.workspace.targets import residue
from erasable.workspace.targets.marks import Marks, forms_of
from erasable.workspace.targets.residue import Found

N, WIDTH = 60, 24
RNG = np.random.default_rng(7)
VECTORS = RNG.standard_normal((2 * N, WIDTH)).astype(np.float32)
WORDS = ["river", "stone", "window", "garden", "letter", "morning", "copper", "engine", "valley"]
TEXTS = [
    " ".join(RNG.choice(WORDS, 40)) + " and so on" * (at % 9) + f" — said “{at:05d}” to\n{at}"
    for at in range(2 * N)
]
MAILS = [f"person{at:03d}@example.org" for at in range(2 * N)]
IDS = [int(each) for each in RNG.integers(1 << 50, 1 << 60, 2 * N)]


@dataclass
class Expected:
    """Marks of records that a file has, of the first of them as others, and of no file."""

    present: Marks
    living: Marks
    absent: Marks


def expected(*columns: list[Any] | np.ndarray) -> Expected:
    found = Expected(Marks(), Marks(), Marks())
    for column in columns:
        for at, value in enumerate(column):
            for marks, rows in (
                (found.living, range(10)), (found.present, range(10, N)),
                (found.absent, range(N, 2 * N)),
            ):  # fmt: skip
                if at in rows:
                    assert marks.add(value)
        found.absent.drop(column[:N])
    return found


EVERYTHING = expected(MAILS, TEXTS, VECTORS)
NO_VECTORS = expected(MAILS, TEXTS)


def check(path: Path, own: Expected = EVERYTHING) -> Found:
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    found = residue.search(files, own.present, own.living)
    assert (found.n_left, found.n_living) == (len(own.present), len(own.living))
    assert found.reasons == []
    none = residue.search(files, own.absent, own.living)
    assert (none.n_left, none.n_living, none.where, none.reasons) == (0, len(own.living), [], [])
    return none


def rows() -> list[dict[str, Any]]:
    return [
        {"mail": MAILS[at], "text": TEXTS[at], "vector": VECTORS[at].tolist()} for at in range(N)
    ]


def lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows()).encode()


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(N), pa.int32()),
            "mail": pa.array(MAILS[:N]).dictionary_encode(),
            "inner": [{"texts": [row["text"], None]} for row in rows()],
            "vector": pa.FixedSizeListArray.from_arrays(VECTORS[:N].ravel(), WIDTH),
        }
    )


# -- streams ---------------------------------------------------------------------------------------


def arrow(codec: str, data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def snappy_frames(data: bytes) -> bytes:
    found = b"\xff\x06\x00\x00sNaPpY"
    for at in range(0, len(data), 5_000):
        packed = b"\0\0\0\0" + pa.Codec("snappy").compress(data[at : at + 5_000], asbytes=True)
        found += b"\x00" + len(packed).to_bytes(3, "little") + packed
    return found


def avro(codec: str, data: bytes) -> bytes:
    def number(value: int) -> bytes:
        value <<= 1
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    def text(value: bytes) -> bytes:
        return number(len(value)) + value

    pack: dict[str, Callable[[bytes], bytes]] = {
        "null": bytes,
        "deflate": lambda each: zlib.compress(each, wbits=-15),
        "snappy": lambda each: pa.Codec("snappy").compress(each, asbytes=True) + b"\0\0\0\0",
        "zstandard": partial(arrow, "zstd"),
    }
    sync = bytes(range(16))
    found = b"Obj\x01" + number(3) + text(b"avro.schema") + text(b'"bytes"')
    found += text(b"format-version") + text(b"2")
    found += text(b"avro.codec") + text(codec.encode()) + b"\0" + sync
    for at in range(0, len(data), 9_000):
        found += number(1) + text(pack[codec](text(data[at : at + 9_000]))) + sync
    return found


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("lines.jsonl", data)
    return file.getvalue()


def tar_gz(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        info = tarfile.TarInfo("lines")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "two members": lambda data: gzip.compress(data[:9_999]) + gzip.compress(data[9_999:]),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zlib": zlib.compress,
    "zstd": partial(arrow, "zstd"),
    "two frames": lambda data: arrow("zstd", data[:9_999]) + arrow("zstd", data[9_999:]),
    "lz4": partial(arrow, "lz4"),
    "snappy": snappy_frames,
    "zip": zipped,
    "zip in gzip": lambda data: gzip.compress(zipped(data)),
    "tar": tar_gz,
    "avro": partial(avro, "null"),
    "avro, deflate": partial(avro, "deflate"),
    "utf-16": lambda data: data.decode().encode("utf-16-le"),
}


@pytest.mark.parametrize("name", PACKED)
def test_values_are_found_in_a_packed_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(PACKED[name](lines()))
    own = expected(MAILS) if name in ("utf-16", "avro", "avro, deflate") else EVERYTHING
    check(path, own)


@pytest.mark.parametrize("codec", ["snappy", "zstandard"])
def test_values_are_found_in_packed_blocks_of_avro(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.avro"
    path.write_bytes(avro(codec, b"\0".join(map(str.encode, MAILS[:N]))))
    check(path, expected(MAILS))


@pytest.mark.parametrize("pack", ["zstd", "gzip", "zlib", "lz4", "sized lz4"])
def test_values_are_found_in_packed_parts_of_a_file_of_no_known_format(
    pack: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    path = tmp_path / "segment.dat"
    parts = [b"SEGMENT\x00\x01\x02"]
    for row in rows():
        data = json.dumps(row).encode() * 2
        if pack == "sized lz4":
            packed = len(data).to_bytes(4, "little")
            packed += pa.Codec("lz4_raw").compress(data, asbytes=True)
        else:
            packed = PACKED[pack](data)
        parts += [rng.standard_normal(9).astype("<f4").tobytes()[:33], packed]
    path.write_bytes(b"".join(parts))
    check(path)


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("packed", [False, True])
def test_values_are_found_in_parquet(
    codec: str, version: str, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "part-0"
    encoding = "BYTE_STREAM_SPLIT" if version == "2.0" else "PLAIN"
    parquet.write_table(
        table(), path, compression=codec, data_page_version=version, row_group_size=17,
        use_dictionary=["mail"], column_encoding={"vector.list.element": encoding},
    )  # fmt: skip
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert check(path).compared


def test_delta_encoded_values_are_found_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "part-0.parquet"
    parquet.write_table(
        pa.table({"mail": MAILS[:N], "id": IDS[:N]}), path, use_dictionary=False,
        column_encoding={"mail": "DELTA_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED"},
    )  # fmt: skip
    check(path, expected(MAILS, IDS))


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_values_are_found_in_arrow_files(codec: str | None, tmp_path: Path) -> None:
    path = tmp_path / "data.arrow"
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(path, table().schema, options=options) as writer:
        writer.write_table(table())
    check(path)
    feather.write_feather(table(), path, compression=codec or "uncompressed")
    check(path)
    with pa.ipc.new_stream(path, table().schema, options=options) as stream:
        stream.write_table(table())
    check(path)


@pytest.mark.parametrize("codec", ["snappy", "zlib", "zstd"])
def test_values_are_found_in_orc(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "data.orc"
    plain = table().select(["id", "inner"]).append_column("mail", pa.array(MAILS[:N]))
    orc.write_table(plain, path, compression=codec)
    check(path, NO_VECTORS)


def test_short_values_are_compared_where_all_files_are_tables(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    whole = pa.table(
        {
            "id": range(500), "x": np.arange(500) / 4, "c": [f"c{at}" for at in range(500)],
            "tenth": pa.array(np.arange(500) / 10, pa.float32()),
            "price": pa.array([Decimal(at) / 2 for at in range(500)], pa.decimal128(9, 3)),
            "said": [f'"{at}"' for at in range(500)],
        }
    ).slice(0, 300)  # fmt: skip
    parquet.write_table(whole, path)
    csv.write_csv(whole, tmp_path / "data.csv")
    for left, value in (
        (1, 299), (0, 300), (1, "c299"), (0, "c300"), (1, 74.75), (0, 75.25), (1, 29.7), (0, 30.9),
        (1, Decimal("149.5")), (0, Decimal("150.5")), (1, '"29"'), (0, '"300"'),
    ):  # fmt: skip
        gone, living = Marks(), Marks()
        gone.add(value)
        living.add(3)
        for each in (path, tmp_path / "data.csv"):
            if value != '"29"' or each == path:  # which CSV writes otherwise
                found = residue.search([each], gone, living)
                assert (found.n_left, found.n_living, found.compared) == (left, 1, True)
    gone.add(b"x")
    assert not residue.search([path], gone, living).compared
    gone.drop([b"x"])
    (tmp_path / "index.bin").write_bytes(bytes(5_000))
    assert not residue.search([path, tmp_path / "index.bin"], gone, living).compared


def test_statistics_cut_short_are_found(tmp_path: Path) -> None:
    text = "a beginning that nobody else has, and more"
    path = tmp_path / "manifest.avro"
    for kept, n in ((text[:16], 1), (text[:15] + "u", 1), ("a beginning of others", 0)):
        path.write_bytes(avro("deflate", kept.encode()))
        marks = Marks()
        marks.add(text)
        reasons = residue.search([path], marks, Marks()).reasons
        assert reasons == ["1 beginnings of their values are in metadata"] * n
        marks.drop(["a beginning that others have"])
        assert residue.search([path], marks, Marks()).reasons == []


# -- SQLite ----------------------------------------------------------------------------------------


def fill(path: Path, *pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for each in ("secure_delete = off", *pragmas):
        connection.execute(f"pragma {each}").fetchall()
    connection.execute("create table t (id integer primary key, filler, mail, text, vector)")
    for at, row in enumerate(rows()):
        filler = "".join(np.random.default_rng(at).choice(list("xyz"), 1_000 + 97 * at))
        connection.execute(
            "insert into t values (?, ?, ?, ?, ?)",
            (at, filler, row["mail"], row["text"], VECTORS[at].tobytes()),
        )
    return connection


@pytest.mark.parametrize("pragmas", [(), ("page_size = 512",), ("encoding = 'UTF-16'",)])
@pytest.mark.parametrize("deleted", [False, True])
def test_values_are_found_in_pages_of_sqlite(
    pragmas: tuple[str, ...], deleted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "data.db"
    with closing(fill(path, *pragmas)) as connection:
        if deleted:  # the pages become free ones
            connection.execute("create table other as select * from t where id < 10")
            connection.execute("drop table t")
    own = expected(MAILS, VECTORS)
    if deleted:
        found = residue.search([path], own.present, own.living)
        assert found.n_left >= len(own.present) - 2
        assert found.n_living == len(own.living)
        assert not found.compared
    else:
        check(path, own)


def test_values_are_found_in_a_log_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with closing(fill(path, "journal_mode = wal")):
        log = tmp_path / "log"
        log.write_bytes(path.with_name("data.db-wal").read_bytes())
        check(log, expected(MAILS, VECTORS))


def test_short_values_are_compared_in_a_file_of_sqlite_without_room(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    gone, living = Marks(), Marks()
    gone.add(41)
    living.add(13)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("create table t (id integer, name text)")
        connection.executemany("insert into t values (?, 'x')", [(at,) for at in range(90)])
        found = residue.search([path], gone, living)
        assert (found.n_left, found.n_living, found.compared) == (1, 1, True)
        connection.execute("delete from t where id = 41")
        found = residue.search([path], gone, living)
        assert (found.n_left, found.n_living, found.compared) == (0, 1, False)
        connection.execute("vacuum")
        found = residue.search([path], gone, living)
        assert (found.n_left, found.n_living, found.compared) == (0, 1, True)


# -- stores ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_values_are_found_in_files_of_lance(tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb", reason="needs lancedb")
    columns = {
        "mail": MAILS[:N],
        "id": IDS[:N],
        "small": pa.array([at + 1_000_000_000 for at in range(N)], pa.int32()),
        "text": TEXTS[:N],
        "vector": pa.FixedSizeListArray.from_arrays(VECTORS[:N].ravel(), WIDTH),
    }
    opened = lancedb.connect(tmp_path).create_table("t.able", pa.table(columns))
    opened.delete("id > 0")
    opened.add(pa.table(columns).slice(0, 10))
    small = [at + 1_000_000_000 for at in range(2 * N)]
    check(tmp_path, expected(MAILS, IDS, TEXTS, VECTORS, small))


@pytest.mark.parametrize(
    "written",
    [
        lambda: VECTORS[:N].astype("<f8").tobytes(),
        lambda: VECTORS[:N].astype("<f2").tobytes(),
        lambda: VECTORS[:N].astype(">f4").tobytes(),
        lambda: (VECTORS[:N].view("<u4") >> 16).astype("<u2").tobytes(),
        lambda: (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True))[:N].tobytes(),
        lambda: (VECTORS * (np.float32(1) / np.sqrt((VECTORS**2).sum(axis=1))[:, None]))[
            :N
        ].tobytes(),
        lambda: b"".join(b"\xfa" + struct.pack(">f", x) for x in VECTORS[:N].ravel().tolist()),
        lambda: b"".join(b"\xcb" + struct.pack(">d", x) for x in VECTORS[:N].ravel().tolist()),
        lambda: json.dumps(VECTORS[:N].tolist()).encode(),
        lambda: json.dumps([[float(str(x)) for x in row] for row in VECTORS[:N]]).encode(),
        lambda: pickle.dumps(VECTORS[:N]),
    ],
)
def test_vectors_are_found_as_stores_write_them(
    written: Callable[[], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(written())
    check(path, expected(VECTORS))
    np.savez_compressed(tmp_path / "vectors.npz", data=np.frombuffer(written(), dtype=np.uint8))
    check(tmp_path / "vectors.npz", expected(VECTORS))


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("in_cbor", [False, True])
def test_vectors_are_found_at_any_length(start: int, in_cbor: bool, tmp_path: Path) -> None:
    """Stores divide by lengths again at every rebuild, and the last digits drift."""
    rows = VECTORS.copy()
    for _ in range(6):
        rows *= np.float32(1) / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= RNG.uniform(0.1, 30, (2 * N, 1)).astype(np.float32)
    path = tmp_path / "vectors"
    data = rows[:N].tobytes()
    if in_cbor:
        data = b"".join(b"\xfa" + struct.pack(">f", x) for x in rows[:N].ravel().tolist())
    path.write_bytes(bytes(range(start)) + data)
    check(path, expected(VECTORS))
    path.write_bytes(bytes(range(start)) + (-rows[:N]).tobytes())
    assert residue.search([path], expected(VECTORS).present, Marks()).n_left == 0


def test_small_integers_of_vectors_and_bytes_of_uuids_are_found(tmp_path: Path) -> None:
    codes = RNG.integers(-128, 128, (2 * N, WIDTH))
    uuids = [str(UUID(bytes=RNG.bytes(16))) for _ in range(2 * N)]
    path = tmp_path / "codes"
    path.write_bytes(codes[:N].astype(np.int8).tobytes())
    check(path, expected(codes))
    path.write_bytes(b"".join(UUID(each).bytes for each in uuids[:N]))
    check(path, expected(uuids))
    path.write_bytes(b"".join(struct.pack(">q", each) for each in IDS[:N]))
    check(path, expected(IDS))


def test_hashes_of_texts_are_found(tmp_path: Path) -> None:
    import hashlib

    path = tmp_path / "hashes"
    for kind in ("md5", "sha1", "sha256"):
        hashes = [hashlib.new(kind, each.encode()) for each in TEXTS[:N]]
        path.write_bytes(b"".join(each.digest() for each in hashes))
        check(path, expected(TEXTS))
        path.write_text(" ".join(each.hexdigest() for each in hashes))
        check(path, expected(TEXTS))


# -- what cannot be said ---------------------------------------------------------------------------


def test_a_file_that_is_not_decoded_is_a_reason(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).bytes(200_000)
    zstd = arrow("zstd", lines())
    for name, data in {
        "encrypted": noise,
        "partly encrypted": bytes(70_000) + noise,
        "cut gzip": gzip.compress(lines())[:-900],
        "cut zstd": zstd[:-900],
        "headless deflate": zlib.compress(lines() * 3, wbits=-15)[:90_000],
        "cut parquet": b"PAR1" + bytes(900),
        "duckdb": bytes(8) + b"DUCK" + bytes(900),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        found = residue.search([path], NO_VECTORS.absent, Marks())
        assert found.n_left == 0
        assert len(found.reasons) == 1, name
        assert found.reasons[0].startswith(f"{name} could not be")
        assert not found.compared


@pytest.mark.parametrize("kind", ["<f8", "<f4", "<f2", "<i4", "i1"])
def test_numbers_are_not_taken_for_packed_data(kind: str, tmp_path: Path) -> None:
    normal = np.random.default_rng(2).standard_normal(90_000)
    path = tmp_path / "numbers"
    for scale in (1, 0.02, 30):
        path.write_bytes(
            (normal * scale * (30 / scale if kind == "i1" else 1)).astype(kind).tobytes()
        )
        assert residue.search([path], EVERYTHING.absent, Marks()).reasons == []


def test_a_piece_that_texts_of_others_share_is_not_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "texts"
    foot = " This message is confidential." * 4
    ours, theirs = (f"{name} {' '.join(WORDS * 3)} {name}{foot}" for name in ("ann", "bob"))
    marks = Marks()
    marks.add(ours)
    path.write_text(theirs)
    assert residue.search([path], marks, Marks()).n_left == 1
    marks.drop([theirs])
    assert residue.search([path], marks, Marks()).n_left == 0
    path.write_text(ours)
    assert residue.search([path], marks, Marks()).n_left == 1
    marks.drop([f"ann {' '.join(WORDS * 3)} bob{foot}"])
    assert (len(marks), marks.n_short) == (0, 1)


def test_a_kind_of_values_that_is_not_found_of_others_is_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "texts"
    path.write_bytes(b"\0".join(map(str.encode, MAILS)))
    own = expected(MAILS, VECTORS)
    reasons = residue.search([path], own.absent, own.living).reasons
    assert reasons == ["the search finds 0 of 10 vectors of others"]
    reasons = residue.search([path], expected(MAILS).absent, own.living).reasons
    assert reasons == []


def test_a_value_in_the_name_of_a_folder_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "mail=person000%40example.org"
    folder.mkdir()
    (folder / "part-0").write_bytes(b"nothing")
    (tmp_path / "other").write_bytes(b"nothing")
    marks = Marks()
    marks.add("person000@example.org")
    assert residue.search([folder / "part-0", tmp_path / "other"], marks, Marks()).n_left == 1


def test_a_number_is_not_found_within_another(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    marks = Marks()
    marks.add(123_456)
    for text, n in (("91234567", 0), ("x 123456,", 1), ("123456", 1), ("0123456", 0)):
        path.write_text(text)
        assert residue.search([path], marks, Marks()).n_left == n


# -- marks -----------------------------------------------------------------------------------------


def test_marks_are_kept_as_json() -> None:
    marks = Marks()
    for value in (*MAILS, *TEXTS, *VECTORS, 7, "x", b"some bytes", 3.25, 1 << 50):
        marks.add(value)
    again = Marks.from_json(json.loads(json.dumps(marks.to_json())))
    assert again == marks
    assert again.every() == marks.every()


def test_values_of_those_who_stay_are_left_out() -> None:
    marks = Marks()
    for value in (MAILS[0], MAILS[1], VECTORS[0], 7, 8, True, None):
        marks.add(value)
    assert (len(marks), marks.n_short) == (3, 2)
    marks.drop([MAILS[0], VECTORS[0].tolist(), 7, None])
    assert (len(marks), marks.n_short) == (1, 1)
    assert marks.every() == set(forms_of(MAILS[1]))


@given(
    mark=st.binary(min_size=6, max_size=60),
    others=st.lists(st.binary(min_size=6, max_size=20), max_size=5),
    at=st.integers(0, 300),
    filler=st.sampled_from([b"\0", b"a", b"ab", bytes(range(256))]),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
@settings(max_examples=examples(200))
def test_a_mark_is_found_at_any_place_and_across_borders(
    mark: bytes, others: list[bytes], at: int, filler: bytes, cuts: list[int]
) -> None:
    data = (filler * 300)[:at] + b"\n" + mark + b"\n" + filler * 9
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    search = ByteSearch([mark, *others])
    search.look_through(data[a:b] for a, b in pairwise(borders))
    lower = data.lower()
    found = search.found()
    assert mark in found
    plain = {each for each in others if not each.isdigit()}
    assert found & plain == {each for each in plain if each.lower() in lower}
