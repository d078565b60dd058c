"""Whatever is handed to a function of removal: an answer without NaN, or an error of ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from inspect import signature
from typing import Any

import bounds
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from erasable.core.errors import ErasableError, InvalidInputError
from erasable.core.grid import PrecisionWarning
from erasable.naive_bayes import GaussianNB
from erasable.removal import (
    Cost,
    Count,
    Coverage,
    DensityRatio,
    DomainRemoval,
    MaxShift,
    MinRemoval,
    Moments,
    RemovalWarning,
    Share,
    certificate,
    certificate_from_moments,
    divergence,
    exponential_family_frontier,
    gaussian_divergence,
    gaussian_frontier,
    influence_removal,
    measure,
    random_removal_law,
    removal_report,
    remove_domain,
)
from erasable.removal.scores import CCS, Custom, GradMatch, MeanDistance, MeanMargin, NeighborRatio

RNG = np.random.default_rng(0)
F, R = RNG.normal(size=(30, 3)), RNG.normal(size=(25, 3)) + 1.0
HOLE = np.where(np.arange(90).reshape(30, 3) == 7, np.nan, F)
X, Y = np.concatenate([F, R]), np.repeat(["spam", "ham"], [30, 25])
MASK = Y == "spam"

NUMBERS: list[Any] = [
    None, float("nan"), float("inf"), -float("inf"), -1, 0, 2.5, True, "a", "0.5", b"a", [], {},
    object(), 10**400, 10**20, 1e300, 1e-320, 1j, np.datetime64("2020-01-01"),
    np.timedelta64(3, "D"), Decimal("0.5"), pd.NA, pd.NaT, np.array([0.5]), np.float32(0.3),
    np.int8(3), np.ma.masked, [1, 2], int, range(3), F,
]  # fmt: skip
TABLES: list[Any] = [
    None, 5, "abc", {}, [], [[]], object(), F[:0], F[:1], F[:, :0], F[:, :2], F[:, 0], HOLE,
    HOLE * np.inf, F * 1e200, F * 1e-320, F * 1e70, F * 1e140, F.astype(object), F.astype("U8"),
    F.astype(complex), F > 0, F[None], np.ma.masked_less(F, 0), [[1, 2], [3]], csr_array(F),
    csr_array((30, 3)), pd.DataFrame(F), pd.DataFrame({"a": ["x"] * 30, "b": 1.0, "c": 2.0}),
    pl.DataFrame({"a": [None] * 30}), F.tolist(), F.astype(np.float32), F * 0, F + 1e8,
    F * 10.0 ** np.array([0, 9, -9]),
]  # fmt: skip
ROWS: list[Any] = [
    None, [], 0, [0], [-1], [30], [0, 0], np.zeros(30, bool), np.ones(30, bool), np.zeros(29, bool),
    [0.0], ["a"], [[0], [1, 2]], slice(3), pd.Series([1, 2]), [2**70], {1, 2}, "abc",
    np.array([1, 2], dtype="m8[s]"), np.array([1, 2], dtype=np.uint64), [True, False],
]  # fmt: skip
MOMENTS: list[Any] = [
    None, 5, F, Moments(0, np.zeros(3), np.eye(3)), Moments(10, np.zeros(2), np.eye(2)),
    Moments(10, np.zeros(3)), Moments(10, np.full(3, np.nan), np.eye(3)),
    Moments(10, np.zeros(3), np.full((3, 3), np.nan)), Moments(10, [0, 0, 0], np.eye(3).tolist()),
    Moments("a", np.zeros(3), np.eye(3)), Moments(10, "abc", np.eye(3)),
    Moments(10, np.zeros((3, 1)), np.eye(3)), Moments(10, np.zeros(3), -np.eye(3)),
]  # fmt: skip
GROUPS: list[Any] = [
    None, 5, [], {}, {"a": None}, {"a": 5}, {"a": (X,)}, {"a": (None, Y)}, {"a": (5, Y)},
    {"a": (X, None)}, {"a": (X, Y[:3])}, {"a": (X[:, :2], Y)}, {"a": "ab"},
]  # fmt: skip
MEASURES: list[Any] = [
    None, 5, {}, {"a": {}}, {"a": 5}, {"a": {"accuracy": "x"}}, {"a": {"accuracy": None}},
    {"a": {"other": 1.0}},
]  # fmt: skip
PARAMETERS: dict[str, Any] = {
    "n_forget": 100, "n_retain": 100, "n_deleted": 30, "divergence": 0.5, "delta": 0.05,
    "alpha": 0.1, "epsilon": 0.1, "marginal_divergence": 0.01, "max_loss_increase": 0.1,
    "selective": True,
}  # fmt: skip
MODEL = GaussianNB().fit(X, Y)
FOUND = measure(MODEL, {"a": (X, Y)})


def fitted(forget: Any = F, retain: Any = R, **parameters: Any) -> Any:
    given = {"score": "mu2-distance", "budget": 3, "random_state": 0, **parameters}
    removal = DomainRemoval(**given).fit(forget, retain)
    return removal.scores_, removal.frontier_.alpha, removal.frontier_.epsilon


def scored(make: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda value: fitted(score=make(value))


def chosen(make: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda value: fitted(budget=make(value))


def removed(**given: Any) -> Any:
    model = GaussianNB().fit(X, Y)
    before = model.digest()
    try:
        given = {"X": X, "y": Y, "forget": MASK, **given}
        return str(remove_domain(model, DomainRemoval("norm", budget=3), **given))
    except ErasableError:
        assert model.digest() == before
        raise


ALL_MOMENTS = {
    "forget": Moments.of(F), "retain": Moments.of(R), "refit": Moments.of(X[5:]), "delta": 0.05,
}  # fmt: skip
SETS = {"forget": F, "retain": R, "deleted": [0, 1]}
Function = Callable[..., Any]
# What is called, with what, and what is put in the place of each of its arguments.
CALLS: dict[str, tuple[Function, dict[str, Any], dict[str, list[Any]]]] = {
    "fit": (
        fitted,
        {},
        {
            "forget": TABLES, "retain": TABLES, "budget": NUMBERS, "delta": NUMBERS,
            "covariance": NUMBERS, "score": NUMBERS,
        },
    ),
    "certificate": (
        certificate,
        {**SETS, "delta": 0.05},
        {"forget": TABLES, "deleted": ROWS, "delta": NUMBERS, "sigma": [*NUMBERS, *TABLES]},
    ),
    "certificate, sigma": (
        certificate, {**SETS, "delta": 0.05, "sigma": 1.0}, {"forget": TABLES, "deleted": ROWS},
    ),
    "influence_removal": (
        influence_removal, SETS, {"retain": TABLES, "deleted": ROWS, "damping": NUMBERS},
    ),
    "certificate_from_moments": (
        certificate_from_moments, ALL_MOMENTS, dict.fromkeys(["forget", "retain", "refit"], MOMENTS)
    ),
    "certificate_from_moments, sigma": (
        certificate_from_moments,
        {**ALL_MOMENTS, "sigma": 1.0},
        dict.fromkeys(["forget", "retain", "refit"], MOMENTS),
    ),
    "random_removal_law": (
        lambda **given: random_removal_law(**given).alpha.cdf(0.5),
        {"n_forget": 10, "n_retain": 10, "n_deleted": 3, "divergence": 0.5},
        dict.fromkeys(["n_forget", "n_retain", "n_deleted", "divergence", "n_features"], NUMBERS),
    ),
    "gaussian_divergence": (
        gaussian_divergence,
        {"theta1": (0.0, 1.0), "theta2": (1.0, 2.0), "kind": "renyi", "order": 0.5},
        {"theta1": [*NUMBERS, *TABLES], "theta2": [*NUMBERS, *TABLES], "order": NUMBERS},
    ),
    "gaussian_frontier": (
        gaussian_frontier,
        {"alpha": 1.0, "divergence": 1.0},
        {"alpha": [*NUMBERS, *TABLES], "divergence": NUMBERS},
    ),
    **{
        f"divergence, {method}": (
            divergence,
            {"a": F, "b": R, "method": method, "n_resamples": 10, "random_state": 0},
            {"a": TABLES, "b": TABLES, "confidence": NUMBERS, "classifier": NUMBERS},
        )
        for method in ("gaussian", "nearest-neighbor")
    },
    **{
        f"exponential_family_frontier, {family}": (
            exponential_family_frontier,
            {"family": family, "theta1": first, "theta2": second, "alpha": 1.0},
            {"theta1": [*NUMBERS, *TABLES], "theta2": [*NUMBERS, *TABLES], "alpha": NUMBERS},
        )
        for family, first, second in (
            ("bernoulli", 0.2, 0.5), ("poisson", 1.0, 2.0), ("exponential", 1.0, 2.0),
            ("categorical", [0.2, 0.8], [0.5, 0.5]),
            ("gaussian", (np.zeros(2), np.eye(2)), (np.ones(2), np.eye(2))),
        )
    },
    **{
        name: (
            getattr(bounds, name),
            {key: PARAMETERS[key] for key in signature(getattr(bounds, name)).parameters},
            dict.fromkeys(signature(getattr(bounds, name)).parameters, NUMBERS),
        )
        for name in bounds.__all__
        if not isinstance(getattr(bounds, name), type)
    },
    **{
        f"budget {place}": (chosen(make), {}, {"value": [*NUMBERS, *more]})
        for place, (make, more) in enumerate([
            (Count, []), (Share, []), (Coverage, []), (MinRemoval, []), (MaxShift, []),
            (lambda value: Cost(np.ones(30), value), []), (lambda value: Cost(value, 3.0), TABLES),
        ])
    },
    **{
        f"score {place}": (scored(make), {}, {"value": [*NUMBERS, *more]})
        for place, (make, more) in enumerate([
            (MeanDistance, []), (lambda v: MeanMargin(shrinkage=v), []), (NeighborRatio, []),
            (lambda v: NeighborRatio(algorithm=v), []), (CCS, []), (lambda v: CCS(hardest=v), []),
            (lambda v: CCS(difficulty=lambda rows: v), TABLES), (GradMatch, []),
            (lambda v: DensityRatio(v, n_folds=2), []),
            (lambda v: Custom(lambda forget, retain: v), TABLES),
        ])
    },
    "measure": (
        measure, {"model": MODEL, "groups": {"a": (X, Y)}},
        {"model": NUMBERS, "groups": GROUPS, "forget_label": NUMBERS},
    ),
    "removal_report": (
        lambda **given: str(removal_report(**given)),
        {"before": FOUND, "after": FOUND, "groups": {"a": (X, Y)}},
        {"before": MEASURES, "after": MEASURES, "groups": GROUPS},
    ),
    "remove_domain": (
        removed, {}, {"forget": [*NUMBERS, *ROWS], "forget_label": NUMBERS, "fresh": NUMBERS},
    ),
    "plot": (
        lambda ax: DomainRemoval("norm", budget=3).fit(F, R).plot(ax).get_xlabel(),
        {"ax": None},
        {"ax": NUMBERS},
    ),
}  # fmt: skip


def refusals(name: str) -> tuple[int, list[str]]:
    """Call it with all that is wrong, one argument at a time; return answers and our errors."""
    function, given, wrong = CALLS[name]
    answers, errors = 0, list[str]()
    for argument, values in wrong.items():
        for value in values:
            if isinstance(value, type) and argument == "value" and name.startswith("score"):
                continue  # a class is a function, too, and fails in its own words
            try:
                found = function(**{**given, argument: value})
            except ErasableError as error:
                errors.append(str(error))
            else:
                answers += 1
                assert not has_nan(found), (argument, value)
    return answers, errors


def has_nan(found: Any) -> bool:
    if isinstance(found, np.ndarray | float | int):
        return bool(np.isnan(found).any())
    if isinstance(found, tuple):
        return any(map(has_nan, found))
    values = getattr(found, "__dict__", {}).values()
    return any(has_nan(each) for each in values)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", list(CALLS))
def test_an_answer_or_an_error_of_ours(name: str) -> None:
    """No warning of NumPy's either, which is how a number that is none comes about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (PrecisionWarning, RemovalWarning):
            warnings.filterwarnings("ignore", category=kind)
        _, errors = refusals(name)
    assert errors
    assert not [error for error in errors if "\n" in error]


