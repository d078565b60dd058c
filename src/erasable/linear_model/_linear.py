"""The base of linear regression and ridge: exact moments that forget, and their solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from erasable.core._deleting import learn_and_compare
from erasable.core._schema import Part
from erasable.core.arrays import Floats, Ints
from erasable.core.deletion import Outcome
from erasable.core.digest import LeafHash, leaf_hash
from erasable.core.gram import Gram
from erasable.core.weighted import Weighted
from erasable.linear_model._design import LinearDesign
from erasable.linear_model._leave_one_out import leave_one_out
from erasable.linear_model._schema import LinearSchema
from erasable.linear_model._solve import Solution, least_squares
from erasable.linear_model._solve import solve as solve_problem
from erasable.linear_model._solve_kernels import LeastSquares


class LinearModel(RegressorMixin, Weighted):
    """Base of the linear models whose state is exact second moments.

    A deletion subtracts the products of a record from the sums, in O(n_features^2). Coefficients
    are solved from the sums when they are asked for.

    A subclass says by `_penalties` what squared coefficients cost. Behind an affine step of a
    pipeline the model learns from the records as they are, and solves for mapped ones.
    """

    _takes_map: ClassVar[bool] = True

    fit_intercept: bool
    _gram: Gram
    _zero: Floats | None
    _n_targets: int | None  # None where predictions have one dimension
    _derived: _Derived

    def _penalties(self) -> Floats:
        """Penalties of squared coefficients, one for all targets or one for each."""
        raise NotImplementedError(f"{type(self).__name__} does not implement _penalties()")

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._refuse_weightless(np.empty(0, dtype=np.int64))
        self._n_targets = self._count_targets(self._attached().records.y)
        self._learn_from(self._new_design(warn=True))

    def _new_design(self, warn: bool = False) -> Any:
        """Sum the records that are held, into an accelerator with the methods of `LinearDesign`."""
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

    def _learn_from(self, design: Any) -> None:
        self._accelerator = design
        self._gram, self._zero = design.gram, design.origin
        self._derived = _Derived()

    def _delete_rows(self, rows: Ints) -> Outcome:
        held = self._attached()
        design = self._accelerator
        self._derived.solution = None
        read_again = design.forget(rows, held.live_rows)
        if read_again is None:
            self._learn_from(self._new_design())
            return Outcome("refit", held.n_live)
        design.wipe(rows)
        if read_again:
            self._derived = _Derived()
        touched = held.n_live if read_again else 0
        return Outcome("updated", touched, {"columns_scanned": read_again})

    def _can_add(self) -> bool:
        return True

    def _take_arrays(self) -> None:
        self._accelerator.take_arrays(self._attached().records)

    def _add_rows(self, rows: Ints) -> Outcome | None:
        held = self._attached()
        self._derived.solution = None
        read_again = self._accelerator.learn(rows, held.live_rows)
        if read_again is None:
            return None
        if read_again:
            self._derived = _Derived()
        touched = held.n_live if read_again else 0
        return Outcome("updated", touched, {"columns_scanned": read_again})

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)

    def _schema(self) -> Part:
        dense = self._always_has_origins
        return LinearSchema(self._n_records, self._n_columns, dense, self._suit_targets)

    def _suit_targets(self, n_targets: int) -> None:
        """Raise InvalidParameterError where parameters are not those of so many targets."""

    def _state(self) -> dict[str, Any]:
        gram = self._gram
        state: dict[str, Any] = {**gram.state(), "n_targets": self._n_targets}
        if self._zero is not None:
            state["weighted"] = {"origin": self._zero, "n_rows": gram.n_rows}
        return {**state, **self._map_state()}

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
        self._restore_map(state)
        self._gram = Gram.from_state(state, self._n_columns, n_rows)
        self._n_targets = state["n_targets"]
        self._derived = _Derived()

    def _reattach(self) -> None:
        learn_and_compare(self)

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
            Every row's by a formula of that row alone, whatever the others are.
        """
        rows = self._read_matrix(X)
        predicted = self._solved().predict(rows, self._comes_mapped(X))
        return predicted[:, 0] if self._n_targets is None else predicted

    def _leave_one_out_predictions(self, rows: Ints) -> Floats:
        """Solve once for each row; see `erasable.core.protocol.Learner`."""
        self._refuse_if_owned()
        return leave_one_out(self, rows)

    def _tables_of(self, rows: Ints) -> Iterator[tuple[slice, Any, Any, Any, Any]]:
        """Yield dense records by parts: of `rows`, what is summed, the features, their places."""
        matrix = self._attached().records.matrix
        if not issparse(matrix):
            yield slice(None), *self._accelerator.tables, matrix, rows

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
    """What is made of the state when it is asked for; all but the solution of the grids alone."""

    leaves: dict[str, LeafHash] = field(default_factory=dict)
    problem: LeastSquares | None = None
    map: tuple[Any, Any] | None = None
    solution: Solution | None = None
