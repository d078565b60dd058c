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

from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval

__all__ = ["N_JOBS", "in_threads"]

Item = TypeVar("Item")
Made = TypeVar("Made")

N_JOBS: list[Any] = [
    None,
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
]
"""What the parameter `n_jobs` may be: None is one thread, and -1 all cores, as in scikit-learn."""


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
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield from map(function, items)
        return
    waiting = iter(items)
    with ThreadPoolExecutor(n_threads) as pool:
        begun = [pool.submit(function, item) for item in islice(waiting, 2 * n_threads)]
        try:
            while begun:
                yield begun.pop(0).result()
                begun += [pool.submit(function, item) for item in islice(waiting, 1)]
        finally:
            for future in begun:
                future.cancel()
