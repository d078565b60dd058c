"""Masks for values of records on their way between processes, where buffers may keep them."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from erasable.core._mixed import Mixed

_WORDS = 2**13
"""Words of a mask made at a time."""


def mask(values: NDArray[Any], pad: int, number: int, part: int = 0) -> None:
    """Mask the values of a block in place; a second call removes the mask."""
    bits = values.reshape(-1).view(np.uint8)
    stream = np.random.Philox(key=pad, counter=(number << 128) + (part << 120))
    for start in range(0, bits.size, 8 * _WORDS):  # new pages would take longer than the words
        own = bits[start : start + 8 * _WORDS]
        own ^= stream.random_raw(-(-own.size // 8)).view(np.uint8)[: own.size]


class Masked(NamedTuple):
    """Masked values of a block."""

    numbers: Any
    kinds: str  # empty without text; else see `Mixed`
    texts: Any  # pickled texts of a `Mixed`


def masked(values: Any, pad: int, number: int) -> Masked:
    """Mask a copy of values of a block, in place; see `unmasked`."""
    numbers, kinds, texts = values, "", np.empty(0, np.uint8)
    if isinstance(values, Mixed):
        numbers, kinds = values.numbers, values.kinds
        texts = np.frombuffer(pickle.dumps(values.texts), np.uint8).copy()
        mask(texts, pad, number, 1)
    mask(numbers, pad, number)
    return Masked(numbers, kinds, texts)


def unmasked(found: Masked, pad: int, number: int) -> Any:
    """Return the values of a block.

    >>> words = {0: np.array(["", np.nan, "Bonn"], dtype=object)}
    >>> sent = masked(Mixed(np.array([[2.0]]), "t", words), 7, 0)
    >>> b"Bonn" in sent.texts.tobytes(), unmasked(sent, 7, 0).objects().tolist()
    (False, [['Bonn']])
    """
    numbers = found.numbers if found.numbers.flags.writeable else found.numbers.copy()
    mask(numbers, pad, number)
    if not found.kinds:
        return numbers
    texts = np.array(found.texts)
    mask(texts, pad, number, 1)
    return Mixed(numbers, found.kinds, pickle.loads(texts.tobytes()))
