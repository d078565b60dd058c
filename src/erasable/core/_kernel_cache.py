"""Cache of compiled kernels on disk.

The law kept here: a kernel that is loaded was compiled from the same source for the same types.
This relies on private parts of numba, for which `pyproject.toml` has bounds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import llvmlite.binding
from numba.core.caching import FunctionCache, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys

from . import _kernel_folders

_ROOT = Path(__file__).parents[1]

# What follows `import` in brackets may take several lines. Imports within functions count as well.
_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.+|erasable\b\.?)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|.*)", re.MULTILINE
)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+(erasable\b\.?)([\w.]*)()", re.MULTILINE)


@cache
def fingerprint(path: str) -> str | None:
    """Hash a module of kernels, with all it imports of this package; None if it cannot be read."""
    try:
        found = sources(path)
    except OSError:  # in an archive, or typed by hand
        return None
    texts = sorted(f"{each.name} {text}" for each, text in found.items())  # in any folder
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def sources(path: str) -> dict[Path, str]:
    """Return the hashes of a module, and of all modules that it imports of this package."""
    found: dict[Path, str] = {}
    waiting = [Path(path)]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each], imported = _read(each)
            waiting.extend(imported)
    return found


@cache
def _read(path: Path) -> tuple[str, tuple[Path, ...]]:
    """Return the hash of a file, and the files it imports from, as they are at the first call."""
    text = path.read_bytes()
    imported: list[Path] = []
    decoded = text.decode(errors="replace")
    for start, names, parts in [*_FROM.findall(decoded), *_IMPORT.findall(decoded)]:
        folder = path.parents[len(start) - 1] if start.startswith(".") else _ROOT
        module = folder.joinpath(*names.split(".")) if names else folder
        if module.with_suffix(".py").is_file():
            imported.append(module.with_suffix(".py"))
        elif module.is_dir():
            modules = [module / f"{name}.py" for name in re.findall(r"\w+", parts)]
            imported += filter(Path.is_file, [module / "__init__.py", *modules])
    return hashlib.sha256(text).hexdigest(), tuple(imported)


class KernelCache(NullCache):
    """Loads and saves the compiled forms of one kernel, for numba.

    Kernels are saved in the first folder that numba may write to, or in a temporary one. If there
    is none, or saving fails, they are compiled in memory. Kernels in a read-only folder, such as
    the package's own in an image, are loaded as well.

    Processes may share a folder and compile at the same time. numba numbers the files of a
    function, one for each combination of types, by the index of the cache. Two processes that read
    the index together give one number to two combinations, and a process that reads the cache then
    runs the code of the other: a crash at best.

    numba also reads an index whole before it compares the source: an index of an earlier version,
    with a type that no longer exists, raises, and so does a damaged file. numba's source is the
    kernel's own file; `fingerprint` covers the modules it imports.
    """

    def __init__(self, function: Any) -> None:
        self._py_func = function
        self._saving: Any
        self._cache_file: Any = None
        try:
            self._saving = FunctionCache(function)  # type: ignore[no-untyped-call]
        except RuntimeError:  # numba finds no folder that it may write to
            self._saving = _kernel_folders.in_temporary(function)
        if self._saving is not None:
            self._cache_file = _shared(self._saving._cache_file, function)

    @property
    def cache_path(self) -> Any:
        """The folder of saved kernels."""
        return None if self._saving is None else self._saving.cache_path

    def load_overload(self, types: Any, context: Any) -> Any:
        """Load a kernel without making the compiler ready, a tenth of a command's time."""
        rtsys.initialize(context)
        for file, key in self._places(types, context):
            with contextlib.suppress(OSError):  # another process has the file, on Windows
                data = file.load(key)
                if data is not None:
                    found: Any = CompileResult
                    made = found._rebuild(_FromCache(context), *data)
                    return made._replace(target_context=context)
        return None

    def save_overload(self, types: Any, data: Any) -> None:
        """Save a kernel, unless the disk is full."""
        if self._saving is not None:
            with contextlib.suppress(OSError):
                self._saving.save_overload(types, data)

    def holds(self, types: Any, context: Any) -> bool:
        """Return whether a kernel can be loaded for some types."""
        return any(key in file._load_index() for file, key in self._places(types, context))

    def _key(self, types: Any, context: Any) -> Any:
        index_key: Any = FunctionCache._index_key
        return index_key(self, types, context.codegen())

    def _places(self, types: Any, context: Any) -> Iterator[tuple[Any, Any]]:
        """Iterate over the indexes that may have a kernel, and its keys in them."""
        key = self._key(types, context)
        if self._cache_file is not None:
            yield self._cache_file, key
        if (shipped := self._shipped) is not None:
            yield from ((shipped, each) for each in _kernel_folders.shipped_keys(key))
        yield from ((file, key) for file in self._read_only)

    @cached_property
    def _shipped(self) -> Any:
        """The index of the kernels that a wheel has brought."""
        index = _kernel_folders.shipped(self._py_func)
        return None if index is None else _shared(index, self._py_func)

    @cached_property
    def _read_only(self) -> list[Any]:
        """Indexes in folders that cannot be written to."""
        found = []
        implementation: Any = FunctionCache._impl_class
        for locator in implementation._locator_classes:
            of_locator = {"_locator_classes": [_read_only(locator)]}
            made: Any = type("_Implementation", (implementation,), of_locator)
            cache: Any = type("_Cache", (FunctionCache,), {"_impl_class": made})
            try:
                found.append(_shared(cache(self._py_func)._cache_file, self._py_func))
            except RuntimeError:  # it has none
                continue
        return found


def can_save() -> bool:
    """Return whether there is a folder to save compiled kernels in."""
    return KernelCache(can_save).cache_path is not None


def saves_for_now() -> Path | None:
    """Return the temporary folder, if kernels are saved there for want of another."""
    path = KernelCache(can_save).cache_path
    if path is None:
        return None
    with contextlib.suppress(OSError):
        folder = _kernel_folders.temporary()
        return folder if Path(path).is_relative_to(folder) else None
    return None


def _read_only(locator: Any) -> Any:
    """Return numba's locator of a folder that cannot be written to."""

    class ReadOnly(locator):
        def ensure_cache_path(self) -> None:
            path = self.get_cache_path()
            if not os.path.isdir(path):
                raise FileNotFoundError(path)
            try:
                super().ensure_cache_path()
            except OSError:
                return
            raise FileExistsError(path)

    return ReadOnly


def _shared(file: Any, function: Any) -> Any:
    """Let processes and versions share an index; see `KernelCache`."""
    pattern, load, load_data = file._data_name_pattern, file._load_index, file._load_data
    file._source_stamp = fingerprint(function.__code__.co_filename) or file._source_stamp

    def load_index() -> Any:
        try:
            return load()
        except Exception:  # a damaged pickle may raise anything
            return {}

    def load_kernel(name: str) -> Any:
        try:
            return load_data(name)
        except Exception as error:
            raise OSError(f"{name} is missing or damaged") from error

    file._data_name = lambda number: pattern.format(number=secrets.randbits(60))
    file._load_index, file._load_data = load_index, load_kernel
    return file


class _Cached(JITCodeLibrary):
    """Code of a kernel that was compiled before; its intermediate code is read only when needed.

    Only a new kernel that calls this one needs it; reading it takes longer than the machine code.
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
    """numba's context for a kernel that is loaded as `_Cached` code."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> Any:
        return self

    def unserialize_library(self, state: Any) -> Any:
        return _Cached._unserialize(self._context.codegen(), state)
