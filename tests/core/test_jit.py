"""Kernels that several processes compile at the same time, into one cache."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
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


# -- functions of one name ------------------------------------------------------------------------

PARTS = """
import numba

def make(k):
    @numba.njit
    def part(x):
        y = x
{steps}
        return y + k
    return part
"""
STEP = """
        {word} x < {i}.5:
            y = (y * {i}.25 + k) / (y + {i}.75)"""
STEPS = "".join(STEP.format(word="elif" if i else "if", i=i) for i in range(60))  # not inlined
USER = """
from parts import make
from erasable.core._jit import kernel

part = make({k})

@kernel
def f(x):
    return part(x) + part(x + 1.0) * part(x + 2.0)
"""
COUNTED = """
import itertools
import erasable.core._jit
from numba.core.bytecode import FunctionIdentity
FunctionIdentity._unique_ids = itertools.count(1)
"""


def values_of(folder: Path, names: list[str], before: str) -> list[float]:
    """Return what the kernels of some modules find, in a process of their own."""
    told = f"import json, {', '.join(names)}\nprint(json.dumps([m.f(3.0) for m in ({names[0]},"
    code = before + told + f"{', '.join(names[1:])})]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, stdout=subprocess.PIPE,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    found: list[float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "before",
    [pytest.param("", id="drawn"), pytest.param(COUNTED, id="counted", marks=pytest.mark.soak)],
)
def test_functions_of_one_name_are_told_apart(tmp_path: Path, before: str) -> None:
    """The negative control: counted as numba does it, both are the first that was loaded."""
    (tmp_path / "parts.py").write_text(PARTS.format(steps=STEPS))
    for k in (1, 2):
        (tmp_path / f"user{k}.py").write_text(USER.format(k=k))
    alone = [values_of(tmp_path, [f"user{k}"], before)[0] for k in (1, 2)]
    assert alone[0] != alone[1]
    together = values_of(tmp_path, ["user1", "user2"], before)
    assert together == (alone if not before else [alone[0]] * 2)


# -- indexes out of range -------------------------------------------------------------------------

BEYOND = """
import numpy as np
from erasable.core import _jit

@_jit.{how}
def read(values, at):
    return values[at]

print(read(np.arange(3.0), 1))
try:
    read(np.arange(3.0), 3)
except IndexError:
    print("noticed")
"""


@pytest.mark.parametrize("how", ["kernel", "borrowing"])
@pytest.mark.parametrize("checked", ["1", "0"])
def test_what_is_out_of_range_is_noticed_where_it_is_asked_for(
    tmp_path: Path, how: str, checked: str
) -> None:
    """As `make soak` does, where an index out of range would be a lie or a crash elsewhere."""
    (tmp_path / "beyond.py").write_text(BEYOND.format(how=how))
    done = subprocess.run(
        [sys.executable, "beyond.py"], cwd=tmp_path, check=True, capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_BOUNDSCHECK": checked},
    )  # fmt: skip
    assert done.stdout.split() == ["1.0"] + ["noticed"] * int(checked)


def test_an_index_of_an_earlier_version_is_compiled_again(tmp_path: Path) -> None:
    """It names a type that is not there any more; numba's own function raises."""

    def damaged(make: Any) -> IndexDataCacheFile:
        file = cache_of(make(twice), tmp_path)
        version = pickle.dumps(file._version, protocol=-1)
        (tmp_path / file._index_name).write_bytes(version + b"cerasable.tree._layout\nPlant\n.")
        return file

    assert damaged(kernel).load("float64") is None
    with pytest.raises(AttributeError):
        damaged(numba.njit(cache=True)).load("float64")
