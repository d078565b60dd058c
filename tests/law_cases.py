"""On which data each check of the law is made, by ``make test`` and by ``make soak``."""

from __future__ import annotations

from typing import Any

import pytest

from effort import THOROUGH
from erasable.utils.estimator_checks import DataSet

__all__ = ["check_law", "check_law_of_variant", "of_variants"]

OF_VALUES = (
    "check_delete_equals_refit",
    "check_fitted_attributes",
    "check_float32_input",
    "check_groups",
    "check_magnitudes",
    "check_predicting_after_deletion",
)
"""What depends on the kind of data: on sums that round, ties, columns that are constant."""

ON = {
    "check_bad_fit_changes_nothing": {"separated"},  # numbers, which it spoils
    "check_erased_by_the_last": {"marked, string ids"},
    "check_long_sequence": {"duplicated rows", "large"},
    "check_nothing_left": {"marked, string ids"},
    "check_smallest_legal_set": {"duplicated rows", "tiny"},
}
"""Checks that need data of their own kind, and where there is no time for all, which."""

PLAIN = {"separated", "duplicated rows"}
"""For all others: they are about ids, copies, files and tables, or about an order.

Orders are tried on drawn data as well.
"""

TIED = {"duplicated rows"}
"""For those once more, in a variant of an estimator: ties, and strings for ids."""

OF_PARAMETERS = (
    *OF_VALUES,
    "check_batch_split",
    "check_deletion_order",
    "check_load_deletes",
    "check_load_predicts",
    "check_nothing_left",
    "check_row_order",
    "check_smallest_legal_set",
)
"""What may depend on parameters; the others are about ids, copies and tables, which do not."""


def of_variants(tests: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Keep of the tests of `parametrize_with_law_checks` those that a variant may fail alone."""
    names, cases = tests.args
    kept = [case for case in cases if THOROUGH or case.values[1].func.__name__ in OF_PARAMETERS]
    return pytest.mark.parametrize(names, kept)


def _of(check: Any, kinds: set[str]) -> list[DataSet]:
    data_sets = check.keywords["data_sets"]
    if THOROUGH or check.func.__name__ in OF_VALUES:
        return list(data_sets)
    kinds = ON.get(check.func.__name__, kinds)
    return [data for data in data_sets if data.name in kinds] or list(data_sets)


def check_law(estimator: Any, check: Any) -> None:
    """Make a check of `parametrize_with_law_checks`; all of it by ``make soak``."""
    check(estimator, data_sets=_of(check, PLAIN))


def check_law_of_variant(estimator: Any, check: Any) -> None:
    """Do so where other parameters of the same estimator have passed `check_law`."""
    check(estimator, data_sets=_of(check, TIED))
