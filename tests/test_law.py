"""Every estimator of erasable keeps the law, on fixed data and on what hypothesis thinks of."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from sklearn.utils.validation import has_fit_parameter

import erasable
from effort import examples
from erasable.core.errors import InvalidInputError, TooFewRecordsError
from erasable.utils._checks.compare import assert_same, fit, seeded
from erasable.utils._checks.data_sets import MARKED, suited
from erasable.utils._checks.erasure import marks_of
from erasable.utils._checks.reach import traces
from erasable.utils.estimator_checks import LAW_CHECKS, DataSet, parametrize_with_law_checks
from law_cases import check_law, check_law_of_variant, of_variants
from law_instances import first_instances, instances_of, other_instances
from naming import named

FIRST, OTHERS = first_instances(), other_instances()
INSTANCES = [*FIRST, *OTHERS]
WEIGHED = [
    each
    for each in FIRST
    if has_fit_parameter(each, "sample_weight")
    and has_fit_parameter(getattr(each, "estimator", each), "sample_weight")
]
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking, which takes minutes: all data is small, and a failure prints its blob."""


@pytest.mark.thorough
@parametrize_with_law_checks(FIRST)
def test_law(estimator: Any, check: Any) -> None:
    check_law(estimator, check)


@pytest.mark.sampled(6)
@pytest.mark.thorough
@of_variants(parametrize_with_law_checks(OTHERS, fast=True))
def test_law_of_variants(estimator: Any, check: Any) -> None:
    check_law_of_variant(estimator, check)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", WEIGHED, ids=named)
def test_nothing_is_left_of_a_record_without_weight(estimator: Any) -> None:
    (data,) = suited(MARKED[:1], estimator)
    row = int(data.doomed[1])
    rest, marks = np.delete(np.arange(len(data)), row), marks_of(data, row)

    def fitted(rows: Any) -> Any:
        weights = np.where(rows == row, 0.0, 1.0)
        model = seeded(estimator)
        return model.fit(data.X[rows], data.y[rows], ids=data.ids[rows], sample_weight=weights)

    model = fitted(np.arange(len(data)))
    assert traces(model, marks)
    model.delete(data.ids[[row]])
    assert traces(model, marks) <= traces(fitted(rest), marks)


def test_every_estimator_is_tested() -> None:
    listed = {cls for _, cls, _ in erasable.all_estimators()}
    assert {type(estimator) for estimator in INSTANCES} == listed


def test_a_meta_estimator_without_instances_is_reported() -> None:
    with pytest.raises(
        AssertionError, match=r"Lonely is made of other estimators; .* add it to MADE"
    ):
        instances_of("Lonely", object, {"meta": True})


# -- data and deletions that nobody chose ----------------------------------------------------------


def _skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return np.exp(4.0 * rng.normal(size=shape)) * rng.choice([-1.0, 1.0], size=shape)


def _constant(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return np.where(rng.random(shape[1]) < 0.5, 3.7, rng.normal(size=shape))


def _duplicated(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.normal(size=(max(shape[0] // 3, 1), shape[1]))[
        rng.integers(0, max(shape[0] // 3, 1), shape[0])
    ]


def _offset(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return 1.7e9 + rng.integers(0, 10**6, size=shape) / 16.0


def _integers(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.integers(-3, 4, size=shape)


def _outlier(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    matrix = rng.normal(size=shape)
    matrix[rng.integers(shape[0])] *= 1e5
    return matrix


KINDS = (_skewed, _constant, _duplicated, _offset, _integers, _outlier)


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """Values of one of the kinds, or whatever hypothesis likes."""
    shape = draw(st.integers(3, 40)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        seed = draw(st.integers(0, 2**32 - 1))
        return draw(st.sampled_from(KINDS))(np.random.default_rng(seed), shape)
    values = st.floats(-1e6, 1e6, width=32) | st.integers(-3, 3).map(float)
    return draw(hnp.arrays(np.float64, shape, elements=values))


@st.composite
def data_sets(draw: st.DrawFn) -> DataSet:
    """Records with ids of any kind, perhaps in groups, of which some are doomed."""
    X = draw(matrices())
    n = len(X)
    numbers = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n, unique=True))
    ids: Any = np.array(numbers, dtype=np.int64)
    if draw(st.booleans()):
        ids = np.array([f"visit-{number}" for number in numbers], dtype=object)
    groups = draw(st.none() | hnp.arrays(np.int64, n, elements=st.integers(0, max(n // 4, 1))))
    doomed = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=max(n // 3, 1), unique=True))
    y = np.arange(n, dtype=np.float64)
    return DataSet("drawn", X, y, ids, groups, np.array(doomed, dtype=np.int64))


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("estimator", INSTANCES, ids=lambda e: " ".join(str(e).split()))
@settings(max_examples=examples(20), phases=PHASES)
@given(data=data_sets(), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_any_deletions_from_any_data_equal_a_refit(
    estimator: Any, data: DataSet, cuts: list[int]
) -> None:
    (data,) = suited([data], estimator)
    try:
        model = fit(estimator, data)
    except (TooFewRecordsError, InvalidInputError):  # too few records, or columns
        return
    done = 0
    for portion in np.split(data.doomed_ids, sorted(cuts)):
        rest = data.without(data.doomed_ids[: done + len(portion)])
        try:
            model.delete(portion)
        except TooFewRecordsError:
            with pytest.raises(TooFewRecordsError):
                fit(estimator, rest)
            return
        done += len(portion)
        assert_same(model, fit(estimator, rest), f"after {done} deletions", save=True)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("estimator", INSTANCES, ids=lambda e: " ".join(str(e).split()))
@settings(max_examples=examples(10), phases=PHASES)
@given(data=data_sets())
def test_rows_and_deletions_in_any_order(estimator: Any, data: DataSet) -> None:
    try:
        fit(estimator, suited([data], estimator)[0].without(data.doomed_ids))
    except (TooFewRecordsError, InvalidInputError):
        return
    for name in ("check_row_order", "check_deletion_order", "check_batch_split"):
        try:
            LAW_CHECKS[name](estimator, [data])
        except AssertionError as error:
            if not isinstance(error.__cause__, TooFewRecordsError) or not _refused(estimator, data):
                raise


def _refused(estimator: Any, data: DataSet) -> bool:
    """Tell whether some of the doomed records cannot go alone, though all of them can.

    So it is with max_df of a vocabulary, a share of the records that are left.
    """
    (data,) = suited([data], estimator)
    for size in range(len(data.doomed_ids)):
        for gone in itertools.combinations(data.doomed_ids, size):
            try:
                fit(estimator, data.without(list(gone)))
            except TooFewRecordsError:
                return True
    return False
