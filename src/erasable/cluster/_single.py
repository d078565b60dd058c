"""Estimators that are one Lloyd run over all their records."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from erasable.core._schema import Fields, column_map, grid, refuse_many
from erasable.core.arrays import Floats, Ints, Ints32
from erasable.core.attachment import Attachment
from erasable.core.deletion import Outcome
from erasable.core.grid import Grid
from erasable.core.moments import Moments
from erasable.core.passes import Stored
from erasable.core.tables import Table

from ._centroids import CentroidModel
from ._layout import Rule
from ._run import LloydRun, RunReport, run_schema
from ._seeding import Seeding, metric_for
from ._stored import StoredRun
from ._table import GriddedTable

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)


class SingleRunModel(CentroidModel):
    """Base of KMeans and QuantizedKMeans, which say only what their rule is.

    A subclass implements ``_rule(gridded, n_levels)``, a function of the live records alone, and
    returns in ``_setting(gridded)`` the other settings of the run: when that changes, nothing
    can be carried through and the run is made anew.
    """

    _reads_blocks: ClassVar[bool] = True

    n_clusters: int
    max_iter: int
    _restored: dict[str, Any] | None

    def _needs_moments(self) -> bool:
        return False

    def _rule(self, gridded: AnyRun, n_levels: int) -> Rule:
        raise NotImplementedError(f"{type(self).__name__} does not implement _rule()")

    def _setting(self, gridded: AnyRun) -> Any:
        return None

    def _new_accelerator(self, names: list[str] | None = None, warn: bool = False) -> AnyRun:
        stored = isinstance(self._attached().records.matrix, Stored)
        return StoredRun(self, names, warn) if stored else GriddedRun(self, names, warn)

    def _can_add(self) -> bool:
        return isinstance(self._accelerator, GriddedRun)

    def _can_exchange(self) -> bool:
        return True

    def _exchange_rows(self, leaving: Ints, rows: Ints) -> Outcome | None:
        outcome: Outcome | None = self._accelerator.exchange(self, leaving, rows)
        if outcome is not None:
            self._publish()
        return outcome

    def _publish(self) -> None:
        """Show what the run holds; arrays are views, which the next deletion changes."""
        gridded: AnyRun = self._accelerator
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

    def _read_run(self, gridded: AnyRun) -> dict[str, Any]:
        return gridded.run.state()

    def _schema(self) -> Fields:
        refuse_many(int(self._info.n_records or 0))
        run = run_schema(int(self._at_fit("n_clusters")), int(self._at_fit("max_iter")))
        return Fields({"grid": grid("n_features"), **run}, {"map": column_map()})

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"grid": self._grid.state(), **self._run_state}
        return {**state, **self._map_state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._grid = Grid.from_state(state["grid"])
        self._restored = {"seeds": state["seeds"], "path": state["path"]}
        self._inertia = None
        self._restore_map(state)
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
        held = self._attached()
        if not isinstance(self._accelerator, GriddedRun):
            return super().labels_
        return self._labels_at(held.live_rows())

    def _labels_at(self, rows: Ints) -> Ints32:
        """Clusters of some rows of records that are in memory."""
        run: LloydRun = self._accelerator.run
        return run.labels[run.positions(rows)].astype(np.int32)


class GriddedRun:
    """The accelerator of a model: the gridded records and the run over them."""

    def __init__(
        self, model: SingleRunModel, names: list[str] | None = None, warn: bool = False
    ) -> None:
        held = model._attached()
        self.table = GriddedTable(held, model._record_keys(), names, warn, model.n_jobs)
        # phases that the model's rule has drawn, if it draws any
        self.phases: Floats | None = None
        # exact second moments of the records, where the model's rule needs them
        self.moments: Moments | None = None
        if model._needs_moments():
            self.moments = Moments.fit(self.table.grid, Table.of(held, n_jobs=model.n_jobs))
        self._setting = model._setting(self)
        weights = model._metric()
        n_clusters = model._at_fit("n_clusters")
        seeding = Seeding(n_clusters, model.seed_, *self._seeding_metric(weights))
        self.run = LloydRun(
            self.table.points(),
            n_clusters,
            model._at_fit("max_iter"),
            seeding,
            weights,
        )
        self.run.fit(partial(model._rule, self), model.n_jobs)

    def remove(self, model: SingleRunModel, rows: Ints) -> Outcome:
        """Delete rows; learn again what cannot be updated."""
        held = model._attached()
        top, origin = self.table.grid.top.copy(), self.table.grid.origin.copy()
        if self.moments is not None:
            self.moments.accumulate(Table.of(held), rows, -1)
        regrid = self.table.remove(rows)
        if regrid or self._setting != model._setting(self):
            self.table.keys[rows] = 0
            self.__init__(model)  # type: ignore[misc]
            passes = self.run.built + 1
            return Outcome("refit", held.n_live * passes, {"passes": passes})
        if self.moments is not None:
            moved = (top != self.table.grid.top) | (origin != self.table.grid.origin)
            if moved.any():
                self.moments.sum_again(Table.of(held), moved)
        weights = model._metric()
        positions = self.run.positions(rows)
        rule = partial(model._rule, self)
        if weights.size or not np.array_equal(top, self.table.grid.top):
            report = self.run.remove(
                positions, weights, *self._seeding_metric(weights), rule=rule, n_jobs=model.n_jobs
            )
        else:
            report = self.run.remove(positions, rule=rule, n_jobs=model.n_jobs)
        self.table.wipe(rows)
        return _told(report)

    def take_arrays(self, held: Attachment) -> None:
        """See `erasable.core.estimator.Erasable._take_arrays`."""
        self.table.take_arrays(held)
        self.run.show(self.table.X, self.table.keys)

    def add(self, model: SingleRunModel, rows: Ints) -> Outcome | None:
        """Take rows in; None where all has to be learned again."""
        return self.exchange(model, _NO_ROWS, rows)

    def exchange(self, model: SingleRunModel, leaving: Ints, rows: Ints) -> Outcome | None:
        """Delete rows and take others in, in one go; None where all has to be learned again."""
        held, grid = model._attached(), self.table.grid
        table, top, origin = Table.of(held), grid.top.copy(), grid.origin.copy()
        if leaving.size:
            if self.moments is not None:
                self.moments.accumulate(table, leaving, -1)
            if self.table.remove(leaving, lambda: np.setdiff1d(held.live_rows(), rows)):
                return None
            self.table.keys[leaving] = 0  # who comes may have the same
        if not self.table.add(rows, model._tape):
            return None
        model._info.keys = self.table.keys
        moved = (top != grid.top) | (origin != grid.origin)
        if self.moments is not None:
            self.moments.accumulate(table, rows, 1)
            if moved.any():
                self.moments.sum_again(table, moved)
        if self._setting != model._setting(self):
            return None
        weights = model._metric()
        metric: tuple[Floats | None, float | None, Floats | None] = (None, None, None)
        if weights.size or moved.any():
            metric = (weights, *self._seeding_metric(weights))
        rule = partial(model._rule, self)
        report = self.run.exchange(leaving, rows, metric, rule, model.n_jobs)
        self.table.wipe(leaving)
        return _told(report)

    @property
    def grid(self) -> Grid:
        """The grid of the records."""
        return self.table.grid

    def _seeding_metric(self, weights: Floats) -> tuple[float, Floats]:
        """Return the quantum of the potentials, and the weights of the metric of the seeding."""
        return metric_for(self.table.grid.top, weights)


def _told(report: RunReport) -> Outcome:
    counts = {
        "flips": report.flips,
        "passes": report.passes,
        "seeding_steps": report.seeding_steps,
    }
    return Outcome(report.action, report.examined, counts)


AnyRun: TypeAlias = GriddedRun | StoredRun
"""The accelerator of a `SingleRunModel`: records in memory or elsewhere."""
