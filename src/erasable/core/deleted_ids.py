"""Hashes of deleted ids in a file, for as long as a source still has the records.

A hash is on the disk before a deletion returns, and is never removed. The hashes are keyed by
random seeds in the same file: who has the file and a list of ids can tell which were deleted.
"""

from __future__ import annotations

import os
import secrets
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.artifact import sync_folder
from erasable.core.errors import InvalidInputError
from erasable.core.tape import Tape

_TITLE = "erasable: ids that were deleted"
_BYTES = 16


class DeletedIds:
    """A file that grows by a line for each id; made with the first deletion."""

    def __init__(self, path: Any) -> None:
        self._path = Path(os.fspath(path))
        try:
            data = self._path.read_bytes() if self._path.exists() else b""
        except OSError as error:
            raise InvalidInputError(
                f"the deleted ids cannot be read from {self._path} ({type(error).__name__}); "
                "expected a file that was made here, or none yet"
            ) from None
        whole = data[: data.rfind(b"\n") + 1]  # drop a line that a crash has cut
        title, *lines = whole.decode("ascii", "replace").splitlines() or [""]
        words = title.removeprefix(_TITLE).split()
        if whole and not (title.startswith(_TITLE) and len(words) == 2):
            raise InvalidInputError(
                f"{self._path} is no list of deleted ids; expected a file that was made here, or "
                "none yet"
            )
        self._size = len(whole)
        try:
            seeds = [int(word, 16) for word in words]
            found = [bytes.fromhex(line) for line in lines]
        except ValueError:
            found = [b""]
        if any(len(key) != _BYTES for key in found):
            raise InvalidInputError(
                f"{self._path} is damaged; expected a line of {2 * _BYTES} digits for each id"
            )
        self._tapes = [Tape(seed) for seed in seeds or [secrets.randbits(64) for _ in range(2)]]
        self._keys = np.frombuffer(b"".join(found), ">u8").astype(np.uint64).reshape(-1, 2)
        self._waiting: list[NDArray[np.uint64]] = []

    def among(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Tell which ids are in the file."""
        found = np.zeros(len(ids), dtype=np.bool_)
        if not len(self._keys) or not len(ids):
            return found
        known = {tuple(pair) for pair in self._keys.tolist()}
        keys = self._tapes[0].record_keys(ids)
        at = np.flatnonzero(np.isin(keys, self._keys[:, 0]))
        others = self._tapes[1].record_keys(ids[at])
        pairs = zip(keys[at].tolist(), others.tolist(), strict=True)
        found[at] = [pair in known for pair in pairs]
        return found

    def add(self, ids: NDArray[Any]) -> None:
        """Write keys of ids to the disk; what fails is not raised, but written with the next."""
        if not len(ids):
            return
        self._waiting.append(np.column_stack([tape.record_keys(ids) for tape in self._tapes]))
        keys = np.concatenate(self._waiting)
        text = "".join(f"{one:016x}{other:016x}\n" for one, other in keys.tolist())
        if not self._size:
            text = " ".join([_TITLE, *(f"{tape.seed:016x}" for tape in self._tapes)]) + "\n" + text
        try:
            self._append(text.encode())
        except OSError as error:
            warnings.warn(
                f"deleted ids could not be written to {self._path} ({type(error).__name__}); "
                "this is done with the next deletion",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        self._waiting.clear()
        self._keys = np.concatenate([self._keys, keys])

    def _append(self, data: bytes) -> None:
        with open(self._path, "r+b" if self._path.exists() else "xb") as file:
            file.truncate(self._size)  # drop an append that was not finished
            file.seek(self._size)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if not self._size:
            sync_folder(self._path.parent)
        self._size += len(data)
