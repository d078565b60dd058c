"""Kinds of targets: which class opens a place, by how its URL begins.

A package adds a kind by an entry point of the group ``erasable.targets``, whose name is how its
URLs begin, and which names a subclass of `erasable.workspace.targets.protocol.Target`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from sqlalchemy.dialects import registry
from sqlalchemy.exc import NoSuchModuleError

from erasable.core import errors  # InvalidParameterError is slow to import: when it is raised
from erasable.core._optional import needs
from erasable.core.errors import SourceError
from erasable.workspace.targets.protocol import RecordTarget, Settings, Target

GROUP = "erasable.targets"


class Opener(Protocol):
    """A class of targets."""

    def __call__(self, place: str, settings: Settings) -> Target:
        """Open a place; `place` is as the user wrote it, with credentials."""


_OWN = {
    "chroma": ("chroma", "ChromaTarget"),  # chroma:FOLDER#COLLECTION, or chroma+http://HOST#...
    "command": ("commands", "CommandTarget"),  # command:PROGRAM ARGUMENTS
    "delta": ("delta", "DeltaTarget"),  # delta:FOLDER
    "faiss": ("faiss", "FaissTarget"),  # faiss:FILE
    "iceberg": ("iceberg", "IcebergTarget"),  # iceberg:CATALOG#NAMESPACE.TABLE
    "lancedb": ("lance", "LanceTarget"),  # lancedb:FOLDER#TABLE
    "milvus": ("milvus", "MilvusTarget"),  # milvus:FILE#COLLECTION, or milvus+http://HOST#...
    "qdrant": ("qdrant", "QdrantTarget"),  # qdrant:FOLDER#COLLECTION, or qdrant+http://HOST#...
    "redis": ("redis", "RedisTarget"),  # redis://HOST:PORT/DATABASE#PATTERN
    "rediss": ("redis", "RedisTarget"),  # the same with encryption
}
_FILES = ("files", "FilesTarget")  # a folder, or a prefix in an object store
_DATABASES = ("databases", "DatabaseTarget")  # what SQLAlchemy has a dialect for


def kind_of(place: str) -> str:
    """Return the kind of a place.

    >>> kind_of("chroma:index#docs"), kind_of("postgresql+psycopg://ann@db/shop"), kind_of("lake/")
    ('chroma', 'postgresql', 'files')
    """
    head, colon, _ = place.partition(":")
    scheme = head.partition("+")[0].lower()
    if not colon or len(scheme) < 2 or "/" in head or scheme in _STORES:
        return "files"
    return scheme


_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "file", "memory"}


def opened(place: str, settings: Settings) -> Target:
    """Open a place, by the class of its kind."""
    target = _opener(place)(place, settings)
    if isinstance(target, RecordTarget) and settings.action != "delete":
        target.close()
        raise errors.InvalidParameterError(
            f"the action is {settings.action!r} for {target.shown!r}; expected delete: records of "
            "this kind of place cannot be overwritten"
        )
    return target


def _opener(place: str) -> Opener:
    kind = kind_of(place)
    if kind == "files":
        return _own(*_FILES)
    if kind in _OWN:
        return _own(*_OWN[kind])
    if added := sorted({each.value: each for each in entry_points(group=GROUP, name=kind)}.items()):
        return _added(kind, added)
    if "://" in place and _has_dialect(kind):
        return _own(*_DATABASES)
    raise SourceError(
        f"nothing opens {kind[:40]!r}: places; expected a folder, a URL of a database, or one of "
        f"{', '.join(f'{each}:' for each in _OWN)}; a package adds others by entry points of the "
        f"group {GROUP!r}"
    )


def _has_dialect(kind: str) -> bool:
    try:
        registry.load(kind)
    except NoSuchModuleError:
        return False
    return True


def _added(kind: str, found: Sequence[tuple[str, EntryPoint]]) -> Opener:
    """Load the class that a package adds; SourceError where it is broken, or no target."""
    (value, entry), *others = found
    if others:
        names = ", ".join(repr(each) for each, _ in found)
        raise SourceError(
            f"{len(found)} packages open {kind[:40]!r}: {names}; expected one; uninstall the others"
        )
    try:
        opener: Opener = entry.load()
    except Exception as error:  # the package may raise any, when it is imported
        raise SourceError(
            f"{value!r}, which opens {kind[:40]!r}, could not be imported "
            f"({type(error).__name__}); expected a subclass of Target"
        ) from None
    is_target = isinstance(opener, type) and issubclass(opener, Target)
    missing = sorted(getattr(opener, "__abstractmethods__", ()))
    if not is_target or missing:
        came = f"without {', '.join(missing)}" if missing else f"a {type(opener).__name__}"
        raise SourceError(
            f"{value!r}, which opens {kind[:40]!r}, is {came}; expected a subclass of Target that "
            "has all of its methods"
        )
    return opener


def _own(module: str, name: str) -> Opener:
    with needs("targets", "a target of this kind"):
        found: Opener = getattr(import_module(f"erasable.workspace.targets.{module}"), name)
    return found
