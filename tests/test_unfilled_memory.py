"""Files of models have no memory that nothing was written to: what lay there may be a record.

The C library fills memory that it hands out with a pattern, where it is asked to (glibc), and so
does NumPy here. The pattern is looked for in the files of every estimator, in a process of its own.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FILL = 0xA5
PATTERNS = [bytes([FILL]) * 8, bytes([FILL ^ 0xFF]) * 8]  # of what is freed, and of what is new
N = 1500


def _unfilled(estimator: Any) -> set[str]:
    """Return in which files of a model there is memory that was not filled."""
    from traces import contents

    from erasable import load
    from suited_to_some import tables

    ids, found = [f"visit-{n}" for n in range(N)], set()
    for X, y in tables(N):
        try:
            model = estimator.fit(X, y, ids=ids)
        except (ValueError, TypeError):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "accelerators"
            folder.mkdir()
            for step in range(4):
                if step == 1:
                    model.delete(ids[:3])
                elif step == 2:
                    model.add(X[:3], y[:3], ids=["new-0", "new-1", "new-2"])
                elif step == 3:
                    model = load(folder / "model", records=True)
                    model.delete(ids[10:40])
                model.save(folder / "model", records=True)
                for path in folder.rglob("*"):
                    if path.is_file() and any(each in contents(path) for each in PATTERNS):
                        found.add(path.name)
        return found
    raise AssertionError(f"no records suit {estimator}")


class _Filling:
    """NumPy that fills what it makes: small arrays come from a cache of its own."""

    def __init__(self, n_times: int = 1) -> None:
        self._n_times = n_times

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: Any, dtype: Any = float, **how: Any) -> Any:
        several = isinstance(shape, int) and self._n_times > 1
        made = np.empty((self._n_times, shape) if several else shape, dtype, **how)
        if made.dtype != object:
            made.ravel(order="K").view(np.uint8)[...] = FILL
        return made[0] if several else made


def _fill(n_times: int) -> None:
    """Have all modules but those of kernels fill arrays, or take one of several for each."""
    for name, module in list(sys.modules.items()):
        if name.startswith("erasable.") and getattr(module, "np", None) is np:
            kernels = (each for each in vars(module).values() if hasattr(each, "py_func"))
            if all(each.py_func.__module__ != name for each in kernels):
                setattr(module, "np", _Filling(n_times))  # noqa: B010


def main(kind: str) -> None:
    """Print what is found, of every estimator or of one that is broken."""
    here = Path(__file__).parent
    sys.path[:0] = [str(here), str(here / "workspace")]
    from erasable.ensemble import HistGradientBoostingRegressor
    from law_instances import first_instances

    instances: list[Any] = first_instances()
    if kind == "broken":
        instances = [HistGradientBoostingRegressor(random_state=0)]
    _fill(2 if kind == "broken" else 1)
    assert any(each in np.empty(4000).tobytes() for each in PATTERNS)
    for estimator in instances:
        if found := _unfilled(estimator):
            print(type(estimator).__name__, *sorted(found))


@pytest.mark.soak
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
@pytest.mark.parametrize("kind", ["ours", "broken"])
def test_files_have_no_memory_that_was_not_filled(kind: str) -> None:
    env = {**os.environ, "MALLOC_PERTURB_": str(FILL)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, kind],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == {"ours": "", "broken": "HistGradientBoostingRegressor now\n"}[kind]


if __name__ == "__main__":
    main(sys.argv[1])
