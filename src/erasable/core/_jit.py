"""Compilation of kernels: cached, strict IEEE arithmetic, no parallel reductions.

Neither ``fastmath`` nor ``parallel`` may ever appear here: both let the compiler reorder a
floating-point sum, and then a deletion no longer equals a refit bit for bit.
"""

from __future__ import annotations

import contextlib
import gc
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

from ._kernel_cache import KernelCache, saves_for_now

PATIENCE = 1.0
"""Seconds that a thread waits for the compiler in all, before the message."""

MESSAGE = (
    "erasable: compiling kernels, once per installation; `erasable compile` does all of it ahead"
)

FOR_NOW = (
    "erasable: compiling kernels into {folder}, as no other folder can be written to; "
    "NUMBA_CACHE_DIR names one that lasts"
)

RARELY = (50_000, 20, 20)
"""Thresholds of the garbage collector in the meantime.

A compilation makes millions of small objects, and nearly all are freed without it. If it looks
for cycles after every 700, as Python does by default, it takes a fifth of the time.
"""


class _RareCollections:
    """Thresholds of the garbage collector while any thread compiles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_threads = 0
        self._before = self._ours = gc.get_threshold()

    def begin(self) -> None:
        """Raise the thresholds, unless they are higher, or collection is off."""
        with self._lock:
            self._n_threads += 1
            if self._n_threads == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < RARELY[0]:
                    gc.set_threshold(*RARELY)
                self._ours = gc.get_threshold()

    def end(self) -> None:
        """Restore the thresholds, unless they have been changed meanwhile."""
        with self._lock:
            self._n_threads -= 1
            if self._n_threads == 0 and gc.get_threshold() == self._ours:
                gc.set_threshold(*self._before)


_collections = _RareCollections()


class Wait(threading.local):
    """Clock of this thread's wait for the compiler; it reports a long wait once.

    Compilations nest; only the outermost counts.
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
                folder = saves_for_now()
                print(
                    MESSAGE if folder is None else FOR_NOW.format(folder=folder),
                    file=sys.stderr,
                    flush=True,
                )


F = TypeVar("F", bound=Callable[..., object])

# numba distinguishes functions of one name, as those that one function makes, by counting what a
# process has compiled. Two processes count alike: code loaded from both caches has one name for
# two functions, and the linker takes the first for both (numba/numba#10486). So numbers are drawn.
FunctionIdentity._unique_ids = cast(Any, iter(partial(secrets.randbits, 60), -1))


class _WithoutEnvironment:
    """The code generator for a function that has no address in memory, and no globals to set."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: numba would look for the address of a variable."""


class _Unemitted(JITCodeLibrary):
    """Code of a function that is only linked into its callers, which are optimised as a whole.

    numba would optimise it by itself as well, and make machine code of it.
    """

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment(self._codegen)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


_wait = Wait()
_made: list[bool] = []  # for each function that was compiled, whether Python can call it


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Print no message about the compiler, in the block."""
    before, Wait.told = Wait.told, True
    try:
        yield
    finally:
        Wait.told = before


def n_compiled() -> int:
    """Return how many kernels this process has compiled, for one combination of types each."""
    return sum(_made)


class _Flags(Flags):
    """numba's flags of a compilation, compared in less time.

    numba compares them at every call and attribute, as a part of the keys of its caches.
    """

    __slots__ = ()

    def values(self) -> dict[str, Any]:
        return _DEFAULTS | self._values

    def __hash__(self) -> int:
        return _HASH


_UNLITERAL: Any = numba.types.unliteral
_DEFAULTS = {name: option.default for name, option in Flags.options.items()}
_HASH = hash(Flags())  # type: ignore[no-untyped-call]


class _KernelCompiler(Compiler):
    """numba's compiler, with faster flags, that reports long waits."""

    emits = True

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, names: Any
    ) -> None:
        fast = _Flags(flags)  # type: ignore[no-untyped-call]
        super().__init__(  # type: ignore[no-untyped-call]
            typing, target, library, args, result, fast, names
        )

    def compile_extra(self, function: Any) -> Any:
        _made.append(self.emits)
        with _wait:
            return super().compile_extra(function)  # type: ignore[no-untyped-call]


