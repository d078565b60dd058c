"""Compressed parts of files whose format is not known, wherever they begin."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from erasable.core._byte_kernels import add_counts, next_pair
from erasable.core._byte_search import packed_blocks
from erasable.workspace.targets.inspection import Inspection, Undecodable

_AT_ONCE = 1 << 22
_TRIED, _STEP = 64, 1 << 16  # bytes that are given to a decoder at first, and then
_FEWEST = 16  # bytes that a part becomes, at least: fewer come by chance
_LONGEST = 1 << 20  # bytes of a part that are sure to be seen as one
_MOST = 1 << 28  # bytes that a part may become
_BLOCK = 1 << 16
_FEWEST_RANDOM = 4_096  # bytes, of which it can be told
_ZSTD, _LZ4 = b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
_STARTS = re.compile(
    rb"\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|\x1f\x8b\x08|\x78[\x01\x5e\x9c\xda]", re.DOTALL
)
_PAIRS = np.zeros(1 << 16, dtype=np.bool_)  # with which those begin
_PAIRS[[0x28B5, 0x0422, 0x1F8B, 0x7801, 0x785E, 0x789C, 0x78DA]] = True


def look_for_frames(file: io.BufferedIOBase, inspection: Inspection) -> None:
    """Look at a file and at what is compressed in it; Undecodable where some was not decoded."""
    n_lost = n_noisy = n_seen = 0
    for window, n in _windows(file):
        known: list[tuple[int, int]] = []
        at, data = 0, np.frombuffer(window, dtype=np.uint8)
        inspection.look_at(data[max(n_seen - inspection.overlap, 0) :])
        n_seen = len(window) - n
        while (at := next_pair(data, at, n, _PAIRS)) >= 0:
            end = _look_at_frame(window, at, inspection) if _STARTS.match(window, at) else 0
            if end > 0:
                known.append((at, end))
            elif end < 0:
                n_lost += 1
            at = max(end, at + 1)
        for block in packed_blocks(window, n):
            inspection.look_at(block)
        n_noisy += n_random(window[:n], known)
    if n_lost or n_noisy:
        raise Undecodable("some of it is packed in another way, or encrypted")


def _windows(file: io.BufferedIOBase) -> Iterator[tuple[bytes, int]]:
    """Return parts of a file, with how many bytes of each are not also in the next."""
    kept = b""
    while part := file.read(_AT_ONCE):
        window = kept + part
        n = max(len(window) - _LONGEST, 0)
        if n:
            yield window, n
        kept = window[n:]
    if kept:
        yield kept, len(kept)


def _look_at_frame(window: bytes, at: int, inspection: Inspection) -> int:
    """Look at a frame; return where it ends, 0 if there is none, -1 if it cannot be decoded."""
    start = window[at : at + 4]
    if start == _ZSTD:
        return _look_at_arrow(window, at, _end_of_zstd(window, at), "zstd", inspection)
    if start == _LZ4:
        return _look_at_arrow(window, at, _end_of_lz4(window, at), "lz4", inspection)
    parts, end = _inflated(window, at)
    if sum(map(len, parts)) >= _FEWEST:
        inspection.look_through(parts)  # also of a part that is cut off
        return end
    return 0


def _inflated(window: bytes, at: int) -> tuple[list[bytes], int]:
    """Decode gzip or zlib; return what there is, and where it ends, 0 if it does not."""
    decoder, parts, n = zlib.decompressobj(47), list[bytes](), 0
    step = _TRIED
    try:
        while not decoder.eof and at < len(window) and n < _MOST:
            data = window[at : at + step]
            parts.append(decoder.decompress(data, _AT_ONCE))
            n += len(parts[-1])
            at += len(data) - len(decoder.unconsumed_tail) - len(decoder.unused_data)
            step = _STEP
    except zlib.error:
        return parts, 0
    return parts, at if decoder.eof else 0


def _look_at_arrow(window: bytes, at: int, end: int, codec: str, inspection: Inspection) -> int:
    if end == 0:
        return 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(window[at:end]), codec) as stream:
            inspection.look_through(_limited(stream))
    except (OSError, ValueError):
        return -1
    return end


def _limited(stream: pa.NativeFile) -> Iterator[bytes]:
    n = 0
    while part := stream.read(_AT_ONCE):
        n += len(part)
        if n > _MOST:
            raise ValueError("a part becomes too large")
        yield part


def _end_of_zstd(data: bytes, at: int) -> int:
    """Return where a frame of Zstandard ends (RFC 8878), 0 if there is none."""
    if len(data) < at + 9:
        return 0
    flags = data[at + 4]
    if flags & 8:
        return 0
    is_single = flags >> 5 & 1
    at += 5 + (not is_single) + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
    while at + 3 <= len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        kind = head >> 1 & 3
        if kind == 3:
            return 0
        at += 3 + (1 if kind == 1 else head >> 3)
        if head & 1:
            end = at + 4 * (flags >> 2 & 1)
            return end if end <= len(data) else 0
    return 0


def _end_of_lz4(data: bytes, at: int) -> int:
    """Return where a frame of LZ4 ends, 0 if there is none."""
    if len(data) < at + 11 or data[at + 4] >> 6 != 1:
        return 0
    flags = data[at + 4]
    at += 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4
        if size == 0:
            end = at + 4 * (flags >> 2 & 1)
            return end if end <= len(data) else 0
        at += (size & 0x7FFFFFFF) + 4 * (flags >> 4 & 1)
    return 0


def looks_random(data: bytes) -> bool:
    """Tell whether a block looks compressed or encrypted, by a test for a uniform distribution.

    Vectors of floating-point numbers do not: the bytes that hold an exponent have few values; nor
    do codes of scalar quantisation, which have a middle. Codes of product and binary quantisation
    may look random, and are not searched for either. A frame of Zstandard or bzip2 may look less
    random; it is known by how it begins.
    """
    if len(data) < _FEWEST_RANDOM:
        return False
    counts = np.zeros((4, 256), dtype=np.int64)
    add_counts(np.frombuffer(data, dtype=np.uint8), counts)
    expected = len(data) / 256
    excess = float(((counts.sum(axis=0) - expected) ** 2).sum() / expected) - 255
    return excess < 100 + 0.02 * len(data)


def n_random(data: bytes, known: Sequence[tuple[int, int]] = ()) -> int:
    """Return how many blocks of some bytes look random, without those that were decoded."""
    n = 0
    for at in range(0, len(data), _BLOCK):
        end = min(at + _BLOCK, len(data))
        decoded = sum(max(0, min(b, end) - max(a, at)) for a, b in known)
        n += 2 * decoded < end - at and looks_random(data[at:end])
    return n
