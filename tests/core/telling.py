"""Cases of refusals, and what is demanded of each: one line in three parts, and no change."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from erasable.core import errors
from erasable.core.errors import ErasableError

SECRET = 98765.4321
X = np.array([[1.0, 10.0], [SECRET, 20.0], [3.0, 30.0], [4.0, 40.0]])
FRAME = pd.DataFrame(X, columns=["age", "bmi"])
LONG = "patient-" + "x" * 5000
Act = Callable[[Any, Path], Any]


class Case(NamedTuple):
    """What is done to a fitted model, and what is to be said of it."""

    act: Act
    error: type[ErasableError]
    given: str
    expected: str
    advice: str


def assert_told(error: BaseException, kind: type[ErasableError], *told: str) -> None:
    """Demand an error of this very class, of one short line that says `told` in this order."""
    text = str(error)
    assert type(error) is kind
    assert type(error).__module__ == errors.__name__
    assert not re.search(r"[\n\r\t]|  ", text)
    assert len(text) < 420
    assert str(SECRET) not in text
    assert "xxxxxxxx" * 8 not in text
    places = [text.find(part) for part in told]
    assert -1 not in places, text
    assert places == sorted(places), text


def assert_refuses(model: Any, folder: Path, case: Case) -> None:
    """Demand the error, and a model and a folder that are as they were."""
    before, kept, files = model.digest(), pickle.dumps(model), sorted(folder.rglob("*"))
    with pytest.raises(ErasableError) as caught:
        case.act(model, folder)
    assert_told(caught.value, case.error, case.given, case.expected, case.advice)
    model._info.digest = None
    assert model.digest() == before
    assert pickle.dumps(model) == kept
    assert sorted(folder.rglob("*")) == files
