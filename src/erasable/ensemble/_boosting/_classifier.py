"""Gradient boosting of classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from erasable.core._schema import Fields, Sizes, classes, refuse
from erasable.core.arrays import Floats, Ints
from erasable.core.weighted import power_below, weight_units
from erasable.ensemble._boosting._estimator import CONSTRAINTS, Boosting
from erasable.tree._boosted._loss_kernels import exponentials
from erasable.tree._boosted._losses import LogLoss, n_outputs_of
from erasable.tree._layout import WEIGHT_BITS
from erasable.tree._models import ModelOfClasses

_LEAST = np.finfo(float).tiny


class HistGradientBoostingClassifier(ModelOfClasses, Boosting):
    """Gradient boosting for classes, from which records can be deleted exactly.

    As scikit-learn's, with trees that seldom change when a record goes. After `delete` the model
    is, bit for bit, the one that a fit without the records makes.

    Parameters
    ----------
    loss : {"log_loss"}, default="log_loss"
        What rounds make smaller.
    learning_rate : float, default=0.2
        What the value of a leaf is multiplied by.
    max_iter : int, default=40
        Rounds, at most. For more than two classes a round has a tree for each.
    max_leaf_nodes : int or None, default=None
        Leaves of a tree, at most: the node whose best split scores highest is split first. As
        which one that is depends on all, deletions change such trees more often.
    max_depth : int or None, default=5
        Splits between the root and a leaf, at most; 64 with None.
    min_samples_leaf : int, default=20
        Records each part of a split needs.
    l2_regularization : float, default=0.0
        Added to a leaf's sum of Hessians.
    max_bins : int, default=255
        Codes of a feature, at most, beside that of a missing value. With more distinct values the
        ``max_bins - 1`` edges are those with the lowest hashes.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; one that is not in the dict has 1. "balanced" makes the classes
        weigh the same, up to 1/16: weights have four digits, binary, and seldom change.
    n_thresholds : int, default=16
        Edges that a node tries in each feature, drawn by hashes.
    categorical_features : "from_dtype", array-like of int, str or bool, default=None
        Columns whose values are categories, text or numbers: their numbers or names, or one truth
        value for each column; with "from_dtype", those that a frame declares to hold something
        else than numbers. A split sends one category to the left, and all others to the right.
        Numbers below 0 are gaps. Text is hashed; "7" is the category 7.
    early_stopping : bool, default=False
        Hold records out, and end once their loss gets no smaller. scikit-learn does by default
        what depends on the number of records.
    validation_fraction : float, default=0.1
        Probability that a record is held out, drawn for its id.
    n_iter_no_change : int, default=10
        Rounds without a smaller loss, after which it ends.
    tol : float, default=1e-7
        By how much a loss has to be smaller to count as such.
    random_state : int, RandomState or None, default=None
        Seed of the tape. None draws one from the system, kept as ``seed_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; a class goes with its last record.
    n_iter_ : int
        Number of rounds.
    n_trees_per_iteration_ : int
    do_early_stopping_ : bool
    is_categorical_ : ndarray of shape (n_features,), bool, or None
    feature_importances_ : ndarray of shape (n_features,)
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

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

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.ensemble import HistGradientBoostingClassifier
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> y = np.where(X[:, 0] < 90.0, "low", "high")
    >>> model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> print(model.delete([3, 77]).ids)
    [ 3 77]
    >>> model.predict([[5.0, np.nan], [170.0, 171.0]])
    array(['low', 'high'], dtype=object)
    >>> left = np.delete(np.arange(100), [3, 77])
    >>> fresh = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    >>> model.digest() == fresh.fit(X[left], y[left], ids=left).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions({"log_loss"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CONSTRAINTS,
    }
    _loss: LogLoss

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        learning_rate: float = 0.2,
        max_iter: int = 40,
        max_leaf_nodes: int | None = None,
        max_depth: int | None = 5,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        class_weight: Any = None,
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
        self.class_weight = class_weight
        self.n_thresholds = n_thresholds
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state

    # -- learning ------------------------------------------------------------------------------

    def _find_loss(self) -> LogLoss:
        counts, factors = self._targets.classes.counts, self._factors()
        if factors.size:
            exponent = power_below(max(factors.max(), _LEAST)) + 1
            counts = counts * weight_units(factors, exponent - WEIGHT_BITS)
        return LogLoss.of(counts, float(self._settings["learning_rate"]))

    def _loss_from(self, state: dict[str, Any]) -> LogLoss:
        return LogLoss.with_start(state["start"], float(self._settings["learning_rate"]))

    def _factors(self) -> Floats:
        """Return what each class weighs, in few digits; nothing if all weigh the same."""
        weights = self._targets.class_weight
        if not isinstance(self._targets.given, str):
            return weights
        digits, exponents = np.frexp(weights)
        factors: Floats = np.ldexp(np.rint(digits * 16.0), exponents - 4)
        return factors

    def _weights_of(self, rows: Ints) -> Floats | None:
        weights, factors = super()._weights_of(rows), self._factors()
        if not factors.size:
            return weights
        own: Floats = factors[self._targets.of(rows)]
        return own if weights is None else own * weights

    def _known_targets(self, rows: Ints) -> Ints:
        return self._targets.of(rows)

    def _change_targets(self, leaving: Ints, arriving: Ints) -> bool:
        held, targets, factors = self._attached(), self._targets, self._factors()
        assert held.records.y is not None
        if arriving.size and not targets.classes.add(held.records.y, arriving):
            return True
        if leaving.size:
            targets.remove(held, leaving)
        return targets.kept() is not None or not np.array_equal(factors, self._factors())

    def _target_schema(self) -> Fields:
        def check(value: dict[str, Any], at: str, sizes: Sizes) -> None:
            wanted = n_outputs_of(sizes["n_classes"])
            n_trees = value["trees"]["n_nodes"].size
            if value["start"].size != wanted:
                refuse("start", f"{value['start'].size} numbers", f"{wanted}, as classes")
            most = wanted * int(self._at_fit("max_iter"))
            if not self._may_have(n_trees, most) or (wanted and n_trees % wanted):
                refuse("trees.n_nodes", f"{n_trees} trees", f"{wanted} a round, {most} in all")

        return Fields({"classes": classes()}, relations=(check,))

    # -- predicting ----------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return the raw predictions.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes), float64
            Log-odds of the second of two classes; otherwise a column for each of `classes_`.
        """
        return self._decisions(self._raw(X))

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Yield what `decision_function` returns, after each round.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Yields
        ------
        ndarray of shape (n_rows,) or (n_rows, n_classes), float64
        """
        yield from map(self._decisions, self._staged(X))

    def _decisions(self, raw: Floats) -> Floats:
        if raw.shape[1] == 0:
            return np.zeros(raw.shape[0])
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Numbers; NaN where one is missing.

        Returns
        -------
        ndarray of shape (n_rows, n_classes), float64
            A column for each of `classes_`; rows add up to 1.
        """
        return self._shares(self._raw(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Yield what `predict_proba` returns, after each round.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Yields
        ------
        ndarray of shape (n_rows, n_classes), float64
        """
        yield from map(self._shares, self._staged(X))

    def _shares(self, raw: Floats) -> Floats:
        n, m = len(raw), raw.shape[1]
        if m == 1:
            raw = np.column_stack([np.zeros(n), raw[:, 0]])
        elif m == 0:
            return np.ones((n, 1))
        raw = raw - raw.max(axis=1)[:, np.newaxis]
        likely: Floats = exponentials(np.ascontiguousarray(raw).reshape(-1)).reshape(raw.shape)
        total = likely[:, 0].copy()
        for k in range(1, max(m, 2)):  # in one order, whatever the other rows
            total += likely[:, k]
        shares: Floats = likely / total[:, np.newaxis]
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        return self._most_probable(self.predict_proba(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield what `predict` returns, after each round.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Yields
        ------
        ndarray of shape (n_rows,)
        """
        yield from map(self._most_probable, self.staged_predict_proba(X))
