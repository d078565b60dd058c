"""Sharded ensembles: every member learns from a shard, so that a deletion concerns one of them."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import HasMethods, Interval

from erasable.core.arrays import Ints
from erasable.ensemble._allotment import Allotment, Shards, shards_of
from erasable.ensemble._composed import Composed
from erasable.ensemble._members import Member
from erasable.ensemble._votes import Mean, Vote


class _Sharded(Composed):
    """What the two have in common."""

    _part, _counted_by = "shard", "n_shards"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Composed._parameter_constraints,
        "estimator": [HasMethods("fit")],
        "n_shards": [Interval(Integral, 1, None, closed="left")],
        "n_slices": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        n_shards: int = 8,
        *,
        n_slices: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_shards = n_shards
        self.n_slices = n_slices
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _learns_by(self) -> str:
        return "fit" if self._at_fit("n_slices") == 1 else "partial_fit"

    def _allot(self, rows: Ints) -> Allotment:
        owners, n_rows = self._owner_keys(rows), self._attached().records.n_rows
        sizes = self._at_fit("n_shards"), self._at_fit("n_slices")
        return Shards.of(self._tape, rows, owners, n_rows, *sizes)

    def _vote_weight(self, member: Member) -> float:
        return member.size

    @property
    def shards_(self) -> Ints:
        """Shard of every record, in the order of ``ids_``."""
        rows = self._attached().live_rows()
        return shards_of(self._tape, self._owner_keys(rows), self._at_fit("n_shards"))


class ShardedClassifier(Vote, _Sharded):
    """Classifiers, one for each shard of the records, from which records leave.

    You have a classifier that cannot forget, and fitting it again for every deletion takes too
    long. Here each record is in one shard, and each shard has a classifier of its own, so that a
    deletion fits one of them again. They vote with what they give for probabilities, each as much
    as its shard has records [1]_.

    Parameters
    ----------
    estimator : classifier of scikit-learn or erasable
        What learns from every shard; not changed. Its own ``random_state`` is not used.
    n_shards : int, default=8
        Number of shards. With more of them a deletion costs less, and each knows less.
    n_slices : int, default=1
        Number of slices in which every shard is learned, with `partial_fit`; see Notes. 1 for
        estimators of erasable.
    n_jobs : int or None, default=None
        Processes that learn, by joblib; -1 for one on every core. The model does not depend on it.
        Estimators of erasable learn one after the other, in threads of their own if they have any.
    random_state : int, RandomState or None, default=None
        Seed of the tape, from which shards are assigned and all seeds drawn. None draws one from
        the system, kept as ``seed_``.

    Attributes
    ----------
    estimators_ : list of estimators
        One for every shard that has records; those of scikit-learn are copies.
    classes_ : ndarray of shape (n_classes,)
        Labels that the records have, sorted.
    n_classes_ : int
    shards_ : ndarray of shape (n_records,), int64
        Shard of every record, in the order of ``ids_``.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    UnlearnableError
        From `fit`, and from `delete`, which then changes nothing: the estimator cannot learn from
        the records of a shard. Fewer shards have more each.
    InvalidParameterError
        From `fit`: the estimator is no classifier, is not deterministic, cannot be cloned, holds
        things of which no plain copy can be made, has no `partial_fit` where slices need it, or
        fixes its classes.

    See Also
    --------
    BaggingClassifier : Members that share records, of which more must learn again.
    erasable.refit.Refit : One estimator for all records.

    Notes
    -----
    The shard of a record is a hash of its group, or of its id where there are no groups. With
    ``groups`` all records of a user are in one shard, and one fit forgets them all. Shards are as
    large as chance makes them. One without records is left out of the vote. One whose records are
    of one class votes for that class, whatever the estimator; to classes that its records do not
    have, a shard gives no vote. So no shard depends on another, not even when a class goes. Members
    without `predict_proba` cast votes.

    With slices, members learn by `partial_fit`, one slice after the other, each slice once. What a
    member knew after each slice is kept, so that the deletion of a record resumes after the slice
    before its own. That takes the memory of up to ``n_slices`` models for every shard. It is kept
    beside the model: neither in `state()`, nor in a file or a pickle. A model that comes back from
    one learns a shard from its first slice when it first deletes from it. `partial_fit` is told the
    classes of the shard; when one of these goes, the shard is learned from its first slice.

    An estimator of erasable, a pipeline for example, deletes, adds and corrects the records of its
    shard itself: a deletion costs what one from that estimator costs, with as many records as the
    shard has, and some 10 ns for each of these. Its `counts` are those of the estimator after
    ``"shards."``. For this **every shard has a copy of its records**, so that the features are in
    memory twice; records whose features are in files or on a cluster are refused. The copy is kept
    with the records alone, by ``save(path, records=True)``; where a model is loaded with records,
    it is made again.

    Equal means equal on one kind of machine with the same versions of NumPy, SciPy and
    scikit-learn, which compute where the estimator is scikit-learn's.

    References
    ----------
    .. [1] Bourtoule et al., "Machine unlearning", IEEE Symposium on Security and Privacy 2021
       (SISA). There members have equal votes, and learn from all slices so far in several passes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from erasable.ensemble import ShardedClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 3))
    >>> y, users = np.where(X[:, 0] > 0, "yes", "no"), np.arange(400) % 40
    >>> model = ShardedClassifier(DecisionTreeClassifier(), n_shards=4, random_state=0)
    >>> deletion = model.fit(X, y, groups=users).delete(groups=[17])
    >>> deletion.action, dict(deletion.counts)
    ('resumed', {'shards': 1})
    >>> left = users != 17
    >>> fresh = ShardedClassifier(DecisionTreeClassifier(), n_shards=4, random_state=0)
    >>> fresh = fresh.fit(X[left], y[left], ids=np.flatnonzero(left), groups=users[left])
    >>> model.digest() == fresh.digest()
    True

    A member of erasable deletes by itself:

    >>> from erasable.ensemble import RandomForestClassifier
    >>> model = ShardedClassifier(RandomForestClassifier(5), n_shards=4, random_state=0)
    >>> model.fit(X, y, groups=users).delete(groups=[17]).action
    'updated'
    """


class ShardedRegressor(Mean, _Sharded):
    """Regressors, one for each shard of the records, from which records leave.

    You have a regressor that cannot forget, and fitting it again for every deletion takes too
    long. Here each record is in one shard, and each shard has a regressor of its own, so that a
    deletion fits one of them again. The prediction is their mean, in which each counts as much as
    its shard has records.

    Parameters that are not described here are those of `ShardedClassifier`.

    Parameters
    ----------
    estimator : regressor of scikit-learn or erasable
        What learns from every shard; not changed. Its own ``random_state`` is not used.

    Attributes
    ----------
    estimators_ : list of estimators
        One for every shard that has records; those of scikit-learn are copies.
    shards_ : ndarray of shape (n_records,), int64
        Shard of every record, in the order of ``ids_``.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    UnlearnableError, InvalidParameterError
        See `ShardedClassifier`.

    See Also
    --------
    ShardedClassifier : The same for classes; its notes hold here, too.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from erasable.ensemble import ShardedRegressor
    >>> X = np.arange(40.0)[:, None]
    >>> model = ShardedRegressor(LinearRegression(), n_shards=4, random_state=0)
    >>> model.fit(X, 3.0 * X[:, 0]).predict([[100.0]]).round(6)
    array([300.])
    >>> dict(model.delete([7]).counts)
    {'shards': 1}
    """
