"""Arrays with a value for each row, of which a pass gets the part of its block.

The law kept here: a pass reads such an array only through its block. So a pass can be sent to any
process that has a block, without the values of other blocks: an array is pickled as its name.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from erasable.core.passes import Block

__all__ = [
    "PerLiveRow",
    "PerRow",
    "RowArray",
    "Scratch",
    "Slot",
    "Written",
    "begins",
    "buffer_of",
    "padded",
]

_MAKING = threading.Lock()


class RowArray:
    """An array with a value for each row; see its subclasses.

    Parameters
    ----------
    values : ndarray of shape (n_rows,) or (n_rows, m)

    Attributes
    ----------
    key : str
        Its name, in each process that has a part of it.
    values : ndarray, or None
        None where only the parts of some blocks are.

    Examples
    --------
    >>> import pickle
    >>> codes = PerRow(np.array([0, 1]))
    >>> elsewhere = pickle.loads(pickle.dumps(codes))
    >>> elsewhere.key == codes.key, elsewhere.values is None
    (True, True)
    """

    def __init__(self, values: Any) -> None:
        self.key = secrets.token_hex(8)
        self.values = values

    def of(self, block: Block) -> Any:
        """Return the part of a block."""
        return self.cut(block) if block.parts is None else block.parts[self.key]

    def cut(self, block: Block) -> Any:
        """Return the part of a block, in the process that has all values."""
        return self.values[block.first : block.first + block.matrix.shape[0]]

    def __repr__(self) -> str:
        """Show the name, never a value."""
        return f"{type(self).__name__}({self.key})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the values."""
        return {**self.__dict__, "values": None}


class PerRow(RowArray):
    """Input of a pass, a value for each row of the matrix; it does not change during passes.

    Examples
    --------
    >>> from erasable.core.passes import Block
    >>> PerRow(np.arange(20)).of(Block(np.zeros((3, 2)), np.array([0, 2]), False, first=10))
    array([10, 11, 12])
    """


class PerLiveRow(RowArray):
    """Input of a pass, a value for each row that counts, in their order.

    Examples
    --------
    >>> from erasable.core.passes import Block
    >>> PerLiveRow(np.arange(20)).of(Block(np.zeros((3, 2)), np.array([0, 2]), False, rank=7))
    array([7, 8])
    """

    def cut(self, block: Block) -> Any:
        """Return the part of a block, in the process that has all values."""
        return self.values[block.rank : block.rank + block.size]


class Written(PerLiveRow):
    """Output of a pass, a value for each row that counts.

    Examples
    --------
    >>> Written(np.empty(3, np.int32)).room(2).dtype
    dtype('int32')
    """

    def __init__(self, values: Any) -> None:
        super().__init__(values)
        self._dtype, self._width = values.dtype, values.shape[1:]

    def room(self, n_rows: int) -> Any:
        """Return room for the values of `n_rows` rows."""
        return np.empty((n_rows, *self._width), self._dtype)


class Scratch(RowArray):
    """A value for each row of the matrix, kept by passes from one to the next, and not read.

    Parameters
    ----------
    n_rows : int
    fill : float
        What all values are before the first pass.
    width : int, optional
        How many values each row has; by default one, in an array of one dimension.

    Notes
    -----
    A block that is lost with the process that had it comes back with `fill`. So a pass is able to
    make the values anew from its other parameters where they are `fresh`, and what it does to them
    may be done twice.

    Examples
    --------
    >>> from erasable.core.passes import Block
    >>> block = Block(np.zeros((3, 2)), np.array([0, 2]), False)
    >>> scratch = Scratch(3, np.inf)
    >>> scratch.of(block)
    array([inf, inf, inf])
    """

    def __init__(self, n_rows: int, fill: float, width: int | None = None) -> None:
        super().__init__(None)
        self._n_rows, self._fill = n_rows, fill
        self._width = () if width is None else (width,)

    def room(self, n_rows: int) -> Any:
        """Return the values of `n_rows` rows before the first pass."""
        return np.full((n_rows, *self._width), self._fill)

    def cut(self, block: Block) -> Any:
        """Return the part of a block, in the process that has all values."""
        with _MAKING:
            if self.values is None:
                self.values = self.room(self._n_rows)
        return super().cut(block)


def padded(values: Any, n_rows: int, fill: Any = 0, *, keep: bool = False) -> Any:
    """Return an array for `n_rows` rows, in a buffer with room for a few more.

    If it has to be copied into another one, it is overwritten, unless it is to be kept.

    Examples
    --------
    >>> old = np.array([3, 4])
    >>> padded(old, 3, fill=-1), old, padded(old, 2) is old
    (array([ 3,  4, -1]), array([-1, -1]), True)
    """
    n = values.shape[0]
    if n >= n_rows:
        return values
    buffer = buffer_of(values)
    if buffer is not None and buffer.shape[0] >= n_rows:
        buffer[n:n_rows] = fill
    else:
        size = n_rows + n_rows // 8
        buffer = np.full((size, *values.shape[1:]), fill, dtype=values.dtype)
        buffer[:n] = values
        if not keep:
            values[...] = fill
    return buffer[:n_rows]


class Slot(np.ndarray[Any, np.dtype[np.uint8]]):
    """Bytes of one array of a mapped file; arrays of an object are views of it.

    Attributes
    ----------
    room : int
        Bytes from the first on that belong to the array that begins there: up to where another one
        begins.

    Examples
    --------
    >>> Slot(40, np.uint8).room
    40
    """

    room: int

    def __array_finalize__(self, made_of: Any) -> None:
        self.room = self.size


def buffer_of(values: Any) -> Any:
    """Return the longer array whose beginning an array is, or None.

    Of an array that lies in a file it is made of the bytes of its slot.

    Examples
    --------
    >>> held = Slot(40, np.uint8)
    >>> values = np.ndarray((2, 1), np.float64, held)
    >>> buffer_of(values).shape
    (5, 1)
    >>> held.room = 24  # where another array begins
    >>> buffer_of(values).shape
    (3, 1)
    """
    buffer = values.base
    if isinstance(buffer, Slot):
        if not values[:1].nbytes:
            return None
        shape = (buffer.room // values[:1].nbytes, *values.shape[1:])
        buffer = np.ndarray(shape, values.dtype, buffer)
    return buffer if begins(values, buffer) and len(buffer) >= len(values) else None


def begins(values: Any, buffer: Any) -> bool:
    """Return whether an array is the beginning of a longer one.

    Examples
    --------
    >>> whole = np.zeros(5)
    >>> begins(whole[:2], whole), begins(whole[1:], whole)
    (True, False)
    """
    return (
        isinstance(buffer, np.ndarray)
        and buffer.dtype == values.dtype
        and buffer.strides == values.strides
        and (buffer.ndim == 1 or buffer.shape[1:] == values.shape[1:])
        and np.may_share_memory(buffer[:1], values[:1])
    )
