"""Extremely randomised trees: one threshold a feature."""

from __future__ import annotations

from typing import Any, ClassVar

from erasable.ensemble._forest import OF_FORESTS, Bagged
from erasable.tree._kinds import TreeClassifier, TreeRegressor
from erasable.tree._rules import OF_CLASSIFIERS, OF_REGRESSORS


class ExtraTreesClassifier(Bagged, TreeClassifier):
    """Extremely randomised trees for classes, from which records can be deleted exactly.

    The mean of decision trees whose nodes try very few thresholds in each feature they look at:
    two, drawn from the values that the node's records have, where scikit-learn tries one, drawn
    from all between their extremes. So they change only when those values go, and not with the
    extremes.

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
    bootstrap : bool, default=False
        Whether each tree learns from a bag of records.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; one that is not in the dict has 1. "balanced" makes the classes
        weigh the same: the weights change with every deletion, which then is a refit.
    n_thresholds : int, default=2
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
    ids_, n_features_in_, feature_names_in_, seed_
        See `erasable.core.estimator.Erasable`.

    Notes
    -----
    See `RandomForestClassifier`.

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

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared_error"}, default="squared_error"
        Impurity that a split is to take away.
    max_depth : int or None, default=None
        Splits between the root and a leaf, at most.
    min_samples_split : int or float, default=2
        Records a node needs to be split; a float is a share of all.
    min_samples_leaf : int or float, default=1
        Records each part of a split needs; a float is a share of all.
    max_features : int, float, {"sqrt", "log2"} or None, default=1.0
        Features that are looked at in a node: a number, a share, or all. Where all of them are
        constant there, others follow until one is not.
    min_impurity_decrease : float, default=0.0
        What a split has to take away of the impurity, weighted by the node's share of the records.
    bootstrap : bool, default=False
        Whether each tree learns from a bag of records.
    n_thresholds : int, default=2
        Thresholds that are tried in each feature of a node; at most 1,023.
    n_jobs : int or None, default=None
        Threads that grow trees, delete and predict; None is one, and -1 are all cores. The model
        is the same with any number.
    random_state : int, RandomState or None, default=None
        Seed of the tape. None draws one from the system, kept as ``seed_``.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees that have a split.
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