class _SubroutineCompiler(_KernelCompiler):
    """The same compiler, whose results are `_Unemitted`."""

    emits = False

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        if library is None:
            library = _Unemitted(target.codegen(), "subroutine")  # type: ignore[no-untyped-call]
        super().__init__(typing, target, library, *rest)


def kernel(function: F) -> F:
    """Compile a function with numba, cached on disk; the result has the same type for checkers."""
    return _compiled(function, cache=True)


def borrowing(function: F) -> F:
    """Compile a kernel that makes and returns no arrays.

    The caller holds its arrays, so their references are not counted; counting takes a third of the
    time of a kernel that takes many small views.
    """
    return _compiled(function, cache=True, _nrt=False)


def subroutine(function: F) -> F:
    """Compile a function that only kernels call; Python cannot.

    It is compiled and cached as a part of each caller only, which saves most of the time of a first
    call.
    """
    return _part(function)


def inlined(function: F) -> F:
    """Compile a subroutine as `borrowing` does, and inline it in each caller.

    An array is passed as ten words, so a call with twenty arrays takes longer than a small
    function. It may return views only to callers that are borrowing as well.
    """
    return _part(function, forceinline=True, _nrt=False)


# Without Python's lock, so that several threads run kernels: see `erasable.core.threads`. No C
# function is made of a kernel, which only code outside of Python could call, and which would take a
# tenth of the time to compile.
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "nogil": True,
    "pipeline_class": _KernelCompiler,
}


def _part(function: F, **options: Any) -> F:
    options |= {"no_cpython_wrapper": True, "pipeline_class": _SubroutineCompiler}
    compiled: Any = _compiled(function, **options)
    if hasattr(compiled, "_insert"):  # numba would call a function without an address

        def refuse(*args: Any, **kwargs: Any) -> None:
            raise TypeError(f"{function.__name__}() is a part of kernels; Python cannot call it")

        compiled._insert = lambda *args: None
        compiled._compile_for_args = refuse
    return cast(F, compiled)


def _compiled(function: F, *, cache: bool = False, **options: Any) -> F:
    compiled: Any = numba.njit(**{**_OPTIONS, **options})(function)
    if hasattr(compiled, "get_call_template"):
        template = compiled.get_call_template

        def plain(args: Any, names: Any) -> Any:
            """Treat constants as numbers; else a kernel is compiled once for each constant."""
            return template(
                tuple(map(_UNLITERAL, args)), {name: _UNLITERAL(x) for name, x in names.items()}
            )

        compiled.get_call_template = plain
        if cache:
            compiled._cache = KernelCache(function)
    return cast(F, compiled)


# -- in the background -----------------------------------------------------------------------------

_asked: set[tuple[Any, Any]] = set()
_failed: set[tuple[Any, Any]] = set()
_compilers: list[threading.Thread] = []


def is_compiled(*calls: tuple[Callable[..., object], tuple[Any, ...]]) -> bool:
    """Return whether kernels can be called with arguments of these types without waiting.

    When it is False for the second time, a thread begins to compile what is missing. (A process
    that asks only once would have to wait for that thread at its end.)
    """
    missing = []
    for function, arguments in calls:
        compiled: Any = function
        if hasattr(compiled, "overloads"):  # not where compiling is switched off
            types = tuple(compiled.typeof_pyval(each) for each in arguments)
            if (compiled, types) not in _failed and not _is_cached(compiled, types):
                missing.append((compiled, types))
    if not missing:
        return True
    if any(each not in _asked for each in missing):
        _asked.update(missing)
    elif not _compilers:
        _compilers.append(
            threading.Thread(target=_compile, args=(missing,), name="erasable-compiler")
        )
        _compilers[0].start()
    return False


def wait() -> None:
    """Wait for the compiler in the background, if there is one."""
    for each in tuple(_compilers):
        each.join()


# A fork has no copy of the compiling thread, so nothing would release its locks there.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait)


def _compile(missing: list[tuple[Any, Any]]) -> None:
    _wait.silent = True
    for compiled, types in missing:
        try:
            compiled.compile(types)
        except Exception:  # the caller of the kernel gets the same error
            _failed.add((compiled, types))
    _compilers.clear()


def _is_cached(compiled: Any, types: tuple[Any, ...]) -> bool:
    if types in compiled.overloads:
        return True
    cache = compiled._cache
    return isinstance(cache, KernelCache) and cache.holds(types, compiled.targetctx)
