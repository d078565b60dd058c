"""Checks of the law for any estimator: deleting a record equals never having seen it.

Every check is a function ``check_xxx(estimator)`` that raises ``AssertionError`` and says what
differs. `check_erasable` runs them all; `parametrize_with_law_checks` makes one pytest test of
each. All checks use the public interface of `erasable.core.estimator.Erasable`, on small fixed data
sets (`LAW_DATA_SETS`), or on your own: ``check_batch_split(estimator, [data])``.
"""

from __future__ import annotations

import functools
import unittest
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.exceptions import SkipTestWarning

from erasable.core.errors import InvalidInputError
from erasable.utils._checks import arrivals, equality, erasure, files, identity, inputs, lifetime
from erasable.utils._checks.compare import Check
from erasable.utils._checks.data_sets import FAST, MARKED, STANDARD, DataSet

__all__ = [
    "LAW_CHECKS",
    "LAW_DATA_SETS",
    "DataSet",
    "check_erasable",
    "parametrize_with_law_checks",
]

LAW_DATA_SETS = STANDARD
"""The data sets of a whole run, of type `DataSet`."""

LAW_CHECKS: Mapping[str, Check] = {
    name: check
    for module in (equality, arrivals, erasure, files, identity, inputs, lifetime)
    for name, check in vars(module).items()
    if name.startswith("check_")
}
"""Every check by its name, in the order in which `check_erasable` runs them."""

_ON_MARKED_DATA = (
    erasure.check_nothing_left,
    erasure.check_erased_by_the_last,
    files.check_nothing_left_in_files,
)


def _data_sets(check: Check, fast: bool) -> tuple[DataSet, ...]:
    if check in _ON_MARKED_DATA:
        return MARKED[:1] if fast else MARKED
    return FAST if fast else STANDARD


def check_erasable(estimator: Any, *, fast: bool = False) -> None:
    """Check that an estimator keeps the law; raise AssertionError where it does not.

    You wrote an estimator that deletes, and want to know whether a deletion is the same, bit for
    bit, as never having seen the record, under every order, batch, copy and file.

    Parameters
    ----------
    estimator : Erasable
        Not changed; its parameters are used, a ``random_state`` of None becomes 0.
    fast : bool, default=False
        Use two kinds of data instead of eight.

    Raises
    ------
    AssertionError
        At the first check that fails, with the name of the check and what differs.
    InvalidInputError
        If the estimator's ``exactness`` is not ``"bitwise"``: it promises something else.

    Warns
    -----
    SkipTestWarning
        When a check needs a library that is not installed.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> from erasable.utils.estimator_checks import check_erasable
    >>> check_erasable(MinMaxScaler(), fast=True)
    """
    promised = getattr(type(estimator), "exactness", None)
    if promised != "bitwise":
        raise InvalidInputError(
            f"{type(estimator).__name__} declares exactness {promised!r}; these checks compare "
            "bits and need 'bitwise'; compare with a refit by its own tolerance instead"
        )
    for name, check in LAW_CHECKS.items():
        try:
            check(estimator, _data_sets(check, fast))
        except unittest.SkipTest as reason:
            warnings.warn(f"{name}: {reason}", SkipTestWarning, stacklevel=2)


def parametrize_with_law_checks(estimators: Iterable[Any], *, fast: bool = False) -> Any:
    """Make one pytest test of every estimator and check.

    Parameters
    ----------
    estimators : iterable of Erasable
        Instances.
    fast : bool, default=False
        Use two kinds of data instead of eight.

    Returns
    -------
    pytest.MarkDecorator
        For a test function of two arguments, ``estimator`` and ``check``.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> from erasable.utils.estimator_checks import parametrize_with_law_checks
    >>> @parametrize_with_law_checks([MinMaxScaler()])
    ... def test_law(estimator, check):
    ...     check(estimator)
    """
    import pytest

    named = [(estimator, " ".join(str(estimator).split())) for estimator in estimators]
    cases = [
        pytest.param(
            estimator,
            functools.partial(check, data_sets=_data_sets(check, fast)),
            id=f"{shown}-{name}",
        )
        for estimator, shown in named
        for name, check in LAW_CHECKS.items()
    ]
    return pytest.mark.parametrize(("estimator", "check"), cases)
