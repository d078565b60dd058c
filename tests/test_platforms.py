"""The same digests whatever the processor, the BLAS and the number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from effort import THOROUGH

PLATFORMS = {
    "one thread": {},
    "two threads": dict.fromkeys(
        ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "2"
    ),
    "an old BLAS": {"OPENBLAS_CORETYPE": "Prescott"},
    "a generic processor": {"NUMBA_CPU_NAME": "generic"},
}
BRIEFLY = () if THOROUGH else ("an old BLAS", "a generic processor")
SUMMING = ("GaussianNB", "LinearRegression", "StandardScaler")
"""What `make test` tries there: kernels whose sums a processor might do in another order."""

ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@cache
def told_by(platform: str) -> Any:
    """What `platform_digests.py` prints in an environment."""
    tests = Path(__file__).resolve().parent
    environment = {
        **os.environ,
        **ONE_THREAD,
        **PLATFORMS[platform],
        "PYTHONPATH": os.pathsep.join([str(tests), *filter(None, sys.path)]),
    }
    names = SUMMING if platform in BRIEFLY else ()
    command = [sys.executable, str(tests / "platform_digests.py"), *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("platform", list(PLATFORMS)[1:])
def test_digests_are_the_same_on(platform: str) -> None:
    mine, theirs = told_by("one thread")["digests"], told_by(platform)["digests"]
    if platform in BRIEFLY:
        mine = {name: digest for name, digest in mine.items() if name.split()[0] in SUMMING}
    assert len(mine) > (5 if platform in BRIEFLY else 50)
    assert mine.keys() == theirs.keys()
    assert [name for name in mine if mine[name] != theirs[name]] == []


def test_the_platforms_are_what_they_say() -> None:
    here = {platform: told_by(platform)["here"] for platform in PLATFORMS}
    assert here["one thread"]["numba"] == "host"
    assert here["one thread"]["numba_threads"] == here["one thread"]["blas_threads"] == 1
    assert here["two threads"]["numba_threads"] == 2
    assert here["a generic processor"]["numba"] == "generic"
    if here["one thread"]["blas"] == here["an old BLAS"]["blas"]:
        pytest.skip(f"this BLAS cannot be told its processor: {here['an old BLAS']['blas']}")
    # The negative control: had a product by BLAS entered the state, the digests would differ.
    assert told_by("one thread")["product"] != told_by("an old BLAS")["product"]
