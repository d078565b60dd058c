"""All kernels compiled ahead: what is used afterwards compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from erasable.core.errors import ErasableError
from erasable.utils import compiling

AHEAD = """
import json
from erasable.utils.compiling import compile_kernels
print(json.dumps([each.n_kernels for each in compile_kernels(["MinMaxScaler"], n_jobs=1)]))
"""
AFTERWARDS = """
import numpy as np
from erasable.core import _jit
from erasable.preprocessing import {name}
model = {name}().fit(np.random.default_rng(1).normal(size=(50, 3)))
model.transform(np.ones((2, 3)))
model.delete([1])
print(_jit.n_compiled())
"""


def printed(code: str, cache: Path) -> Any:
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env
    )
    return json.loads(done.stdout)


def test_what_is_compiled_ahead_is_compiled_once(tmp_path: Path) -> None:
    assert printed(AHEAD, tmp_path)[0] > 3
    assert printed(AHEAD, tmp_path) == [0]
    assert printed(AFTERWARDS.format(name="MinMaxScaler"), tmp_path) == 0


@pytest.mark.soak
def test_what_was_not_compiled_ahead_is_found_to_be_missing(tmp_path: Path) -> None:
    """The negative control."""
    printed(AHEAD, tmp_path)
    assert printed(AFTERWARDS.format(name="StandardScaler"), tmp_path) > 0


@pytest.mark.parametrize(("n_kernels", "is_kept"), [(3, True), (3, False), (0, False)])
def test_what_cannot_be_kept_is_told(
    n_kernels: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative controls: kernels that are kept, and none that would have to be."""
    made = compiling.Compiled("MinMaxScaler", n_kernels, 0.1)
    monkeypatch.setattr(compiling, "_compile", lambda *given: made)
    monkeypatch.setattr(compiling, "can_save", lambda: is_kept)
    if n_kernels and not is_kept:
        with pytest.raises(ErasableError, match="kernels are compiled, and none of them is kept"):
            compiling.compile_kernels(["MinMaxScaler"], n_jobs=1)
    else:
        assert compiling.compile_kernels(["MinMaxScaler"], n_jobs=1) == [made]


# -- which kernels there are ----------------------------------------------------------------------

REACHED = """
import importlib, json, pkgutil, sys
import erasable
from erasable.core._jit import subroutine
from erasable.utils.compiling import compile_kernels

names = json.loads(sys.argv[1])
compile_kernels(names, n_jobs=1)
compiled = type(subroutine(lambda x: x))
found = {}
for each in pkgutil.walk_packages(erasable.__path__, "erasable."):
    # Neither a program, nor networks, which have no kernels and need torch.
    if not each.name.endswith("__main__") and each.name.split(".")[1] != "neural":
        for thing in vars(importlib.import_module(each.name)).values():
            if isinstance(thing, compiled):
                found[id(thing)] = thing


def called(thing):
    function = thing.py_func
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    values += [function.__globals__.get(name) for name in function.__code__.co_names]
    return [value for value in values if isinstance(value, compiled)]


reached, waiting = set(), [thing for thing in found.values() if thing.overloads]
while waiting:  # what a kernel was made of was compiled with it, perhaps by another process
    thing = waiting.pop()
    if id(thing) not in reached:
        reached.add(id(thing))
        waiting += called(thing)
name = lambda thing: f"{thing.py_func.__module__}.{thing.py_func.__name__}"
print(json.dumps([
    sorted(name(thing) for key, thing in found.items() if key not in reached),
    sorted(name(thing) for key, thing in found.items() if key in reached),
]))
"""

UNCERTIFIED = "only where double precision does not certify a step of Newton's method"
NOT_AHEAD = {
    **dict.fromkeys(
        [
            "linear_model._exact_gradients._add_row",
            "linear_model._exact_gradients._dot_double",
            "linear_model._exact_gradients._next_rows",
            "linear_model._exact_gradients._residuals",
            "linear_model._exact_gradients._scaled",
            "linear_model._exact_gradients.exact_gradient",
            "linear_model._exact_gradients.exact_gradient_sparse",
            "linear_model._metric.factorise",
            "linear_model._metric.invert_factor",
            "linear_model._metric.solve_lower",
            "linear_model._metric.solve_upper",
            "linear_model._softmax_exact.add_products",
            "linear_model._softmax_exact.divide_double",
            "linear_model._softmax_exact.exp_doubles",
            "linear_model._softmax_kernels.probabilities",
            "linear_model._softmax_sparse._add_squares",
            "linear_model._softmax_sparse._multiply",
        ],
        UNCERTIFIED,
    ),
    **dict.fromkeys(
        [
            "tree._level_kernels._n_below",
            "tree._level_kernels._put",
            "tree._level_kernels.choose",
            "tree._level_kernels.count",
            "tree._level_kernels.draw",
            "tree._level_kernels.find_children",
            "tree._level_kernels.find_races",
            "tree._level_kernels.join_draws",
            "tree._level_kernels.locate",
        ],
        "only for nodes of more than a million records that are not in memory",
    ),
}


def reach(*names: str) -> tuple[set[str], set[str]]:
    """Return the kernels that are not called when these are compiled, and those that are."""
    done = subprocess.run(
        [sys.executable, "-c", REACHED, json.dumps(names or None)],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    unreached, reached = json.loads(done.stdout)
    return (
        {name.removeprefix("erasable.") for name in unreached},
        {name.removeprefix("erasable.") for name in reached},
    )


@pytest.mark.soak
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_every_kernel_is_compiled_ahead_or_is_named_with_a_reason() -> None:
    unreached, reached = reach()
    assert unreached == set(NOT_AHEAD)
    assert len(reached) > 300


@pytest.mark.soak
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_kernel_that_nothing_calls_is_found() -> None:
    """The negative control: of all estimators, one is used."""
    unreached, reached = reach("MinMaxScaler")
    assert "core._grid_kernels.extremes" in reached - unreached
    assert "cluster._levels.descend" in unreached - reached