def test_a_raw_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: one function that neither answers nor refuses, and one that answers NaN."""
    raw = {
        "raises": (lambda value: 1.0 / value, {}, {"value": [0]}),
        "answers": (lambda value: {0: Moments(1, np.array([np.nan]))}[value], {}, {"value": [0]}),
    }
    for name, call in raw.items():
        monkeypatch.setitem(CALLS, name, call)
    with pytest.raises(ZeroDivisionError):
        refusals("raises")
    with pytest.raises(AssertionError):
        refusals("answers")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: fitted(score=lambda F: F[:, 0]), r"score\(forget, retain\); expected a function"),
        (lambda: fitted(score=CCS(difficulty=lambda F, R: F)), r"called as difficulty\(forget\)"),
        (lambda: fitted(score=DensityRatio(LogisticRegression)), "expected one with predict_proba"),
        (lambda: divergence(F, R, classifier=LogisticRegression), "one with predict_proba"),
        (lambda: removed(forget_label="spma"), "is no class of the model; expected one of 'ham'"),
        (lambda: certificate(F * 1e200, R, [0], 0.05), "forget holds values beyond 2"),
        (
            lambda: certificate(F * 10.0 ** np.array([0, 9, -9]), R, [0], 0.05),
            "forget is singular beside that of the edited data",
        ),
    ],
)
def test_what_is_said(call: Any, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        call()


@pytest.mark.parametrize("X", [None, np.array(3), csr_array(np.eye(3)), [["a"]]])
def test_moments_of_no_table_are_refused(X: Any) -> None:
    with pytest.raises(ErasableError, match="expected"):
        Moments.of(X)
    with pytest.raises(ErasableError, match="a mask with a boolean for each"):
        Moments.of(np.eye(3), [0, 1])
