"""Linear regression and ridge: exact moments, updated by deletions, and their solution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.core._gram_kernels import update
from erasable.core._jit import kernel
from erasable.core._schema import FieldType
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.digest import LeafHash, leaf_hash
from erasable.core.errors import InvalidParameterError, TooFewRecordsError
from erasable.core.exported import Exported
from erasable.core.gram import Gram
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS
from erasable.core.weighted import Weighted
from erasable.linear_model._design import LinearDesign, WeightedTargets
from erasable.linear_model._predict_kernels import predict_row
from erasable.linear_model._saved_state import LinearSchema
from erasable.linear_model._solve import Solution, least_squares
from erasable.linear_model._solve import solve as solve_problem
from erasable.linear_model._solve_kernels import LeastSquares, SolveScratch
from erasable.linear_model._solve_kernels import solve as solve_sums


def leave_one_out(model: LinearModel, rows: Ints) -> Floats:
    """Predict each of some live rows by the model without it; the model does not change.

    Raise TooFewRecordsError for the last record, or the last with a positive weight.
    """
    held = model._attached()
    if held.n_live < 2 and rows.size:
        raise TooFewRecordsError(
            f"leaving out 1 of {held.n_live} records leaves none; {type(model).__name__} needs at "
            "least 1; fit on more records"
        )
    if model._accelerator is None:
        model._reattach()
    design = model._accelerator
    problem = model._own_problem()
    gram, scratch = model._gram.copy(), SolveScratch.of(problem)
    out = np.zeros((rows.size, problem.n_targets))
    done = np.zeros(rows.size, dtype=np.bool_)
    for part, matrix, targets, features, places in design.parts(rows):
        leave_each_out(
            matrix, targets, features, places, design.keeps_grids(rows[part]), out[part],
            done[part], float(gram.n_rows), gram.columns, gram.sums, gram.products,
            problem, scratch,
        )  # fmt: skip
    for i in np.flatnonzero(~done).tolist():
        row = rows[i : i + 1]
        model._check_deletion(row)
        left, origin = design.without(row, held.live_rows())
        solution = solve_problem(model._problem(left, origin), left)
        out[i] = solution.predict(model._features_of(row), mapped=False)[0]
    return out


@kernel
def leave_each_out(
    matrix: Matrix,
    targets: Floats,
    raw: Matrix,
    rows: Ints,
    wanted: Flags,
    out: Floats,
    solved: Flags,
    n_rows: float,
    columns: Floats,
    sums: Floats,
    products: Floats,
    problem: LeastSquares,
    scratch: SolveScratch,
) -> None:
    """Take each wanted row out, solve, predict it as it is in `raw`, and put it back.

    `rows` are places in `matrix`, `targets` and `raw`.
    """
    lines = np.zeros((3, sums.size))
    for i in range(rows.size):
        if not wanted[i]:
            continue
        one = rows[i : i + 1]
        update(matrix, targets, one, -1.0, columns, sums, products, lines)
        solved[i] = solve_sums(n_rows - 1.0, sums, products, problem, scratch)
        if solved[i]:
            predict_row(raw[one[0]], scratch.middle, scratch.slope, scratch.base, out[i])
        update(matrix, targets, one, 1.0, columns, sums, products, lines)


class LinearModel(RegressorMixin, Weighted):
    """Base of the linear models whose state is exact second moments.

    A deletion subtracts the products of a record from the sums, in O(n_features^2). Coefficients
    are solved from the sums on access.

    A subclass says by `_penalties` what squared coefficients cost. Behind an affine step of a
    pipeline the model learns from the records as they are, and solves for mapped ones.
    """

    _takes_map: ClassVar[bool] = True
    _attaches_by_learning = True

    fit_intercept: bool
    _gram: Gram
    _zero: Floats | None
    _n_targets: int | None  # None where predictions have one dimension
    _derived: _Derived

    @abstractmethod
    def _penalties(self) -> Floats:
        """Penalties of squared coefficients, one for all targets or one for each."""

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._refuse_weightless(np.empty(0, dtype=np.int64))
        self._n_targets = self._count_targets(self._attached().records.y)
        self._learn_from(self._new_design(warn=True))

    def _new_design(self, warn: bool = False) -> WeightedTargets:
        """Sum the records that are held."""
        held = self._attached()
        names, n_jobs = self._column_names, self._n_jobs
        return LinearDesign(held.records, held.live_rows(), names, warn, n_jobs)

    _always_has_origins: ClassVar[bool] = False

    @property
    def _n_columns(self) -> int:
        """How many columns, beside those of weights and targets, are summed."""
        return int(self.n_features_in_)

    def _count_targets(self, y: Any) -> int | None:
        return int(y.shape[1]) if y.ndim == 2 else None

    def _learn_from(self, design: WeightedTargets) -> None:
        self._accelerator = design
        self._gram, self._zero = design.gram, design.origin
        self._derived = _Derived()

    def _update(self, delta: Delta) -> Outcome | None:
        held, design = self._attached(), self._accelerator
        if delta.moved:
            design.take_arrays(held.records)
        self._derived.solution = None
        read_again = design.update(Table(held.records.matrix, held.live_rows), delta)
        if read_again is None:
            self._learn_from(self._new_design())
            return Outcome("refit", held.n_live)
        design.wipe(delta.leaving)
        if read_again:
            self._derived = _Derived()
        touched = held.n_live if read_again else 0
        return Outcome("updated", touched, {"columns_scanned": read_again})

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)

    def _schema(self) -> FieldType:
        dense = self._always_has_origins
        return LinearSchema(self._n_records, self._n_columns, dense, self._suit_targets)

    def _suit_targets(self, n_targets: int) -> None:
        """Raise InvalidParameterError where parameters are not those of so many targets."""

    def _state(self) -> dict[str, Any]:
        gram = self._gram
        state: dict[str, Any] = {**gram.state(), "n_targets": self._n_targets}
        if self._zero is not None:
            state["weighted"] = {"origin": self._zero, "n_rows": gram.n_rows}
        return state

    def _digest_state(self) -> dict[str, Any]:
        state = self._state()
        if not self._derived.leaves:
            names = ("top", "origin", "n_targets")
            self._derived.leaves = {name: leaf_hash(name, state[name]) for name in names}
        return {**state, **self._derived.leaves}

    def _restore(self, state: dict[str, Any]) -> None:
        weighted = state.get("weighted")
        n_rows, self._zero = self._n_records, None
        if weighted is not None:
            n_rows, self._zero = weighted["n_rows"], weighted["origin"]
        self._gram = Gram.from_state(state, self._n_columns, n_rows)
        self._n_targets = state["n_targets"]
        self._derived = _Derived()

    # -- what follows --------------------------------------------------------------------------

    def _problem(self, gram: Gram, origin: Floats | None) -> LeastSquares:
        return least_squares(
            gram, origin, self._penalties(), self._at_fit("fit_intercept"), self._map
        )

    def _own_problem(self) -> LeastSquares:
        """State the problem, which stays the same until a grid or the map changes."""
        derived = self._derived
        if derived.problem is None or derived.map is not self._map:
            derived.problem, derived.map = self._problem(self._gram, self._zero), self._map
        return derived.problem

    def _solved(self) -> Solution:
        self._check_fitted()
        if self._derived.solution is None:
            self._derived.solution = solve_problem(self._own_problem(), self._gram)
        return self._derived.solution

    @property
    def coef_(self) -> Floats:
        """Coefficients, of shape (n_features,), or (n_targets, n_features) where y had columns."""
        coefficients = self._solved().coefficients
        return coefficients[0] if self._n_targets is None else coefficients

    @property
    def intercept_(self) -> float | Floats:
        """What is predicted where all features are 0; 0.0 without an intercept."""
        solution = self._solved()
        if not self._at_fit("fit_intercept"):
            return 0.0
        constant = solution.constant
        return float(constant[0]) if self._n_targets is None else constant.copy()

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), float64
            Each depends on its own row alone.
        """
        rows = self._read_matrix(X)
        predicted = self._solved().predict(rows, self._comes_mapped(X))
        return predicted[:, 0] if self._n_targets is None else predicted

    def _leave_one_out_predictions(self, rows: Ints) -> Floats:
        """Solve once for each row; see `erasable.core.protocol.Learner`."""
        self._refuse_if_owned()
        return leave_one_out(self, rows)

    def _features_of(self, rows: Ints) -> Any:
        """Return what coefficients are multiplied with."""
        return self._attached().records.matrix[rows]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, slots=True)
class _Derived:
    """Values derived from the state on first use; only the solution needs more than grids."""

    leaves: dict[str, LeafHash] = field(default_factory=dict)
    problem: LeastSquares | None = None
    map: tuple[Any, Any] | None = None
    solution: Solution | None = None


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

    n_iter_ = Exported("None, as nothing is iterated.")
    solver_ = Exported("The solver, by scikit-learn's name for one of its kind.")

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
