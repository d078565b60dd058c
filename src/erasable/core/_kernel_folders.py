"""Folders of compiled kernels besides those of numba: what a wheel carries, and a temporary one.

A wheel's kernels are compiled by `packaging/kernels.py` for levels of processors, and not for one
processor. Where none fits, because the source, numba or the processor is another, kernels are
compiled as always.
"""

from __future__ import annotations

import os
import pickle
import platform
import stat
import tempfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
from numba.core.caching import FunctionCache, _CacheLocator

_ROOT = Path(__file__).parents[1]
SHIPPED = _ROOT / "_kernels"
"""In it the folders of the package, and in these numba's indexes and the machine code."""


class Level(NamedTuple):
    """A level of processors, as LLVM names it, and what these can do."""

    name: str
    features: tuple[str, ...]

    @property
    def flattened(self) -> str:
        """The features as numba writes them."""
        return ",".join(f"+{each}" for each in self.features)


_V2 = ("64bit", "cmov", "cx16", "cx8", "fxsr", "mmx", "popcnt", "sahf", "sse", "sse2", "sse3",
       "sse4.1", "sse4.2", "ssse3")  # fmt: skip
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = {"x86_64": (Level("x86-64-v3", _V3), Level("x86-64-v2", _V2))}
"""The levels by machine, the highest first."""


def levels() -> tuple[Level, ...]:
    """Return the levels for machines such as this one."""
    return LEVELS.get(platform.machine().lower().replace("amd64", "x86_64"), ())


@cache
def fitting() -> tuple[Level, ...]:
    """Return the levels whose code this processor can run."""
    if {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"} & os.environ.keys():
        return ()  # code for that processor is asked for
    there = llvmlite.binding.get_host_cpu_features()
    return tuple(each for each in levels() if all(there.get(name) for name in each.features))


def shipped(function: Any) -> Any:
    """Return numba's index of the kernels of a function in `SHIPPED`; None without one."""
    if not (SHIPPED.is_dir() and fitting()):
        return None
    found = _cache_in(SHIPPED, function)
    if found is None:
        return None
    index = found._cache_file
    index._load_data = lambda name: _unpacked(Path(index._data_path(name)))
    return index


def packed(kernel: bytes) -> bytes:
    """Compress a file of numba."""
    return zlib.compress(kernel, 9)


def _unpacked(path: Path) -> Any:
    """Load a file of numba that was compressed."""
    return pickle.loads(zlib.decompress(path.read_bytes()))


def shipped_keys(key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the keys under which code is filed that this processor can run, the best first.

    `key` is numba's: the types, the triple, name and features of the processor, and the source.
    """
    types, (triple, _, _), *source = key
    return [(types, (triple, each.name, each.flattened), *source) for each in fitting()]


def in_temporary(function: Any) -> Any:
    """Return numba's cache of a function in a temporary folder; None without one."""
    folder = _make_temporary()
    return None if folder is None else _cache_in(folder, function, make=True)


def temporary() -> Path:
    """Return the path of the temporary folder, each user's own; OSError if there can be none."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir(), f"erasable-kernels-{user}")


def _make_temporary() -> Path | None:
    """Make a folder that its user alone can write to; None where that fails."""
    try:
        folder = temporary()
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if os.name == "nt":
        return folder
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder if is_own and not found.st_mode & 0o077 else None


def _cache_in(root: Path, function: Any, make: bool = False) -> Any:
    """Return numba's cache of a function in a folder; None if it is not there, or not of ours."""
    implementation: Any = FunctionCache._impl_class
    locators = {"_locator_classes": [_Locator(root, make)]}
    made: Any = type("_Implementation", (implementation,), locators)
    found: Any = type("_Cache", (FunctionCache,), {"_impl_class": made})
    try:
        return found(function)
    except RuntimeError:
        return None


class _Locator:
    """numba's locator of the kernels of a module, by its place in the package."""

    def __init__(self, root: Path, make: bool, file: str = "", line: int = 0) -> None:
        self._root, self._make, self._file, self._line = root, make, file, line

    def from_function(self, function: Any, file: str) -> _Locator | None:
        """Return the locator of a function; None where it has no folder."""
        place = Path(file).resolve().parent
        if place.is_relative_to(_ROOT):
            folder = self._root / place.relative_to(_ROOT)
        else:  # a kernel of a user's
            folder = self._root / _CacheLocator.get_suitable_cache_subpath(file)  # type: ignore[no-untyped-call]
        found = _Locator(folder, self._make, file, function.__code__.co_firstlineno)
        try:
            found.ensure_cache_path()
        except OSError:
            return None
        return found if folder.is_dir() else None

    def ensure_cache_path(self) -> None:
        """Make the folder, and the one that it is in, where anything may be written."""
        if self._make:
            if _make_temporary() is None:
                raise OSError(f"{self._root} may be written to by others")
            self._root.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._root)

    def get_source_stamp(self) -> Any:
        """Return nothing: `erasable.core._kernel_cache` has the hash of the source."""
        return None

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return str(self._line)
