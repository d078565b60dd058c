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
from numba.core.compiler import Flags

from erasable.cluster import _levels
from erasable.core import _jit, _kernel_cache
from erasable.core._jit import kernel, subroutine
from subroutines import standalone


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


# -- sources that change --------------------------------------------------------------------------

LAYOUT = """
from typing import NamedTuple

class Pair(NamedTuple):
    {fields}

FACTOR = {factor}
"""
CALLEE = """
from erasable.core._jit import subroutine

@subroutine
def part(x):
    return x {sign} 1.0
"""
CALLER = """
from erasable.core._jit import kernel
from .layout import FACTOR, Pair
from .callee import part
from . import apart

@kernel
def use(pair):
    return FACTOR * part(pair.first) + apart.LATER
"""
CALLING = """
from erasable.core import _jit
{before}
from pack.caller import Pair, use
print(use(Pair(first=1.0, second=2.0)), _jit.n_compiled())
"""
BLIND = """
from erasable.core import _kernel_cache
_kernel_cache.fingerprint = lambda path: None  # what numba does
"""
FIRST, SECOND = "first: float; second: float", "second: float; first: float"
SOURCES = {
    "layout": LAYOUT.format(fields=FIRST, factor=5),
    "callee": CALLEE.format(sign="+"),
    "apart": "LATER = 100",
    "caller": CALLER,
}
CHANGES = [  # one after the other, and what is found then
    ("layout", LAYOUT.format(fields=FIRST, factor=7), 7.0 * (1 + 1) + 100),
    ("layout", LAYOUT.format(fields=SECOND, factor=7), 7.0 * (1 + 1) + 100),
    ("apart", "LATER = 200", 7.0 * (1 + 1) + 200),
    ("callee", CALLEE.format(sign="-"), 7.0 * (1 - 1) + 200),
]


def called(folder: Path, before: str = "") -> list[float]:
    """Return what the kernel finds in a process of its own, and how many were compiled there."""
    (folder / "calling.py").write_text(CALLING.format(before=before))
    return [float(each) for each in run(folder, "calling.py").stdout.split()]


def written(folder: Path, name: str, text: str) -> None:
    """Write a module with the time and size of before: only its text says that it is another."""
    file = folder / "pack" / f"{name}.py"
    assert not file.exists() or file.stat().st_size == len(text)
    file.write_text(text)
    os.utime(file, (1e9, 1e9))
    for compiled in folder.rglob("*.pyc"):
        compiled.unlink()


def test_a_kernel_is_compiled_anew_when_what_it_is_made_of_has_changed(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    for name, text in SOURCES.items():
        written(tmp_path, name, text)
    assert called(tmp_path) == [5.0 * (1 + 1) + 100, 1]
    assert called(tmp_path) == [5.0 * (1 + 1) + 100, 0]
    for name, text, found in CHANGES:
        written(tmp_path, name, text)
        assert called(tmp_path) == [found, 1]


@pytest.mark.soak
def test_numba_runs_what_was_compiled_of_an_earlier_layout(tmp_path: Path) -> None:
    """The negative control: it takes the second field for the first."""
    (tmp_path / "pack").mkdir()
    for name, text in SOURCES.items():
        written(tmp_path, name, text)
    assert called(tmp_path, BLIND) == [5.0 * (1 + 1) + 100, 1]
    written(tmp_path, "layout", LAYOUT.format(fields=SECOND, factor=5))
    assert called(tmp_path, BLIND) == [5.0 * (2 + 1) + 100, 0]


def test_kernels_do_not_depend_on_modules_that_they_do_not_import() -> None:
    """The negative control: a module that a kernel's module imports."""
    found = {each.name for each in _kernel_cache.sources(_levels.__file__)}
    assert {"_levels.py", "_layout.py", "_filing.py", "_jit.py", "arrays.py"} <= found
    assert not found & {"_filed_levels.py", "_run.py", "estimator.py"}


@pytest.mark.parametrize("comment", ["", "# "])
def test_a_module_imported_by_its_whole_name_counts(tmp_path: Path, comment: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(f"{comment}import erasable.cluster._layout as layout\n")
    found = {each.name for each in _kernel_cache.sources(str(file))}
    assert ("_layout.py" in found) == (not comment)


# -- kernels that are loaded --------------------------------------------------------------------

INNER = """
import numba
import numpy as np
from erasable.core._jit import kernel

@{make}
def inner(x):
    return np.cumsum(np.full(3, x)).sum()
"""
OUTER = """
from inner import inner
from erasable.core._jit import kernel

@kernel
def {name}(x):
    return inner(x) + {more}
"""
ASKED = """
import sys
from {module} import {name}
from erasable.core._jit import n_compiled
print({name}(2.0), n_compiled(), "numba.typed.typedlist" in sys.modules)
"""


def asked(folder: Path, module: str, name: str) -> list[str]:
    """Return what a kernel finds in a new process, what was compiled, and whether numba was."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED.format(module=module, name=name)], cwd=folder, check=True,
        stdout=subprocess.PIPE, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    return done.stdout.split()


def test_a_kernel_that_is_loaded_does_without_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(INNER.format(make="kernel"))
    assert asked(tmp_path, "inner", "inner") == ["12.0", "1", "True"]
    assert asked(tmp_path, "inner", "inner") == ["12.0", "0", "False"]


def test_a_kernel_that_is_loaded_is_linked_into_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(INNER.format(make="kernel"))
    asked(tmp_path, "inner", "inner")
    for name, more in (("first", 1.0), ("second", 2.0)):
        (tmp_path / f"{name}.py").write_text(OUTER.format(name=name, more=more))
        assert asked(tmp_path, name, name) == [str(12.0 + more), "1", "True"]
        assert asked(tmp_path, name, name) == [str(12.0 + more), "0", "False"]


@pytest.mark.soak
def test_numba_makes_its_compiler_ready_for_what_it_loads(tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "inner.py").write_text(INNER.format(make="numba.njit(cache=True)"))
    asked(tmp_path, "inner", "inner")
    assert asked(tmp_path, "inner", "inner") == ["12.0", "0", "True"]


# -- folders that cannot be written to ------------------------------------------------------------

USED = """
import errno, sys
from numba.core import caching

def fail(*given):
    raise OSError(errno.EROFS, "no room")

{before}
from erasable.core._jit import n_compiled
from erasable.core._kernel_cache import can_save
from used import f
print(f({x}), n_compiled(), can_save())
"""
NOT_THERE = "caching._CacheLocator.ensure_cache_path = fail"
NO_FOLDER = f"""
{NOT_THERE}
from erasable.core import _kernel_folders
_kernel_folders._make_temporary = lambda: None
"""
NO_ROOM = "caching.IndexDataCacheFile.save = fail"
KERNEL = """
import numba
from erasable.core._jit import kernel

@{make}
def f(x):
    return x + x
"""


def used(folder: Path, before: str, x: str = "2.0") -> subprocess.CompletedProcess[str]:
    """Call a kernel in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", USED.format(before=before, x=x)], cwd=folder, capture_output=True,
        text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(folder)},
    )  # fmt: skip


