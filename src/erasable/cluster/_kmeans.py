"""k-means that deletes records exactly, without quantisation, and the base of models of one run."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from erasable.core._schema import Fields, grid, refuse_many
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.grid import Grid
from erasable.core.moments import Moments, SumsOf
from erasable.core.passes import Pass, Together
from erasable.core.tables import Table

from ._centroids import CentroidModel
from ._layout import Rule
from ._run import LloydRun, Terms, plain_rule, run_schema
from ._seeding import Seeding, metric_for
from ._stored import StoredRun
from ._table import GriddedTable, RecordGrid, chosen_rows


class ModelRun:
    """The accelerator of a model of one run: the grid of its records, and the run over them."""

    table: RecordGrid
    run: LloydRun | StoredRun

    def __init__(
        self, model: SingleRunModel, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held, weights = model._attached(), model._metric()
        n_clusters, max_iter = model._at_fit("n_clusters"), model._at_fit("max_iter")
        seeding = Seeding(n_clusters, model.seed_, 1.0)
        # phases that the model's rule has drawn, if it draws any
        self.phases: Floats | None = None
        # exact second moments of the records, where the model's rule needs them
        self.moments: Moments | None = None
        if model._is_stored():
            self.table = RecordGrid(held, model._record_keys())
            self.run = run = StoredRun(self.table, seeding, max_iter, weights)
            self._read_stored(run, model, names, warn)
        else:
            self.table = table = GriddedTable(held, model._record_keys(), names, warn, model.n_jobs)
            if model._needs_moments():
                self.moments = Moments.fit(table.grid, Table.of(held, n_jobs=model.n_jobs))
            seeding.quantum, seeding.weights = metric_for(table.grid.top, weights)
            self.run = LloydRun(table.points(), max_iter, seeding, weights)
        self._setting = model._setting(self)
        self.run.fit(Terms(partial(model._rule, self), model._n_jobs))

    def _read_stored(
        self, run: StoredRun, model: SingleRunModel, names: list[str] | None, warn: bool
    ) -> None:
        """Find the grid, the moments and the first seed in one pass, then the other seeds."""
        held, n_jobs, weights = model._attached(), model._n_jobs, model._metric()
        first = run.begin(lambda grid: metric_for(grid.top, weights))

        def further(grid: Grid) -> Pass[Any]:
            return Together(first(grid), *([SumsOf(grid)] if model._needs_moments() else []))

        self.table.grid, found = Grid.fit_with(
            further, held.records.matrix, chosen_rows(held), names=names, warn=warn, n_jobs=n_jobs
        )
        if model._needs_moments():
            self.moments = Moments(self.grid, self.grid.n_rows, found[1])
        run.seed(found[0], n_jobs)

    def take_arrays(self, held: Attachment) -> None:
        """Refer to the arrays of the records, which may be others."""
        self.table.take_arrays(held)
        if isinstance(self.table, GriddedTable) and isinstance(self.run, LloydRun):
            self.run.show(self.table.X, self.table.keys)

    def exchange(self, model: SingleRunModel, leaving: Ints, rows: Ints) -> Outcome | None:
        """Delete rows and take others in, in one go; None where all has to be learned again."""
        held, grid = model._attached(), self.table.grid
        table, top, origin = Table.of(held), grid.top.copy(), grid.origin.copy()
        if leaving.size:
            if self.moments is not None:
                self.moments.accumulate(table, leaving, -1)
            left = (lambda: np.setdiff1d(held.live_rows(), rows)) if rows.size else None
            change = self.table.remove(leaving, left)
            if (change.values if self.table.in_memory else change.columns).any():
                return None
        if rows.size:
            self.table.keys[leaving] = 0  # who comes may have the same
            if not self.table.add(rows, model._tape):
                return None
            model._info.keys = self.table.keys
            if self.moments is not None:
                self.moments.accumulate(table, rows, 1)
        moved = (top != grid.top) | (origin != grid.origin)
        if self.moments is not None and moved.any():
            self.moments.sum_again(table, moved)
        if self._setting != model._setting(self):
            return None
        weights, terms = model._metric(), Terms(partial(model._rule, self), model._n_jobs)
        if weights.size or moved.any():
            quantum, rounded = metric_for(grid.top, weights)
            terms = terms._replace(weights=weights, quantum=quantum, seeding_weights=rounded)
        report = self.run.exchange(leaving, rows, terms)
        if report is None:
            return None
        self.table.wipe(leaving)
        counts = {
            "flips": report.flips,
            "passes": report.passes,
            "seeding_steps": report.seeding_steps,
        }
        return Outcome(report.action, report.examined, counts)

    @property
    def grid(self) -> Grid:
        """The grid of the records."""
        return self.table.grid


class SingleRunModel(CentroidModel):
    """Base of KMeans and QuantizedKMeans, which say only what their rule is.

    A subclass implements ``_rule(gridded, n_levels)``, a function of the live records alone, and
    returns in ``_setting(gridded)`` the other settings of the run: when that changes, nothing
    can be carried through and the run is made anew.
    """

    _restored: dict[str, Any] | None

    def _needs_moments(self) -> bool:
        return False

    @abstractmethod
    def _rule(self, gridded: ModelRun, n_levels: int) -> Rule:
        """Return the rule of a run over the live records."""

    def _setting(self, gridded: ModelRun) -> Any:
        return None

    def _new_accelerator(self, names: list[str] | None = None, warn: bool = False) -> ModelRun:
        return ModelRun(self, names, warn)

    def _update(self, delta: Delta) -> Outcome | None:
        run: ModelRun = self._accelerator
        if delta.moved:
            run.take_arrays(self._attached())
        outcome: Outcome | None = run.exchange(self, delta.leaving, delta.arriving)
        if outcome is not None:
            self._publish()
            return outcome
        if delta.moved:
            return None
        run.table.wipe(delta.leaving)
        self._learn()
        passes = self._accelerator.run.n_passes
        return Outcome("refit", self._attached().n_live * passes, {"passes": passes})

    def _publish(self) -> None:
        """Show what the run holds; arrays are views, which the next deletion changes."""
        gridded: ModelRun = self._accelerator
        self._grid = gridded.grid
        self._centers = gridded.run.centers
        self._inertia = None
        self._restored = None

    @property
    def _run_state(self) -> dict[str, Any]:
        """What the run is, in views that the next deletion changes."""
        if self._restored is not None:
            return self._restored
        return self._read_run(self._accelerator)

    def _read_run(self, gridded: ModelRun) -> dict[str, Any]:
        return gridded.run.state()

    def _schema(self) -> Fields:
        refuse_many(int(self._info.n_records or 0))
        run = run_schema(int(self._at_fit("n_clusters")), int(self._at_fit("max_iter")))
        return Fields({"grid": grid("n_features"), **run})

    def _state(self) -> dict[str, Any]:
        return {"grid": self._grid.state(), **self._run_state}

    def _restore(self, state: dict[str, Any]) -> None:
        self._grid = Grid.from_state(state["grid"])
        self._restored = {name: part for name, part in state.items() if name != "grid"}
        self._inertia = None
        self._centers = state["path"]["centers"][-1]

    @property
    def init_centers_(self) -> Floats:
        """Records that seeded the centroids, shape (n_clusters, n_features)."""
        self._check_fitted()
        centers = np.asarray(self._run_state["path"]["centers"][0] + self._grid.origin)
        mapped: Floats = self._mapped(centers)
        return mapped

    def _n_levels(self) -> int:
        self._check_fitted()
        return int(self._run_state["path"]["centers"].shape[0])

    @property
    def labels_(self) -> Ints32:
        """Cluster of every record, shape (n_records,), in the order of ``ids_``."""
        return self._labels_at(self._attached().live_rows())

    def _labels_at(self, rows: Ints) -> Ints32:
        """Return the clusters of some live rows."""
        if not self._in_memory():
            labels: Ints32 = super().labels_
            return labels[np.searchsorted(self._attached().live_rows(), rows)]
        run: LloydRun = self._accelerator.run
        return run.labels[run.positions(rows)].astype(np.int32)


class KMeans(SingleRunModel):
    """Lloyd's k-means, from which records can be deleted exactly and cheaply.

    After ``delete`` the model is, bit for bit, the one that a fit without those records makes:
    same seeds, same centroids at every iteration, same labels. Nothing is approximated or
    quantised. A deletion moves few centroids by little, and only the records that this movement
    can reach are looked at again; each of them is filed, at every iteration, by the movement it
    can bear.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    max_iter : int, default=10
        Lloyd iterations. Few are better for deletion: the fixed point of a long run moves with
        nearly every deletion.
    tol : float, default=0.0
        Stop when the squared movement of the centroids is at most `tol` times the mean variance
        of the features, as in scikit-learn. 0 runs on until nothing moves, or `max_iter`.
    n_jobs : int or None, default=None
        Threads that fit and predict; None is one, and -1 are all cores. The model is the same with
        any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the tape from which the seeding draws. None draws one from the system, kept as
        ``seed_``.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centroids.
    init_centers_ : ndarray of shape (n_clusters, n_features)
        The records that seeded them.
    labels_ : ndarray of shape (n_records,), int32
        Cluster of every record, in the order of ``ids_``.
    inertia_ : float
        Sum of squared distances of the records to their centroids.
    n_iter_ : int
        Iterations until the centroids stood still, or `max_iter`.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        Fewer records than clusters.

    Notes
    -----
    Seeding is greedy k-means++ by exponential races [1]_. An empty cluster keeps its centroid.
    The files of records are an accelerator of 9 bytes a record and iteration (10 above 256
    clusters) and not part of the model; they are sorted at the first deletion of one record, or
    the fifth of several.

    Records that stay in files (`erasable.Records.from_parquet`) have no such accelerator: 16 bytes
    a record are in memory while the model learns, beside what the records take themselves. A fit
    reads the files once for each cluster, once for each of ``n_iter_ + 1`` levels (one less where
    it ended because nothing moved), and once more where they do not say which extremes they have.
    A deletion reads them once for each iteration; where it takes a seed, a candidate for one, or
    an extreme that the grid depends on, the model is learned again.

    References
    ----------
    .. [1] Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.cluster import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X, ids=list("abcdef"))
    >>> deletion = model.delete(["b"])
    >>> fresh = KMeans(n_clusters=2, random_state=0).fit(X[[0, 2, 3, 4, 5]], ids=list("acdef"))
    >>> model.digest() == fresh.digest()
    True
    """

    algorithm_version: ClassVar[int] = 1
    _takes_map: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SingleRunModel._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        max_iter: int = 10,
        tol: float = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def n_iter_(self) -> int:
        """Iterations until the centroids stood still, or moved by `tol` at most, or all of them."""
        # Where nothing moves any more, the iteration that found it out has left no level.
        found_out = 0 if self._needs_moments() else 1
        return min(self._n_levels() - 1 + found_out, int(self._at_fit("max_iter")))

    def _needs_moments(self) -> bool:
        return bool(self._at_fit("tol") > 0)

    def _rule(self, gridded: ModelRun, n_levels: int) -> Rule:
        if gridded.moments is None:
            return plain_rule(n_levels)
        weights = self._metric()
        variance = gridded.moments.variance()
        total = 0.0
        for value in (variance * weights if weights.size else variance).tolist():
            total += value
        return plain_rule(n_levels, self._at_fit("tol") * total / variance.size)
