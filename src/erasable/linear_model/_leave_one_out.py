"""Every record predicted by the model that has never seen it, without learning again.

A record is taken out of a copy of the sums, what is left is solved, and the record comes back.
Only records whose deletion may change a grid, because they are alone at an extreme of a column,
take the long way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from erasable.core._gram_kernels import update
from erasable.core._jit import kernel
from erasable.core.arrays import Flags, Floats, Ints, Matrix
from erasable.core.errors import TooFewRecordsError
from erasable.linear_model._predict_kernels import predict_row
from erasable.linear_model._solve import solve as solve_problem
from erasable.linear_model._solve_kernels import LeastSquares, Scratch
from erasable.linear_model._solve_kernels import solve as solve_sums

if TYPE_CHECKING:
    from ._linear import LinearModel


def leave_one_out(model: LinearModel, rows: Ints) -> Floats:
    """Predict each of some live rows by the model without it; the model does not change.

    Raise TooFewRecordsError if one is the last record, or the last with a positive weight.
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
    gram, scratch = model._gram.copy(), Scratch.of(problem)
    out = np.zeros((rows.size, problem.n_targets))
    done = np.zeros(rows.size, dtype=np.bool_)
    for part, matrix, targets, features, places in model._tables_of(rows):
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
    scratch: Scratch,
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
