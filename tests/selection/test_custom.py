"""A utility of the user's own: what it may return, and how it is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.selection import Custom, CVaR, Expected, NearestNeighbor, SubsetSelector, semivalues
from erasable.selection.utilities import StateUtility


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


class OneByOne:
    """The nearest of the chosen, for all records; similarities are whole, so sums are exact."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.best = X, np.zeros(X.shape[1])

    def gain(self, j: int) -> float:
        return float(np.maximum(self.X[j] - self.best, 0.0).sum())

    def add(self, j: int) -> None:
        self.best = np.maximum(self.best, self.X[j])


class AtOnce(OneByOne):
    gain = None  # type: ignore[assignment]

    def gains(self, rows: Any) -> Any:
        return np.maximum(self.X[rows] - self.best, 0.0).sum(axis=1)


class InBatches(AtOnce):
    def batch(self, n: int) -> Any:
        return Batch(self.X, n)


class Batch:
    def __init__(self, X: Any, n: int) -> None:
        self.X, self.best = X, np.zeros((n, X.shape[1]))

    def gains(self, rows: Any) -> Any:
        return np.array([np.maximum(self.X[j] - self.best, 0.0).sum(axis=1) for j in rows]).T

    def add(self, j: int, stays: Any) -> None:
        self.best[stays] = np.maximum(self.best[stays], self.X[j])


SIMILAR = np.random.default_rng(3).integers(0, 50, (30, 30)).astype(float)


def found(start: Any, **given: Any) -> Any:
    selector = SubsetSelector(Custom(start), k=6, random_state=1, **given).fit(SIMILAR)
    return selector.selected_.tolist(), selector.gains_.tolist(), selector.utility_


@pytest.mark.parametrize("optimizer", ["greedy", "lazy", "stochastic"])
@pytest.mark.parametrize(
    ("staying", "objective"), [(1.0, Expected()), (0.6, Expected(200)), (0.6, CVaR(0.3, 200))]
)
def test_several_at_a_time_make_the_choice_of_one_by_one(
    optimizer: str, staying: float, objective: Any
) -> None:
    given = {"optimizer": optimizer, "staying": staying, "objective": objective}
    one = found(OneByOne, **given)
    assert found(AtOnce, **given) == one
    assert found(InBatches, **given) == one
    if staying < 1:

        class Ignores(Batch):
            def add(self, j: int, stays: Any) -> None:
                super().add(j, np.ones_like(stays))

        class Wrong(InBatches):
            def batch(self, n: int) -> Any:
                return Ignores(self.X, n)

        assert found(Wrong, **given) != one


def test_few_gains_are_kept_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"staying": 0.6, "objective": Expected(200)}
    whole = found(InBatches, **given)
    asked: list[int] = []

    class Counting(Batch):
        def gains(self, rows: Any) -> Any:
            asked.append(len(rows))
            return super().gains(rows)

    class Small(InBatches):
        def batch(self, n: int) -> Any:
            return Counting(self.X, n)

    monkeypatch.setattr("erasable.selection.utilities._custom._AT_ONCE", 200 * 7)
    assert found(Small, **given) == whole
    assert max(asked) == 7
    # Each candidate once in a round, and the chosen one once more at most.
    assert 0 <= sum(asked) - sum(range(25, 31)) <= 6


def test_a_custom_nearest_neighbour_is_the_library_s() -> None:
    ours = SubsetSelector(Custom(AtOnce), k=6).fit(SIMILAR)
    theirs = SubsetSelector(NearestNeighbor("precomputed"), k=6).fit(SIMILAR)
    assert ours.selected_.tolist() == theirs.selected_.tolist()
    assert ours.utility_ == theirs.utility_


def test_a_subclass_says_what_it_is() -> None:
    class Near(StateUtility):
        is_submodular = True

        def __init__(self, scale: float = 1.0) -> None:
            self.scale = scale

        def start(self, X: Any, y: Any) -> Any:
            return AtOnce(self.scale * X, y)

    selector = SubsetSelector(Near(2.0), k=6).fit(SIMILAR)
    assert selector.optimizer_ == "lazy"
    assert selector.selected_.tolist() == found(OneByOne)[0]
    assert selector.get_params()["utility__scale"] == 2.0
    with pytest.raises(TypeError, match="abstract"):
        StateUtility()  # type: ignore[abstract]


@pytest.mark.parametrize(
    "value", [None, 1.0, [1.0], np.ones((30, 1)), np.full(30, np.nan), ["a"] * 30, 1j * np.ones(30)]
)
@pytest.mark.parametrize("staying", [1.0, 0.5])
def test_gains_of_another_kind_are_refused(value: Any, staying: float) -> None:
    class Other(AtOnce):
        def gains(self, rows: Any) -> Any:
            return value

    class OtherBatch(Batch):
        def gains(self, rows: Any) -> Any:
            return value

    class Batched(AtOnce):
        def batch(self, n: int) -> Any:
            return OtherBatch(self.X, n)

    with pytest.raises(InvalidInputError, match=r"gains returned .*; expected finite numbers of"):
        found(Other, staying=staying)
    if staying < 1:
        with pytest.raises(InvalidInputError, match=r"finite numbers of shape \(4612, 30\)"):
            found(Batched, staying=staying)


def test_a_batch_without_its_methods_is_refused() -> None:
    class Lacking(AtOnce):
        def batch(self, n: int) -> Any:
            return OneByOne(self.X, None)

    with pytest.raises(InvalidParameterError, match="batch returned a OneByOne without gains"):
        found(Lacking, staying=0.5)
