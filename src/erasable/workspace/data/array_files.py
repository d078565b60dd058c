"""Files that a column names, images and arrays, read into the data set.

The law kept here: the content of a record's file comes into the data set whole, and is erased with
the record; nothing refers to the file afterwards. No file runs anything, none outside of the folder
of the source is opened, and no message repeats a file's name, which may name a person.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from erasable.core._optional import needs
from erasable.core.errors import SourceError
from erasable.workspace.data.arrays import MOST, array_column, holds_arrays

_BYTES = 1 << 24  # of numbers, which are read at a time
_LARGEST = 16 * MOST  # bytes of a file
_NPY, _PNG, _JPEG = b"\x93NUMPY", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_EXPECTED = "expected a PNG, JPEG or .npy file of an array of numbers"


class ArrayFiles:
    r"""Reads the files that columns of a source name.

    Names are looked for in `folder`, None where the source lies in no folder. `shapes` are those of
    the arrays of each column, once there is one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.eye(2, dtype=np.uint8))
    ...     files = ArrayFiles(Path(folder), ["scan"])
    ...     parts = list(files.read(pa.table({"id": [1, 2], "scan": ["a.npy", None]})))
    >>> parts[0]["scan"].to_pylist(), files.shapes
    ([b'\x01\x00\x00\x01'], {'scan': [2, 2]})
    """

    def __init__(
        self,
        folder: Path | None,
        columns: Sequence[str],
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        if columns and folder is None:
            raise SourceError(
                f"the columns {', '.join(map(repr, columns))} are to name files, and the source "
                "is in no folder of this machine; expected a CSV or Parquet file here; or put the "
                "arrays themselves into the column"
            )
        self.shapes = {name: [*shape] for name, shape in (shapes or {}).items()}
        self._folder = folder
        self._columns = list(columns)
        self._kinds: dict[str, Any] = {}
        self._n_read = 0

    def read(self, table: pa.Table) -> Iterator[pa.Table]:
        """Replace names by arrays, some records at a time; columns without text stay."""
        for name in self._columns:
            _refuse_no_names(table[name].type, name)
        named = [name for name in self._columns if _is_text(table[name].type)]
        if not named or not table.num_rows:
            self._n_read += table.num_rows
            for name in named:
                at = table.column_names.index(name)
                table = table.set_column(at, name, pa.nulls(0))
            yield table
            return
        start = 0
        while start < table.num_rows:
            size = sum(8 * int(np.prod(self.shapes.get(name, [_BYTES // 8]))) for name in named)
            part = table.slice(start, max(1, _BYTES // size))
            for name in named:
                at = part.column_names.index(name)
                part = part.set_column(at, name, self._arrays(name, part[name]))
            start += part.num_rows
            self._n_read += part.num_rows
            yield part

    def _arrays(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        found, valid = [], []
        for at, each in enumerate(column.to_pylist(), self._n_read + 1):
            blank = each is None or not each.strip()
            valid.append(not blank)
            if not blank:
                found.append(self._array(name, each, at))
        if not found:
            return pa.chunked_array([pa.nulls(len(column))])
        return array_column(np.stack(found), np.array(valid))

    def _array(self, name: str, file: str, at: int) -> NDArray[Any]:
        try:
            made = _opened(self._path(file))
        except _NoArrayError as error:
            raise SourceError(
                f"the file that column {name!r} names in record {at:,} {error}"
            ) from None
        shape = self.shapes.setdefault(name, list(made.shape))
        kind = self._kinds.setdefault(name, made.dtype)
        if (list(made.shape), made.dtype) != (shape, kind):
            raise SourceError(
                f"the file that column {name!r} names in record {at:,} is of shape "
                f"{_told(made.shape, made.dtype)}; expected {_told(shape, kind)}, as those before "
                "it; bring them to one size"
            )
        return made.reshape(-1)

    def _path(self, file: str) -> Path:
        assert self._folder is not None
        path = self._folder / file
        leads_out = os.path.isabs(file) or "\0" in file or ".." in Path(file).parts
        if leads_out or not self._holds(path):
            raise _NoArrayError(
                "is not in the folder of the source; expected a name relative to that, without "
                "'..', and no link to elsewhere"
            )
        return path

    def _holds(self, path: Path) -> bool:
        """Tell whether a file lies in the folder, after links are followed."""
        folder = os.path.realpath(self._folder or "")
        return Path(os.path.realpath(path)).is_relative_to(folder)


class _NoArrayError(Exception):
    """A file that holds no array."""


def _opened(path: Path) -> NDArray[Any]:
    """Return the array in a file: uint8 or float64, of one number or more."""
    try:
        if not path.is_file():
            raise _NoArrayError(
                "is not there; expected one, by its name relative to the folder of the source"
            )
        if path.stat().st_size > _LARGEST:
            raise _NoArrayError(f"has more than {_LARGEST} bytes; {_EXPECTED}, and a smaller one")
        data = path.read_bytes()
    except (OSError, ValueError):
        raise _NoArrayError("cannot be opened; expected one that you may read") from None
    if data.startswith(_NPY):
        made = _of_npy(data)
    elif data.startswith((_PNG, _JPEG)):
        made = _of_image(data)
    else:
        raise _NoArrayError(f"is of another kind; {_EXPECTED}; convert it")
    if not 1 <= made.size <= MOST:
        raise _NoArrayError(f"has {made.size} numbers; expected from 1 to {MOST}")
    return made


def _of_npy(data: bytes) -> NDArray[Any]:
    try:
        made = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError, SyntaxError, TypeError, OverflowError):
        raise _NoArrayError(
            f"is damaged, or holds objects of Python; {_EXPECTED}, as numpy.save writes one"
        ) from None
    if made.dtype.kind not in "biuf":
        raise _NoArrayError(f"holds {made.dtype}; {_EXPECTED}")
    return np.array(made, np.uint8 if made.dtype in (np.uint8, np.bool_) else np.float64)


def _of_image(data: bytes) -> NDArray[Any]:
    """Decode an image: of shape (1, height, width) if it is gray, (3, height, width) else."""
    with needs("images", "a data set with images"):
        from PIL import Image  # late: few data sets have images

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of images that are too large, which are refused here
            image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
        mode, size = image.mode, image.width * image.height * len(image.getbands())
        if mode not in ("1", "L", "RGB"):
            raise _NoArrayError(f"is an image of mode {mode}; expected L (gray) or RGB; convert it")
        if size > MOST:
            raise _NoArrayError(f"has {size} numbers; expected from 1 to {MOST}")
        pixels = np.array(image.convert("L") if mode == "1" else image, np.uint8)
    except _NoArrayError:
        raise
    except Exception:  # whatever a decoder raises of a damaged file
        raise _NoArrayError(f"is a damaged image; {_EXPECTED}; write it again") from None
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _refuse_no_names(kind: pa.DataType, name: str) -> None:
    if not (_is_text(kind) or pa.types.is_null(kind) or holds_arrays(kind)):
        raise SourceError(
            f"column {name!r} holds {kind}; expected names of files, or arrays; choose another "
            "with --files"
        )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _told(shape: Sequence[int], kind: Any) -> str:
    return f"{'x'.join(map(str, shape)) or '()'} ({kind})"
