"""Search for vectors in bytes, at any length: stores divide them by their lengths for cosines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from erasable.core._byte_kernels import DROPPED, Directions, search_directions
from erasable.core._byte_search import index_of

_FEWEST = 8  # different numbers of a piece, none of them zero: fewer are found by chance
_NEAR = 9e-6  # by which ratios of numbers in single precision differ that are taken for equal
_STEPS = (4, 5)  # bytes of a number: plain, and as CBOR has it


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
        array = array.view()
        array.flags.writeable = False  # one kernel for all
        for step in _STEPS:
            search_directions(array, step, self._directions, self._found)


def _is_usable(piece: np.ndarray) -> bool:
    with np.errstate(over="ignore"):
        single = piece.astype(np.float32)
    return bool(
        np.unique(single).size >= _FEWEST and np.all(single) and np.all(np.isfinite(single))
    )


def _directions(given: list[np.ndarray], which: list[int]) -> Directions:
    sizes = np.zeros(which[-1] + 1, dtype=np.int64)
    bases = np.zeros_like(sizes)
    pieces = np.full((sizes.size, max(map(len, given))), np.nan)
    stride = _FEWEST - 1  # a piece has as many pairs of neighbours
    keys, owners = list[np.ndarray](), list[np.ndarray]()
    for at, piece in zip(which, given, strict=True):
        sizes[at] = piece.size
        pieces[at, : piece.size] = piece
        bases[at] = np.argmax(np.minimum(abs(piece[1:]), abs(piece[:-1])))
        ratios = piece[1:_FEWEST] / piece[:stride]
        ends = np.array([ratios * (1 - _NEAR), ratios * (1 + _NEAR)]).view(np.uint64) >> DROPPED
        for k, (low, high) in enumerate(ends.T):
            keys.append(np.arange(low, high + 1, dtype=np.uint64))
            owners.append(np.full(keys[-1].size, stride * at + k))
    index = index_of(np.concatenate(keys))
    return Directions(stride, index, np.concatenate(owners), pieces, sizes, bases)
