"""Accelerators of the models of a workspace: deletions that do not read all records.

Each is a folder of mapped files (see `erasable.core.mapped`), named after the artifact of its
model's version: ``accelerators/07f3-2c...`` beside ``artifacts/models/risk/07f3-2c...``. It holds
records, or what was derived from them, and is purged with the version. It can be made again.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from erasable.core.errors import AcceleratorWarning
from erasable.core.mapped.disk import PARTIAL
from erasable.workspace.store.artifacts import is_made_key, owner_of
from erasable.workspace.store.disk import Disk

FOLDER = "accelerators"


def folder_of(key: str) -> str:
    """Return the folder of the accelerator of an artifact."""
    return f"{FOLDER}/{key.rpartition('/')[2]}"


def folders(disk: Disk) -> dict[str, list[str]]:
    """Return the folders of all accelerators, and which files in each are not finished."""
    root = disk.path(FOLDER)
    found = sorted(os.listdir(root)) if root.is_dir() else []
    return {
        f"{FOLDER}/{name}": [
            key for key in disk.keys(f"{FOLDER}/{name}") if key.startswith(PARTIAL)
        ]
        for name in found
        if is_made_key(name)
    }


def secret_of(keys: Any) -> bytes:
    """Return the secret by which a workspace recognises its own accelerators, from its keys."""
    secret: str = keys.token("accelerator-secret/exact", "all")
    return secret.encode()


def settle_all(
    disk: Disk,
    found: Mapping[str, Sequence[str]],
    current: Set[str],
    kept: Set[str],
    others: Set[str],
    keys: Callable[[], Any],
) -> None:
    """Bring accelerators to the artifacts that the ledger refers to, and remove all others.

    Warn with an AcceleratorWarning of those that are in a model's place and cannot be used.

    `found` comes from `folders`, listed before `kept`, the keys that the ledger refers to, and
    `others`, the owners at work (see `owner_of`), were read. `current` are the keys of models
    as they are, with None for versions without an artifact. Accelerators of `others` stay.
    """
    if not found:
        return
    from erasable.core.mapped.description import NOW
    from erasable.core.mapped.pages import Labels, recover

    secret = secret_of(keys())
    places = {folder_of(key): key for key in current if key}
    unusable = []
    for folder, unfinished in found.items():
        for name in unfinished:
            if owner_of(name) not in others:
                disk.remove(f"{folder}/{name}")
        is_whole = disk.path(f"{folder}/{NOW}").exists()  # or its making was cut off
        known = Labels.read(disk, folder, secret)
        now, to = known.now, known.to
        makers = {owner_of(folder), *(owner_of(each) for each in (now, to) if each)}
        if to is not None and to in current:
            now = to
        elif not makers.isdisjoint(others) or {now, to} & (kept - current):
            continue
        settled = False
        try:
            settled = (
                now is not None and now in current and recover(disk, folder, now, secret, known)
            )
        except OSError:  # no room is left for the change
            is_whole = False
        if now is None or not settled:
            disk.remove_folder(folder)
        elif folder != folder_of(now):
            if disk.path(folder_of(now)).exists():
                disk.remove_folder(folder_of(now))
            disk.rename(folder, folder_of(now))
        else:
            continue
        if folder in places and is_whole:
            unusable.append(places[folder].split("/")[-2])
    if unusable:
        one = len(unusable) == 1
        warnings.warn(
            f"the accelerator{'' if one else 's'} of {', '.join(map(repr, sorted(unusable)))} "
            f"{'was' if one else 'were'} damaged, or of another version of the model: what was "
            "there is removed, and is made again at the next deletion",
            AcceleratorWarning,
            stacklevel=2,
        )
