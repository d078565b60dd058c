"""Search for vectors in bytes, at any length: stores divide them by their lengths for cosines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from erasable.core._byte_kernels import Directions, has_run, index_ratios, search_directions

_FEWEST = 8  # different numbers of a piece, none of them zero: fewer are found by chance
_NEAR = 67  # units in the last place by which ratios differ that are taken for equal
_CBOR = 0xFA  # before each number of single precision in CBOR


class VectorSearch:
    """Pieces of vectors in single precision, and which of them were found, times any number.

    >>> import numpy as np
    >>> piece = np.arange(1.0, 11)
    >>> search = VectorSearch([piece, piece**2])
    >>> search.look_at(b"x" + (piece / 7).astype("<f4").tobytes())
    >>> search.found().tolist()
    [True, False]
    """

    def __init__(self, pieces: Sequence[np.ndarray]) -> None:
        """Prepare a search; pieces of few different numbers are not looked for."""
        self._found = np.zeros(len(pieces), dtype=np.bool_)
        usable = [at for at, piece in enumerate(pieces) if _is_usable(piece)]
        self._directions = _directions([pieces[at] for at in usable], usable) if usable else None

    def forget(self) -> None:
        """Look for all pieces anew."""
        self._found[:] = False

    def found(self) -> np.ndarray:
        """Return which pieces were found."""
        return self._found.copy()

    def look_at(self, data: bytes | memoryview | np.ndarray) -> None:
        """Look at bytes: numbers may begin anywhere, plain, or as CBOR has them."""
        if self._directions is None:
            return
        array = data if isinstance(data, np.ndarray) else np.frombuffer(data, dtype=np.uint8)
        for numbers in _singles(array):
            search_directions(numbers, self._directions, self._found)


def _singles(data: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(4):
        n = (data.size - start) // 4
        if n > 1:
            yield data[start : start + 4 * n].copy().view("<f4")
    readonly = data.view()
    readonly.flags.writeable = False  # one kernel for all
    if has_run(readonly, _CBOR, 5, _FEWEST):
        for start in range(5):
            n = (data.size - start) // 5
            rows = data[start : start + 5 * n].reshape(n, 5)
            yield rows[:, :0:-1].copy().view("<f4").ravel()


def _is_usable(piece: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        single = piece.astype(np.float32)
    return bool(
        np.unique(single).size >= _FEWEST and np.all(single) and np.all(np.isfinite(single))
    )


def _directions(given: list[np.ndarray], which: list[int]) -> Directions:
    sizes = np.zeros(which[-1] + 1, dtype=np.int64)
    pairs = np.zeros_like(sizes)
    pieces = np.full((sizes.size, max(map(len, given))), np.nan)
    entries, owners = list[int](), list[int]()
    for at, piece in zip(which, given, strict=True):
        sizes[at] = piece.size
        pieces[at, : piece.size] = piece
        pairs[at] = np.argmax(np.minimum(abs(piece[1:]), abs(piece[:-1])))
        first, second = piece[pairs[at] : pairs[at] + 2].astype(np.float32)
        bits = int((second / first).view(np.uint32))
        keys = {max(bits + by, 0) >> 6 for by in range(-_NEAR, _NEAR + 1)}
        entries += sorted(keys)
        owners += [at] * len(keys)
    bits_of_hash = min(max(16, (len(entries) * 64).bit_length()), 30)
    shift = np.uint32(32 - bits_of_hash)
    bitmap = np.zeros(1 << (bits_of_hash - 6), dtype=np.uint64)
    keys_ = np.zeros(1 << (len(entries) * 2).bit_length(), dtype=np.uint32)
    firsts = np.full(keys_.size, -1, dtype=np.int64)
    nexts = np.full(len(entries), -1, dtype=np.int64)
    index_ratios(np.array(entries, dtype=np.uint32), shift, bitmap, keys_, firsts, nexts)
    return Directions(
        shift, bitmap, keys_, firsts, nexts, np.array(owners, dtype=np.int64), pieces, sizes, pairs
    )
