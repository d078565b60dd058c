"""Random forests: trees on bags of records."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from erasable.core.exported import Exported
from erasable.core.threads import N_JOBS
from erasable.tree._estimators import TreeClassifier, TreeRegressor
from erasable.tree._rules import OF_CLASSIFIERS, OF_REGRESSORS

OF_FORESTS: dict[str, Any] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "bootstrap": ["boolean"],
    "n_jobs": N_JOBS,
}
"""Constraints of the parameters that forests have beside those of trees."""


class Bagged:
    """Mixin of forests; what they are was fixed at `fit`."""

    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)

    n_jobs: int | None
    _at_fit: Any
    _leaves: Any

    estimator_ = Exported("The tree of scikit-learn, not fitted, that those are like.")
    estimators_ = Exported("The trees, as fitted trees of scikit-learn; see `to_sklearn`.")

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the leaf of every tree that every row comes to.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_estimators), int64
            Leaves are numbered from 0 on, from left to right; scikit-learn numbers all nodes.
        """
        leaves: NDArray[np.int64] = self._leaves(X)
        return leaves

    def _n_trees(self) -> int:
        return int(self._at_fit("n_estimators"))

    def _draws_bags(self) -> bool:
        return bool(self._at_fit("bootstrap"))


class RandomForestClassifier(Bagged, TreeClassifier):
    """A random forest for classes, from which records can be deleted exactly.

    The mean of decision trees, each grown on a bag of the records, as in scikit-learn, with two
    differences. How often a record is in a bag is drawn for it alone, from a Poisson distribution
    of mean 1, so that no other record depends on it. And a node tries `n_thresholds` of the
    values that its records have, drawn by hashes, and not all. A deletion concerns the 63 % of the
    trees that have the record; there, it asks the nodes on the record's way again, and most of
    them decide as before.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Impurity that a split is to take away.
    max_depth : int or None, default=None
        Splits between the root and a leaf, at most.
    min_samples_split : int or float, default=2
        Records a node needs to be split; a float is a share of all.
    min_samples_leaf : int or float, default=1
        Records each part of a split needs; a float is a share of all.
    max_features : int, float, {"sqrt", "log2"} or None, default="sqrt"
        Features that are looked at in a node: a number, a share, or all. Where all of them are
        constant there, others follow until one is not.
    min_impurity_decrease : float, default=0.0
        What a split has to take away of the impurity, weighted by the node's share of the records.
    bootstrap : bool, default=True
        Whether each tree learns from a bag of records.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; one that is not in the dict has 1. "balanced" makes the classes
        weigh the same: the weights change with every deletion, which then is a refit.
    n_thresholds : int, default=16
        Thresholds that are tried in each feature of a node; at most 1,023.
    n_jobs : int or None, default=None
        Threads that grow trees, delete and predict; None is one, and -1 are all cores. The model
        is the same with any number.
    random_state : int, RandomState or None, default=None
        Seed of the tape. None draws one from the system, kept as ``seed_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; a class goes with its last record.
    n_classes_ : int
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees that have a split.
    estimators_ : list of trees of scikit-learn
        Made at each access by `to_sklearn`; `estimator_` is such a tree that is not fitted.
    n_outputs_ : int
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Notes
    -----
    Where records have groups, a group is in a bag, or out of it, as a whole. A bag that is empty
    is filled with all records. Thresholds lie in the middle between two values of the records.
    Ties are broken by the names of the features (x0, x1, ... where there are none), then by the
    value.

    Missing values (NaN) are taken as by `erasable.tree.DecisionTreeClassifier`: nodes learn to
    which side these records go. Where a node had none, they go to the child whose records weigh
    more in the bag.

    Each tree keeps 4 bytes for each record in its bag, about 50 for each node, and the counts of
    what was tried in nodes of more than 256 records.

    Parameters that scikit-learn has and this has not depend on the whole tree or on all records:
    pruning, `max_leaf_nodes`, `max_samples`. Sparse data are refused: before a forest an encoder
    needs ``sparse_output=False``, and no scaler is needed. Behind one in a pipeline trees learn
    from the values as they came, so that a deletion, which changes the scales, does not make them
    grow again.

    Weights that `fit` is given are rounded, to 16 bits and a power of two that follows from the
    heaviest record: then the sums of weights are exact. When the last record goes that has this
    power, the trees grow anew. A record of weight 0 is held, and can be deleted, but no
    tree has it. `min_samples_split` and `min_samples_leaf` count records; `min_impurity_decrease`
    is a share of the weight.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45, 2001.
    .. [2] J. Brophy and D. Lowd, "Machine unlearning for random forests", ICML 2021, whose
       forests keep counts of sampled thresholds, too; what they sample depends on the order of the
       deletions.

    Examples
    --------
    >>> from erasable.ensemble import RandomForestClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], ["no", "no", "yes", "yes", "no"]
    >>> model = RandomForestClassifier(10, random_state=0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[-5.0], [20.0]])
    array(['no', 'yes'], dtype=object)
    >>> fresh = RandomForestClassifier(10, random_state=0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**OF_FORESTS, **OF_CLASSIFIERS}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: int | float | str | None = "sqrt",
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        class_weight: Any = None,
        n_thresholds: int = 16,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.class_weight = class_weight
        self.n_thresholds = n_thresholds
        self.n_jobs = n_jobs
        self.random_state = random_state


class RandomForestRegressor(Bagged, TreeRegressor):
    """A random forest for numbers, from which records can be deleted exactly.

    The mean of regression trees, each grown on a bag of the records; see
    `RandomForestClassifier` for what is drawn, and how. Targets are rounded once, to 26 bits below
    the largest (`erasable.core.grid`), where their sums are exact.

    Parameters that are not described here are those of `RandomForestClassifier`.

    Parameters
    ----------
    criterion : {"squared_error"}, default="squared_error"
        Impurity that a split is to take away.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Features that are looked at in a node: a number, a share, or all. Where all of them are
        constant there, others follow until one is not.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees that have a split.
    estimators_ : list of trees of scikit-learn
        Made at each access by `to_sklearn`; `estimator_` is such a tree that is not fitted.
    n_outputs_ : int
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        Targets beyond ``2**480``.

    Notes
    -----
    Weights that `fit` is given are rounded as in `RandomForestClassifier`, but to 3 bits at least:
    30 less those of the number of records, or 35 less without `bootstrap`, and 16 at most, so that
    sums of targets and weights are exact. 16 bits are for fewer than 16,384 records, or 524,288;
    when deletions leave fewer than a power of two from there on, the trees grow anew.

    Examples
    --------
    >>> from erasable.ensemble import RandomForestRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [0.0, 0.0, 5.0, 5.0, 1.0]
    >>> model = RandomForestRegressor(10, random_state=0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> bool(model.predict([[-5.0]]) < model.predict([[20.0]]))
    True
    >>> fresh = RandomForestRegressor(10, random_state=0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**OF_FORESTS, **OF_REGRESSORS}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: int | float | str | None = 1.0,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        n_thresholds: int = 16,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.n_thresholds = n_thresholds
        self.n_jobs = n_jobs
        self.random_state = random_state


class ExtraTreesClassifier(Bagged, TreeClassifier):
    """Extremely randomised trees for classes, from which records can be deleted exactly.

    The mean of decision trees whose nodes try very few thresholds in each feature they look at:
    two, drawn from the values that the node's records have, where scikit-learn tries one, drawn
    from all between their extremes. So they change only when those values go, and not with the
    extremes.

    Parameters that are not described here are those of `RandomForestClassifier`.

    Parameters
    ----------
    bootstrap : bool, default=False
        Whether each tree learns from a bag of records.
    n_thresholds : int, default=2
        Thresholds that are tried in each feature of a node; at most 1,023.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted; a class goes with its last record.
    n_classes_ : int
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees that have a split.
    estimators_ : list of trees of scikit-learn
        Made at each access by `to_sklearn`; `estimator_` is such a tree that is not fitted.
    n_outputs_ : int
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Notes
    -----
    See `RandomForestClassifier`. Of records without a value both sides are tried, of which
    scikit-learn draws one.

    References
    ----------
    .. [1] P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63,
       2006.

    Examples
    --------
    >>> from erasable.ensemble import ExtraTreesClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], ["no", "no", "yes", "yes", "no"]
    >>> model = ExtraTreesClassifier(10, random_state=0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> model.predict([[-5.0], [20.0]])
    array(['no', 'yes'], dtype=object)
    >>> fresh = ExtraTreesClassifier(10, random_state=0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**OF_FORESTS, **OF_CLASSIFIERS}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: int | float | str | None = "sqrt",
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        class_weight: Any = None,
        n_thresholds: int = 2,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.class_weight = class_weight
        self.n_thresholds = n_thresholds
        self.n_jobs = n_jobs
        self.random_state = random_state


class ExtraTreesRegressor(Bagged, TreeRegressor):
    """Extremely randomised trees for numbers, from which records can be deleted exactly.

    The mean of regression trees whose nodes try two thresholds in each feature they look at; see
    `ExtraTreesClassifier`. Targets are rounded once, to 26 bits below the largest
    (`erasable.core.grid`), where their sums are exact.

    Parameters that are not described here are those of `RandomForestClassifier`.

    Parameters
    ----------
    criterion : {"squared_error"}, default="squared_error"
        Impurity that a split is to take away.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Features that are looked at in a node: a number, a share, or all. Where all of them are
        constant there, others follow until one is not.
    bootstrap : bool, default=False
        Whether each tree learns from a bag of records.
    n_thresholds : int, default=2
        Thresholds that are tried in each feature of a node; at most 1,023.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees that have a split.
    estimators_ : list of trees of scikit-learn
        Made at each access by `to_sklearn`; `estimator_` is such a tree that is not fitted.
    n_outputs_ : int
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        Targets beyond ``2**480``.

    Notes
    -----
    Weights are rounded as in `RandomForestRegressor`.

    Examples
    --------
    >>> from erasable.ensemble import ExtraTreesRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [0.0, 0.0, 5.0, 5.0, 1.0]
    >>> model = ExtraTreesRegressor(10, random_state=0).fit(X, y, ids=list("abcde"))
    >>> print(model.delete(["e"]).action)
    updated
    >>> bool(model.predict([[-5.0]]) < model.predict([[20.0]]))
    True
    >>> fresh = ExtraTreesRegressor(10, random_state=0).fit(X[:4], y[:4], ids=list("abcd"))
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**OF_FORESTS, **OF_REGRESSORS}

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        max_features: int | float | str | None = 1.0,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = False,
        n_thresholds: int = 2,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.n_thresholds = n_thresholds
        self.n_jobs = n_jobs
        self.random_state = random_state
