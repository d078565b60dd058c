"""Segmented regression: a ridge regression for each cluster of a k-means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.cluster import QuantizedKMeans
from erasable.core._schema import Fields
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import HeldRecords
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.digest import LeafHash, leaf_hash
from erasable.core.estimator import Erasable
from erasable.core.gram import Gram
from erasable.core.grid import Grid
from erasable.core.params import encode_params
from erasable.core.row_arrays import padded
from erasable.core.rows import Rows
from erasable.core.seeds import SEEDS
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS, over_rows
from erasable.core.views import View
from erasable.linear_model._design import _as_columns
from erasable.linear_model._saved_state import segmented_schema
from erasable.linear_model._solve import Solution, least_squares, solve
from erasable.linear_model._solve_kernels import LeastSquares

Labels = NDArray[np.int32]


class SegmentSums:
    """Sums over the live rows of each segment; `grams` are state, the rest an accelerator.

    `grid` is of the matrix, and the caller keeps it up to date; `labels`, shape (n_live,), are the
    segments of the live rows.
    """

    def __init__(
        self,
        records: HeldRecords,
        grid: Grid,
        live_rows: Ints,
        labels: Labels,
        n_segments: int,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self._records = records
        self._targets = _as_columns(records.y, live_rows)
        names = [f"y[{k}]" for k in range(self._targets.shape[1])]
        self._target_grid = Grid.fit(self._targets, live_rows, names=names, warn=warn)
        self._labels = np.full(records.n_rows, -1, dtype=np.int32)
        self._labels[live_rows] = labels
        # Copies without extremes: those of the grids are brought up to date, these need not be.
        of_rows, of_targets = (Grid.from_state(each.state()) for each in (grid, self._target_grid))
        table = Table(records.matrix, lambda: live_rows, targets=self._targets, n_jobs=n_jobs)
        self.grams = Gram.fit_each(of_rows, table, of_targets, labels, n_segments)

    def take_arrays(self, records: HeldRecords) -> None:
        """Refer to the arrays of records that have room for new rows."""
        assert records.y is not None
        self._records, n_rows = records, records.n_rows
        table = records.y.reshape(n_rows, -1)
        own = table.dtype == np.float64
        self._targets = table if own else padded(self._targets, n_rows)
        self._labels = padded(self._labels, n_rows, fill=-1)

    def add(self, rows: Ints, labels: Labels) -> Ints:
        """Take new rows into the sums; return their segments."""
        return self._move(rows, labels, 1)

    def remove(self, rows: Ints) -> Ints:
        """Take rows out of the sums; return the segments they were in."""
        return self._move(rows, self._labels[rows], -1)

    def keeps_grids(self, grid: Grid, delta: Delta, live_rows: Callable[[], Ints]) -> bool:
        """Have the grid of the targets follow; tell whether it and `grid` are unchanged."""
        leaving, arriving = delta.leaving, delta.arriving
        if arriving.size and not np.may_share_memory(self._targets, self._records.y):
            assert self._records.y is not None
            self._targets[arriving] = self._records.y[arriving].reshape(arriving.size, -1)
        table, own = Table(self._targets, live_rows), self._target_grid
        changes = []
        if leaving.size:
            changes.append(own.subtract(table.without(arriving), leaving))
        if arriving.size:
            changes.append(own.add(table, arriving))
        return self._is_on(grid) and not any(change.exponents for change in changes)

    def _is_on(self, grid: Grid) -> bool:
        own = self.grams[0].grid
        return np.array_equal(own.top, grid.top) and np.array_equal(own.origin, grid.origin)

    def relabel(self, live_rows: Ints, labels: Labels) -> tuple[Ints, Ints]:
        """Move rows to where they belong now; return these, and the segments concerned."""
        moving = self._labels[live_rows] != labels
        rows, after = live_rows[moving], labels[moving]
        before = self._labels[rows]
        left = self._move(rows, before, -1)
        return rows, np.union1d(left, self._move(rows, after, 1))

    def wipe(self, rows: Ints) -> None:
        """Overwrite what was copied of rows."""
        if not np.may_share_memory(self._targets, self._records.y):
            self._targets[rows] = 0.0

    def _move(self, rows: Ints, labels: Labels, sign: int) -> Ints:
        table = Table(self._records.matrix, targets=self._targets)
        segments = Gram.accumulate_each(self.grams, table, rows, labels, sign)
        self._labels[rows] = labels if sign > 0 else -1
        return segments


def add_up(grams: list[Gram]) -> Gram:
    """Return the sums of all segments together."""
    total = grams[0].copy()
    for gram in grams[1:]:
        total.n_rows += gram.n_rows
        total.totals += gram.totals
    return total


class SegmentedRegression(RegressorMixin, Erasable):
    """Linear regression in pieces, from which records can be deleted.

    A quantised k-means cuts the space of the features into segments, and each segment learns a
    ridge regression from its own records [1]_. A deletion subtracts the products of the record
    from the sums of its segment. Because centroids are rounded to a lattice, few deletions move
    any; where one does, the records that change their segment are moved, without error.

    Parameters
    ----------
    n_segments : int, default=8
        Number of segments, and fewest records the model can exist with.
    alpha : float, default=1.0
        What a squared coefficient costs, 0 or more, in every segment.
    max_iter : int, default=10
        Lloyd iterations.
    n_jobs : int or None, default=None
        Threads that fit, delete and predict; None is one, and -1 are all cores. The model is the
        same with any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the k-means. None draws one from the system.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_segments, n_features), float64
        Centroids: a row belongs to the nearest.
    coef_ : ndarray of shape (n_segments, n_features), or (n_segments, n_targets, n_features)
        Coefficients of every segment.
    intercept_ : ndarray of shape (n_segments,) or (n_segments, n_targets)
        Their constants.
    labels_ : ndarray of shape (n_records,), int32
        Segment of every record, in the order of ``ids_``.
    n_iter_ : int
        Lloyd iterations that were made.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        From `fit`, if there are more than 4096 features.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.
    TooFewRecordsError
        From `fit` and `delete`: fewer records than segments.

    See Also
    --------
    erasable.cluster.QuantizedKMeans : What makes the segments, with the same seed.
    Ridge : One regression for all records.

    Notes
    -----
    A segment without records predicts what a ridge regression of all records does. Segments are
    those of the nearest centroid in the units of the features: put these on one scale first, with
    ``StandardScaler(quantize=True)``, which few deletions change. Columns and targets are rounded
    once to 26 bits, on grids that all segments share (`erasable.core.grid`); where the deletion
    of an extreme changes a grid, all records are read again.

    References
    ----------
    .. [1] Ginart, Guan, Valiant and Zou, "Making AI forget you: data deletion in machine
       learning", NeurIPS 2019, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.linear_model import SegmentedRegression
    >>> X = np.linspace(-1.0, 1.0, 400)[:, None]
    >>> y = np.abs(X[:, 0])
    >>> model = SegmentedRegression(n_segments=2, alpha=0.0, random_state=0).fit(X, y)
    >>> np.sort(model.coef_[:, 0]).round(2)
    array([-1.,  1.])
    >>> model.delete([5, 300]).action in {"updated", "resumed", "refit"}
    True
    >>> keep = np.delete(np.arange(400), [5, 300])
    >>> fresh = SegmentedRegression(n_segments=2, alpha=0.0, random_state=0)
    >>> model.digest() == fresh.fit(X[keep], y[keep], ids=keep).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_segments": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": N_JOBS,
        "random_state": SEEDS,
    }
    _without_effect: ClassVar[tuple[str, ...]] = ("n_jobs",)
    _reads_blocks: ClassVar[bool] = True
    _attaches_by_learning = True
    _kmeans: QuantizedKMeans
    _grams: list[Gram]
    _n_targets: int | None  # None where predictions have one dimension
    _derived: _Derived

    def __init__(
        self,
        n_segments: int = 8,
        *,
        alpha: float = 1.0,
        max_iter: int = 10,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_segments = n_segments
        self.alpha = alpha
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _minimum_records(self) -> int:
        return int(self._at_fit("n_segments"))

    def _minimum_parameter(self) -> str:
        return "n_segments"

    # -- what is learned -----------------------------------------------------------------------

    def _new_kmeans(self) -> QuantizedKMeans:
        return QuantizedKMeans(
            self._at_fit("n_segments"), max_iter=self._at_fit("max_iter"), random_state=self.seed_,
            n_jobs=self.n_jobs,
        )  # fmt: skip

    def _view(self) -> View:
        """Show the records to the k-means, which is not to erase them."""
        held = self._attached()
        view = View(held, held.records.matrix)
        view.records.feature_names = held.records.feature_names
        return view

    def _fit_rows(self) -> None:
        y: Any = self._attached().records.y
        n_targets = y.size // y.shape[0]
        self._n_targets = n_targets if n_targets > 1 else None
        self._kmeans = self._new_kmeans()
        self._kmeans._draw_seed()
        self._kmeans._relearn(self._view())
        self._learn_from(self._new_sums(warn=True))

    def _new_sums(self, warn: bool = False) -> SegmentSums:
        held, kmeans = self._attached(), self._kmeans
        return SegmentSums(
            held.records,
            kmeans._grid,
            held.live_rows(),
            kmeans.labels_,
            self._at_fit("n_segments"),
            warn,
            self.n_jobs,
        )

    def _learn_from(self, sums: SegmentSums) -> None:
        self._accelerator = sums
        self._grams = sums.grams
        self._derived = _Derived()

    def _update(self, delta: Delta) -> Outcome | None:
        held, kmeans, (leaving, arriving, *_) = self._attached(), self._kmeans, delta
        kmeans.n_jobs = self.n_jobs
        sums: SegmentSums = self._accelerator
        if delta.moved:
            view = kmeans._attached()
            assert isinstance(view, View)
            view.show(held.records.matrix)
            sums.take_arrays(held.records)
        self._derived.drop(sums.remove(leaving))
        centers = kmeans._centers.copy()
        if arriving.size:
            kmeans._info.keys = None
        outcome = kmeans._update(delta)
        if outcome is None:
            return None
        kmeans._info.settle(leaving, None)
        if not sums.keeps_grids(kmeans._grid, delta, held.live_rows):
            return self._sum_again(outcome)
        if arriving.size:
            self._derived.drop(sums.add(arriving, kmeans._labels_at(arriving)))
        outcome = self._reassign(outcome, centers)
        sums.wipe(leaving)
        return outcome

    def _sum_again(self, outcome: Outcome) -> Outcome:
        """Sum all records, because a grid has changed."""
        n_live = self._attached().n_live
        self._learn_from(self._new_sums())
        return Outcome("refit", outcome.rows_touched + n_live, outcome.counts)

    def _reassign(self, outcome: Outcome, centers: Floats) -> Outcome:
        """Move the records that are in another segment since centroids were `centers`."""
        kmeans, moved = self._kmeans, 0
        if not np.array_equal(kmeans._centers, centers):
            live = self._attached().live_rows()
            moving, segments = self._accelerator.relabel(live, kmeans.labels_)
            self._derived.drop(segments)
            moved = moving.size
        counts = {**outcome.counts, "moved": moved}
        return Outcome(outcome.action, outcome.rows_touched + moved, counts)

    def _schema(self) -> Fields:
        n_segments = int(self._at_fit("n_segments"))
        return segmented_schema(self._n_records, self.n_features_in_, n_segments)

    def _state(self) -> dict[str, Any]:
        kmeans, gram = self._kmeans, self._grams[0]
        segments = {
            "counts": np.array([each.n_rows for each in self._grams], dtype=np.int64),
            "totals": {str(s): each.totals for s, each in enumerate(self._grams)},
        }
        return {
            "kmeans": {"algorithm_version": kmeans.algorithm_version, **kmeans._state()},
            "n_targets": self._n_targets,
            "segments": segments,
            "target_grid": gram.target_grid.state(),
        }

    def _digest_state(self) -> dict[str, Any]:
        state, leaves = self._state(), self._derived.leaves
        for s, gram in enumerate(self._grams):
            if s not in leaves:
                leaves[s] = leaf_hash(f"segments.totals.{s}", gram.totals)
            state["segments"]["totals"][str(s)] = leaves[s]
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        kmeans = self._kmeans = self._new_kmeans()
        shared = {
            "feature_names": self._column_names,
            "n_features": self.n_features_in_,
            "n_records": self._info.n_records,
            "params": encode_params(kmeans),
            "record_set": self._info.id_set,
            "seed": self.seed_,
        }
        kmeans._adopt({**shared, **state["kmeans"]}, None, foreign=self._info.foreign)
        grids = kmeans._grid.state(), Grid.from_state(state["target_grid"]).state()
        both = {name: np.concatenate([grid[name] for grid in grids]) for name in grids[0]}
        totals = state["segments"]["totals"]
        self._grams = [
            Gram.from_state({**both, "totals": totals[str(s)]}, self.n_features_in_, count)
            for s, count in enumerate(state["segments"]["counts"].tolist())
        ]
        self._n_targets = state["n_targets"]
        self._derived = _Derived()
        if self._held is not None:
            kmeans._held = self._view()

    # -- what follows --------------------------------------------------------------------------

    def _solved(self, segment: int) -> Solution:
        """Return the solution of a segment, or that of all records where it has none."""
        self._check_fitted()
        derived, grams = self._derived, self._grams
        if derived.problem is None:
            alpha = np.full(1, float(self._at_fit("alpha")))
            derived.problem = least_squares(grams[0], None, alpha, True, None)
        key = segment if grams[segment].n_rows else -1
        if key not in derived.solutions:
            gram = grams[segment] if key >= 0 else add_up(grams)
            derived.solutions[key] = solve(derived.problem, gram)
        return derived.solutions[key]

    def _every(self, name: str) -> Floats:
        self._check_fitted()
        found = np.array([getattr(self._solved(s), name) for s in range(len(self._grams))])
        return found[:, 0] if self._n_targets is None else found

    @property
    def coef_(self) -> Floats:
        """Coefficients, shape (n_segments, n_features), or (n_segments, n_targets, n_features)."""
        return self._every("coefficients")

    @property
    def intercept_(self) -> Floats:
        """Predictions where all features are 0, shape (n_segments,) or (n_segments, n_targets)."""
        return self._every("constant")

    @property
    def cluster_centers_(self) -> Floats:
        """Centroids of the segments, shape (n_segments, n_features)."""
        self._check_fitted()
        return self._kmeans.cluster_centers_

    @property
    def n_iter_(self) -> int:
        """Lloyd iterations that were made."""
        self._check_fitted()
        return self._kmeans.n_iter_

    @property
    def labels_(self) -> NDArray[np.int32]:
        """Segment of every record, shape (n_records,), in the order of ``ids_``."""
        self._attached()
        return self._kmeans.labels_

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), float64
            Each depends on its own row alone.
        """
        matrix = self._read_matrix(X)
        self._kmeans.n_jobs = self.n_jobs
        labels = self._kmeans.predict(Rows(matrix))
        out = np.zeros((matrix.shape[0], self._grams[0].target_grid.top.size))
        solutions = {segment: self._solved(segment) for segment in np.unique(labels).tolist()}

        def predict(block: slice) -> None:
            for segment, solution in solutions.items():
                rows = block.start + np.flatnonzero(labels[block] == segment)
                out[rows] = solution.predict(matrix[rows], mapped=False)

        for _ in over_rows(predict, matrix.shape[0], self.n_jobs):
            pass
        return out[:, 0] if self._n_targets is None else out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, slots=True)
class _Derived:
    """Values derived from the state on first use, by segment; -1 stands for all together."""

    problem: LeastSquares | None = None
    solutions: dict[int, Solution] = field(default_factory=dict)
    leaves: dict[int, LeafHash] = field(default_factory=dict)

    def drop(self, segments: Ints) -> None:
        """Drop what was made of the sums of some segments."""
        for segment in [-1, *segments.tolist()]:
            self.solutions.pop(segment, None)
            self.leaves.pop(segment, None)
