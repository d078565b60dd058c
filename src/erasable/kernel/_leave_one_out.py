"""Every record predicted by the model that has never seen it, without learning again.

As for the linear models, with waves that are computed for a block of records at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from erasable.core._grid_kernels import Floats, Ints
from erasable.core.errors import TooFewRecordsError
from erasable.linear_model._leave_one_out import leave_each_out
from erasable.linear_model._solve import Workspace, problem_arguments

if TYPE_CHECKING:
    from ._random_fourier import RandomFourierRidge

__all__ = ["leave_one_out"]


def leave_one_out(model: RandomFourierRidge, rows: Ints) -> Floats:
    """Predict each of some rows by the model without it.

    Parameters
    ----------
    model : RandomFourierRidge
        Not changed.
    rows : ndarray of int64
        Positions of live records.

    Returns
    -------
    ndarray of shape (n_rows, n_targets), float64

    Raises
    ------
    TooFewRecordsError
        One of them is the last record, or the last with a positive weight.
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
    gram, space = model._gram.copy(), Workspace(problem)
    out = np.zeros((rows.size, problem.n_targets))
    done = np.zeros(rows.size, dtype=np.bool_)
    start = 0
    for some, waves in model._waves.blocks(held.records.matrix, rows):
        part = slice(start, start + some.size)
        start += some.size
        table, targets = design.tables(some)
        leave_each_out(
            table, targets, waves, np.arange(some.size), design.keeps_grids(some),
            out[part], done[part], float(gram.n_rows), gram.columns, gram.sums, gram.products,
            *problem_arguments(problem), *space.arguments(),
        )  # fmt: skip
    for i in np.flatnonzero(~done).tolist():
        row = rows[i : i + 1]
        model._refuse_deletion(row)
        left, origin = design.without(row, held.live_rows())
        solution = model._problem(left, origin).solve(left)
        out[i] = solution.predict(model._waves.at(held.records.matrix, row), mapped=False)[0]
    return out
