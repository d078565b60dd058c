"""Independent work in several threads, while kernels run without Python's lock.

The law kept here: results do not depend on the number of threads. Each item is processed alone, and
the results come in the order of the items.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from sklearn.utils._param_validation import Interval

from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten

__all__ = ["N_JOBS", "check_n_jobs", "in_threads", "n_threads", "over_rows", "several"]

Item = TypeVar("Item")
Made = TypeVar("Made")

N_JOBS: list[Any] = [
    None,
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
]
"""Values of the parameter `n_jobs`: None is one thread, and -1 all cores, as in scikit-learn."""


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`."""
    if n_jobs is None:  # joblib's default
        return int(effective_n_jobs(None))
    return n_jobs if n_jobs > 0 else max(1, int(cpu_count()) + 1 + n_jobs)


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse a parameter that is not a number of threads."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0
    ):
        raise InvalidParameterError(
            f"n_jobs={shorten(n_jobs)}; expected None, a number of threads, or one below 0; "
            "pass -1 for all cores"
        )


ROWS = 2**15
"""Rows that a thread takes at a time, for any number of threads."""


def several(n_rows: int, n_jobs: int | None) -> bool:
    """Return whether there are several threads, and several blocks of rows."""
    return n_rows > ROWS and n_threads(n_jobs) > 1


def in_threads(
    function: Callable[[Item], Made], items: Iterable[Item], n_jobs: int | None
) -> Iterator[Made]:
    """Call a function with each item; yield its results, in the order of the items.

    `function` changes nothing that another call reads. With one thread, each call waits until its
    result is asked for; with several, at most twice as many results as threads are waiting.
    """
    waiting = list(items)
    count = min(n_threads(n_jobs), len(waiting))
    if count < 2:
        yield from map(function, waiting)
        return
    numbers = itertools.count()  # of items that no thread has begun
    room: SimpleQueue[bool] = SimpleQueue()  # a token for each result that may still wait
    made: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    for _ in range(2 * count):
        room.put(True)

    def work_on_one() -> bool:
        number = next(numbers)
        if number >= len(waiting):
            return False
        try:
            made.put((number, function(waiting[number]), None))
        except BaseException as error:  # raised for the caller when it is this item's turn
            made.put((number, None, error))
        return True

    def work() -> None:
        while room.get() and work_on_one():
            pass

    found: dict[int, tuple[Any, BaseException | None]] = {}
    with ThreadPoolExecutor(count - 1) as pool:  # and the caller is a thread, too
        others = [pool.submit(work) for _ in range(count - 1)]
        try:
            for wanted in range(len(waiting)):
                while wanted not in found:
                    if made.empty() and not room.empty():
                        with contextlib.suppress(Empty):
                            if room.get_nowait() and work_on_one():
                                continue
                    number, *what = made.get()
                    found[number] = what[0], what[1]
                result, error = found.pop(wanted)
                if error is not None:
                    raise error
                yield result
                room.put(True)
        finally:
            numbers = itertools.count(len(waiting))
            for _ in others:
                room.put(False)


def over_rows(
    function: Callable[[slice], Made], n_rows: int, n_jobs: int | None, size: int | None = None
) -> Iterator[Made]:
    """Call a function with blocks of rows; yield its results, in the order of the blocks.

    `function` changes nothing that another call reads. Every block but the last has `size` rows, so
    that rounding in blocks is the same with any number of threads; a single block takes one thread.
    """
    step = size or ROWS
    if n_rows <= step:  # a call for one row should be fast
        return iter((function(slice(0, n_rows)),))
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    return in_threads(function, blocks, n_jobs)
