"""Whatever is passed to selection, it is used or refused in one line: no raw error, no NaN.

Each argument of each public function is replaced by each of a list of values, one at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from erasable import selection
from erasable.core.errors import ErasableError
from erasable.selection import (
    BetaBinomial,
    Certain,
    Custom,
    CVaR,
    Exchangeable,
    Expected,
    Groups,
    Independent,
    MutualInformation,
    NaiveBayes,
    NearestNeighbor,
    NeuralVariance,
    PerClass,
    PointMass,
    SelectionWarning,
    SubsetSelector,
    Uniform,
    VarianceReduction,
    balance,
    expected_utility,
    from_history,
    plot_tradeoff,
    semivalues,
    tradeoff,
    utility_distribution,
)

N = 6
RNG = np.random.default_rng(3)
X, Y = RNG.integers(0, 3, (N, 2)).astype(float), np.array([0, 1, 0, 1, 0, 1])
CROSS = RNG.random((N, 3))
ROWS = np.array([1, 4])
SAMPLES = Expected(20)


class Seen:
    """How many different records there are."""

    def __init__(self, X: Any, y: Any) -> None:
        self.seen: set[int] = set()

    def gain(self, j: int) -> float:
        return float(j not in self.seen)

    def add(self, j: int) -> None:
        self.seen.add(j)


class Plain:
    """Of no use, and called without arguments."""


JUNK: dict[str, Any] = {
    "none": None,
    "text": "text",
    "empty text": "",
    "bytes": b"text",
    "true": True,
    "zero": 0,
    "three": 3,
    "below 0": -1,
    "float": 0.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "complex": 1j,
    "object": object(),
    "class": Plain,
    "function": lambda *args: "no number",
    "exact function": lambda: None,
    "empty": [],
    "ragged": [[1.0, 2.0], [3.0]],
    "nested": [[]],
    "scalar array": np.array(2),
    "one": np.array([1.0]),
    "wide": np.ones((N, 7)),
    "tall": np.ones((N + 3, 2)),
    "deep": np.ones((N, 2, 2)),
    "nans": np.full((N, 2), np.nan),
    "nan each": np.full(N, np.nan),
    "infinities": np.full(N, np.inf),
    "negative": -np.ones(N),
    "negative integers": -np.arange(1, N + 1),
    "complexes": 1j * np.ones((N, 2)),
    "texts": ["a"] * N,
    "nones": [None] * N,
    "objects": [object()] * N,
    "mask": np.arange(N) < 2,
    "mixed": np.array(["a", 1, None, 2.5, b"b", ()], dtype=object),
    "dates": np.arange(N).astype("datetime64[D]"),
    "dict": {"a": 1},
    "nested dict": {"a": {"b": None}},
    "set": {1, 2},
    "iterator": range(3),
    "frame": pd.DataFrame({"a": ["x"] * N}),
    "series": pd.Series([1.5] * N, index=range(10, 10 + N)),
}


def _fit(**given: Any) -> Any:
    passed = {
        name: given.pop(name) for name in ("X", "y", "ids", "selected", "rows") if name in given
    }
    return SubsetSelector(**{"k": 2, "objective": SAMPLES, **given}).fit(**passed)


def _fitted(name: str, **given: Any) -> Any:
    selector = SubsetSelector(k=2, staying={0: 0.5, 1: 0.8}, random_state=0).fit(X, Y)
    return getattr(selector, name)(**given)


def _problem(utility: Callable[..., Any], **given: Any) -> Any:
    passed = {"X": given.pop("X"), "y": given.pop("y", None)}
    made = utility(**given)
    _fit(utility=made, staying=0.5, **passed)
    return made.problem(**passed).value(ROWS)


def _staying(model: Callable[..., Any], **given: Any) -> Any:
    made = model(**given)
    _fit(X=X, y=Y, staying=made, utility=NearestNeighbor())
    return made.bind(N, k=2, labels=Y).probability


def _worst(**given: Any) -> Any:
    return _fit(X=X, staying=0.5, objective=CVaR(**given)).utility_


VALID: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "SubsetSelector": (
        _fit,
        {"X": X, "y": Y, "ids": list("abcdef"), "utility": NearestNeighbor(), "k": 2,
         "staying": 0.5, "objective": Expected(), "optimizer": "auto", "costs": np.ones(N),
         "random_state": 0, "selected": ["a"]},
    ),
    "held rows": (_fit, {"X": X, "rows": [1]}),
    "value": (
        lambda **given: _fitted("value", **given).value,
        {"staying": 0.5, "objective": Expected(), "random_state": 0},
    ),
    "distribution": (
        lambda **given: _fitted("distribution", **given),
        {"staying": 0.5, "n_samples": 9, "random_state": 0},
    ),
    "tradeoff of a selector": (
        lambda **given: _fitted("tradeoff", **given).mean,
        {"metric": len, "n_deletions": [0], "n_simulations": 2, "random_state": 0},
    ),
    "balance of a selector": (
        lambda **given: _fitted("balance", **given), {"groups": list("aabbcc"), "staying": 0.5},
    ),
    "expected_utility": (
        lambda **given: expected_utility(**given).value,
        {"X": X, "y": Y, "utility": NearestNeighbor(), "staying": 0.5, "selected": [1, 2],
         "objective": Expected(), "ids": np.arange(N), "random_state": 0},
    ),
    "rows": (
        lambda **given: expected_utility(utility=NearestNeighbor(), **given).value,
        {"X": X, "rows": [1, 2]},
    ),
    "utility_distribution": (
        utility_distribution,
        {"X": X, "y": Y, "utility": NearestNeighbor(), "staying": 0.5, "selected": [1, 2],
         "n_samples": 9, "ids": np.arange(N), "random_state": 0},
    ),
    "semivalues": (
        semivalues,
        {"utility": NaiveBayes(), "X": X, "y": Y, "weights": 0.5, "n_samples": 4,
         "random_state": 0},
    ),
    "balance": (
        balance,
        {"groups": list("aabbcc"), "selected": [1, 2], "ids": np.arange(N), "staying": 0.5, "y": Y},
    ),
    "tradeoff": (
        lambda **given: tradeoff(**given).mean,
        {"selected": [1, 2], "metric": len, "n_deletions": [0], "n_simulations": 2,
         "random_state": 0},
    ),
    "plot_tradeoff": (
        plot_tradeoff,
        {"selected": {"a": [1, 2]}, "metric": len, "n_deletions": [0], "n_simulations": 2,
         "random_state": 0},
    ),
    "plot_tradeoff, rows": (plot_tradeoff, {"rows": {"a": [1, 2]}, "metric": len}),
    "from_history": (from_history, {"requested": [1, 2], "held": [3, 4], "by": ["a", "b"]}),
    "Expected": (
        lambda **given: _fit(X=X, utility=MutualInformation(), staying=0.5,
                             objective=Expected(**given)).utility_,
        {"n_samples": 9, "error": 0.5, "confidence": 0.5},
    ),
    "CVaR": (
        _worst,
        {"alpha": 0.5, "n_samples": 20, "error": 0.2, "confidence": 0.5, "n_thresholds": 2,
         "n_judged": 20},
    ),
    **{
        name: (lambda utility=utility, **given: _problem(utility, **given), given)
        for name, utility, given in [
            ("NearestNeighbor", NearestNeighbor,
             {"X": X, "y": Y, "metric": "euclidean", "n_neighbors": 2}),
            ("NearestNeighbor, neighbors", NearestNeighbor, {"X": X, "neighbors": None}),
            ("NearestNeighbor, precomputed", NearestNeighbor,
             {"X": np.eye(N), "y": Y, "metric": "precomputed"}),
            ("NaiveBayes", NaiveBayes, {"X": X, "y": Y, "smoothing": 1.0}),
            ("MutualInformation", MutualInformation, {"X": X, "kernel": RBF(), "gamma": 1.0}),
            ("MutualInformation, precomputed", MutualInformation,
             {"X": np.eye(N), "kernel": "precomputed"}),
            ("VarianceReduction", VarianceReduction,
             {"X": X, "kernel": RBF(), "noise": 0.1, "targets": X[:3]}),
            ("VarianceReduction, precomputed", VarianceReduction,
             {"X": np.eye(N), "kernel": "precomputed", "noise": 0.1, "targets": CROSS}),
            ("NeuralVariance", NeuralVariance,
             {"X": np.eye(N), "model": "precomputed", "noise": 0.1, "targets": CROSS}),
            ("Custom", Custom, {"X": X, "y": Y, "start": Seen}),
        ]
    },
    **{
        name: (lambda model=model, **given: _staying(model, **given), given)
        for name, model, given in [
            ("Independent", Independent, {"s": 0.5}),
            ("BetaBinomial", BetaBinomial, {"alpha": 1.0, "beta": 2.0}),
            ("Uniform", Uniform, {"low": 0, "high": 2}),
            ("PointMass", PointMass, {"a": 1}),
            ("Exchangeable", Exchangeable, {"r": [0.2, 0.3, 0.5]}),
            ("Groups", Groups, {"labels": [0, 0, 1, 1, 2, 2], "s": {0: 0.5, 1: 0.1, 2: 1.0}}),
            ("PerClass", PerClass, {"models": {0: 0.5, 1: Certain()}}),
            ("Certain", Certain, {}),
        ]
    },
}  # fmt: skip


def _cases() -> Iterator[tuple[str, str]]:
    for name, (_, given) in VALID.items():
        for argument in given:
            yield name, argument


def fault_of(call: Callable[..., Any], **given: Any) -> str | None:
    """Return what is wrong with how a call ends; None where it returns or refuses in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SelectionWarning)
        try:
            found = call(**given)
        except ErasableError as error:
            told = str(error)
            return None if told and "\n" not in told else f"message {told!r}"
        except ImportError:
            return None  # an optional package is not installed
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    if isinstance(found, float | np.ndarray) and np.isnan(found).any():
        return f"returned {found}"
    return None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "argument"), list(_cases()))
def test_any_argument_is_used_or_refused(name: str, argument: str) -> None:
    call, given = VALID[name]
    assert fault_of(call, **given) is None
    faults = {
        kind: fault
        for kind, junk in JUNK.items()
        if (fault := fault_of(call, **{**given, argument: junk})) is not None
    }
    assert not faults


def test_every_public_name_is_tried() -> None:
    results = {"ExpectedUtility", "GroupBalance", "SelectionWarning", "Tradeoff"}
    assert set(selection.__all__) - results <= set(VALID)


def test_raw_errors_and_nan_are_found() -> None:
    """The check above has work to do."""
    assert fault_of(lambda: np.ones(2) @ np.ones(3)) is not None
    assert fault_of(lambda: float("nan")) == "returned nan"
    assert fault_of(lambda: [][1]) == "IndexError: list index out of range"
