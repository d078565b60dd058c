"""Rules of a tree: its parameters, read for a number of records and features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from erasable.core.weighted import power_below
from erasable.tree._layout import ENTROPY, GINI, NO_DEPTH, SQUARES, WEIGHT_BITS, TreeRules

CRITERIA = {"gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY, "squared_error": SQUARES}

CONSTRAINTS: dict[str, Any] = {
    "max_depth": [Interval(Integral, 1, NO_DEPTH, closed="left"), None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2"}),
        None,
    ],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "n_thresholds": [Interval(Integral, 1, 1023, closed="both")],
}
"""Of the parameters that all trees share."""

_ANY = 2**60
"""More records than there are: as good as any larger number, and kernels can hold twice as many."""

OF_CLASSIFIERS: dict[str, Any] = {
    "criterion": [StrOptions({"gini", "entropy", "log_loss"})],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    **CONSTRAINTS,
}

OF_REGRESSORS: dict[str, Any] = {"criterion": [StrOptions({"squared_error"})], **CONSTRAINTS}


SUM_BITS = 62
_TARGET_BITS, _TIMES_BITS = 27, 5


def unit_for(largest: float, n_records: int, *, regression: bool, bags: bool) -> int:
    """Return the exponent of the unit in which weights count.

    The largest of them has 16 bits, so that all together are less than ``2**48``, each up to
    ``2**5`` times in a bag. Sums of their products with targets, of up to 27 bits, are less than
    ``2**62``: for that weights of many records have fewer bits, 3 at least.

    `largest` is the weight of the heaviest of `n_records` live records, less than ``2**27``.

    >>> unit_for(3.0, 10**6, regression=False, bags=True)
    -14
    >>> unit_for(3.0, 10**6, regression=True, bags=False)
    -13
    """
    bits = WEIGHT_BITS
    if regression:
        taken = _TARGET_BITS + n_records.bit_length() + (_TIMES_BITS if bags else 0)
        bits = min(bits, SUM_BITS - taken)
    return power_below(largest) + 1 - bits


def rules_for(
    settings: Mapping[str, Any],
    n_records: int,
    n_features: int,
    quantum: float,
    unit: int | None = None,
) -> TreeRules:
    """Read parameters as scikit-learn does; without a target's grid, `quantum` is 1.

    `unit` is that of `unit_for`; None where records have no weights.

    >>> settings = {"criterion": "gini", "max_depth": None, "min_samples_split": 0.1,
    ...             "min_samples_leaf": 1, "max_features": "sqrt", "n_thresholds": 10,
    ...             "min_impurity_decrease": 0.0}
    >>> rules = rules_for(settings, 101, 20, 1.0)
    >>> rules.min_split, rules.max_features, rules.sample
    (11, 4, 11)
    """
    min_leaf = _share(settings["min_samples_leaf"], n_records)
    min_split = max(_share(settings["min_samples_split"], n_records), 2, 2 * min_leaf)
    depth = settings["max_depth"]
    return TreeRules(
        criterion=CRITERIA[settings["criterion"]],
        min_split=min_split,
        min_leaf=min_leaf,
        max_depth=NO_DEPTH if depth is None else min(int(depth), NO_DEPTH),
        max_features=_features(settings["max_features"], n_features),
        sample=int(settings["n_thresholds"]) + 1,
        min_decrease=float(settings["min_impurity_decrease"]),
        scale=quantum * quantum,
        weighted=unit is not None,
        unit=unit or 0,
    )


def _share(given: Any, n: int) -> int:
    """Read a number of records, or a share of all of them."""
    return min(int(given), _ANY) if isinstance(given, Integral) else math.ceil(given * n)


def _features(given: Any, d: int) -> int:
    if given is None:
        return d
    if given == "sqrt":
        return max(1, math.isqrt(d))
    if given == "log2":
        return max(1, d.bit_length() - 1)
    return min(int(given), d) if isinstance(given, Integral) else max(1, int(given * d))
