"""Delete from a model without reading its records: see `erasable.workspace.store.accelerators`.

The law kept here: an accelerator belongs to one artifact of one model. What is prepared for the
next one takes its place when the ledger refers to that (`Context.clean`), and not before.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from erasable.core.estimator import Erasable
from erasable.core.kept import UnkeptError
from erasable.core.mapped.beside import make_ready
from erasable.core.mapped.pages import MappedFile, StaleError
from erasable.workspace.context import Context
from erasable.workspace.models.catalogue import Version
from erasable.workspace.models.training import software
from erasable.workspace.store.accelerators import folder_of, secret_of
from erasable.workspace.store.artifacts import LocalStore


def keep(context: Context, key: str, model: Erasable, file: MappedFile | None = None) -> None:
    """Write the accelerator of the artifact with a key, where the store is a folder.

    It is left out for a model that learns again of all records, and where the disk is full: then
    the one that the model was opened from goes with its version. `file` is the file that the model
    was opened from, of which parts have changed.
    """
    if not isinstance(context.store, LocalStore):
        return
    try:
        if file is not None:
            file.prepare(model, key)
            return
        ready: Any = make_ready(model)
        MappedFile.make(context.disk, folder_of(key), key, ready, secret_of(context.keys))
    except (UnkeptError, OSError):
        with suppress(OSError):  # what is left of it is removed with what nothing refers to
            context.disk.remove_folder(folder_of(key))


def is_there(context: Context, version: Version) -> bool:
    """Tell whether a version seems to have an accelerator, without reading it."""
    return version.key is not None and context.disk.path(folder_of(version.key)).is_dir()


def find(context: Context, version: Version) -> tuple[MappedFile, Erasable] | str:
    """Return the accelerator of a version, and the model with its records; or why there is none."""
    if not isinstance(context.store, LocalStore) or version.key is None:
        return "it is kept in folders only"
    if version.software != software():
        return "other versions of software made it"
    folder, secret = folder_of(version.key), secret_of(context.keys)
    try:
        file, model = MappedFile.open(context.disk, folder, version.key, secret)
        model.get_params()  # that it was made with, of which a newer class may have more
        model._attached().of(model)
    except StaleError as error:
        return str(error)
    except AttributeError:
        return "another version of its class made it"
    return file, model
