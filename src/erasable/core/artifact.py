"""Files of fitted models: plain arrays and numbers, never a pickle.

A file is a zip of ``header.json`` and one ``.npy`` for each array, stored uncompressed with fixed
times and in a fixed order, so that equal models are equal files. A path is written beside its
place, synced and renamed, so that there is a whole file or none; what a process that died left
beside it is removed when the path is written next. A file that the caller has opened is written
to directly.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import secrets
import zipfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import of_objects
from erasable.core.errors import (
    ArtifactError,
    ArtifactFileError,
    ArtifactNotFoundError,
    InvalidInputError,
)

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

Place: TypeAlias = str | os.PathLike[str] | BinaryIO
"""The place of a model: a path, or an open binary file."""

_FORMAT, _VERSION = "erasable", 1
_HEADER = "header.json"
_ARRAY, _OBJECTS = "__array__", "__objects__"
_WHEN = (1980, 1, 1, 0, 0, 0)
_KINDS = "biufcmMS"  # of arrays that are members: numbers, times, bytes
_END, _END_SIZE = b"PK\x05\x06", 22  # the record that ends a zip without a comment


def write_artifact(path: Place, header: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write a state with a header, atomically where `path` is no open file.

    Arrays, numbers, strings, None, and dicts and lists of these. A path is replaced if it exists.
    """
    arrays: list[NDArray[Any]] = []
    tree = _to_json(state, arrays)
    text = json.dumps(
        {"format": _FORMAT, "version": _VERSION, **header, "state": tree},
        sort_keys=True,
        indent=1,
    )
    if _is_open(path, "write"):
        _write_to(path, text, arrays)
        return
    target = _as_path(path)
    begin = f".erasable-{blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}-"
    beside = target.parent / f"{begin}{secrets.token_hex(8)}.tmp"
    try:
        with open(beside, "xb") as file:
            _lock(file)
            _pack(file, text, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as error:
        raise not_written(target, error) from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    for left in target.parent.glob(f"{begin}*.tmp"):
        _remove_if_unlocked(left)
    sync_folder(target.parent)


def _lock(file: BinaryIO) -> bool:
    """Lock a file for as long as it is open and the process lives; return whether it is."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has it, or the file system has no locks
        return False
    return True


def _remove_if_unlocked(path: Path) -> None:
    """Remove what a process that died left while it wrote: it holds records as they were then."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        if _lock(file) and os.fstat(file.fileno()).st_size:  # an empty one is not locked yet
            path.unlink()


def read_artifact(path: Place) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the header and the state that `write_artifact` wrote."""
    if _is_open(path, "read"):
        return _read(name_of(path), io.BytesIO(_read_all(path)))
    source = _as_path(path)
    try:
        with open(source, "rb") as file:
            return _read(str(source), file)
    except OSError as error:
        raise _not_read(source, error) from None


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the header alone; see `read_artifact`."""
    source = _as_path(path)
    try:
        with open(source, "rb") as file, zipfile.ZipFile(file) as archive:
            header = json.loads(archive.read(_HEADER))
    except OSError as error:
        raise _not_read(source, error) from None
    except MemoryError:
        raise
    except Exception:  # A damaged zip can fail in any way: struct, zlib, seek, JSON.
        header = None
    if not isinstance(header, dict) or not isinstance(header.get("digest"), str):
        raise _broken(str(source), "damaged, or no model of erasable")
    return header


def name_of(path: Place) -> str:
    """Name a path, or an open file, in a message."""
    if isinstance(path, str | os.PathLike):
        return os.fspath(path)
    name = getattr(path, "name", None)
    return name if isinstance(name, str) else f"a {type(path).__name__}"


def _is_open(path: Place, method: str) -> TypeGuard[BinaryIO]:
    return not isinstance(path, str | os.PathLike) and hasattr(path, method)


def _pack(file: BinaryIO, text: str, arrays: list[NDArray[Any]]) -> None:
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
    try:
        _add(archive, _HEADER, text.encode())
        for number, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            _add(archive, _member(number), buffer.getbuffer())
        archive.close()
    except BaseException:
        archive.fp = None  # closing it would raise another error
        raise


def _write_to(file: BinaryIO, text: str, arrays: list[NDArray[Any]]) -> None:
    # Packed in memory, because the file may be at any position, and may not be seekable.
    packed = io.BytesIO()
    _pack(packed, text, arrays)
    try:
        file.write(packed.getbuffer())
    except TypeError:
        raise _not_binary(file) from None
    except OSError as error:
        raise not_written(Path(name_of(file)), error) from None


def _read_all(file: BinaryIO) -> bytes:
    try:
        data = file.read()
    except OSError as error:
        raise _not_read(Path(name_of(file)), error) from None
    except UnicodeDecodeError:
        data = None  # it was opened as text
    if not isinstance(data, bytes | bytearray):
        raise _not_binary(file)
    return bytes(data)


def _not_binary(file: Any) -> InvalidInputError:
    return InvalidInputError(
        f"{name_of(file)!r} holds text; expected a binary file; "
        'open it with "rb" or "wb", or pass its name'
    )


def _read(path: str, file: BinaryIO) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with zipfile.ZipFile(file) as archive:
            if not _is_stored(file, archive):
                raise _broken(path, "packed otherwise than by save()")
            header = json.loads(archive.read(_HEADER))
            if not isinstance(header, dict) or header.pop("format", None) != _FORMAT:
                raise _broken(path, "no model of erasable")
            if header.pop("version", None) != _VERSION:
                raise _broken(path, f"of another version than {_VERSION}")
            state = header.pop("state")
            unread = dict.fromkeys(range(len(archive.infolist()) - 1))
            state = _from_json(state, archive, unread)
            whole = _holds_nothing_else(file, archive) and not unread
    except (ArtifactError, MemoryError):
        raise
    except Exception:  # A damaged zip can fail in any way: struct, zlib, seek, JSON, NumPy.
        raise _broken(path, "damaged, or no model of erasable") from None
    if not (isinstance(state, dict) and whole):
        raise _broken(path, "damaged")
    return header, state


def _as_path(path: Place) -> Path:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or "\0" in name:
        what = "holds a null character" if isinstance(name, str) else f"is a {type(path).__name__}"
        raise InvalidInputError(
            f"path {what}; expected a string, a pathlib.Path or a binary file; "
            "pass the name of a file"
        )
    return Path(name)


def _broken(path: str, what: str) -> ArtifactError:
    return ArtifactError(
        f"{path!r} is {what}; expected a file written by save(); "
        "take it from a backup, or fit and save again"
    )


def _not_read(path: Path, error: OSError) -> ArtifactFileError:
    if path.is_dir():
        told = "is a folder; expected a file written by save(); add the name of the file"
    elif isinstance(error, FileNotFoundError):
        told = "is not there; expected a file written by save(); check the path"
    else:
        told = (
            f"cannot be read ({error.strerror}); expected a file written by save(); "
            "check the path and who may read it"
        )
    return _file_error(path, told, error)


def not_written(path: Path, error: OSError) -> ArtifactFileError:
    """Return the error of a file, or of what lies beside it, that cannot be written."""
    if path.is_dir():
        told = "is a folder; expected the name of a file; add one"
    elif isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        told = f"cannot be written; expected a folder {str(path.parent)!r}; make it first"
    else:
        told = (
            f"cannot be written ({error.strerror}); expected a place for a file; "
            "check the path, the free space and who may write there"
        )
    return _file_error(path, told, error)


def _file_error(path: Path, told: str, cause: OSError) -> ArtifactFileError:
    missing = isinstance(cause, FileNotFoundError)
    error = (ArtifactNotFoundError if missing else ArtifactFileError)(f"{str(path)!r} {told}")
    error.errno = cause.errno
    return error


def _is_stored(file: BinaryIO, archive: zipfile.ZipFile) -> bool:
    """Tell whether members are uncompressed, with different names, and do not overlap.

    Otherwise a small file could expand to a thousand times its size.
    """
    parts = archive.infolist()
    end = 0
    for part in parts:
        if part.compress_type != zipfile.ZIP_STORED or part.file_size != part.compress_size:
            return False
        if part.header_offset < end:
            return False
        end = part.header_offset + part.file_size
    size = file.seek(0, os.SEEK_END)
    return end <= size and len({part.filename for part in parts}) == len(parts)


def _holds_nothing_else(file: BinaryIO, archive: zipfile.ZipFile) -> bool:
    """Tell whether the file holds the model alone: no other member, and nothing before or after."""
    parts = archive.infolist()
    names = [_HEADER, *(_member(number) for number in range(len(parts) - 1))]
    file.seek(-_END_SIZE, os.SEEK_END)
    return (
        [part.filename for part in parts] == names
        and parts[0].header_offset == 0
        and file.read().startswith(_END)
        and not archive.comment
    )


def _add(archive: zipfile.ZipFile, name: str, data: bytes | memoryview) -> None:
    info = zipfile.ZipInfo(name, _WHEN)
    info.create_system = 3
    info.external_attr = 0o644 << 16
    with archive.open(info, "w", force_zip64=True) as member:
        member.write(data)


def _member(number: int) -> str:
    return f"arrays/{number:06d}.npy"


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # A folder cannot be opened on Windows.
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _to_json(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(value, Mapping):
        return {key: _to_json(value[key], arrays) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_to_json(item, arrays) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "OUT":
        return {_OBJECTS: value.reshape(-1).tolist(), "shape": list(value.shape)}
    arrays.append(np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C"))
    return {_ARRAY: len(arrays) - 1}


def _from_json(tree: Any, archive: zipfile.ZipFile, unread: dict[int, None]) -> Any:
    """Put arrays into their places, and each of those that are `unread` into one place only."""
    if isinstance(tree, list):
        return [_from_json(item, archive, unread) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if _ARRAY in tree:
        del unread[tree[_ARRAY]]  # KeyError where it is referred to twice
        return _read_array(archive.read(_member(tree[_ARRAY])))
    if _OBJECTS in tree:
        return of_objects(tree[_OBJECTS]).reshape(tree["shape"])
    return {key: _from_json(item, archive, unread) for key, item in tree.items()}


def _read_array(data: bytes) -> NDArray[Any]:
    """Read an array that is as long as its shape says; a wrong shape must not allocate memory."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("of another version than arrays are written in")
    shape, turned, dtype = np.lib.format.read_array_header_1_0(file)
    begin = file.tell()
    if turned or dtype.kind not in _KINDS or math.prod(shape) * dtype.itemsize + begin != len(data):
        raise ValueError("of another size than its shape, or not as save() writes it")
    return np.ndarray(shape, dtype, buffer=data, offset=begin).copy()
