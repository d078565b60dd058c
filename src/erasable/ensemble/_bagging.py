"""Bagging: every member learns from a bag of records, drawn by their ids."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt

from erasable.core._column_choice import Columns
from erasable.core.arrays import Ints
from erasable.core.errors import InvalidParameterError
from erasable.ensemble._allotment import Allotment, Bags, chosen_columns
from erasable.ensemble._composed import Composed
from erasable.ensemble._votes import Mean, Vote


class _Bagging(Composed):
    """What the two have in common."""

    _part, _counted_by = "bag", "n_estimators"
    _default: ClassVar[Any]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Composed._parameter_constraints,
        "estimator": [HasMethods("fit"), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(RealNotInt, 0, 1, closed="right")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "bootstrap": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float = 1.0,
        max_features: float = 1.0,
        bootstrap: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _base(self) -> Any:
        base = self._at_fit("estimator")
        return self._default() if base is None else base

    @property
    def estimator_(self) -> Any:
        """The estimator that the members are copies of, not fitted."""
        self._check_fitted()
        return clone(self._base())

    def _validate_params(self) -> None:
        super()._validate_params()
        if self._has_own_members and self._at_fit("bootstrap") and not self._takes_weights:
            name = type(self._base()).__name__
            raise InvalidParameterError(
                f"with bootstrap=True a record is in a bag several times, which is its weight, and "
                f"a {name} of erasable takes no sample_weight; expected bootstrap=False, with "
                "max_samples below 1"
            )

    def _allot(self, rows: Ints) -> Allotment:
        return Bags.of(
            self._tape,
            rows,
            self._owner_keys(rows),
            self._attached().records.n_rows,
            self._at_fit("n_estimators"),
            float(self._at_fit("max_samples")),
            bool(self._at_fit("bootstrap")),
        )

    def _unread(self, columns: Columns) -> list[int]:
        whole = self._at_fit("max_features") == 1.0
        return super()._unread(columns) if whole else []

    def _columns_of(self, member: int) -> Ints | None:
        wanted, width = self._at_fit("max_features"), self.n_features_in_
        if isinstance(wanted, Integral):
            n_chosen = int(wanted)
            if n_chosen > width:
                raise InvalidParameterError(
                    f"max_features={wanted}, and there are {width} features; expected at most as "
                    "many; pass fewer, or a share such as 0.5"
                )
        else:
            n_chosen = max(1, int(wanted * width))
        if n_chosen == width:
            return None
        return chosen_columns(self._tape, self._call_columns(), n_chosen, member)

    @property
    def estimators_features_(self) -> list[Ints]:
        """Columns that each of `estimators_` looks at."""
        self._check_fitted()
        every = np.arange(self.n_features_in_)
        columns = [member.columns for member in self._members.values()]
        return [every if own is None else own.copy() for own in columns]


class BaggingClassifier(Vote, _Bagging):
    """Classifiers, each on a bag of the records, from which records leave.

    Which bags a record is in, and how often, is a hash of its id: nothing is drawn anew when
    another leaves, and only those members learn again that have the record in their bag.

    Parameters
    ----------
    estimator : classifier of scikit-learn or erasable, or None, default=None
        What learns from every bag; not changed. None is a decision tree of scikit-learn. Its own
        ``random_state`` is not used.
    n_estimators : int, default=10
        Number of bags.
    max_samples : float, default=1.0
        Share of the records in a bag, above 0 and at most 1.
    max_features : int or float, default=1.0
        Number of columns that each member looks at, or their share.
    bootstrap : bool, default=True
        Whether a record may be in a bag more than once.
    n_jobs : int or None, default=None
        Processes that learn, by joblib; -1 for one on every core. The model does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the tape, from which bags and all seeds are drawn. None draws one from the system,
        kept as ``seed_``.

    Attributes
    ----------
    estimators_ : list of estimators
        One for every bag that has records; those of scikit-learn are copies.
    estimators_features_ : list of ndarray of int64
        Columns that each of them looks at.
    classes_ : ndarray of shape (n_classes,)
        Labels that the records have, sorted.
    n_classes_ : int
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        From `fit` and `delete`: no bag would hold a record.
    UnlearnableError
        From `fit`, and from `delete`, which then changes nothing: the estimator cannot learn from
        the records of a bag.
    InvalidParameterError
        From `fit`: the estimator is no classifier, is not deterministic, cannot be cloned, holds
        things of which no plain copy can be made, fixes its classes, or is one of erasable that
        takes no weights where `bootstrap` needs them; there are fewer columns than `max_features`.

    See Also
    --------
    ShardedClassifier : A deletion fits one member again; here it is most of them.

    Notes
    -----
    **What a deletion costs.** How often a record is in a bag is a Poisson number of mean
    `max_samples`, so bags vary in size. With ``max_samples=1.0`` a record is in 63 % of the bags,
    and its deletion fits 63 % of the members again: it saves about a third of a refit, no more.
    ``max_samples=0.1`` saves nine tenths. Without `bootstrap` a record is in a bag with probability
    `max_samples`, once; with 1.0 in all of them. All records of a group are in the same bags, as
    often, so that a user who leaves is in no more bags than a record.

    An estimator that takes weights is given them; for another, records are repeated. Empty bags and
    bags of one class are treated as such shards are, see `ShardedClassifier`, but all votes are
    equal. Columns are chosen by their names. `max_samples` is no number of records, which would
    have every bag change with every deletion; `oob_score`, `bootstrap_features` and `warm_start`
    are left out.

    Estimators of erasable delete the records of their bags themselves, see `ShardedClassifier`:
    every bag has a copy of its records, each once. With `bootstrap`, how often a record is there is
    its weight, for those steps of a pipeline that take weights; an estimator that takes none is
    refused, and needs ``bootstrap=False``.

    Equal means equal on one kind of machine with the same versions of NumPy, SciPy and
    scikit-learn, which compute where the estimator is scikit-learn's.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.ensemble import BaggingClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> model = BaggingClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> 6 < model.delete([17]).counts["bags"] < 19
    True
    >>> left = np.delete(np.arange(200), 17)
    >>> fresh = BaggingClassifier(n_estimators=20, random_state=0)
    >>> model.digest() == fresh.fit(X[left], y[left], ids=left).digest()
    True
    """

    _default = DecisionTreeClassifier


class BaggingRegressor(Mean, _Bagging):
    """Regressors, each on a bag of the records, from which records leave.

    Which bags a record is in, and how often, is a hash of its id: nothing is drawn anew when
    another leaves, and only those members learn again that have the record in their bag. The
    prediction is the mean of theirs.

    Parameters that are not described here are those of `BaggingClassifier`.

    Parameters
    ----------
    estimator : regressor of scikit-learn or erasable, or None, default=None
        What learns from every bag; not changed. None is a decision tree of scikit-learn. Its own
        ``random_state`` is not used.

    Attributes
    ----------
    estimators_ : list of estimators
        One for every bag that has records; those of scikit-learn are copies.
    estimators_features_ : list of ndarray of int64
        Columns that each of them looks at.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError, UnlearnableError, InvalidParameterError
        See `BaggingClassifier`.

    See Also
    --------
    BaggingClassifier : The same for classes; its notes hold here, too.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from erasable.ensemble import BaggingRegressor
    >>> X = np.arange(40.0)[:, None]
    >>> model = BaggingRegressor(LinearRegression(), max_samples=0.2, random_state=0)
    >>> model.fit(X, 3.0 * X[:, 0]).predict([[100.0]]).round(6)
    array([300.])
    >>> model.delete([7]).counts["bags"] < 6
    True
    """

    _default = DecisionTreeRegressor
