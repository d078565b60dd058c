"""No test depends on chance: what is drawn without a seed is the same in each run."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import check_random_state

import entropy
from erasable.core.seeds import draw_seed

HERE = Path(__file__).resolve().parent

FROM_THE_SYSTEM = {"urandom", "secrets", "SystemRandom", "uuid1", "uuid4", "getrandom"}
ALLOWED = {
    "entropy.py",
    "test_entropy.py",
    "workspace/evidence/conftest.py",  # the salt of a request, as the workspace draws it
    "soak/kills.py",  # told no seed, it takes another one each time
    "workspace/random_entry.py",
}  # fmt: skip

DRAWS = {
    "default_rng": lambda: np.random.default_rng().integers(2**60),
    "RandomState": lambda: np.random.RandomState().randint(2**30),
    "SeedSequence": lambda: np.random.SeedSequence().entropy,
    "numpy.random": lambda: np.random.random(),
    "check_random_state": lambda: check_random_state(None).randint(2**30),
    "random": lambda: random.random(),
    "erasable": draw_seed,
}


@pytest.mark.parametrize("source", DRAWS)
def test_what_is_drawn_depends_on_the_name_of_the_test(source: str) -> None:
    draw = DRAWS[source]
    with entropy.seeded("a"):
        one, two = draw(), draw()
    with entropy.seeded("b"):
        other = draw()
    with entropy.seeded("a"):
        assert draw() == one
    assert len({one, two, other}) == 3


@pytest.mark.parametrize("source", DRAWS)
def test_another_soak_draws_something_else(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for seed in (1, 2, 3):
        monkeypatch.setattr(entropy, "SEED", seed)
        with entropy.seeded("a"):
            drawn.append(DRAWS[source]())
    assert len(set(drawn)) == 3


MODULE = """
import numpy as np, random, pytest
from erasable.core.seeds import draw_seed

@pytest.fixture(scope="module")
def drawn():
    return np.random.default_rng().integers(2**60)

def test_draws(drawn):
    print("drew", drawn, draw_seed(), np.random.default_rng().integers(2**60), random.random())
"""


@pytest.mark.parametrize(
    "plugin",
    [
        pytest.param(True, id="seeded"),
        pytest.param(False, id="not seeded", marks=pytest.mark.soak),
    ],
)
def test_two_runs_draw_the_same(tmp_path: Path, plugin: bool) -> None:
    (tmp_path / "test_drawing.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    run = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(tmp_path)]
    run += ["-p", "entropy"] if plugin else []
    env = os.environ | {"PYTHONPATH": str(HERE), "ERASABLE_ENTROPY": "1"}
    told = [subprocess.run(run, env=env, capture_output=True, text=True).stdout for _ in range(2)]
    drew = [[line for line in each.splitlines() if "drew " in line] for each in told]
    assert all(len(each) == 1 for each in drew), told
    assert (drew[0] == drew[1]) is plugin
    assert ("draws without a seed: test_drawing.py::test_draws" in told[0]) is plugin


def names_of(source: str) -> set[str]:
    """Return what a module imports, and the attributes that it takes of what it imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.name for each in node.names}
            found.add(getattr(node, "module", None) or "")
    return found


def test_no_test_draws_from_the_system_itself() -> None:
    for path in sorted(HERE.rglob("*.py")):
        if path.relative_to(HERE).as_posix() not in ALLOWED:
            text = path.read_text(encoding="utf-8")
            told = {name for name in FROM_THE_SYSTEM if name in text}
            drawing = told and names_of(text) & told
            assert not drawing, f"{path.name} draws from the system: {sorted(drawing)}"
    assert names_of("import os\nx = os.urandom(3)") & FROM_THE_SYSTEM
    assert names_of("from uuid import uuid4") & FROM_THE_SYSTEM
