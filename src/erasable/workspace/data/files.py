"""Paths and URLs of data: their kinds, object stores, and errors of missing ones."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs

from erasable.core.errors import SourceError

_PROTOCOLS = frozenset({"abfs", "abfss", "az", "gcs", "gs", "memory", "oci", "oss", "s3", "s3a"})


def is_store(text: str) -> bool:
    """Tell whether a URL names an object store rather than a database."""
    return text.partition("://")[0].lower() in _PROTOCOLS


def store_place(text: str) -> str:
    """Return a URL to keep; refuse one that seems to hold a credential."""
    protocol, _, path = text.partition("://")
    if "?" in text or "#" in text or ":" in path.partition("@")[0] or not path.strip("/"):
        raise SourceError(
            f"the URL of the {protocol[:10]} store cannot be kept; expected "
            "PROTOCOL://BUCKET/PATH without a password, key or parameters; put those where the "
            "store's driver of fsspec looks for them, as in environment variables"
        )
    return text.rstrip("/")


def open_store(place: str) -> tuple[pa.fs.FileSystem, str]:
    """Return the store of a URL, and the path within it."""
    protocol = urlsplit(place).scheme
    try:
        import fsspec

        store, path = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError):
        raise SourceError(
            f"there is no driver for {protocol!r}; expected fsspec, and what it needs for that "
            "store; install them, as with `pip install 'erasable[objects]' s3fs`"
        ) from None
    except Exception as error:  # of many drivers, each with errors of its own
        raise store_unreachable(place, error) from None
    return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(store)), path


def store_unreachable(place: str, error: Exception) -> SourceError:
    """Return the error for a store that does not answer, without its own message."""
    return SourceError(
        f"the store at {place!r} cannot be read ({type(error).__name__}); expected one that "
        "answers and that you may read; check its address, and the credentials of its driver"
    )


def is_folder(path: Path) -> bool:
    """Tell whether a path is that of a folder; an invalid path is not."""
    try:
        return path.is_dir()
    except OSError:  # a name too long
        return False


def check_there(path: Path) -> None:
    """Refuse a path at which there is no file or folder."""
    try:
        there = path.exists()
    except OSError:
        there = False
    if not there:
        raise SourceError(f"{str(path)!r} is not there; expected a file or folder")
