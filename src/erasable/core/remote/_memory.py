"""Hand memory that is free back to the system, so that nothing of deleted records stays in it."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa

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
