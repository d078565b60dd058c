"""The online deletion benchmark: Algorithm 3 of the paper, on several models at once.

Every model trains once and then satisfies the same stream of deletions one at a time. The streams
run side by side in blocks, and between two blocks scikit-learn refits on what is left, so that
whatever else the machine is doing hits all of them alike. The clock runs only while a model or
scikit-learn works. The garbage collector is off while it does.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import contenders
import measures
import numpy as np
from data import DataSet
from sklearn.preprocessing import scale

SAMPLE = 10_000  # rows of the silhouette
DIGESTS = 20  # deletions followed by a digest, after the stream
CHECKPOINTS = (0, 1, 10, 100, 1_000)


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    replicates: int
    deletions: int
    refits: int
    budget: float  # seconds that a model may spend on one stream

    def checkpoints(self) -> list[int]:
        """Return after how many deletions the clusterings are judged."""
        return sorted({c for c in CHECKPOINTS if c <= self.deletions} | {0, self.deletions})

    def refit_points(self) -> list[int]:
        """Return after how many deletions scikit-learn refits."""
        refits = min(self.refits, self.deletions)
        points = np.linspace(0, self.deletions, refits + 1)[1:]
        return sorted({round(point) for point in points.tolist()})


def clocked(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how many seconds a call took, and what it gave."""
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


class Stream:
    """One model on its way through a stream of deletions."""

    def __init__(self, name: str, data: DataSet, seed: int, budget: float) -> None:
        self.name, self._data, self._seed, self._budget = name, data, seed, budget
        self.fits: list[float] = []
        self.seconds: list[float] = []
        self.touched: list[int] = []
        self.actions: list[str] = []
        self.counts: Counter[str] = Counter()
        self.spent = 0.0
        self.model = self.fit(data.X)

    def make(self) -> Any:
        """Make the unfitted model."""
        return contenders.make(self.name, self._data.k, self._seed)

    def fit(self, X: np.ndarray, ids: np.ndarray | None = None) -> Any:
        """Fit a fresh model with the seed of this stream, on the clock."""
        fresh = self.make()
        gc.collect()
        seconds, model = clocked(lambda: fresh.fit(X, ids=ids))
        self.fits.append(seconds)
        return model

    def delete(self, records: np.ndarray) -> None:
        """Delete records one at a time; at once and off the clock when the budget is spent."""
        for position, record in enumerate(records.tolist()):
            if self.spent > self._budget:
                self.model.delete(records[position:], digest=False)
                return
            seconds, deletion = clocked(lambda record=record: self._delete([record]))
            self.spent += seconds
            self.seconds.append(seconds)
            self.touched.append(deletion.rows_touched)
            self.actions.append(deletion.action)
            self.counts.update(deletion.counts)

    def _delete(self, records: Sequence[int]) -> Any:
        return self.model.delete(records, digest=False)

    def judge(self, judges: Judges) -> dict[str, float]:
        """Measure the clustering as it stands."""
        return judges.judge(contenders.centers(self.model), contenders.labels(self.model))


