"""Compilation of all kernels ahead of use, as by `erasable compile`: for a container image, say.

A kernel is compiled at its first call, for the types of its arguments. So this uses every estimator
with a few records: fit, predict, delete, and delete from a file.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from erasable.core import _jit
from erasable.core._kernel_cache import can_save
from erasable.core.errors import ErasableError
from erasable.utils.discovery import all_estimators

__all__ = ["ELSE", "Compiled", "compile_kernels"]

ELSE = ("selection", "removal", "Parquet", "leave-one-out", "threads", "texts", "search of files")
"""Names of other uses of kernels than estimators."""

# The longest first, so that no process is left alone with one of them.
_LONG = ("KMeans", "RandomForestClassifier", "selection", "LinearRegression")


@dataclass(frozen=True)
class Compiled:
    """Kernels compiled for an estimator, or for a name in `ELSE`.

    Attributes
    ----------
    name : str
    n_kernels : int
        Kernels compiled, for one combination of types each; 0 where all were there already.
    seconds : float

    Examples
    --------
    >>> Compiled("KMeans", 12, 9.5).n_kernels
    12
    """

    name: str
    n_kernels: int
    seconds: float


def compile_kernels(
    names: list[str] | None = None,
    *,
    n_jobs: int | None = None,
    tell: Callable[[Compiled], None] | None = None,
) -> list[Compiled]:
    """Compile the kernels of fits, predictions and deletions, and save them on disk.

    Parameters
    ----------
    names : list of str, optional
        Estimators, and any of `ELSE`; by default all.
    n_jobs : int, optional
        Processes; by default one for each core. (Threads would wait for each other.)
    tell : callable, optional
        Called with each estimator that is done.

    Returns
    -------
    list of Compiled
        In the order of the names.

    Raises
    ------
    ErasableError
        Kernels were compiled, and no folder can be written to that would keep them.

    Examples
    --------
    >>> [each.name for each in compile_kernels(["MinMaxScaler"], n_jobs=1)]
    ['MinMaxScaler']
    """
    known = {
        name: (cls.__module__, tags["kind"], tags["meta"]) for name, cls, tags in all_estimators()
    }
    known |= dict.fromkeys(ELSE, ("", "", False))
    wanted = list(known) if names is None else names
    order = sorted(wanted, key=lambda name: _LONG.index(name) if name in _LONG else len(_LONG))
    found: dict[str, Compiled] = {}

    def add(each: Compiled) -> None:
        found[each.name] = each
        if each.n_kernels and not can_save():
            raise ErasableError(
                "kernels are compiled, and none of them is kept: no folder for them can be written "
                "to; expected one beside the package; or name one in NUMBA_CACHE_DIR"
            )
        if tell is not None:
            tell(each)

    if n_jobs == 1:
        for name in order:
            add(_compile(name, *known[name]))
    else:
        processes = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(n_jobs or _n_cores(), mp_context=processes) as pool:
            waiting = [pool.submit(_compile, name, *known[name]) for name in order]
            try:
                for future in as_completed(waiting):
                    add(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return [found[name] for name in wanted]


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _compile(name: str, home: str, kind: str, meta: bool) -> Compiled:
    """Use an estimator, or another use of this name, in this process."""
    began, before = time.perf_counter(), _jit.n_compiled()
    with _jit.silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about 240 made-up records
        uses = importlib.import_module("erasable.utils._uses")
        if home.startswith("erasable.neural."):
            pass  # its kernels are those of torch
        elif home:
            uses.use_estimator(name, home, kind, meta)
        else:
            uses.USES[name]()
        _jit.wait()
    return Compiled(name, _jit.n_compiled() - before, time.perf_counter() - began)
