"""Kernels that were compiled before, and are loaded from the disk.

The law kept here: what is loaded is the code that was compiled of the same source for the same
types. It relies on private parts of numba, for which `pyproject.toml` has bounds.
"""

from __future__ import annotations

import pickle
import secrets
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys

from erasable.core._kernel_sources import fingerprint


def share_cache(compiled: Any) -> None:
    """Let processes share a cache that compile at the same time, and versions one after the other.

    numba counts up the files of a function, one for each combination of types, from what the
    index of the cache says. Two processes that read the index together give one number to two
    combinations, and a process that reads the cache runs the code of the other: a crash at best.

    And numba reads all of an index before it looks whether that is of this source: an index that an
    earlier version has left, with a type that is not there any more, raises. What it takes for the
    source is the kernel's own file; `fingerprint` tells what else a kernel is made of.
    """
    cache = getattr(compiled, "_cache", None)
    file = getattr(cache, "_cache_file", None)
    if cache is None or file is None:  # where compiling, or caching, is switched off
        return
    pattern, load = file._data_name_pattern, file._load_index
    file._source_stamp = fingerprint(compiled.py_func.__code__.co_filename) or file._source_stamp

    def load_index() -> Any:
        try:
            return load()
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            return {}

    def load_overload(types: Any, context: Any) -> Any:
        """Load a kernel; the compiler, which numba makes ready before that, is not needed for it.

        It would be most of the time: a tenth of what a command takes.
        """
        rtsys.initialize(context)
        if not cache._enabled:
            return None
        with cache._guard_against_spurious_io_errors():
            data = file.load(cache._index_key(types, context.codegen()))
            if data is None:
                return None
            found: Any = CompileResult
            return found._rebuild(_FromCache(context), *data)._replace(target_context=context)
        return None  # where another process has the file, on Windows

    cache.load_overload = load_overload
    file._data_name = lambda number: pattern.format(number=secrets.randbits(60))
    file._load_index = load_index


class _Cached(JITCodeLibrary):
    """The code of a kernel that was compiled before: what compiling asks for is read when asked.

    numba reads the intermediate code of every kernel as it is loaded, which only a new kernel needs
    that calls it. It takes longer than the machine code.
    """

    _machine_code = _intermediate = b""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, (machine_code, intermediate) = state
        assert kind == "object"
        self = cls(codegen, name)
        self.enable_object_caching()  # type: ignore[no-untyped-call]
        self._set_compiled_object(machine_code)  # type: ignore[no-untyped-call]
        self._finalize_final_module()  # type: ignore[no-untyped-call]
        self._machine_code, self._intermediate = machine_code, intermediate
        return self

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, if the code has one of that name."""
        if name.encode() not in self._machine_code:
            return 0
        address: int = self._codegen._engine.get_function_address(name)
        return address

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self._intermediate)
            self._codegen._engine._load_defined_symbols(self._shared_module)  # type: ignore[no-untyped-call]
        return self._shared_module


class _FromCache:
    """numba's context for a kernel that is loaded, whose code is to be `_Cached`."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> Any:
        return self

    def unserialize_library(self, state: Any) -> Any:
        return _Cached._unserialize(self._context.codegen(), state)
