"""Lives of workspaces with images: who leaves takes image, vector and influence along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from erasable.neural import ApproximateNetwork, Embedding  # noqa: E402
from erasable.neural._embedding import Vectors  # noqa: E402
from erasable.workspace.data import arrays  # noqa: E402
from neural.scans import Life  # noqa: E402

ACTS = ["append", "erase", "erase", "erase", "sync", "move", "fit"]


def live(folder: Path, seed: int, n_acts: int, models: Any = None) -> int:
    """Live a life, and look at it after each act; return how many people have left."""
    life = Life(folder, seed) if models is None else Life(folder, seed, models)
    life.look()
    rng = np.random.default_rng(seed)
    for number in range(n_acts):
        act = "erase" if number == 0 else rng.choice(ACTS)
        if act == "erase":
            asked = life.erase()
            life.process()
            for each in asked if "about" in life.models else []:
                assert "'approximate'" in life.told(each)
        elif act == "move":
            life.move(number)
        else:
            getattr(life, act)()
        life.look()
    return len(life.gone)


def test_a_life_is_as_it_is_to_be(tmp_path: Path) -> None:
    assert live(tmp_path, 1, 3) >= 1


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 14))
def test_many_lives_are_as_they_are_to_be(seed: int, tmp_path: Path) -> None:
    assert live(tmp_path, seed, 12) >= 1


# -- what is broken is found -----------------------------------------------------------------------


def a_vector_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Vectors, "forget", lambda self, rows: None)


def an_approximate_network_says_that_it_is_exact(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ApproximateNetwork, "exactness", "bitwise")


def an_image_is_turned(patch: pytest.MonkeyPatch) -> None:
    right = arrays.array_rows
    patch.setattr(arrays, "array_rows", lambda column: right(column)[:, ::-1])


def a_vector_depends_on_how_many_there_are(patch: pytest.MonkeyPatch) -> None:
    right = Embedding._given
    patch.setattr(Embedding, "_given", lambda self, rows: right(self, rows) + len(rows) % 3)


CONTROLS: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    a_vector_stays: "frozen",
    an_image_is_turned: "frozen",
    a_vector_depends_on_how_many_there_are: "frozen",
    an_approximate_network_says_that_it_is_exact: "about",
}


@pytest.mark.parametrize("spoil", CONTROLS, ids=[each.__name__ for each in CONTROLS])
def test_what_is_broken_is_found(
    spoil: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoil(monkeypatch)
    with pytest.raises(AssertionError):
        live(tmp_path, 1, 3, [CONTROLS[spoil]])
