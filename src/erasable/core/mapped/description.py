"""Description of a `MappedFile`, stored beside its arrays, and of a change of it.

After the arrays their file holds a hash of each of its blocks. The description holds one hash of
each `GROUP` of these, so that a change reads and writes only the hashes near the blocks that it
changes.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any

from erasable.core.errors import ErasableError
from erasable.core.mapped.disk import Files, stat_of
from erasable.core.mapped.memory import BLOCK, change_file, sole_use

__all__ = [
    "Description",
    "PreparedChange",
    "StaleError",
    "changed_hashes",
    "check_blocks",
    "hash_of",
    "hashes_of",
    "opened",
    "signature_of",
    "write",
]

_VERSION = sys.modules["erasable"].__version__  # files of another version may not fit its classes
_FORMAT = [4, _VERSION]
_EARLIER = [3, _VERSION]  # an index of ids with one part
HASH = 16  # bytes
GROUP = 256  # blocks whose hashes have a hash
ARRAYS, NOW, CHANGE = "arrays", "now", "change"


class StaleError(ErasableError):
    """A file of arrays is missing, damaged, or belongs to something else: it is made again."""


@dataclass(slots=True)
class Description:
    """The parts of a file besides its arrays."""

    label: str
    tree: Any  # see `take_apart`
    slots: list[list[int]]  # [offset, size] of each array
    size: int  # of the arrays, a multiple of a page
    hashes: bytes  # of groups of hashes of blocks, one after the other
    # Of the file, when its blocks were last checked against their hashes.
    signature: list[int] | None = None

    def as_bytes(self, secret: bytes) -> bytes:
        """Pack it, under a hash keyed by the secret."""
        packed = json.dumps({"tree": self.tree, "slots": self.slots, "size": self.size}).encode()
        return _closed(self.label, self.signature, packed, self.hashes, secret)

    @classmethod
    def of_bytes(cls, data: bytes, secret: bytes) -> Description:
        """Unpack it; raise StaleError if it is damaged, or was written without the secret."""
        head, packed, hashes = opened(data, secret)
        return cls(head["label"], hashes=hashes, signature=head["signature"], **json.loads(packed))


def _closed(
    label: str, signature: list[int] | None, packed: bytes, hashes: bytes, secret: bytes
) -> bytes:
    head = {"format": _FORMAT, "label": label, "signature": signature, "packed": len(packed)}
    data = json.dumps(head).encode() + b"\n" + packed + hashes
    return blake2b(data, digest_size=HASH, key=secret).hexdigest().encode() + b"\n" + data


def opened(data: bytes, secret: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    """Return the head of a description, its other fields still packed, and the hashes."""
    told, _, body = data.partition(b"\n")
    expected = blake2b(body, digest_size=HASH, key=secret).hexdigest().encode()
    if not compare_digest(told, expected):
        raise StaleError("it is damaged")
    first, _, rest = body.partition(b"\n")
    head = json.loads(first)
    if head["format"] not in (_FORMAT, _EARLIER):
        raise StaleError("it is of another version")
    return head, rest[: head["packed"]], rest[head["packed"] :]


@dataclass(slots=True)
class PreparedChange:
    """A prepared change; its file ends with a hash keyed by the secret."""

    begin: str
    to: str
    described: bytes
    runs: list[tuple[int, memoryview]]

    @classmethod
    def read(cls, files: Files, key: str, secret: bytes) -> PreparedChange | None:
        """Read it; None if it is absent, incomplete, or made without the secret."""
        try:
            data = memoryview(files.path(f"{key}/{CHANGE}").read_bytes())
        except FileNotFoundError:
            return None
        body, told = data[:-HASH], data[-HASH:]
        expected = blake2b(body, digest_size=HASH, key=secret).digest()
        if not compare_digest(bytes(told), expected):
            return None
        at = 8 + int.from_bytes(body[:8], "little")
        head = json.loads(bytes(body[8:at]))
        described = bytes(body[at : at + head["now"]])
        at += head["now"]
        runs = []
        for offset, size in head["runs"]:
            runs.append((offset, body[at : at + size]))
            at += size
        return cls(head["from"], head["to"], described, runs)

    def carry_out(self, files: Files, key: str, secret: bytes) -> None:
        """Write the change; if it is interrupted, it can be read and written again.

        If the arrays have changed since they were last checked against their hashes, no signature
        is written: the next `open` checks the whole file.
        """
        with sole_use(files.path(f"{key}/{ARRAYS}")) as own:
            head, packed, hashes = opened(self.described, secret)
            before = opened(files.path(f"{key}/{NOW}").read_bytes(), secret)[0]
            whole = before["signature"] == signature_of(files, key)
            if self.runs:
                change_file(files, f"{key}/{ARRAYS}", self.runs, own)
            signature = signature_of(files, key) if whole else None
            signed = _closed(head["label"], signature, packed, hashes, secret)
            write(files, f"{key}/{NOW}", signed)
        files.remove(f"{key}/{CHANGE}")


def write(files: Files, key: str, data: bytes) -> None:
    """Write a whole file."""
    with files.writing(key) as append:
        append(data)


def signature_of(files: Files, key: str) -> list[int]:
    """Return `stat_of` the arrays of a file; nothing if it cannot be read."""
    try:
        return list(stat_of(files.path(f"{key}/{ARRAYS}")))
    except OSError:
        return []


def hash_of(data: bytes | bytearray | memoryview) -> bytes:
    """Return the hash of a block, or of a group of hashes."""
    return blake2b(data, digest_size=HASH).digest()


def hashes_of(data: bytes | bytearray | memoryview, size: int = BLOCK) -> bytes:
    """Return the hashes of pieces of some data, one after the other."""
    return b"".join([hash_of(data[at : at + size]) for at in range(0, len(data), size)])


def changed_hashes(
    now: Description, path: Path, changed: Mapping[int, bytes], size: int
) -> tuple[list[tuple[int, memoryview]], bytes]:
    """Return the runs to write into the file at `path`, and hashes of groups, after a change.

    `changed` are hashes of blocks that change or are new; `size` is that of the arrays after the
    change. A group that was damaged keeps a hash that it does not have.
    """
    before, after = -(-now.size // BLOCK), -(-size // BLOCK)
    touched = {block // GROUP for block in changed}
    if size != now.size:  # they are elsewhere
        touched.update(range(-(-after // GROUP)))
    own: dict[int, list[int]] = {group: [] for group in sorted(touched)}
    for block in changed:
        own[block // GROUP].append(block)
    groups = bytearray(now.hashes)
    groups.extend(bytes(HASH * -(-after // GROUP) - len(groups)))
    runs: list[tuple[int, bytearray]] = []
    with open(path, "rb") as file:
        for group, blocks in own.items():
            first, at = group * GROUP, group * HASH
            file.seek(now.size + HASH * first)
            known = bytearray(file.read(HASH * max(0, min(GROUP, before - first))))
            whole = not known or hash_of(known) == groups[at : at + HASH]
            known.extend(bytes(HASH * min(GROUP, after - first) - len(known)))
            for block in blocks:
                place = HASH * (block - first)
                known[place : place + HASH] = changed[block]
            if whole:
                groups[at : at + HASH] = hash_of(known)
            if runs and runs[-1][0] + len(runs[-1][1]) == size + HASH * first:
                runs[-1][1].extend(known)
            else:
                runs.append((size + HASH * first, known))
    return [(offset, memoryview(each)) for offset, each in runs], bytes(groups)


def check_blocks(files: Files, key: str, now: Description, secret: bytes) -> None:
    """Check every block against its hash, if the file may have been changed by others."""
    try:
        with open(files.path(f"{key}/{ARRAYS}"), "rb") as file:
            sizes = [min(BLOCK, now.size - at) for at in range(0, now.size, BLOCK)]
            hashes = b"".join([hash_of(file.read(size)) for size in sizes])
            kept = file.read(len(hashes) + 1)
    except OSError:
        raise StaleError("it cannot be read") from None
    if len(kept) < len(hashes):
        raise StaleError("it is truncated")
    if kept != hashes or hashes_of(hashes, HASH * GROUP) != now.hashes:
        raise StaleError("it is damaged")
    now.signature = signature_of(files, key)
    with contextlib.suppress(OSError):
        write(files, f"{key}/{NOW}", now.as_bytes(secret))
