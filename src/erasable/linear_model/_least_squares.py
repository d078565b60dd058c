"""Ordinary least squares, of exact second moments."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from erasable.core.arrays import Floats
from erasable.core.threads import N_JOBS
from erasable.linear_model._linear import LinearModel


class LinearRegression(LinearModel):
    """Least squares from which records can be deleted exactly, in microseconds.

    The model keeps the sums of products of all pairs of columns, exactly. A deletion subtracts
    those of a record, in O(n_features^2), and the coefficients are solved from what is left when
    they are asked for. The records are not read again, but for a column that loses an extreme.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Learn a constant? If not, data are taken as centred.
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features), float64
        Coefficients; a row for each target where `y` has two dimensions.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without one.
    rank_ : int
        Rank of the features, of the centred ones with an intercept.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        From `fit`, if there are more than 4096 features.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    See Also
    --------
    Ridge : The same with a penalty of large coefficients.

    Notes
    -----
    Every column is rounded once to 26 bits below its largest magnitude, or its spread where the
    offset is large (`erasable.core.grid`), so that predictions agree with scikit-learn's to about
    1e-8 of the targets' scale; the normal equations themselves are solved to the last digits, by
    Cholesky with residuals in double-double. Directions in which the features vary by no more
    than that rounding do not count: where the features are collinear, the shortest coefficients
    of those that fit best are taken, as by scikit-learn. `positive` is not supported.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.linear_model import LinearRegression
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0], [9.0, 1.0]])
    >>> y = np.array([6.0, 8.0, 9.0, 11.0, 90.0])
    >>> model = LinearRegression().fit(X, y, ids=["a", "b", "c", "d", "e"])
    >>> print(model.delete(["e"], digest=False).action)
    updated
    >>> model.coef_.round(6), round(model.intercept_, 6)
    (array([1., 2.]), 3.0)
    >>> fresh = LinearRegression().fit(X[:4], y[:4], ids=["a", "b", "c", "d"])
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fit_intercept": ["boolean"],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True

    def __init__(self, *, fit_intercept: bool = True, n_jobs: int | None = None) -> None:
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs

    @property
    def rank_(self) -> int:
        """Rank of the features."""
        return self._solved().rank

    def _penalties(self) -> Floats:
        return np.zeros(1)
