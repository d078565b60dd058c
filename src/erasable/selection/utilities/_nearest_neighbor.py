"""The utility `NearestNeighbor`: similarity of records to the nearest chosen of their class."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from erasable.core._jit import borrowing, kernel
from erasable.core.arrays import Flags, Floats, Ints, Ints32
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.records import Records
from erasable.core.seeds import is_integer
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._dense_kernels import nearer
from erasable.selection.utilities._inputs import read_classes, read_numbers
from erasable.selection.utilities._neighbors import read_neighbors
from erasable.selection.utilities._ranked import ExpectedNearest, has_closed_form
from erasable.selection.utilities._similarities import (
    ClassBlock,
    check_metric,
    given_blocks,
    made_blocks,
    places_of,
)
from erasable.selection.utilities._stored_nearest import StoredNearest
from erasable.selection.utilities._utility import Problem, Utility


class NearestSamples(Samples):
    """The largest similarity of each target to those who stay, in each sample."""

    def __init__(self, blocks: list[ClassBlock], n_samples: int) -> None:
        n_targets = sum(block.n_targets for block in blocks)
        check_memory(
            float(max(block.dense.itemsize for block in blocks)) * n_targets * n_samples,
            f"the nearest who stay of {n_targets:,} targets in {n_samples:,} samples",
            "draw fewer samples, or choose from fewer records",
        )
        self.blocks, self.n_samples = blocks, n_samples
        # The largest of some numbers is one of them: their type holds it.
        self.best = [np.zeros((n_samples, b.n_targets), dtype=b.dense.dtype) for b in blocks]
        self.is_empty = [True] * len(blocks)
        self.buffer = np.zeros(32)
        self.part_of, self.place_of = places_of(blocks)

    def gains(self, j: int) -> Floats:
        return self.gains_in(j, np.arange(self.n_samples))

    def gains_in(self, j: int, which: Ints) -> Floats:
        out = np.empty(len(which))
        part = self.part_of[j]
        if self.is_empty[part]:  # then all samples are alike
            _gains(*self._row(j), self.best[part], which[:1], self.buffer, out[:1])
            out[1:] = out[:1].sum()
        else:
            _gains(*self._row(j), self.best[part], which, self.buffer, out)
        return out

    def add(self, j: int, stays: Flags) -> None:
        _add(*self._row(j), self.best[self.part_of[j]], stays)
        self.is_empty[self.part_of[j]] = False

    def _row(self, j: int) -> tuple[Any, Any]:
        """Return the targets to which a record is similar (empty: all), and its similarities."""
        block, place = self.blocks[self.part_of[j]], self.place_of[j]
        if not len(block.starts):
            return block.targets, block.dense[place]
        part = slice(block.starts[place], block.starts[place + 1])
        return block.targets[part], block.values[part]


@borrowing
def _gains(
    targets: Ints32,
    row: NDArray[np.floating],
    best: NDArray[np.floating],
    which: Ints,
    buffer: Floats,
    out: Floats,
) -> None:
    for e in range(len(which)):
        of_sample = best[which[e]]
        if len(targets) == 0:
            out[e] = nearer(row, of_sample, buffer)
            continue
        total = 0.0
        for i in range(len(targets)):
            total += max(np.float64(row[i]) - np.float64(of_sample[targets[i]]), 0.0)
        out[e] = total


@kernel
def _add(
    targets: Ints32,
    row: NDArray[np.floating],
    best: NDArray[np.floating],
    stays: Flags,
) -> None:
    for s in range(len(best)):
        if stays[s]:
            for e in range(len(row)):
                i = targets[e] if len(targets) > 0 else e
                best[s, i] = max(best[s, i], row[e])


class NearestNeighbor(Utility):
    """Sum of the similarities of each record to the nearest chosen record of its class.

    A selection of a high utility trains a good classifier by nearest neighbours. With one
    class it is known as facility location. Its expected value after deletions is exact.

    Parameters
    ----------
    metric : {"euclidean", "sqeuclidean", "cosine", "precomputed"}, default="euclidean"
        ``euclidean``: the largest distance of two records of a class less their distance;
        ``sqeuclidean``: the same of squared distances, as in the paper's experiments;
        ``cosine``: half of 1 plus the cosine. ``precomputed``: X holds the similarities, dense or
        sparse, of shape (n_records, n_targets), 0 or more: a row for each record.
    n_neighbors : int, default=None
        Take only so many records into account for each target, those most similar to it: less
        memory than all pairs of a class take. The largest distance is then that of the pairs kept.
        They are found by comparing all pairs of a class, so that the time grows with its square.
    neighbors : transformer, default=None
        Finds the nearest instead, approximately or otherwise, where there are many records:
        ``fit_transform(X)`` returns their distances in a sparse matrix of shape (n_records,
        n_records), as that of ``sklearn.neighbors.KNeighborsTransformer`` and
        ``pynndescent.PyNNDescentTransformer`` does. It is copied for each class, and has its own
        `n_neighbors`.
    n_candidates : int, default=None
        Of `Records`: choose from so many, drawn by a hash of their ids and `random_state`. By
        default from all of them, which is refused where it takes too long.

    Notes
    -----
    `Records` are read where they are stored: candidates come into memory, all others are targets
    in their files or on their workers, and each choice takes a pass over them. Distances are
    rounded to whole units, of at most 44 bits and so few that all sums are exact. So the choice
    does not depend on where records are stored or how they are divided into blocks; with arrays,
    where sums round, near-ties may be decided otherwise. The largest distance is that of a
    candidate and a record. Owners of a class have to be exchangeable.

    References
    ----------
    Wei, Iyer and Bilmes, Submodularity in data subset selection and active learning, ICML 2015.
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendix C.2.

    Examples
    --------
    >>> import numpy as np
    >>> similarity = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> problem = NearestNeighbor(metric="precomputed").problem(similarity)
    >>> problem.value(np.array([0])), problem.value(np.array([0, 2]))
    (1.8, 2.8)
    """

    is_submodular = True

    def __init__(
        self,
        metric: str = "euclidean",
        *,
        n_neighbors: int | None = None,
        neighbors: Any = None,
        n_candidates: int | None = None,
    ) -> None:
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.n_candidates = n_candidates

    def problem_of_records(
        self, records: Records, held: Ints, seed: int, n_jobs: int | None = None
    ) -> StoredNearest:
        check_metric(self.metric)
        if self.metric == "precomputed" or (self.n_neighbors, self.neighbors) != (None, None):
            raise InvalidParameterError(
                f"{self!r} of Records; expected a metric alone, because distances are computed "
                "where records lie; pass n_candidates, or arrays"
            )
        count = self.n_candidates
        if count is not None and not (is_integer(type(count)) and count >= 1):
            raise InvalidParameterError(
                f"n_candidates={shorten(count)}; expected an integer of 1 or more, or None for all"
            )
        return StoredNearest(records, self.metric, count, held, seed, n_jobs)

    def problem(self, X: Any, y: Any = None) -> NearestProblem:
        check_metric(self.metric)
        if self.n_candidates is not None:
            raise InvalidParameterError(
                f"n_candidates={shorten(self.n_candidates)} with an array; expected None, because "
                "all rows are candidates; pass Records(X)"
            )
        neighbors = read_neighbors(self.n_neighbors, self.neighbors, self.metric)
        if self.metric == "precomputed":
            similarity = _read_similarities(X)
            classes = _classes(y, similarity.shape[0])
            return NearestProblem(given_blocks(similarity, classes, None), similarity.shape[0])
        features = read_numbers(X)
        blocks = made_blocks(features, _classes(y, len(features)), self.metric, neighbors)
        return NearestProblem(blocks, len(features))


class NearestProblem(Problem):
    """Similarities by class."""

    def __init__(self, blocks: list[ClassBlock], n: int) -> None:
        self.blocks, self.n = blocks, n

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        if not has_closed_form(self.blocks, bound):
            return None
        return ExpectedNearest(self.blocks, bound, k)

    def samples(self, n_samples: int, k: int) -> Samples:
        return NearestSamples(self.blocks, n_samples)

    def semivalues(self, bound: Bound) -> Floats | None:
        if bound.unit is not None or not has_closed_form(self.blocks, bound):
            return None
        out = np.empty(self.n)
        for block in self.blocks:
            out[block.records] = semivalues(block, bound)
        return out

    def value(self, chosen: Ints) -> float:
        total = 0.0
        for block in self.blocks:
            here = np.flatnonzero(np.isin(block.records, chosen))
            if not len(here):
                continue
            if len(block.starts):
                shape = (len(block.records), block.n_targets)
                rows = scipy.sparse.csr_array((block.values, block.targets, block.starts), shape)
                best = rows[here].max(axis=0).toarray()
            else:
                best = block.dense[here].max(axis=0)
            total += float(np.sum(best, dtype=np.float64))
        return total


def _read_similarities(X: Any) -> Any:
    if scipy.sparse.issparse(X):
        array = X.tocsr()
    else:
        try:
            array = np.asarray(X)
        except ValueError:
            raise InvalidInputError(
                "the similarities have rows of different lengths; expected numbers of shape "
                "(n_records, n_targets); pass a matrix with a row for each record"
            ) from None
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "iuf":
        raise InvalidInputError(
            f"the similarities are {array.dtype} of shape {array.shape}; expected numbers of shape "
            "(n_records, n_targets); pass a matrix with a row for each record"
        )
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _classes(y: Any, n: int) -> Ints | None:
    return None if y is None else read_classes(y, n)


def semivalues(block: ClassBlock, bound: Bound) -> Floats:
    """Return what each record of a block adds to a random part of the others of its class.

    Exact, by sorting each target's similarities. A record of rank `q` adds ``E (w - M)+`` to a
    target, where `M` is the largest similarity of the others that are there. For exchangeable
    owners this is ``z_q w - sum over p > q of c_p w_p``, where all of `q` others are absent with
    probability `z_q`, and of `p` only the last is there with `c_p`.
    """
    n = len(block.records)
    out = np.zeros(n)
    number = int(bound.block[block.records[0]])
    if number >= 0:
        law = bound.laws[number]
        none = np.array([np.exp(law.log_subset_pmf(t)[0]) for t in range(n)])
        last = law.rank_weights(n)
    s = bound.probability[block.records]
    for i in range(block.n_targets):
        row = _column(block, i)
        order = np.argsort(-row, kind="stable")
        w = row[order]
        if number >= 0:
            # Of the others, one that comes later than the record has a rank less.
            later = np.cumsum((last[:-1] * w[1:])[::-1])[::-1] if n > 1 else np.zeros(0)
            out[order] += none * w - np.append(later, 0.0)
        else:
            _independent(w, s[order], order, out)
    return out


def _column(block: ClassBlock, i: int) -> Floats:
    if not len(block.starts):
        return np.asarray(block.dense[:, i], dtype=np.float64)
    row = np.zeros(len(block.records))
    of_target = np.flatnonzero(block.targets == i)
    rows = np.searchsorted(block.starts, of_target, side="right") - 1
    row[rows] = block.values[of_target]
    return row


@kernel
def _independent(w: Floats, s: Floats, order: Ints, out: Floats) -> None:
    n = len(w)
    absent = np.ones(n + 1)
    for q in range(n):
        absent[q + 1] = absent[q] * (1.0 - s[q])
    best = 0.0  # the expected largest similarity of those that come later
    for q in range(n - 1, -1, -1):
        out[order[q]] += absent[q] * (w[q] - best)
        best = s[q] * w[q] + (1.0 - s[q]) * best
