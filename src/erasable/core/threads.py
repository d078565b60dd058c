"""Do independent work in several threads, while kernels run without Python's lock.

The law kept here: what comes out does not depend on how many threads there are. Each item is worked
on alone, and what is made of all of them is handed on in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from sklearn.utils._param_validation import Interval

__all__ = ["N_JOBS", "in_threads", "n_threads", "over_rows", "several"]

Item = TypeVar("Item")
Made = TypeVar("Made")

N_JOBS: list[Any] = [
    None,
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
]
"""What the parameter `n_jobs` may be: None is one thread, and -1 all cores, as in scikit-learn."""


def n_threads(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for.

    Examples
    --------
    >>> n_threads(None), n_threads(3)
    (1, 3)
    """
    if n_jobs is None:  # what joblib is told to do where nothing is said
        return int(effective_n_jobs(None))
    return n_jobs if n_jobs > 0 else max(1, int(cpu_count()) + 1 + n_jobs)


ROWS = 2**15
"""Rows that a thread takes at a time, whatever the number of threads."""


def several(n_rows: int, n_jobs: int | None) -> bool:
    """Tell whether rows are shared by threads: there are several threads, and several blocks.

    Examples
    --------
    >>> several(100_000, 2), several(100, 2), several(100_000, None)
    (True, False, False)
    """
    return n_rows > ROWS and n_threads(n_jobs) > 1


def in_threads(
    function: Callable[[Item], Made], items: Iterable[Item], n_jobs: int | None
) -> Iterator[Made]:
    """Call a function with each item; yield what it returns, in the order of the items.

    Parameters
    ----------
    function : callable
        It changes nothing that another call reads.
    items : iterable
    n_jobs : int or None
        Threads; see `N_JOBS`. With one, nothing is called before it is asked for; with several,
        twice as many results as there are threads are waiting at most.

    Examples
    --------
    >>> list(in_threads(lambda x: x * x, range(5), 2))
    [0, 1, 4, 9, 16]
    """
    count = n_threads(n_jobs)
    if count == 1:
        yield from map(function, items)
        return
    waiting = iter(items)
    with ThreadPoolExecutor(count) as pool:
        begun = [pool.submit(function, item) for item in islice(waiting, 2 * count)]
        try:
            while begun:
                yield begun.pop(0).result()
                begun += [pool.submit(function, item) for item in islice(waiting, 1)]
        finally:
            for future in begun:
                future.cancel()


def over_rows(
    function: Callable[[slice], Made], n_rows: int, n_jobs: int | None, size: int | None = None
) -> Iterator[Made]:
    """Call a function with blocks of rows; yield what it returns, in the order of the blocks.

    Where the blocks begin depends on the number of rows alone, so that what is rounded in each of
    them is the same with any number of threads.

    Parameters
    ----------
    function : callable
        It changes nothing that another call reads.
    n_rows : int
    n_jobs : int or None
        Threads; one for a single block.
    size : int or None
        Rows of every block but the last; by default `ROWS`.

    Examples
    --------
    >>> list(over_rows(lambda rows: rows.stop - rows.start, 70_000, 2))
    [32768, 32768, 4464]
    """
    step = size or ROWS
    if n_rows <= step:  # a call for one row has no time for more
        return iter((function(slice(0, n_rows)),))
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    return in_threads(function, blocks, n_jobs)
