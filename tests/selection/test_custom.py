"""A utility of the user's own: what it may return, and how it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.selection import Custom, SubsetSelector, semivalues


class Count:
    def __init__(self, X: Any, y: Any) -> None:
        self.n = 0

    def gain(self, j: int) -> Any:
        return 1.0

    def add(self, j: int) -> None:
        self.n += 1


def returning(value: Any) -> Custom:
    class Other(Count):
        def gain(self, j: int) -> Any:
            return value if j == 2 else 1.0

    return Custom(Other)


USES = {
    "fit": lambda u: SubsetSelector(u, k=4).fit(np.eye(4)).utility_,
    "lazy": lambda u: SubsetSelector(u, k=4, optimizer="lazy").fit(np.eye(4)).utility_,
    "sampled": lambda u: (
        SubsetSelector(u, k=4, staying=0.9, random_state=0).fit(np.eye(4)).utility_
    ),
    "semivalues": lambda u: semivalues(u, np.eye(4), n_samples=9, random_state=0).sum(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -np.inf,
        None,
        "1.0",
        b"1",
        [1.0, 2.0],
        np.ones(2),
        1j,
        (),
        ...,
    ],
    ids=str,
)
def test_gains_are_finite_numbers(use: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"gain\(2\) returned .*; expected a finite number"):
        USES[use](returning(value))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "value", [1, 1.0, True, np.float32(1), np.int64(1), np.array(1.0), -1.0], ids=repr
)
def test_numbers_of_any_kind_are_gains(use: str, value: Any) -> None:
    assert np.isfinite(USES[use](returning(value)))


def no_arguments() -> Count:
    return Count(None, None)


def three_arguments(X: Any, y: Any, z: Any) -> Count:
    return Count(X, y)


class NoRecord(Count):
    def gain(self) -> float:  # type: ignore[override]
        return 1.0


class TwoRecords(Count):
    def add(self, i: int, j: int) -> None:  # type: ignore[override]
        pass


SHARED = Count(None, None)
WRONG = {
    "no arguments": (no_arguments, r"cannot be called as start\(X, y\)"),
    "three arguments": (three_arguments, r"cannot be called as start\(X, y\)"),
    "gain of none": (NoRecord, r"cannot be called as gain\(j\)"),
    "add of two": (TwoRecords, r"cannot be called as add\(j\)"),
    "nothing returned": (lambda X, y: None, "returned a NoneType without gain and add"),
    "no function": (3, r"expected a function of \(X, y\)"),
    "one state for all": (lambda X, y: SHARED, "the same Count twice"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_called_is_refused(use: str, wrong: str) -> None:
    start, told = WRONG[wrong]
    with pytest.raises(InvalidParameterError, match=told):
        USES[use](Custom(start))  # type: ignore[arg-type]


def test_errors_of_the_utility_itself_are_its_own() -> None:
    class Broken(Count):
        def gain(self, j: int) -> float:
            raise TypeError("of mine")

    with pytest.raises(TypeError, match="of mine"):
        SubsetSelector(Custom(Broken), k=1).fit(np.eye(3))


def test_defaults_and_any_number_of_arguments_suit() -> None:
    def start(X: Any, y: Any = None, *more: Any, **options: Any) -> Count:
        return Count(X, y)

    assert SubsetSelector(Custom(start), k=2).fit(np.eye(3)).utility_ == 2.0