def saved(folder: Path) -> list[Path]:
    return sorted((folder / "cache").rglob("*.nb?"))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_was_compiled_is_loaded_from_a_folder_that_cannot_be_written_to(
    tmp_path: Path,
) -> None:
    """What was not is compiled in memory."""
    (tmp_path / "used.py").write_text(KERNEL.format(make="kernel"))
    assert used(tmp_path, NO_FOLDER).stdout.split() == ["4.0", "1", "False"]
    assert not saved(tmp_path)
    assert used(tmp_path, "").stdout.split() == ["4.0", "1", "True"]
    before = saved(tmp_path)
    assert len(before) == 2
    assert used(tmp_path, NO_FOLDER).stdout.split() == ["4.0", "0", "False"]
    assert used(tmp_path, NO_FOLDER, "3").stdout.split() == ["6", "1", "False"]
    assert saved(tmp_path) == before


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.skipif(os.name == "nt", reason="no modes of folders")
def test_kernels_are_saved_in_a_temporary_folder_of_the_user_alone(tmp_path: Path) -> None:
    (tmp_path / "used.py").write_text(KERNEL.format(make="kernel"))
    assert used(tmp_path, NOT_THERE).stdout.split() == ["4.0", "1", "True"]
    assert used(tmp_path, NOT_THERE).stdout.split() == ["4.0", "0", "True"]
    (made,) = tmp_path.glob("erasable-kernels-*")
    assert made.stat().st_mode & 0o777 == 0o700
    made.chmod(0o770)  # others may have put code there
    assert used(tmp_path, NOT_THERE).stdout.split() == ["4.0", "1", "False"]
    made.rename(tmp_path / "elsewhere")
    made.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    assert used(tmp_path, NOT_THERE).stdout.split() == ["4.0", "1", "False"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.skipif(os.name == "nt", reason="no modes of folders")
def test_a_temporary_folder_that_is_removed_is_made_for_the_user_alone_again(
    tmp_path: Path,
) -> None:
    """Otherwise, no later process may use it."""
    (tmp_path / "used.py").write_text(KERNEL.format(make="kernel"))
    removed = "import used, shutil, erasable.core._kernel_folders as folders"
    gone = f"{NOT_THERE}; {removed}; shutil.rmtree(folders.temporary())"
    assert used(tmp_path, gone).stdout.split() == ["4.0", "1", "True"]
    (made,) = tmp_path.glob("erasable-kernels-*")
    assert made.stat().st_mode & 0o777 == 0o700
    assert used(tmp_path, NOT_THERE).stdout.split() == ["4.0", "0", "True"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x05\x8c\x02\xe3", b"Iname\n.", b"\x80\x05\x8d" + b"\x7f" * 8],
    ids=["empty", "not UTF-8", "not a number", "too long"],
)
def test_damaged_files_of_the_cache_are_compiled_again(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    (tmp_path / "used.py").write_text(KERNEL.format(make="kernel"))
    assert used(tmp_path, "").stdout.split() == ["4.0", "1", "True"]
    (damaged,) = (each for each in saved(tmp_path) if each.suffix == suffix)
    damaged.write_bytes(content)
    assert used(tmp_path, "").stdout.split() == ["4.0", "1", "True"]
    assert used(tmp_path, "").stdout.split() == ["4.0", "0", "True"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_long_wait_names_the_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "used.py").write_text(KERNEL.format(make="kernel"))
    soon = "from erasable.core import _jit; _jit.PATIENCE = 0.0"
    assert f"{tmp_path}/erasable-kernels-" in used(tmp_path, f"{NOT_THERE}; {soon}").stderr
    assert "once per installation" in used(tmp_path, soon).stderr


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_kernel_that_cannot_be_saved_is_used(tmp_path: Path) -> None:
    (tmp_path / "used.py").write_text(KERNEL.format(make="kernel"))
    assert used(tmp_path, NO_ROOM).stdout.split() == ["4.0", "1", "True"]


@pytest.mark.soak
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize(("before", "error"), [(NOT_THERE, "RuntimeError"), (NO_ROOM, "OSError")])
def test_numba_fails_where_it_cannot_save(tmp_path: Path, before: str, error: str) -> None:
    """The negative control."""
    (tmp_path / "used.py").write_text(KERNEL.format(make="numba.njit(cache=True)"))
    assert used(tmp_path, "").stdout.split() == ["4.0", "0", "True"]  # which counts kernels of ours
    assert error in used(tmp_path, before, "3").stderr


# -- subroutines ----------------------------------------------------------------------------------


def plus(x: float, k: int) -> float:
    return x + k


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_python_cannot_call_a_subroutine_and_kernels_can() -> None:
    """It has no address: the negative control is a kernel of the same function."""
    part = subroutine(plus)

    @kernel
    def use(x: float) -> float:
        return part(x, 1)

    for _ in range(2):  # before and after it is compiled
        with pytest.raises(TypeError, match=r"^plus\(\) is a part of kernels"):
            part(1.0, 1)
        assert use(1.0) == 2.0
    assert standalone(part)(1.0, 1) == kernel(plus)(1.0, 1) == 2.0


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_subroutine_is_compiled_once_for_all_constants() -> None:
    part = subroutine(plus)

    @kernel
    def use(x: float, k: int) -> float:
        return part(x, 1) + part(x, 2) + part(x, k)

    assert use(1.0, 3) == 9.0
    assert len(part.overloads) == 1


def test_flags_that_are_compared_faster_are_equal_to_numbas() -> None:
    theirs = Flags()
    theirs.nrt = True
    ours, other = _jit._Flags(theirs), _jit._Flags(theirs)
    assert ours == theirs
    assert theirs == ours
    assert hash(ours) == hash(theirs)
    other.nrt = False
    assert ours != other


# -- who waits ------------------------------------------------------------------------------------

WAITING = """
import sys, threading
from erasable.core import _jit

@_jit.kernel
def first(x):
    return x + 1

@_jit.kernel
def second(x):
    return x * 2

_jit.PATIENCE = {patience}
print(first(1.0), second(1.0))
"""


@pytest.mark.parametrize("patience", [0.0, 1e9])
def test_who_waits_for_the_compiler_is_told_once(tmp_path: Path, patience: float) -> None:
    """The negative controls: nobody who has more patience, and nobody who finds it compiled."""
    (tmp_path / "waiting.py").write_text(WAITING.format(patience=patience))
    for told in (1 if patience == 0.0 else 0, 0):
        done = run(tmp_path, "waiting.py")
        assert done.stdout.split() == ["2.0", "2.0"]
        assert done.stderr == (_jit.MESSAGE + "\n") * told


BACKGROUND = """
from erasable.core import _jit

@_jit.kernel
def slow(x):
    return x + 1

_jit.PATIENCE = 0.0
print(_jit.is_compiled((slow, (1.0,))), len(_jit._compilers))
print(_jit.is_compiled((slow, (1.0,))), len(_jit._compilers) or len(slow.overloads))
_jit.wait()
print(_jit.is_compiled((slow, (1.0,))), len(slow.overloads))
print(_jit.is_compiled((slow, (1,))), len(slow.overloads))
"""


def test_kernels_are_compiled_in_the_background_when_they_are_asked_for_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "background.py").write_text(BACKGROUND)
    done = run(tmp_path, "background.py")
    assert done.stdout.split() == ["False", "0", "False", "1", "True", "1", "False", "1"]
    assert done.stderr == ""  # nobody waits
    again = run(tmp_path, "background.py")
    assert again.stdout.split() == ["True", "0", "True", "0", "True", "0", "False", "0"]


def run(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, name], cwd=folder, check=True, capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
