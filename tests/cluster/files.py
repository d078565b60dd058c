"""Reads the files of a run, and says where they break a promise."""

from __future__ import annotations

import numpy as np

from cluster import oracles
from erasable.cluster._distances import Points
from erasable.cluster._layout import BINS, new_files
from erasable.cluster._run import LloydRun
from erasable.cluster._seeding import Seeding
from erasable.core.tape import Tape

FAR = 1e100  # snapshots that were overwritten lie beyond


def make_run(
    X: np.ndarray,
    k: int,
    seed: int,
    *,
    max_iter: int = 10,
    pairs: bool | None = None,
    weights: np.ndarray | None = None,
    mass: np.ndarray | None = None,
) -> LloydRun:
    """Fit a run on all rows of data that lie on the grid, filed by pairs of clusters or not."""
    keys = Tape(seed).record_keys(np.arange(len(X)))
    points = Points(X, keys, np.arange(len(X)), np.empty(0) if mass is None else mass)
    seeding = Seeding(k, seed, oracles.quantum_of(X) / 64.0)
    run = LloydRun(points, max_iter, seeding, weights)
    if pairs is not None:
        run._pairs = pairs
        run._files = new_files(0, 0, k, X.shape[1], 0 if weights is None else weights.size, pairs)
    return run.fit()


def fresh_run(run: LloydRun, weights: np.ndarray | None = None) -> LloydRun:
    """Fit a run from scratch on what another has left, with equal positions."""
    seeding = Seeding(run.n_clusters, int(run.seeding.seed), run.seeding.quantum)
    new = LloydRun(run.points, run.max_iter, seeding, weights)
    new.alive[:] = run.alive
    new.n_alive = run.n_alive
    return new.fit()


def same_state(a: LloydRun, b: LloydRun) -> bool:
    """Compare all components bit by bit."""
    mine, other = a.state(), b.state()
    return all(
        mine[part][name].tobytes() == other[part][name].tobytes()
        for part in mine
        for name in mine[part]
    )


def filed(run: LloydRun, t: int) -> tuple[dict[int, tuple[int, int]], list[str]]:
    """Slot and group of every record of a level, and what is wrong with the lists."""
    files, links = run._files, run.levels.links[t]
    where: dict[int, tuple[int, int]] = {}
    wrong = []
    for slot, group, place in np.argwhere(files.head[t] >= 0).tolist():
        if files.stamps[t, slot] < 0:
            wrong.append(f"slot {slot} is free, and not empty")
        if place < files.lowest[t, slot, group]:
            wrong.append(f"bin {place} of group {group} is below its lowest")
        j = int(files.head[t, slot, group, place])
        while j >= 0:
            if run.alive[j] and place > _bin(
                float(run.levels.bounds[t, j]), int(run.levels.tops[t])
            ):
                wrong.append(f"record {j} is in a bin above its bound, where nobody looks")
            if j in where:
                wrong.append(f"record {j} is filed twice")
                break
            where[j] = (slot, group)
            j = int(links[j])
    stamps = [stamp for stamp in files.stamps[t].tolist() if stamp >= 0]
    if len(stamps) != len(set(stamps)):
        wrong.append("two snapshots have one stamp")
    return where, wrong


def _bin(bound: float, top: int) -> int:
    """Bin of a bound: four an octave, the highest for the largest bound of the level."""
    if bound <= 0.0:
        return 0
    bits = int(np.float32(bound).view(np.int32)) >> 21
    return min(max(BINS - 1 + bits - top, 0), BINS - 1)


def filing_errors(run: LloydRun) -> list[str]:
    """What the files promise and do not keep, at any level.

    Every live record is in exactly one list. Its group names its label. Under the snapshot it is
    filed by, its margin, computed in extended precision, is not smaller than its bound; and
    whatever its bound, the label was right there.
    """
    if not run._filed:
        return []
    X = run.points.X[run.points.rows].astype(np.longdouble)
    errors = []
    for t in range(0 if run._weights.size else 1, run.built + 1):
        where, wrong = filed(run, t)
        errors += [f"level {t}: {text}" for text in wrong]
        for j in run.live().tolist():
            if j not in where:
                errors.append(f"level {t}: record {j} is not filed")
                continue
            slot, group = where[j]
            own = group // run.n_clusters if run._pairs else group
            if own != run.levels.labels[t, j]:
                errors.append(f"level {t}: record {j} is filed under another cluster")
            errors += _margin_errors(run, X[j], t, j, slot, own)
    return errors


def _margin_errors(run: LloydRun, x: np.ndarray, t: int, j: int, slot: int, own: int) -> list[str]:
    snapshot = run._files.snapshots[t, slot].astype(np.longdouble)
    bound = float(run.levels.bounds[t, j])
    if run.n_clusters == 1 or np.abs(snapshot).max() > FAR:
        return []
    metric = run._files.weights[t, slot] if run._weights.size else np.ones(x.size)
    far = np.sqrt(((x - snapshot) ** 2 * metric).sum(axis=1))
    margin = np.delete(far, own).min() - far[own]
    if bound <= 0.0:
        bound = -1e-12 * float(far[own])  # whose label rounding alone decided
    if margin < bound:
        return [f"level {t}: record {j} has margin {float(margin)}, filed as {bound}"]
    return []


def label_errors(run: LloydRun) -> list[str]:
    """Records whose label, at any level, is not the one that comparing all distances gives."""
    live = run.live()
    X = run.points.X[run.points.rows[live]].astype(np.float64)
    weights = run._weights if run._weights.size else None
    errors = []
    for t in range(run.built + 1):
        truth = oracles.nearest(X, run.levels.centers[t], weights)
        wrong = live[truth != run.levels.labels[t, live]]
        errors += [f"level {t}: record {j} has another label" for j in wrong.tolist()]
    return errors
