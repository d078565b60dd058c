"""Gaussian naive Bayes: the state is exact first and second moments of every class."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from erasable.core import _unit_kernels as kernels
from erasable.core._schema import Fields, weighted_moments
from erasable.core._weighted_moments import columns_of, means, variances
from erasable.core.arrays import Flags, Floats, Ints, Values
from erasable.core.class_moments import ClassMoments
from erasable.core.errors import InvalidParameterError
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS
from erasable.naive_bayes._classifier import NaiveBayes, logs

_NARROWEST = float(np.finfo(np.float64).tiny)


@dataclass(eq=False, slots=True)
class WeightedClassMoments(ClassMoments):
    """Class moments with weights: sums of ``u m`` and ``u m m`` of gridded m and weights u."""

    schema: ClassVar[Fields] = ClassMoments.schema.joined(
        Fields({"limbs": weighted_moments("n_classes", "n_features")})
    )
    # Limbs of 26 bits, high ones first: two of u m, three of u m m; (5, n_classes, n_features).
    limbs: Ints = field(default_factory=lambda: np.zeros((5, 0, 0), dtype=np.int64))

    @classmethod
    def fit(cls, table: Table) -> Self:
        """Sum the live rows."""
        plain = ClassMoments.fit(table)
        shape = 5, table.classes.labels.size, table.matrix.shape[1]
        made = cls(plain.grid, plain.moments, np.zeros(shape, dtype=np.int64))
        made._add(table, table.live_rows(), 1)
        return made

    @classmethod
    def from_state(cls, state: dict[str, Any], counts: Ints) -> Self:
        """Rebuild them from what `state` returned."""
        plain = ClassMoments.from_state(state, counts)
        return cls(plain.grid, plain.moments, state["limbs"])

    def state(self) -> dict[str, Any]:
        """Return the grid, the sums with a line for each class, and those with weights."""
        return {**ClassMoments.state(self), "limbs": self.limbs}

    def accumulate(self, table: Table, rows: Ints, sign: int) -> None:
        """See `Gridded`."""
        ClassMoments.accumulate(self, table, rows, sign)
        self._add(table, rows, sign)

    def sum_again(self, table: Table, columns: Flags) -> None:
        """See `Gridded`."""
        ClassMoments.sum_again(self, table, columns)
        self.limbs[:, :, columns] = 0
        self._add(table, table.live_rows(), 1, columns)

    def keep_classes(self, kept: Flags) -> None:
        """Keep only the lines of these classes."""
        ClassMoments.keep_classes(self, kept)
        self.limbs = self.limbs[:, kept]

    def means(self, totals: Ints) -> Floats:
        """Return the weighted mean of each column in each class; 0 in a class that weighs 0."""
        return means(self.grid, self.limbs, totals)

    def variances(self, totals: Ints) -> Floats:
        """Return the weighted variance of each column in each class; 0 in one that weighs 0."""
        return variances(self.grid, self.limbs, totals)

    def _add(self, table: Table, rows: Ints, sign: int, columns: Flags | None = None) -> None:
        per_column = columns_of(self.grid, columns)
        table.add(_add_units, rows, self.limbs, *per_column, sign, few=sign < 0)


def _add_units(*given: Any) -> None:
    kernels.add_moments(*given)


class GaussianNB(NaiveBayes):
    """Classify by a normal distribution of every feature in every class, and forget exactly.

    A deletion costs O(n_features) a record: its terms are subtracted from sums that are exact.
    Means, variances and predictions are computed from the sums on access.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Probability of each of the sorted classes; they add up to 1. By default the classes'
        shares of the records. A deletion that takes the last record of a class is then refused,
        unless `classes` says that the class stays.
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features that is added to every variance.
    classes : array-like of shape (n_classes,), default=None
        All classes there are. By default those of the records: a class goes with its last one.
        A class that is named here and has no records stays, with probability 0 whatever `priors`
        says: it is never predicted.
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    class_count_ : ndarray of shape (n_classes,), float64
        Number of records of each class, or the sum of their weights.
    class_prior_ : ndarray of shape (n_classes,), float64
        Probability of each class.
    theta_ : ndarray of shape (n_classes, n_features), float64
        Mean of each feature in each class; 0 in a class without records.
    var_ : ndarray of shape (n_classes, n_features), float64
        Population variance of each feature in each class, `epsilon_` included.
    epsilon_ : float
        ``var_smoothing`` times the largest variance of a feature over all records, as if they
        weighed the same.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidParameterError
        From `fit`, for invalid priors.
    InvalidInputError
        From `fit`, for priors or classes that are not those of the records.
    TooFewRecordsError
        From `fit` and `delete`, if `priors` names more classes than have records.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    Notes
    -----
    Columns are rounded once to 26 bits below their largest magnitude (`erasable.core.grid`), so
    means and variances agree with scikit-learn's to about 1e-8 of that magnitude; up to ten
    million records that is below what ``var_smoothing=1e-9`` adds;
    predictions are float64 for float32 data, too.

    Weights are rounded once to 26 bits below the largest: those that are whole numbers up to
    ``2**26`` stay as they are, and count like copies of a record, but for `epsilon_`. A class whose
    records all weigh 0 is like one without records.

    `epsilon_` depends on all records, so with the default smoothing every deletion changes
    every `var_` by a little, as a refit would.

    Where all variances are 0, every class is as likely as its prior. Where only some are, with
    ``var_smoothing=0``, ``2**-1022`` takes their place. A row that no class can have made gets
    the classes' shares of the records. scikit-learn answers NaN in these cases.

    Behind an affine step of a pipeline it learns from the records as they are, and says what it
    would have learned from mapped ones.

    Examples
    --------
    >>> from erasable.naive_bayes import GaussianNB
    >>> X = [[-1.0, -1.0], [-2.0, -1.0], [-3.0, -2.0], [1.0, 1.0], [2.0, 1.0], [9.0, 9.0]]
    >>> y = ["low", "low", "low", "high", "high", "high"]
    >>> model = GaussianNB().fit(X, y, ids=["ann", "ben", "cem", "dan", "eva", "fay"])
    >>> model.delete(["fay"]).action
    'updated'
    >>> model.theta_
    array([[ 1.5       ,  1.        ],
           [-2.        , -1.33333333]])
    >>> model.predict([[-0.8, -1.0], [1.2, 1.0]])
    array(['low', 'high'], dtype=object)

    Without its last record, a class is gone:

    >>> model.delete(["dan", "eva"]).counts["columns_scanned"]
    2
    >>> model.classes_
    array(['low'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "priors": ["array-like", None],
        "var_smoothing": [Interval(Real, 0, None, closed="left")],
        "classes": ["array-like", None],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True
    _takes_map = True
    _kinds = ClassMoments, WeightedClassMoments
    _prior_name = "priors"
    _counted: ClassMoments

    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        classes: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.classes = classes
        self.n_jobs = n_jobs

    # -- what is learned -----------------------------------------------------------------------

    def _read_prior(self) -> Floats | None:
        prior = super()._read_prior()
        if prior is not None and not np.isclose(prior.sum(), 1.0):
            raise InvalidParameterError(
                f"priors= holds {prior.size} probabilities that do not add up to 1; expected 1 "
                "(The sum of the priors should be 1.); divide them by their sum"
            )
        return prior

    # -- what follows --------------------------------------------------------------------------

    def _derive(self) -> tuple[Floats, Floats, float]:
        """Return means and variances behind the map, and what is added to the variances."""
        totals = self._totals
        theta, variance = self._counted.means(totals), self._counted.variances(totals)
        total = self._counted.total().variance()
        if self._map is not None:
            shift, scale = self._map
            square = scale * scale
            theta, variance, total = (theta - shift) / scale, variance / square, total / square
            theta[totals == 0] = 0.0
        epsilon = float(self._at_fit("var_smoothing") * total.max())
        return theta, variance + epsilon, epsilon

    @property
    def theta_(self) -> Floats:
        """Mean of each feature in each class."""
        theta: Floats = self._tables()[0].copy()
        return theta

    @property
    def var_(self) -> Floats:
        """Variance of each feature in each class, with `epsilon_`."""
        variance: Floats = self._tables()[1].copy()
        return variance

    @property
    def epsilon_(self) -> float:
        """What is added to every variance."""
        epsilon: float = self._tables()[2]
        return epsilon

    @property
    def class_prior_(self) -> Floats:
        """Probability of each class."""
        self._check_fitted()
        return self._shares if self._prior is None else self._prior.copy()

    def _log_prior(self) -> Floats:
        return logs(self.class_prior_)

    def _likelihoods(self, matrix: Values, derived: Any) -> Floats:
        theta, variance, _ = derived
        floor = _NARROWEST if variance.any() else 1.0
        variance = np.where(variance > 0, variance, floor)
        out = np.empty((matrix.shape[0], theta.shape[0]))
        for c in range(theta.shape[0]):
            away = matrix - theta[c]
            away *= away
            away /= variance[c]
            out[:, c] = -0.5 * (np.log(2.0 * np.pi * variance[c]).sum() + away.sum(axis=1))
        return out
