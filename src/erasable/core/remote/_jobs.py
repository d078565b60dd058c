"""Jobs of workers, and the blocks of records that a worker keeps.

The law kept here: nothing printed of a job or of its answer contains a value of a record, and
errors are not raised where they would be logged.
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
    """Return free memory to the system, as far as the allocators of C (glibc) and Arrow can."""
    pa.default_memory_pool().release_unused()
    trim = _of_c("malloc_trim")
    if trim is not None:
        trim(0)


@contextlib.contextmanager
def traceless_memory() -> Iterator[None]:
    """Let Arrow take memory from C, and C overwrite it when it is freed (glibc only).

    Threads cannot release what Arrow's own allocators have freed in other threads.
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
            before = _BEFORE.pop(1 if len(_BEFORE) > 1 else 0)  # the first is for the last to end
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
    """Origin of the records of a block; it can be pickled."""

    @abstractmethod
    def table(self) -> pa.Table:
        """Read the records: the same in the same order each time."""


@dataclass(frozen=True)
class ColumnLayout:
    """Columns that a worker keeps, and columns that it returns once."""

    features: list[str]  # kept by the worker
    others: list[str]  # such as ids and targets; returned once
    dtype: np.dtype[Any]  # of the features; object where some are text
    kinds: str = ""  # of the features, see `erasable.core.stored_table.kinds_of`


@dataclass(frozen=True, repr=False)
class BlockCall:
    """State of a block that a pass needs."""

    first: int  # see `erasable.core.passes.Block`
    rank: int
    rows: Ints | None  # positions of the rows of this pass alone; None for all live rows
    before: int  # version of the live rows before this call
    version: int  # version of the live rows from now on
    toggled: Ints  # rows that become live, or are no longer
    mask: Any  # bits of the live rows, if `toggled` does not suffice
    kept: dict[str, Any]  # parts of row arrays by name, kept for later passes
    passing: dict[str, Any]  # parts of row arrays by name, for this pass alone

    def __repr__(self) -> str:
        """Show no values."""
        return f"BlockCall(first={self.first})"


@dataclass(eq=False)
class HeldBlock:
    """Records that this process keeps."""

    matrix: Any  # an array or Mixed
    live: Flags  # live rows, as the driver said last
    version: int = 0  # of `live`
    parts: dict[str, Any] = field(default_factory=dict)  # of row arrays, by name
    rows: Ints | None = None  # positions of the live rows; None for all
    finite: bool = False  # all values are known to be finite; overwritten rows are finite, too

    def change(self, call: BlockCall) -> bool:
        """Update the live rows; return False if the block has missed a version."""
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
    """Blocks of one set of records in this process."""

    blocks: dict[int, HeldBlock] = field(default_factory=dict)
    # To be made into blocks, and then handed over.
    tables: dict[int, pa.Table] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def __repr__(self) -> str:
        """Show the number of blocks."""
        return f"Shelf(n_blocks={len(self.blocks)})"


_SHELVES: dict[tuple[str, str], Shelf] = {}
"""By worker, of which a process may have several, and by name of the records."""


@dataclass(frozen=True)
class Job(ABC):
    """A task of a worker; its text contains no values."""

    loads: ClassVar[bool] = False  # it reads tables, of which nothing may stay in memory
    token: str  # name of the records

    @abstractmethod
    def run(self, shelf: Shelf, n_threads: int) -> Any:
        """Do the job with the blocks of this worker."""

    def __repr__(self) -> str:
        """Show the name of the records."""
        return f"{type(self).__name__}({self.token})"


class Raised:
    """An error of a job, returned and not raised, as it would be logged.

    >>> Raised(ValueError("of a value"))
    Raised(ValueError)
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __repr__(self) -> str:
        """Show the type, without the text."""
        return f"Raised({type(self.error).__name__})"


def do(job: Job, worker: str, n_threads: int) -> Any:
    """Do a job as a worker; return its answer, or its error."""
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
    """Drop the records."""

    def run(self, shelf: Shelf, n_threads: int) -> None:
        """Do nothing: `do` drops the shelf."""
