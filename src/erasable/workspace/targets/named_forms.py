"""Forms of short values: the bytes by which stores write them next to the name of their field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple


def names_of(field: str) -> frozenset[str]:
    """Return the names by which files have a field: its path, and the last part of it.

    >>> sorted(names_of("metadata.user"))
    ['metadata.user', 'user']
    """
    return frozenset({field, field.rpartition(".")[2]})


def forms_next_to(field: str, value: int | str) -> Iterator[bytes]:
    """Return how JSON, CBOR, MessagePack and pickle write a value after the name of its field.

    >>> b'"user":7}' in set(forms_next_to("user", 7)), b'"user":7' in set(forms_next_to("user", 7))
    (True, False)
    """
    for name in names_of(field):
        written = json.dumps(value)
        ends = ("",) if isinstance(value, str) else (",", "}", " ", "\n")
        yield from (f'"{name}":{gap}{written}{end}'.encode() for gap in ("", " ") for end in ends)
        data = name.encode()
        for memo in (b"", b"\x94"):
            yield data + memo + _pickled(value)
        if isinstance(value, str):
            yield from (of.text(data) + of.text(value.encode()) for of in (_CBOR, _MESSAGE_PACK))
        elif value >= 0:
            yield from (of.text(data) + of.number(value) for of in (_CBOR, _MESSAGE_PACK))


class _Packing(NamedTuple):
    """How a format writes texts and numbers, with their sizes before them."""

    of_text: int  # added to the length of a text, which is in the same byte
    longest: int  # length for which this is so
    of_byte: bytes  # before the length of a longer text
    largest: int  # number that is written as it is
    of_sizes: tuple[bytes, ...]  # before numbers of one, two and four bytes

    def text(self, data: bytes) -> bytes:
        n = len(data)
        start = bytes([self.of_text + n]) if n <= self.longest else self.of_byte + bytes([n & 255])
        return start + data

    def number(self, value: int) -> bytes:
        if value <= self.largest:
            return bytes([value])
        at = next(at for at, size in enumerate(_SIZES) if value < 1 << 8 * size)
        return self.of_sizes[at] + value.to_bytes(_SIZES[at], "big")


_SIZES = (1, 2, 4)
_CBOR = _Packing(0x60, 23, b"\x78", 23, (b"\x18", b"\x19", b"\x1a"))
_MESSAGE_PACK = _Packing(0xA0, 31, b"\xd9", 127, (b"\xcc", b"\xcd", b"\xce"))


def _pickled(value: int | str) -> bytes:
    if isinstance(value, str):
        data = value.encode()
        return b"\x8c" + bytes([len(data)]) + data
    for code, size in ((b"K", 1), (b"M", 2)):
        if 0 <= value < 1 << 8 * size:
            return code + value.to_bytes(size, "little")
    return b"J" + value.to_bytes(4, "little", signed=True)
