"""Kernels that several processes compile at the same time, into one cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from erasable.core._jit import kernel


def twice(x: float) -> float:
    return x + x


def cache_of(compiled: Any, folder: Path) -> IndexDataCacheFile:
    """Return the cache of a compiled function, moved to an empty folder."""
    file = compiled._cache._cache_file
    file._cache_path = str(folder)
    file._index_path = str(folder / file._index_name)
    return file


def saved_together(make: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have two processes save what they compiled, who both read the index before; read it."""
    for types, code in (("float64", "code for float64"), ("int64", "code for int64")):
        file = cache_of(make(twice), folder)
        with monkeypatch.context() as patch:
            patch.setattr(file, "_load_index", dict)
            file.save(types, code)
    return [cache_of(make(twice), folder).load(types) for types in ("float64", "int64")]


def test_nobody_is_given_the_code_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = saved_together(kernel, tmp_path, monkeypatch)
    assert found == [None, "code for int64"]  # what is not in the index is compiled again
    assert len(list(tmp_path.glob("*.nbc"))) == 2


def test_numbas_own_names_meet(tmp_path: Path) -> None:
    """The negative control: the first process has written its index, the second its code."""
    one = cache_of(numba.njit(cache=True)(twice), tmp_path)
    other = cache_of(numba.njit(cache=True)(twice), tmp_path)
    assert one._data_name(1) == other._data_name(1)
    ours = cache_of(kernel(twice), tmp_path), cache_of(kernel(twice), tmp_path)
    assert ours[0]._data_name(1) != ours[1]._data_name(1)
