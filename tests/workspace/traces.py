"""Look for what should be gone in every byte of a workspace, in each way it may be written."""

from __future__ import annotations

import base64
import io
import re
import shutil
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from backends import database_of, files_of, suppression_files

_WORD = re.compile(rb"[0-9A-Za-z-]{6,}")
_WIDE = re.compile(rb"(?:[0-9A-Za-z-]\0\0\0){6,}")  # as NumPy keeps text
_HALF = re.compile(rb"(?:[0-9A-Za-z-]\0){6,}")  # as Windows does
_ENCODED = re.compile(rb'"((?:[0-9A-Za-z+/]{4})+[0-9A-Za-z+/=]{4})"')


def contents(path: Path) -> bytes:
    """Return the bytes of a file, and those of small arrays, which accelerators have as base64."""
    data = path.read_bytes()
    if "accelerators" not in path.parts:
        return data
    return b"\n".join([data, *(base64.b64decode(each) for each in _ENCODED.findall(data))])


def texts_in(folder: Path, wanted: Iterable[str]) -> set[str]:
    """Return the texts that occur in a file, as UTF-8, UTF-16 or UTF-32, or in its name.

    Each is of letters, digits and "-", of 6 or more, and is found where it is a word, the end of
    one, or the beginning of one.
    """
    return _texts_in(files_of(folder), set(wanted))


def _texts_in(files: Iterable[Path], sought: set[str]) -> set[str]:
    lengths = sorted({len(each) for each in sought})
    found: set[str] = set()
    beginnings = {each[:2] for each in sought}
    marks = [a + gap + b for a, b in map(_two_bytes, beginnings) for gap in (b"", b"\0", b"\0\0\0")]
    for path in files:
        data = contents(path)
        if not any(each in data or each in path.name.encode() for each in marks):
            continue  # the search for words takes longest
        words = set(_WORD.findall(data)) | {path.name.encode()}
        words |= {each[::4] for each in _WIDE.findall(data)}
        words |= {each[::2] for each in _HALF.findall(data)}
        for word in words:
            text = word.decode()
            for length in lengths:
                found |= {part for part in _parts(text, length) if part in sought}
    return found


def _two_bytes(text: str) -> tuple[bytes, bytes]:
    return text[:1].encode(), text[1:].encode()


def _parts(text: str, length: int) -> Iterable[str]:
    if len(text) <= 3 * length:
        return (text[i : i + length] for i in range(len(text) - length + 1))
    return (text[:length], text[-length:])


def numbers_in(folder: Path, wanted: Iterable[float | int]) -> set[float | int]:
    """Return the numbers that occur as 8 bytes, little-endian: float64 or int64, at any place."""
    sought: dict[int, float | int] = {}
    for number in wanted:
        sought[_bits(struct.pack("<d", number))] = number
        if isinstance(number, int):
            sought[_bits(struct.pack("<q", number))] = number
    keys = np.array(sorted(sought), dtype=np.int64)
    found = set()
    for path in files_of(folder):
        data = contents(path)
        for start in range(8):
            n = (len(data) - start) // 8
            if n > 0:
                seen = np.frombuffer(data, "<i8", count=n, offset=start)
                hits = seen[np.isin(seen, keys)]
                found |= {sought[int(bits)] for bits in hits}
    return found


def _bits(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def every_file(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def tokens_in(workspace: Path, wanted: Iterable[str]) -> set[str]:
    """Return the tokens that occur anywhere but in the suppression list.

    The list is taken out of a copy of the ledger, where no other byte moves: its rows are
    overwritten in their places. The write-ahead log is searched as it is. PostgreSQL keeps the
    list in files of its own, which are left out.
    """
    wanted = set(wanted)
    if database_of(workspace) is not None:
        listing = suppression_files(workspace)
        return _texts_in((p for p in files_of(workspace) if p.name not in listing), wanted)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for path in every_file(workspace):
            target = copy / "ws" / path.relative_to(workspace)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        (copy / "look").mkdir()
        for path in (copy / "ws").glob("ledger.db*"):
            shutil.copy(path, copy / "look" / path.name)
        (copy / "ws" / "ledger.db").unlink()
        connection = sqlite3.connect(copy / "look" / "ledger.db", isolation_level=None)
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("DELETE FROM suppression WHERE TRUE")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return texts_in(copy, wanted)


def compressed(folder: Path) -> list[str]:
    """Return the files of a workspace in which a search for bytes could miss something."""
    hidden = []
    for path in every_file(folder):
        key, data = path.relative_to(folder).as_posix(), path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            hidden.append(key)
        elif data[:4] == b"PAR1":
            hidden += [key] if _packs_columns(data) else []
        elif data[:2] == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = archive.infolist()
                packed = any(each.compress_type != zipfile.ZIP_STORED for each in members)
                nested = any(archive.read(each)[:2] in (b"PK", b"\x1f\x8b") for each in members)
                hidden += [key] if packed or nested else []
        elif "artifacts" in key.split("/") and _dense(data):
            hidden.append(key)
    return hidden


def _packs_columns(data: bytes) -> bool:
    about = pq.read_metadata(io.BytesIO(data))
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(group.num_columns)]
    plain = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"}
    return any(
        each.compression != "UNCOMPRESSED" or not set(each.encodings) <= plain for each in columns
    )


def _dense(data: bytes) -> bool:
    """Tell whether bytes look random, as compressed ones do."""
    if len(data) < 4096:
        return False
    shares = np.bincount(np.frombuffer(data, np.uint8), minlength=256) / len(data)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum()) > 7.9
