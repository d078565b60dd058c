"""All kernels compiled ahead: what is used afterwards compiles nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
