"""Ridge regression, of exact second moments."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.threads import N_JOBS
from erasable.linear_model._linear import LinearModel


class Ridge(LinearModel):
    """Least squares with a penalty of large coefficients, from which records can be deleted.

    The model keeps the sums of products of all pairs of columns, exactly. A deletion subtracts
    those of a record, in O(n_features^2), and the coefficients are solved from what is left when
    they are asked for. The records are not read again, but for a column that loses an extreme.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        What a squared coefficient costs, 0 or more; of each target if it is an array.
    fit_intercept : bool, default=True
        Learn a constant, which is not penalised? If not, data are taken as centred.
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features), float64
        Coefficients; a row for each target where there are several.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without one.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        From `fit`, if there are more than 4096 features.
    InvalidParameterError
        If `alpha` is negative, or its length is not the number of targets.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    See Also
    --------
    LinearRegression : The same without a penalty.

    Notes
    -----
    Minimises ``sum w (y - b - X c)^2 + alpha |c|^2`` [1]_. Columns are rounded once to 26 bits
    (`erasable.core.grid`); see `LinearRegression` for how the equations are solved. Behind a
    scaler in a `Pipeline` the penalty is that of the scaled features. As in scikit-learn, a `y`
    of one column counts as one target.

    References
    ----------
    .. [1] Hoerl and Kennard, "Ridge regression", Technometrics 12 (1970).

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.linear_model import Ridge
    >>> X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 2.0], [2.0, 3.0], [9.0, 1.0]])
    >>> y = np.array([6.0, 8.0, 9.0, 11.0, 90.0])
    >>> model = Ridge(alpha=0.5).fit(X, y, ids=["a", "b", "c", "d", "e"])
    >>> model.delete(["e"]).action
    'updated'
    >>> model.coef_.round(3), round(model.intercept_, 3)
    (array([0.909, 1.636]), 3.864)
    >>> fresh = Ridge(alpha=0.5).fit(X[:4], y[:4], ids=["a", "b", "c", "d"])
    >>> model.digest() == fresh.digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "fit_intercept": ["boolean"],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True

    def __init__(
        self, alpha: Any = 1.0, *, fit_intercept: bool = True, n_jobs: int | None = None
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs

    def _suit_targets(self, n_targets: int) -> None:
        _check_alpha(self._penalties(), n_targets)

    def _count_targets(self, y: Any) -> int | None:
        n_targets = y.size // max(y.shape[0], 1)
        self._suit_targets(n_targets)
        return n_targets if n_targets > 1 else None

    def _penalties(self) -> Floats:
        try:
            return np.atleast_1d(np.array(self._at_fit("alpha"), dtype=np.float64))
        except (TypeError, ValueError):
            return np.full(1, np.nan)


def _check_alpha(alpha: Floats, n_targets: int) -> None:
    if not (np.isfinite(alpha).all() and (alpha >= 0).all()):
        raise InvalidParameterError(
            "The 'alpha' parameter of Ridge holds values that are not numbers of 0 or more; "
            "expected a finite penalty for each target; pass others"
        )
    if alpha.shape not in ((1,), (n_targets,)):
        raise InvalidParameterError(
            f"The 'alpha' parameter of Ridge has shape {alpha.shape}; expected one penalty, or one "
            f"for each of the {n_targets} targets; pass as many (Number of targets and number of "
            "penalties do not correspond)"
        )
