"""Places of files: a folder, or a prefix of an object store; and the search of all files there."""

from __future__ import annotations

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


def search(store: Store, marks: Marks, living: Marks) -> Found:
    """Look for values in all files of a store, and in their names."""
    with store.paths() as paths:
        found = residue.search(paths, marks, living)
    wanted = frozenset(marks.every())
    for blob in store.blobs():
        if there := residue.marks_among([unquote(blob.name).encode()], wanted):
            found.n_left += marks.count(there)
            found.where.append("the name of a file")
    return found
