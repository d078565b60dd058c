"""How kernels are compiled: cached, strict IEEE arithmetic, no parallel reductions.

Neither ``fastmath`` nor ``parallel`` may ever appear here: both let the compiler reorder a
floating-point sum, and then a deletion no longer equals a refit bit for bit.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba.core.bytecode import FunctionIdentity

F = TypeVar("F", bound=Callable[..., object])

# Without Python's lock, so that several threads can run kernels: see `erasable.core.threads`.
_OPTIONS: dict[str, Any] = {
    "cache": True, "error_model": "numpy", "no_cfunc_wrapper": True, "nogil": True,
}  # fmt: skip

# numba tells apart functions of one name, as those that one function makes, by counting what a
# process has compiled. Two processes count alike: what is loaded of both caches has one name for
# two functions, and the linker takes the first for both (numba/numba#10486). So numbers are drawn.
FunctionIdentity._unique_ids = cast(Any, iter(partial(secrets.randbits, 60), -1))


def kernel(function: F) -> F:
    """Compile `function` with numba, cached on disk, keeping its Python type.

    Parameters
    ----------
    function : callable
        Plain function over NumPy arrays and scalars.

    Returns
    -------
    callable
        The compiled function; the first call of a new combination of types compiles it.

    Notes
    -----
    No C function is made of it, which only code outside of Python could call, and which would
    take a tenth of the time to compile.
    """
    options: dict[str, Any] = {
        "cache": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "nogil": True,
    }
    compiled = numba.njit(**options)(function)
    _share_cache(compiled)
    return cast(F, compiled)


def borrowing(function: F) -> F:
    """Compile a kernel that makes no arrays, and returns none: it only uses those it is given.

    The caller holds them, so that references to them need not be counted. In a kernel that takes
    many small views, counting takes a third of the time.
    """
    options: dict[str, Any] = {
        "cache": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "nogil": True,
    }
    options["_nrt"] = False
    compiled = numba.njit(**options)(function)
    _share_cache(compiled)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Compile a part of kernels as `borrowing` does, and put it into each place that calls it.

    An array is passed as ten words, so that a call with twenty arrays takes longer than what many
    a small function does with them. Views may be returned only to what is borrowing as well.
    Python cannot call it: to take such arrays out of Python's objects would be most of the code.
    """
    options: dict[str, Any] = {
        "cache": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "nogil": True,
    }
    options |= {"no_cpython_wrapper": True, "forceinline": True, "_nrt": False}
    compiled = numba.njit(**options)(function)
    _share_cache(compiled)
    return cast(F, compiled)


def _share_cache(compiled: Any) -> None:
    """Let processes share a cache that compile at the same time, and versions one after the other.

    numba counts up the files of a function, one for each combination of types, from what the
    index of the cache says. Two processes that read the index together give one number to two
    combinations, and a process that reads the cache runs the code of the other: a crash at best.

    And numba reads all of an index before it looks whether that is of this source: an index that an
    earlier version has left, with a type that is not there any more, raises.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is None:  # where compiling, or caching, is switched off
        return
    pattern, load = file._data_name_pattern, file._load_index

    def load_index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            return {}

    file._data_name = lambda number: pattern.format(number=secrets.randbits(60))
    file._load_index = load_index
