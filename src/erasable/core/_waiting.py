"""While a thread waits for the compiler: it is told, and garbage is collected less often."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import time

PATIENCE = 1.0
"""Seconds that a thread may wait for the compiler in all, before it is told."""

MESSAGE = (
    "erasable: compiling kernels, once per installation; `erasable compile` does all of it ahead"
)

RARELY = (50_000, 20, 20)
"""Thresholds of the garbage collector in the meantime.

A compilation makes millions of small objects, and nearly all are freed without it. Where it looks
for cycles after every 700, as Python does by default, it takes a fifth of the time.
"""


class _RareCollections:
    """The garbage collector's thresholds, for as long as any thread compiles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_threads = 0
        self._before = self._ours = gc.get_threshold()

    def begin(self) -> None:
        """Collect garbage less often, unless it is done less often or not at all."""
        with self._lock:
            self._n_threads += 1
            if self._n_threads == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < RARELY[0]:
                    gc.set_threshold(*RARELY)
                self._ours = gc.get_threshold()

    def end(self) -> None:
        """Collect it as before, unless someone else has said otherwise by now."""
        with self._lock:
            self._n_threads -= 1
            if self._n_threads == 0 and gc.get_threshold() == self._ours:
                gc.set_threshold(*self._before)


_collections = _RareCollections()


class Wait(threading.local):
    """How long this thread has waited for the compiler; who waits for long is told, once.

    Kernels are compiled one within another: each tells how far the outermost is.
    """

    told = False
    lock = threading.Lock()

    def __init__(self) -> None:
        self.silent = False
        self._depth = 0
        self._before = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._began = time.monotonic()
            _collections.begin()
        self._depth += 1
        self._tell()

    def __exit__(self, *_: object) -> None:
        self._tell()
        self._depth -= 1
        if self._depth == 0:
            self._before += time.monotonic() - self._began
            _collections.end()

    def _tell(self) -> None:
        waited = self._before + time.monotonic() - self._began
        if Wait.told or self.silent or waited < PATIENCE:
            return
        with self.lock:
            told, Wait.told = Wait.told, True
        if not told and sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):  # a stream that is closed
                print(MESSAGE, file=sys.stderr, flush=True)
