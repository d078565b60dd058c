"""Single decision trees."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from erasable.core.exported import Exported
from erasable.tree._estimators import TreeClassifier, TreeRegressor
from erasable.tree._rules import OF_CLASSIFIERS, OF_REGRESSORS


class _SingleTree:
    """Methods of single trees that forests do not have."""

    _check_fitted: Any
    _flats: Any
    _known_rules: Any
    _leaves: Any

    tree_ = Exported("The nodes, a `sklearn.tree` Tree of its own; see `to_sklearn`.")

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf that every row comes to.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), int64
            Leaves are numbered from 0 on, from left to right; scikit-learn numbers all nodes.
        """
        leaves: NDArray[np.int64] = self._leaves(X)[:, 0]
        return leaves

    def get_depth(self) -> int:
        """Return the number of splits on the longest way from the root to a leaf."""
        depth: int = self._flats()[0].depth
        return depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return int(self._flats()[0].leaves.shape[0])

    @property
    def max_features_(self) -> int:
        """Number of features that are looked at in a node."""
        self._check_fitted()
        return int(self._known_rules().max_features)


class DecisionTreeClassifier(_SingleTree, TreeClassifier):
    """A decision tree for classes, from which records can be deleted exactly.

    As scikit-learn's, with one difference: a node does not try all thresholds of a feature, but
    `n_thresholds` of the values that its records have, drawn by hashes. Where they have no more,
    that is all of them. So a deletion seldom changes what is tried, and a node that decides as
    before stays as it is.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity that a split is to take away.
    max_depth : int or None, default=None
        Splits between the root and a leaf, at most.
    min_samples_split : int or float, default=2
        Records a node needs to be split; a float is a share of all.
    min_samples_leaf : int or float, default=1
        Records each part of a split needs; a float is a share of all.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Features that are looked at in a node: a number, a share, or all. Where all of them are
        constant there, others follow until one is not.
    min_impurity_decrease : float, default=0.0
        What a split has to take away of the impurity, weighted by the node's share of the records.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; one that is not in the dict has 1. "balanced" makes the classes
        weigh the same: the weights change with every deletion, which then is a refit.
    n_thresholds : int, default=128
        Thresholds that are tried in each feature of a node; at most 1,023.
    random_state : int, RandomState or None, default=None
        Seed of the tape. None draws one from the system, kept as ``seed_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; a class goes with its last record.
    n_classes_ : int
    feature_importances_ : ndarray of shape (n_features,)
    tree_ : Tree
        Its nodes, as scikit-learn has them, made at each access by `to_sklearn`.
    max_features_, n_outputs_ : int
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Notes
    -----
    Thresholds lie in the middle between two values of the records. Ties are broken by the names of
    the features (x0, x1, ... where there are none), then by the value. Impurities are
    formulas of exact counts.

    Missing values (NaN) are taken as in scikit-learn. Where records of a node have none in a
    feature, each threshold is tried with these records on the right and on the left, in this order
    in ties, and last the split that divides them from all others. In `predict`, a row without a
    value goes where they went; where the node had none, to the child whose records weigh more, and
    to the right one of two that weigh the same.

    Parameters that scikit-learn has and this has not depend on the whole tree or on all records:
    pruning, `max_leaf_nodes`. Sparse data are refused: before a tree an encoder needs
    ``sparse_output=False``, and no scaler is needed. Behind one in a pipeline the tree learns from
    the values as they came, so that a deletion, which changes the scales, does not make it grow
    again.

    Weights that `fit` is given are rounded, to 16 bits and a power of two that follows from the
    heaviest record: then the sums of weights are exact. When the last record goes that has this
    power, the tree grows anew. A record of weight 0 is held, and can be deleted, but no
    node has it. `min_samples_split` and `min_samples_leaf` count records; `min_impurity_decrease`
    is a share of the weight.

    Examples
    --------
    >>> from erasable.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], ["no", "no", "yes", "yes", "no"]
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[0.5], [20.0]])
    array(['no', 'yes'], dtype=object)
    >>> fresh = DecisionTreeClassifier(random_state=0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = OF_CLASSIFIERS

    def __init__(
        self,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: int | float | str | None = None,
        min_impurity_decrease: float = 0.0,
        class_weight: Any = None,
        n_thresholds: int = 128,
        random_state: Any = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.n_thresholds = n_thresholds
        self.random_state = random_state


class DecisionTreeRegressor(_SingleTree, TreeRegressor):
    """A decision tree for numbers, from which records can be deleted exactly.

    As scikit-learn's with squared errors, with the difference that `DecisionTreeClassifier` has:
    a node tries `n_thresholds` of the values that its records have. Targets are rounded once, to
    26 bits below the largest (`erasable.core.grid`), where their sums are exact.

    Parameters that are not described here are those of `DecisionTreeClassifier`.

    Parameters
    ----------
    criterion : {"squared_error"}, default="squared_error"
        What a split is to take away.
    min_impurity_decrease : float, default=0.0
        What a split has to take away of the variance, weighted by the node's share of the records.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
    tree_ : Tree
        Its nodes, as scikit-learn has them, made at each access by `to_sklearn`.
    max_features_, n_outputs_ : int
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        Targets beyond ``2**480``.

    Notes
    -----
    When the last record goes whose target reaches the top of the grid, the grid is made anew, and
    so is the tree. Weights are rounded as in `DecisionTreeClassifier`, but to 8 bits at least:
    35 less those of the number of records, and 16 at most, so that sums of targets and weights are
    exact. 16 bits are for fewer than 524,288 records; when deletions leave fewer than a power of
    two from there on, the tree grows anew.

    Examples
    --------
    >>> from erasable.tree import DecisionTreeRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [0.0, 0.0, 5.0, 6.0, 1.0]
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[0.5], [20.0]])
    array([0., 6.])
    >>> fresh = DecisionTreeRegressor(random_state=0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = OF_REGRESSORS

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: int | float | str | None = None,
        min_impurity_decrease: float = 0.0,
        n_thresholds: int = 128,
        random_state: Any = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.n_thresholds = n_thresholds
        self.random_state = random_state
