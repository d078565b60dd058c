"""Have every test draw the same in each run, also where it gives no seed. A plugin of pytest.

A test that draws from the system fails once in thousands of runs, and nobody finds out why. So the
generators that a missing seed leads to are seeded with the name of the test, or of the fixture:
NumPy's, its global one, Python's, and the seeds that erasable draws for ``random_state=None``. What
has to be unique among processes, such as keys and the names of files, still is of the system.
``make soak SEED=2`` draws other seeds than ``make soak``.

``ERASABLE_ENTROPY=1 pytest ...`` lists the tests that draw without a seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest

from effort import SEED

__all__ = ["seeded"]

_TELLS = os.environ.get("ERASABLE_ENTROPY", "0") != "0"

_chance = random.Random()
_drawing: list[str] = []
_drew: set[str] = set()


def _randbits(n: int) -> int:
    """Stand for `secrets.randbits` where a seed is drawn."""
    if _drawing:
        _drew.add(_drawing[-1])
    return _chance.getrandbits(n)


@contextmanager
def seeded(name: str) -> Iterator[None]:
    """Have what is drawn without a seed inside the block depend on a name and ERASABLE_SEED."""
    import numpy as np

    before = _chance.getstate(), random.getstate(), np.random.get_state()
    told = name if SEED == 1 else f"{name} {SEED}"
    number = int.from_bytes(sha256(told.encode()).digest()[:4], "big")
    for seed in (_chance.seed, random.seed, np.random.seed):
        seed(number)
    _drawing.append(name)
    at_first = _globals() if _TELLS else None
    try:
        yield
    finally:
        if at_first is not None and _globals() != at_first:
            _drew.add(name)
        _drawing.pop()
        _chance.setstate(before[0])
        random.setstate(before[1])
        np.random.set_state(before[2])


def _globals() -> tuple[Any, ...]:
    import numpy as np

    _, keys, at, *_ = np.random.get_state()
    return random.getstate(), keys.tobytes(), at


def pytest_sessionstart() -> None:
    """Stand in the place of the system for what draws seeds from it."""
    import numpy.random.bit_generator as numpys

    from erasable.core import seeds

    hypothesis.register_random(_chance)  # which starts each example with the same
    numpys.randbits = _randbits
    seeds.secrets = SimpleNamespace(randbits=_randbits)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Seed a test by its name."""
    with seeded(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """Seed a fixture of several tests by its name, whichever of them is the first to ask for it."""
    if fixturedef.scope == "function":
        return (yield)
    given = getattr(request, "param_index", 0)
    with seeded(f"{fixturedef.baseid}::{fixturedef.argname}[{given}]"):
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what drew without a seed, where that was asked for."""
    if _TELLS:
        for name in sorted(_drew):
            terminalreporter.write_line(f"draws without a seed: {name}")