class Judges:
    """What the clusterings of one kind (scaled or not) are judged by, as records leave."""

    def __init__(self, kind: str, data: DataSet, survivors: np.ndarray) -> None:
        self._scaled, self._data = kind == "pipeline", data
        self._sample = survivors[:SAMPLE]
        self._silhouette = measures.Silhouette(self._space(data.X)[self._sample])
        self.leave(np.ones(len(data.X), bool))

    def _space(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(scale(X)) if self._scaled else X

    def leave(self, live: np.ndarray) -> None:
        """Go on with the records that are left."""
        self._X = self._space(self._data.X[live])
        self._truth = self._data.labels[live]
        self._rows = np.cumsum(live)[self._sample] - 1

    def judge(self, centers: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """Return loss per record, silhouette and mutual information."""
        return {
            "loss": measures.loss(self._X, centers) / len(self._X),
            "silhouette": self._silhouette.score(labels[self._rows]),
            "nmi": measures.mutual_information(self._truth, labels),
        }


class Peer:
    """A scikit-learn model, refitted now and then on what is left."""

    def __init__(self, kind: str, k: int, rng: np.random.Generator) -> None:
        self.kind, self._k, self._rng = kind, k, rng
        self.seconds: list[float] = []
        self.judged: dict[str, dict[str, float]] = {}
        self.converged: dict[str, dict[str, float]] = {}

    def refit(self, X: np.ndarray) -> Any:
        """Fit with a new seed, on the clock."""
        fresh = contenders.make_peer(self.kind, self._k, int(self._rng.integers(2**31)))
        gc.collect()
        seconds, model = clocked(lambda: fresh.fit(X))
        self.seconds.append(seconds)
        return model

    def judge(self, after: int, model: Any, X: np.ndarray, judges: Judges) -> None:
        """Judge a refit, and one that ran until convergence (the paper's baseline)."""
        self.judged[str(after)] = judges.judge(contenders.centers(model), contenders.labels(model))
        seed = int(self._rng.integers(2**31))
        baseline = contenders.make_peer(self.kind, self._k, seed, contenders.UNTIL_CONVERGENCE)
        baseline.fit(X)
        judged = judges.judge(contenders.centers(baseline), contenders.labels(baseline))
        judged["iterations"] = float(contenders.clusterer(baseline).n_iter_)
        self.converged[str(after)] = judged


def replicate(
    data: DataSet, names: Sequence[str], number: int, plan: Plan
) -> dict[str, dict[str, Any]]:
    """Run one replicate; return what was measured, by model."""
    n = len(data.X)
    rng = np.random.default_rng([2019, number])
    order = rng.permutation(n)
    singles, rest = order[: plan.deletions], order[plan.deletions :]
    kinds = sorted({contenders.peer_of(name) for name in names})
    live = np.ones(n, bool)

    streams = [Stream(name, data, number, plan.budget) for name in names]
    peers = {kind: Peer(kind, data.k, rng) for kind in kinds}
    judges = {kind: Judges(kind, data, rest) for kind in kinds}
    judged: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
    checkpoints, refit_points = plan.checkpoints(), plan.refit_points()
    done = 0
    for stop in sorted({*checkpoints, *refit_points}):
        for stream in streams:
            gc.collect()
            stream.delete(singles[done:stop])
        live[singles[done:stop]] = False
        done = stop
        X = data.X[live]
        refits = {kind: peer.refit(X) for kind, peer in peers.items() if stop in (0, *refit_points)}
        if stop in checkpoints:
            for kind in kinds:
                judges[kind].leave(live)
            for stream in streams:
                kind = contenders.peer_of(stream.name)
                judged[stream.name][str(stop)] = stream.judge(judges[kind])
            if stop in (0, plan.deletions):
                for kind, peer in peers.items():
                    peer.judge(stop, refits[kind], X, judges[kind])
    judges.clear()

    results = {}
    while streams:
        stream = streams.pop(0)
        after = _afterwards(stream, data, singles, rest)
        peer = peers[contenders.peer_of(stream.name)]
        results[stream.name] = {
            **_summary(stream, plan.deletions, peer),
            **after,
            "judged": judged[stream.name],
        }
    return results


def most_deletions(data: DataSet) -> int:
    """Return how many deletions a stream may have: as many follow at once, and `DIGESTS`."""
    return max(0, (len(data.X) - data.k - DIGESTS) // 2)


def _afterwards(
    stream: Stream, data: DataSet, singles: np.ndarray, rest: np.ndarray
) -> dict[str, Any]:
    """Measure batches and digests on a model whose stream has ended, and check the law."""
    model = stream.model
    first_digest, after_singles = clocked(model.digest)

    batch, rest = np.split(rest, [len(singles)])
    gc.collect()
    warm, _ = clocked(lambda: model.delete(batch, digest=False))

    # What digest=True adds: the same two calls, apart, so that it does not drown in the spread of
    # the deletions themselves.
    adds = []
    for record in rest[:DIGESTS].tolist():
        before, _ = clocked(model.digest)
        model.delete([record], digest=False)
        afterwards, _ = clocked(model.digest)
        adds.append(before + afterwards)
    rest = rest[DIGESTS:]

    cold, as_batch = _one_batch(stream.fit(data.X), singles)
    left = np.sort(rest)
    law = {
        "one batch": as_batch == after_singles,
        "fit on what is left": stream.fit(data.X[left], left).digest() == model.digest(),
    }
    return {
        "fit_seconds": stream.fits,
        "batch": {"fresh": cold, "warm": warm},
        "digest": {"first": first_digest, "adds": float(np.mean(adds[1:]))},
        "law": law,
    }


def _one_batch(fresh: Any, records: np.ndarray) -> tuple[float, str]:
    gc.collect()
    seconds, _ = clocked(lambda: fresh.delete(records, digest=False))
    return seconds, fresh.digest()


def _summary(stream: Stream, deletions: int, peer: Peer) -> dict[str, Any]:
    seconds = np.array(stream.seconds)
    retrained = np.isin(stream.actions, ("refit", "resumed"))
    upto = sorted({round(m) for m in np.geomspace(1, len(seconds), 30)})
    total = stream.fits[0] + float(seconds.mean()) * deletions
    refits = np.array(peer.seconds)
    return {
        "total": total,
        "speedup": float(refits.mean()) * deletions / total,
        "timed": len(seconds),
        "first": float(seconds[0]),
        "mean": float(seconds.mean()),
        "median": float(np.median(seconds)),
        "p99": float(np.quantile(seconds, 0.99)),
        "touched": {
            "mean": float(np.mean(stream.touched)),
            "median": float(np.median(stream.touched)),
        },
        "counts": {name: count / len(seconds) for name, count in stream.counts.items()},
        "actions": dict(Counter(stream.actions)),
        "curve": {
            "deletions": upto,
            "seconds": [stream.fits[0] + float(seconds[:m].sum()) for m in upto],
            "retrained": [int(retrained[:m].sum()) for m in upto],
        },
        "peer": {
            "fits": len(refits),
            "mean": float(refits.mean()),
            "sd": float(refits.std()),
            "judged": peer.judged,
            "converged": peer.converged,
        },
    }
