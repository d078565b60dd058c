"""Places of files: a folder, or a prefix of an object store; and the search of all files there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

from erasable.workspace.data import files
from erasable.workspace.targets import residue
from erasable.workspace.targets.blobs import LocalStore, Store
from erasable.workspace.targets.marks import Marks
from erasable.workspace.targets.remote_blobs import RemoteStore, S3Store
from erasable.workspace.targets.residue import Found


def opened_store(place: str) -> Store:
    """Return the files of a path or URL; nothing is read yet but whether it is there."""
    if place.startswith("file://"):
        place = place.removeprefix("file://")
    if "://" not in place:
        return LocalStore(Path(place))
    shown = files.store_place(place)
    files.open_store(shown)  # refuses one without a driver
    import fsspec

    fs, root = fsspec.core.url_to_fs(shown, use_listings_cache=False, skip_instance_cache=True)
    if shown.partition("://")[0].lower() in ("s3", "s3a"):
        return S3Store(fs, root, shown)
    return RemoteStore(fs, root, shown)


def linked(stores: Sequence[Store]) -> list[str]:
    """Return a reason if files have other names, under which the old rows stay.

    Delta gives a commit another name for a moment.
    """
    blobs = (blob for store in stores for blob in store.blobs())
    is_any = any(blob.n_names > 1 and not blob.name.endswith(".json") for blob in blobs)
    return ["files have other names (hard links)"] if is_any else []


def search(stores: Sequence[Store], marks: Marks, living: Marks) -> Found:
    """Look for values in all files of stores, and in their names."""
    with ExitStack() as stack:
        roots: dict[Path, Path] = {}
        for store in stores:
            roots |= stack.enter_context(store.paths())
        found = residue.search(roots, marks, living, roots)
    names = (os.fsencode(unquote(name)) + b"\0" for store in stores for name in store.names())
    if n := marks.count(residue.marks_among(names, marks.every())):
        found.n_left += n
        found.where.append("the name of a file or folder")
    return found
