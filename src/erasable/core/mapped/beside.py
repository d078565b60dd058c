"""Folder beside a model's file, with its records and its accelerator."""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from erasable.core.artifact import not_written, read_header
from erasable.core.errors import ArtifactError, ErasableError, InvalidInputError
from erasable.core.mapped.description import ARRAYS, CHANGE, NOW
from erasable.core.mapped.disk import PARTIAL, Folder
from erasable.core.mapped.pages import MappedFile, StaleError, recover
from erasable.core.params import class_for
from erasable.core.persistent import UnsavableError
from erasable.core.trust import reading

if TYPE_CHECKING:
    from erasable.core.model import Model

_SUFFIX, _NEXT = ".records", ".next"
_MADE = (ARRAYS, NOW, CHANGE)
_OPEN: WeakKeyDictionary[Any, tuple[str, MappedFile]] = WeakKeyDictionary()


def refuse_others(path: Any, *, records: bool) -> None:
    """Raise ArtifactError for a place of records that `save` did not make and would remove.

    It is a symbolic link or, where `records` are to be saved, not a folder that `save` made.
    """
    if not isinstance(path, str | os.PathLike):
        return
    files, key = _place(path)
    _refuse_links(files, key)
    for each in (key, key + _NEXT):
        place = files.path(each)
        if records and os.path.exists(place) and not _is_made(place):
            raise ArtifactError(
                f"{str(place)!r} is not what save(path, records=True) wrote; expected nothing "
                "there, or that; move it, or save the model elsewhere"
            )


def save_records(model: Model, path: Any) -> None:
    """Prepare the records of a model that is about to be saved under `path`.

    Of a model that was loaded from there, only changes are written. The former files stay until
    `recover_records`: a process that dies in between has saved nothing. Raise InvalidInputError if
    `path` is an open file, DetachedError without records, ArtifactFileError if the disk fails.
    """
    files, key = _place(path)
    with _disk_errors(path):
        try:
            model = make_ready(model)
        except UnsavableError:
            _make_of_records(files, key, model)
            return
        label = label_of(model)
        place, file = _OPEN.get(model, ("", None))
        try:
            if file is not None and place == _name(path) and file.is_current():
                file.prepare(model, label)
            else:
                MappedFile.make(files, key + _NEXT, label, model)
        except UnsavableError:
            _make_of_records(files, key, model)


def _make_of_records(files: Folder, key: str, model: Model) -> None:
    """Keep only the live records, to which the model is attached when it is loaded."""
    held = model._attached()
    remote = held.records.is_remote
    records = held.records.in_memory(held.live_rows()) if remote else held.copy_records()
    MappedFile.make(files, key + _NEXT, label_of(model), records)


def recover_records(model: Model, path: Any) -> None:
    """Put the prepared files in place, once the model's file is there.

    Raise ArtifactFileError if the disk fails; the prepared files stay, and `load_with_records` goes
    on.
    """
    files, key = _place(path)
    with _disk_errors(path):
        _recover(files, key, label_of(model))
    _OPEN.pop(model, None)


def drop_records(model: Model, path: Any) -> None:
    """Remove the records of an earlier model, when a model is saved without its own."""
    if isinstance(path, str | os.PathLike):
        files, key = _place(path)
        for each in (key, key + _NEXT):
            if _is_made(files.path(each)):
                files.remove_folder(each)


def load_with_records(cls: type[Any], path: Any, *, trusted: bool) -> Any:
    """Load a model with its records; raise ArtifactError if these are absent or damaged."""
    files, key = _place(path)
    _refuse_links(files, key)
    header = read_header(path)
    made = class_for(cls, header)
    label = _label(header["digest"], header.get("records"))
    try:
        if not _recover(files, key, label, removes=False):
            raise StaleError("they are missing, or those of another model or version of erasable")
        with reading(trusted, with_records=False):
            file, kept = MappedFile.open(files, key, label)
        if type(kept) is made:
            kept.get_params()  # of the fit; a newer class may have more
    except (StaleError, AttributeError, OSError) as error:
        raise ArtifactError(
            f"the records that were saved with {_name(path)!r} cannot be used: {error}; expected "
            f"the folder {files.path(key).name!r} beside it as save(path, records=True) wrote it; "
            "load it with its records: load(path, records)"
        ) from None
    if type(kept) is not made:
        return cls.load(path, kept, vouched=True, trusted=trusted)
    kept._attached().of(kept)
    _OPEN[kept] = (_name(path), file)
    return kept


def make_ready(model: Model) -> Model:
    """Compute all that deletions need, and let a model check its file.

    Return the model, or a copy if another model still holds records that it has deleted; raise
    UnsavableError if these are on a cluster, where none are copied.
    """
    model._refuse_if_owned()
    held = model._attached()
    if held.n_live < held.records.n_rows - np.count_nonzero(held.records._erased):
        if held.records.is_remote:
            raise UnsavableError(
                "another model holds records on a cluster that this one has deleted"
            )
        model = copy.deepcopy(model)
        held = model._attached()
    model._make_ready()
    model.digest()
    model._info.written_values(held)
    return model


def label_of(model: Model) -> str:
    """Return the label of a model and the values of its records."""
    return _label(model.digest(), model._info.written_values(model._held))


def _refuse_links(files: Folder, key: str) -> None:
    for each in (key, key + _NEXT):
        for name in _MADE:
            files.path(f"{each}/{name}")


def _is_made(place: Path) -> bool:
    """Return whether a folder holds only files that `save` has made."""
    return os.path.isdir(place) and all(
        name in _MADE or name.startswith(PARTIAL) for name in os.listdir(place)
    )


def _recover(files: Folder, key: str, label: str, *, removes: bool = True) -> bool:
    """Call `recover`; a reader removes nothing, as these may be the only copies."""
    if recover(files, key + _NEXT, label, removes=removes):
        files.remove_folder(key)
        files.rename(key + _NEXT, key)
    return recover(files, key, label, removes=removes)


def _label(digest: str, values: Any) -> str:
    return f"{digest} {json.dumps(values, sort_keys=True)}"


def _place(path: Any) -> tuple[Folder, str]:
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(
            "records=True was passed with a file that is open; expected a path, beside which "
            "there is room for a folder"
        )
    whole = Path(_name(path))
    return Folder(whole.parent), f"{whole.name}{_SUFFIX}"


@contextlib.contextmanager
def _disk_errors(path: Any) -> Iterator[None]:
    """Turn an OSError in the block into the error of a file that cannot be written."""
    try:
        yield
    except ErasableError:
        raise
    except OSError as error:
        raise not_written(Path(_name(path)), error) from None


def _name(path: Any) -> str:
    return str(os.fspath(path))
