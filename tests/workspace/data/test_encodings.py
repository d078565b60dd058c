"""A file that is not text in UTF-8 is told by what it is, and no value of it is repeated."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import zipfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from erasable.cli import domains, identities
from erasable.core.errors import ErasableError, SourceError
from erasable.workspace.data.dialects import HEAD, kind_of_file, why_not_utf8
from erasable.workspace.data.sources import Source

SECRET = "marker-anna"
TEXT = f"visit,who,age\nv1,{SECRET},41\nv2,J\u00fcrgen \u2013 \u20ac5,28\n" + "v3,x,1\n" * 9
LATIN = TEXT.replace("\u2013", "-").replace("\u20ac", "\u00a3")
NAMED = {  # what Python calls it, and what the message does
    "utf-16-le": "but in UTF-16LE;", "utf-16-be": "but in UTF-16BE;",
    "utf-32": "but in UTF-32;", "utf-32-le": "but in UTF-32LE;", "utf-32-be": "but in UTF-32BE;",
    "cp1252": "such as Windows-1252", "latin-1": "such as Windows-1252 or Latin-1",
}  # fmt: skip


def encoded(encoding: str) -> bytes:
    return (LATIN if encoding == "latin-1" else TEXT).encode(encoding)


def workbook() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", f"<a>{SECRET}</a>")
    return held.getvalue()


def archive() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as file:
        file.writestr("visits.csv", TEXT)
    return held.getvalue()


def parquet() -> bytes:
    held = io.BytesIO()
    pq.write_table(pa.table({"visit": ["v1"], "who": [SECRET]}), held)
    return held.getvalue()


def arrow() -> bytes:
    held = io.BytesIO()
    pyarrow.feather.write_feather(pa.table({"visit": ["v1"]}), held, compression="uncompressed")
    return held.getvalue()


def database() -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table visits (visit, who)")
        return connection.serialize()


FILES = {
    "a gzip file": gzip.compress(TEXT.encode(), mtime=0),
    "an Excel workbook (.xlsx)": workbook(),
    "an Excel workbook (.xls)": bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600),
    "a ZIP archive": archive(),
    "a bzip2 file": bz2.compress(TEXT.encode()),
    "an xz file": lzma.compress(TEXT.encode()),
    "a Zstandard file": pa.compress(TEXT.encode(), codec="zstd", asbytes=True),
    "a Parquet file": parquet(),
    "an Arrow file": arrow(),
    "an SQLite database": database(),
}


def refused(path: Path) -> str:
    with pytest.raises(SourceError) as raised:
        Source.parse(str(path)).read(["visit"])
    told = str(raised.value)
    assert SECRET not in told
    assert "\n" not in told
    return told


@pytest.mark.filterwarnings("ignore::erasable.core.errors.DialectWarning")  # commas in x.tsv
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz"])
@pytest.mark.parametrize("encoding", NAMED)
def test_the_encoding_is_named(tmp_path: Path, encoding: str, name: str) -> None:
    data = encoded(encoding)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    told = refused(path)
    assert "is not encoded in UTF-8, " in told
    assert NAMED[encoding] in told
    assert "iconv -f" in told


@pytest.mark.parametrize("encoding", NAMED)
def test_what_is_advised_helps(encoding: str) -> None:
    """The encoding that the command names decodes to the same text."""
    advised = (why_not_utf8(encoded(encoding)) or "").partition("iconv -f ")[2].split()[0]
    assert encoded(encoding).decode(advised) == encoded(encoding).decode(encoding)


@pytest.mark.parametrize("kind", FILES)
def test_another_file_that_is_named_csv_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(FILES[kind])
    assert f"is {kind}; expected text with separators; " in refused(path)


def test_text_that_is_named_gz_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_text(TEXT, encoding="utf-8")
    assert "is not compressed by gzip; expected that, by its name" in refused(path)


def test_a_fault_far_down_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"visit,who\n" + b"v1,a\n" * HEAD + "v2,J\u00fc\n".encode("latin-1"))
    assert "in some of its lines" in refused(path)


@pytest.mark.parametrize(
    "text",
    [
        TEXT, "\ufeff" + TEXT, "PAR1,PAR2\n1,2\n", "BZh,visit\n1,2\n", "visit\n\u65e5\u672c\n",
        "visit,x\nv1,\0\nv2,a\n", "PK,visit\n1,2\n", "visit\n" + "\u20ac" * HEAD,
    ],
)  # fmt: skip
def test_text_in_utf8_is_read(tmp_path: Path, text: str) -> None:
    """The negative control: nothing that was read is taken for something else."""
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    assert Source.parse(str(path)).read().num_rows
    assert kind_of_file(text.encode()[:HEAD]) is None
    assert why_not_utf8(text.encode()[:HEAD]) is None


@pytest.mark.parametrize("read", [partial(identities.gathered, []), domains.read_keywords])
@pytest.mark.parametrize("kind", [*NAMED, *FILES])
def test_files_of_identities_and_keywords_are_told_too(
    tmp_path: Path, kind: str, read: object
) -> None:
    path = tmp_path / "who.txt"
    path.write_bytes(FILES[kind] if kind in FILES else encoded(kind))
    with pytest.raises(ErasableError) as raised:
        read(str(path))  # type: ignore[operator]
    assert (NAMED.get(kind) or f"is {kind}; expected text, ") in str(raised.value)
    assert SECRET not in str(raised.value)
    path.write_text(TEXT, encoding="utf-8-sig")
    assert read(str(path))[0] == "visit,who,age"  # type: ignore[operator]
