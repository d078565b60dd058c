"""Gradient boosting of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from erasable.core._schema import Decimal, Fields, Sizes, grid, refuse
from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidDataError, MagnitudeError
from erasable.core.weighted import power_below
from erasable.ensemble._boosting._estimator import CONSTRAINTS, Boosting
from erasable.tree._boosted._loss_kernels import exponentials
from erasable.tree._boosted._losses import (
    Poisson,
    Spread,
    Squares,
    fixed_point,
    rate_units,
)
from erasable.tree._targets import NumberTargets

_MOST_RATES = 2**24
"""Records of which the Hessians add up to less than ``2**35``."""


class HistGradientBoostingRegressor(RegressorMixin, Boosting):
    """Gradient boosting for numbers, from which records can be deleted exactly.

    As scikit-learn's with squared errors, with trees that seldom change when a record goes. After
    `delete` the model is, bit for bit, the one that a fit without the records makes.

    Parameters that are not described here are those of `HistGradientBoostingClassifier`.

    Parameters
    ----------
    loss : {"squared_error", "poisson"}, default="squared_error"
        What rounds make smaller. With "poisson", targets are 0 or more, and predictions are
        exponentials of what the trees say.
    max_iter : int, default=40
        Rounds, at most. Each has a tree.

    Attributes
    ----------
    n_iter_ : int
        Number of rounds.
    n_trees_per_iteration_ : int
    do_early_stopping_ : bool
    is_categorical_ : ndarray of shape (n_features,), bool, or None
    feature_importances_ : ndarray of shape (n_features,)
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        Targets below 0 with ``loss="poisson"``.
    MagnitudeError
        Targets beyond ``2**480``; more than ``2**24`` records with ``loss="poisson"``.

    Notes
    -----
    Gradients, Hessians and predictions are whole numbers of small units, so that sums of them have
    no order. Values of leaves are rounded to units up or down by a draw for the tree and the leaf,
    and a split's gain is multiplied by a draw for the node and the threshold. A record that goes
    seldom changes either: it is followed through the rounds, and from the first one that it
    changes rounds are learned again. How often that is grows with the number of rounds and leaves
    and with the learning rate.

    A missing value goes to the side that gains more with those of the node, and to the larger one
    where the node has none. A category that no record has goes right. `feature_importances_`
    counts splits. Sparse data is refused. Behind a scaler in a pipeline it learns from the values
    as they came.

    Of records in files or on a cluster the features are read twice, and codes of one byte for each
    value are held in memory, where the rounds run.

    "absolute_error" is not taken: its leaves are medians of what is left of the targets, which sums
    do not tell, and most deletions change some of them.

    Targets are rounded once, to 26 bits below the largest. The unit of predictions is a part of
    the power of two below the targets' standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.ensemble import HistGradientBoostingRegressor
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> model = HistGradientBoostingRegressor(random_state=0).fit(X, np.floor(X[:, 0] / 50.0))
    >>> print(model.delete([3, 77]).ids)
    [ 3 77]
    >>> model.predict([[5.0, 6.0], [170.0, 171.0]]).round(1)
    array([0., 3.])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions({"squared_error", "poisson"})],
        **CONSTRAINTS,
    }
    _kind_of_targets = NumberTargets
    _targets: NumberTargets
    _loss: Squares | Poisson
    _spread: Spread

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        learning_rate: float = 0.2,
        max_iter: int = 40,
        max_leaf_nodes: int | None = None,
        max_depth: int | None = 5,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        n_thresholds: int = 16,
        categorical_features: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.n_thresholds = n_thresholds
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state

    # -- learning ------------------------------------------------------------------------------

    def _fit_targets(self) -> NumberTargets:
        held = self._attached()
        self._refuse_rates()
        targets = NumberTargets.fit(held, self._settings)
        self._spread = Spread.of(targets.numbers[held.live])
        return targets

    def _find_loss(self) -> Squares | Poisson:
        learning_rate, quantum = float(self._settings["learning_rate"]), self._targets.quantum
        if self._settings["loss"] == "poisson":
            sums, origin = self._spread, float(self._targets.grid.origin[0])
            mean = Fraction(origin) + Fraction(sums.total, max(sums.n, 1)) * Fraction(quantum)
            return Poisson.of(mean, sums.exponent + power_below(quantum), learning_rate)
        return self._spread.loss(power_below(quantum), learning_rate)

    def _loss_from(self, state: dict[str, Any]) -> Squares | Poisson:
        if "scale" in state:
            learning_rate = float(self._settings["learning_rate"])
            return Poisson.with_start(state["start"], float(state["scale"]), learning_rate)
        return Squares(float(state["unit"]), state["start"], 0)

    def _refuse_rates(self) -> None:
        """Raise an error if targets of live records are no rates, where they have to be."""
        held = self._attached()
        if self._settings["loss"] == "poisson":
            assert held.records.y is not None
            _refuse_rates(held.records.y[held.live], type(self).__name__)

    def _known_targets(self, rows: Ints) -> Ints:
        numbers, quantum = self._targets.of(rows), self._targets.quantum
        if isinstance(self._loss, Poisson):
            rates = self._targets.grid.origin[0] + numbers * quantum
            return rate_units(rates, self._loss.scale)
        return fixed_point(numbers, power_below(quantum), self._loss.unit)

    def _change_targets(self, leaving: Ints, arriving: Ints) -> bool:
        held, targets = self._attached(), self._targets
        if arriving.size:
            self._refuse_rates()
            if targets.add(held, arriving):
                return True
            self._spread.add(targets.of(arriving))
        self._spread.remove(targets.of(leaving))
        return leaving.size > 0 and targets.remove(held, leaving)

    def _state_beside_trees(self) -> dict[str, Any]:
        if isinstance(self._loss, Poisson):
            return {**super()._state_beside_trees(), "scale": self._loss.scale}
        return {**super()._state_beside_trees(), "unit": self._loss.unit}

    def _target_schema(self) -> Fields:
        name = "scale" if self._at_fit("loss") == "poisson" else "unit"

        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            if np.frexp(value[name])[0] != 0.5:
                refuse(name, value[name], "a power of two")
            if value["start"].size != 1:
                refuse("start", f"{value['start'].size} numbers", "1")
            n_trees, most = value["trees"]["n_nodes"].size, int(self._at_fit("max_iter"))
            if not self._may_have(n_trees, most):
                refuse("trees.n_nodes", f"{n_trees} trees", str(most))

        power = Decimal(2.0**-1000, 2.0**700)
        return Fields({"target": grid(1), name: power}, relations=(check,))

    # -- predicting ----------------------------------------------------------------------------

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Numbers; NaN where one is missing.

        Returns
        -------
        ndarray of shape (n_rows,), float64
        """
        return self._numbers(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Yield what `predict` returns, after each round.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Yields
        ------
        ndarray of shape (n_rows,), float64
        """
        yield from map(self._numbers, self._staged(X))

    def _numbers(self, raw: Floats) -> Floats:
        if isinstance(self._loss, Poisson):
            return self._loss.scale * exponentials(np.ascontiguousarray(raw[:, 0]))
        numbers: Floats = self._targets.grid.origin[0] + raw[:, 0]
        return numbers


def _refuse_rates(targets: Any, name: str) -> None:
    """Raise an error if targets of live records are below 0, or too many."""
    if (least := float(np.min(targets))) < 0.0:
        raise InvalidDataError(
            f"y holds {least:g}; {name} with loss='poisson' expects targets from 0 on"
        )
    if len(targets) > _MOST_RATES:
        raise MagnitudeError(
            f"{len(targets)} records were given; {name} with loss='poisson' takes at most "
            f"{_MOST_RATES} (2**24); split the data, and fit a model to each part"
        )
