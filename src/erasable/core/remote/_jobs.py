"""What a worker keeps of records that are spread over several, and how it is asked.

The law kept here: nothing that is printed of a job or of its answer has a value of a record, and no
error is raised where it would be logged.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from erasable.core.arrays import Flags, Ints

_CHANGING = threading.Lock()
_BEFORE: list[pa.MemoryPool] = []


def give_back() -> None:
    """Do so as far as the allocators of C and of Arrow know how; elsewhere than in glibc, in part.

    Examples
    --------
    >>> give_back()
    """
    pa.default_memory_pool().release_unused()
    trim = _of_c("malloc_trim")
    if trim is not None:
        trim(0)


@contextlib.contextmanager
def traceless_memory() -> Iterator[None]:
    """Have Arrow take memory from C, and C overwrite what is freed.

    What Arrow's own allocators free, other threads cannot give back; and C gives back whole pages
    only, and none of those at the end of what a thread has. Overwriting is glibc's.

    Examples
    --------
    >>> with traceless_memory():
    ...     pa.default_memory_pool().backend_name
    'system'
    """
    with _CHANGING:
        if not _BEFORE:
            _overwrite(True)
        _BEFORE.append(pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _CHANGING:
            before = _BEFORE.pop(
                1 if len(_BEFORE) > 1 else 0
            )  # the first is for the last that ends
            if not _BEFORE:
                pa.set_memory_pool(before)
                _overwrite(False)


_PERTURB, _BYTE = -6, 0xFF  # of <malloc.h>; what is taken is then filled with zeros


def _overwrite(freed: bool) -> None:
    mallopt = _of_c("mallopt")
    if mallopt is not None and _of_c("gnu_get_libc_version") is not None:
        mallopt(_PERTURB, _BYTE if freed else 0)


@lru_cache
def _of_c(name: str) -> Any:
    with contextlib.suppress(OSError, AttributeError, TypeError):
        return getattr(ctypes.CDLL(None), name)
    return None


class BlockSource(ABC):
    """Where the records of a block come from; it can be pickled.

    Examples
    --------
    >>> class Pair(BlockSource):
    ...     def table(self):
    ...         return pa.table({"age": [40, 50]})
    >>> Pair().table().num_rows
    2
    """

    @abstractmethod
    def table(self) -> pa.Table:
        """Read them; the same records in the same order each time."""


@dataclass(frozen=True)
class ColumnLayout:
    """What is kept of a table.

    Attributes
    ----------
    features, others : list of str
        Columns of numbers, which the worker keeps, and columns such as ids and targets, which it
        sends back once.
    dtype : dtype
        Of the numbers; object where there is text among them.
    kinds : str
        Of the features, see `erasable.core.stored_table.kinds_of`.

    Examples
    --------
    >>> ColumnLayout(["age"], ["id"], np.dtype(float)).features
    ['age']
    """

    features: list[str]
    others: list[str]
    dtype: np.dtype[Any]
    kinds: str = ""


@dataclass(frozen=True, repr=False)
class BlockCall:
    """What a pass needs to know of a block.

    Attributes
    ----------
    first, rank : int
        See `erasable.core.passes.Block`.
    rows : ndarray of int64, or None
        Positions of the rows that count, for this pass alone; None for those that count anyway.
    before, version : int
        Which word of the driver said last which rows count, before this and now.
    toggled : ndarray of int64
        Rows that count from now on, or no more.
    mask : ndarray of uint8, or None
        Bits of the rows that count, where it has to be said of all.
    kept, passing : dict
        Parts of row arrays, by their names: to be kept for other passes, and not.
    """

    first: int
    rank: int
    rows: Ints | None
    before: int
    version: int
    toggled: Ints
    mask: Any
    kept: dict[str, Any]
    passing: dict[str, Any]

    def __repr__(self) -> str:
        """Show no values."""
        return f"BlockCall(first={self.first})"


@dataclass(eq=False)
class HeldBlock:
    """Records that this process keeps.

    Attributes
    ----------
    matrix : ndarray or Mixed, of shape (n_rows, n_features)
    live : ndarray of shape (n_rows,), bool
        Rows that count, as a driver said last.
    version : int
        Which of the driver's words that was.
    parts : dict
        Of row arrays, by their names.
    rows : ndarray of int64 or None
        Positions of the rows that count; None where all do.
    finite : bool
        Whether it was seen that all values are finite; those that overwrite them are, too.
    """

    matrix: Any
    live: Flags
    version: int = 0
    parts: dict[str, Any] = field(default_factory=dict)
    rows: Ints | None = None
    finite: bool = False

    def change(self, call: BlockCall) -> bool:
        """Bring it up to date; tell whether that could be done."""
        if call.mask is not None:
            self.live = np.unpackbits(call.mask, count=len(self.live)).astype(np.bool_)
        elif call.toggled.size and self.version == call.before:
            self.live[call.toggled] ^= True
        elif self.version != call.version:
            return False
        if self.version != call.version or call.mask is not None:
            self.version = call.version
            self.rows = None if self.live.all() else np.flatnonzero(self.live)
        self.parts.update(call.kept)
        return True


@dataclass
class Shelf:
    """The blocks that a process keeps of one set of records.

    Attributes
    ----------
    blocks : dict of int to HeldBlock
    tables : dict of int to pyarrow.Table
        What is yet to be made into blocks, and then to be handed over.
    lock : Lock

    Examples
    --------
    >>> Shelf()
    Shelf(n_blocks=0)
    """

    blocks: dict[int, HeldBlock] = field(default_factory=dict)
    tables: dict[int, pa.Table] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def __repr__(self) -> str:
        """Show the number of blocks."""
        return f"Shelf(n_blocks={len(self.blocks)})"


_SHELVES: dict[tuple[str, str], Shelf] = {}
"""By the names of the worker, of which a process may have several, and of the records."""


@dataclass(frozen=True)
class Job(ABC):
    """What a worker is asked to do; it is printed without values.

    Attributes
    ----------
    token : str
        Name of the records.
    loads : bool
        Whether it has to do with tables, of which nothing may be left in memory afterwards.

    Examples
    --------
    >>> Drop("7c")
    Drop(7c)
    """

    loads: ClassVar[bool] = False
    token: str

    @abstractmethod
    def run(self, shelf: Shelf, n_threads: int) -> Any:
        """Do it with the blocks of this worker."""

    def __repr__(self) -> str:
        """Show the name of the records."""
        return f"{type(self).__name__}({self.token})"


class Raised:
    """An error of a job, which is not raised where it happened: there it would be logged.

    Examples
    --------
    >>> Raised(ValueError("of a value"))
    Raised(ValueError)
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __repr__(self) -> str:
        """Show the type, without the text."""
        return f"Raised({type(self.error).__name__})"


def do(job: Job, worker: str, n_threads: int) -> Any:
    """Do a job as a worker; return its answer, or what it raised.

    Examples
    --------
    >>> do(Drop("7c"), "worker 1", 1)
    """
    place = worker, job.token
    try:
        if isinstance(job, Drop):
            _SHELVES.pop(place, None)
            return give_back()
        shelf = _SHELVES.setdefault(place, Shelf())
        if not job.loads:
            return job.run(shelf, n_threads)
        with traceless_memory():
            answer = job.run(shelf, n_threads)
            gc.collect()
        give_back()
        return answer
    except Exception as error:
        return Raised(error.with_traceback(None))


@dataclass(frozen=True, repr=False)
class Drop(Job):
    """Keep nothing of the records any more."""

    def run(self, shelf: Shelf, n_threads: int) -> None:
        """Do nothing: it is done where shelves are known."""
