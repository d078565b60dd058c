"""What is written beside the arrays of a `MappedFile`: a description, and a change of it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Any

from erasable.core.errors import ErasableError
from erasable.core.mapped.disk import Files

__all__ = ["Change", "Description", "StaleError", "check_blocks", "opened", "signature_of", "write"]

_FORMAT = [
    2,
    sys.modules["erasable"].__version__,
]  # what another version has written, its classes may not know
BLOCK = 2**14
HASH = 16  # bytes
ARRAYS, NOW, CHANGE = "arrays", "now", "change"


class StaleError(ErasableError):
    """A file of arrays is missing, damaged, or belongs to something else: it is made again."""


@dataclass(slots=True)
class Description:
    """What is kept of a file beside its arrays.

    Attributes
    ----------
    label : str
    tree : plain values
        See `take_apart`.
    slots : list of [offset, size]
        Where each array lies.
    size : int
        Of the file, a multiple of a page.
    hashes : bytes
        Of its blocks, one after the other.
    signature : list of int or None
        What the system says of the file, since its blocks were last held against their hashes.
    """

    label: str
    tree: Any
    slots: list[list[int]]
    size: int
    hashes: bytes
    signature: list[int] | None = None

    def as_bytes(self, secret: bytes) -> bytes:
        """Pack it, under a hash that takes the secret to make."""
        packed = json.dumps({"tree": self.tree, "slots": self.slots, "size": self.size}).encode()
        return _closed(self.label, self.signature, packed, self.hashes, secret)

    @classmethod
    def of_bytes(cls, data: bytes, secret: bytes) -> Description:
        """Unpack it; what is damaged, or was written without the secret, is a StaleError."""
        head, packed, hashes = opened(data, secret)
        return cls(head["label"], hashes=hashes, signature=head["signature"], **json.loads(packed))


def _closed(
    label: str, signature: list[int] | None, packed: bytes, hashes: bytes, secret: bytes
) -> bytes:
    head = {"format": _FORMAT, "label": label, "signature": signature, "packed": len(packed)}
    data = json.dumps(head).encode() + b"\n" + packed + hashes
    return blake2b(data, digest_size=HASH, key=secret).hexdigest().encode() + b"\n" + data


def opened(data: bytes, secret: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    """Return the head of a description, its other fields as they were packed, and the hashes."""
    told, _, body = data.partition(b"\n")
    expected = blake2b(body, digest_size=HASH, key=secret).hexdigest().encode()
    if not compare_digest(told, expected):
        raise StaleError("it is damaged")
    first, _, rest = body.partition(b"\n")
    head = json.loads(first)
    if head["format"] != _FORMAT:
        raise StaleError("it is of another version")
    return head, rest[: head["packed"]], rest[head["packed"] :]


@dataclass(slots=True)
class Change:
    """A change that was prepared."""

    begin: str
    to: str
    described: bytes
    runs: list[tuple[int, memoryview]]

    @classmethod
    def read(cls, files: Files, key: str) -> Change | None:
        """Read it; None where there is none, or not all of one."""
        try:
            data = memoryview(files.path(f"{key}/{CHANGE}").read_bytes())
        except FileNotFoundError:
            return None
        body, told = data[:-HASH], data[-HASH:]
        if len(data) < HASH or blake2b(body, digest_size=HASH).digest() != bytes(told):
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
        """Write it; from its first to its last step it can be read, and done again."""
        if self.runs:
            files.patch(f"{key}/{ARRAYS}", self.runs)
        head, packed, hashes = opened(self.described, secret)
        signed = _closed(head["label"], signature_of(files, key), packed, hashes, secret)
        write(files, f"{key}/{NOW}", signed)
        files.remove(f"{key}/{CHANGE}")


def write(files: Files, key: str, data: bytes) -> None:
    """Write a whole file."""
    with files.writing(key) as append:
        append(data)


def signature_of(files: Files, key: str) -> list[int]:
    """Return what changes when a file is written to, or another is put in its place."""
    try:
        told = os.stat(files.path(f"{key}/{ARRAYS}"))
    except OSError:
        return []
    return [told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_ino]


def check_blocks(files: Files, key: str, now: Description, secret: bytes) -> None:
    """Hold every block against its hash, where the file may have been changed behind our back."""
    try:
        n = 0
        with open(files.path(f"{key}/{ARRAYS}"), "rb") as file:
            while block := file.read(BLOCK):
                if blake2b(block, digest_size=HASH).digest() != now.hashes[n : n + HASH]:
                    raise StaleError("it is damaged")
                n += HASH
    except OSError:
        raise StaleError("it cannot be read") from None
    if n != len(now.hashes):
        raise StaleError("it is truncated")
    now.signature = signature_of(files, key)
    with contextlib.suppress(OSError):
        write(files, f"{key}/{NOW}", now.as_bytes(secret))
