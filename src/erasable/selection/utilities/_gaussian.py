"""Utilities of Gaussian processes: mutual information and variance reduction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import RBF, Kernel

from erasable.core._jit import inlined, kernel
from erasable.core._schema import LARGEST
from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import is_number
from erasable.core.threads import n_threads, over_rows
from erasable.selection._functions import SetFunction
from erasable.selection._memory import check_memory
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound
from erasable.selection.utilities._gaussian_factor import NOTHING, FactorFunction, worth
from erasable.selection.utilities._inputs import read_numbers
from erasable.selection.utilities._utility import Problem, Utility

_MUCH = 2**22  # products that are worth several threads
_WIDTH = 256  # samples that are dealt with together: what they take fits into a fast cache


class _Factors(NamedTuple):
    """Inverse Cholesky factors, and the remaining variance of each record, in each sample."""

    K: Floats  # (n_records, n_records)
    noise: float
    Q: Floats  # (n_records, n_records), or empty; as in `_Factor`
    rows: Floats  # (k (k + 1) / 2, n_samples): lower triangles of the inverse factors, row by row
    sides: Floats  # shape of `rows`, or (0, 0): what a row takes from the products
    seen: Ints
    variance: Floats  # (n_records, n_samples)
    moved: Floats  # (n_records, n_samples), or (0, 0)
    chosen: Ints  # (k,)


class FactorSamples(Samples):
    """The information or variance reduction by those of the chosen who stay, in samples."""

    def __init__(self, K: Floats, noise: float, Q: Floats | None, n_samples: int, k: int) -> None:
        n, triangle = len(K), k * (k + 1) // 2
        tables = 1 if Q is None else 2
        check_memory(
            8.0 * tables * n_samples * (triangle + n),
            f"factors of {k:,} of {n:,} records in {n_samples:,} samples",
            "draw fewer samples, or choose fewer records",
        )
        none = np.zeros((0, 0))
        self.size, self.most = 0, k
        self.factors = _Factors(
            K=K,
            noise=noise,
            Q=none if Q is None else Q,
            rows=np.empty((triangle, n_samples)),
            sides=none if Q is None else np.empty((triangle, n_samples)),
            seen=np.zeros(n, dtype=np.int64),
            variance=np.repeat(K.diagonal()[:, None], n_samples, axis=1),
            moved=none if Q is None else np.repeat(Q.diagonal()[:, None], n_samples, axis=1),
            chosen=np.zeros(k, dtype=np.int64),
        )

    def prepare(self, items: Ints) -> None:
        of = self.factors
        items = np.unique(items[of.seen[items] < self.size])  # twice would be taken off twice
        if not len(items):
            return
        size, n_samples = self.size, of.rows.shape[1]
        # Samples are independent: the result does not depend on how threads share them.
        share = n_samples
        if items.size * size**2 * n_samples > _MUCH:
            share = -(-n_samples // (_WIDTH * n_threads(self.n_jobs))) * _WIDTH
        for _ in over_rows(
            lambda some: _refresh(items, size, some.start, some.stop, of),
            n_samples, self.n_jobs, share,
        ):  # fmt: skip
            pass
        of.seen[items] = size

    def gains(self, j: int) -> Floats:
        of = self.factors
        if of.seen[j] < self.size:
            self.prepare(np.array([j]))
        if not len(of.Q):
            return worth(of.variance[j], of.noise)
        return worth(of.variance[j], of.noise, of.moved[j], of.Q[j, j])

    def add(self, j: int, stays: Flags) -> None:
        if self.size == self.most:
            raise IndexError(
                f"{self.most} records were added; expected no more; make the samples for a larger k"
            )
        self.prepare(np.array([j]))
        _append(j, self.size, stays, self.factors)
        self.size += 1


@inlined
def _add(weights: Floats, rows: Floats, out: Floats) -> None:
    """Add rows times their weights, four at a time, in their order."""
    whole = len(rows) - len(rows) % 4
    for a in range(0, whole, 4):
        q, r, s, t = rows[a], rows[a + 1], rows[a + 2], rows[a + 3]
        u, v, w, x = weights[a], weights[a + 1], weights[a + 2], weights[a + 3]
        for i in range(len(out)):
            out[i] += (u * q[i] + v * r[i]) + (w * s[i] + x * t[i])
    for a in range(whole, len(rows)):
        q, u = rows[a], weights[a]
        for i in range(len(out)):
            out[i] += u * q[i]


@inlined
def _entries(near: Floats, t: int, low: int, high: int, of: _Factors, c: Floats, h: Floats) -> None:
    """Write the entry of a record in row t of the factor, and its side, in samples `low` to `high`.

    `near` has the kernel of the record with the chosen, and their products.
    """
    first = t * (t + 1) // 2
    rows = of.rows[first : first + t + 1, low:high]
    c[:] = 0.0
    _add(near[0], rows, c)
    if len(of.Q) > 0:
        h[:] = 0.0
        _add(near[1], rows, h)
        _add(near[0], of.sides[first : first + t + 1, low:high], h)


@inlined
def _read(j: int, size: int, of: _Factors, near: Floats) -> None:
    for a in range(size):
        near[0, a] = of.K[j, of.chosen[a]]
        if len(of.Q) > 0:
            near[1, a] = of.Q[j, of.chosen[a]]


@kernel
def _refresh(items: Ints, size: int, first: int, stop: int, of: _Factors) -> None:
    """Subtract from some records what was chosen since their last update.

    In samples `first` to `stop`; the caller updates `seen`.
    """
    buffer, near = np.empty((2, _WIDTH)), np.empty((2, size))
    for low in range(first, stop, _WIDTH):
        high = min(low + _WIDTH, stop)
        c, h = buffer[0, : high - low], buffer[1, : high - low]
        for at in range(len(items)):
            j = items[at]
            if of.seen[j] < size:
                _read(j, size, of, near)
            for t in range(of.seen[j], size):
                _entries(near, t, low, high, of, c, h)
                variance = of.variance[j, low:high]
                for s in range(len(c)):
                    variance[s] -= c[s] * c[s]
                if len(of.Q) > 0:
                    moved = of.moved[j, low:high]
                    for s in range(len(c)):
                        moved[s] -= 2.0 * c[s] * h[s]


@kernel
def _append(j: int, size: int, stays: Flags, of: _Factors) -> None:
    """Append the row of record j, number `size`, to the samples in which it stays."""
    first = size * (size + 1) // 2
    buffer, near = np.empty((2, _WIDTH)), np.empty((2, size))
    _read(j, size, of, near)
    weights, others = np.empty((size, _WIDTH)), np.empty((size, _WIDTH))
    for low in range(0, of.rows.shape[1], _WIDTH):
        high = min(low + _WIDTH, of.rows.shape[1])
        c, h = buffer[0, : high - low], buffer[1, : high - low]
        weights[:] = 0.0
        others[:] = 0.0
        for t in range(size):
            _entries(near, t, low, high, of, c, h)
            for a in range(t + 1):
                place, weight, other = t * (t + 1) // 2 + a, weights[a], others[a]
                row = of.rows[place, low:high]
                for s in range(len(c)):
                    weight[s] += c[s] * row[s]
                if len(of.Q) > 0:
                    side = of.sides[place, low:high]
                    for s in range(len(c)):
                        other[s] += c[s] * side[s] + h[s] * row[s]
        for s in range(high - low):
            squared = of.noise + max(of.variance[j, low + s], 0.0)
            one = 1.0 / np.sqrt(squared) if stays[low + s] else 0.0
            for a in range(size):
                of.rows[first + a, low + s] = -weights[a, s] * one
            of.rows[first + size, low + s] = one
            if len(of.Q) > 0:
                moved = of.moved[j, low + s]
                half = 0.5 * moved / squared if moved > NOTHING * of.Q[j, j] else 0.0
                for a in range(size):
                    row = of.rows[first + a, low + s]
                    of.sides[first + a, low + s] = -others[a, s] * one - row * half
                of.sides[first + size, low + s] = -one * half
    of.chosen[size] = j


class MutualInformation(Utility):
    """Information of the chosen about a Gaussian process: a measure of their diversity.

    ``log det(I + gamma K_S)``. It is exact without deletions; its expected value after deletions
    is sampled.

    Parameters
    ----------
    kernel : scikit-learn Gaussian process kernel or "precomputed", default=RBF()
        Positive semi-definite; ``precomputed``: X is the kernel, of shape (n_records, n_records).
    gamma : float, default=1.0
        The scale of the kernel: variance of the signal over that of the noise.

    References
    ----------
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendix C.2.

    Examples
    --------
    >>> problem = MutualInformation("precomputed").problem(np.eye(3))
    >>> round(problem.value(np.array([0, 2])), 6)  # 2 log 2
    1.386294
    """

    is_submodular = True

    def __init__(self, kernel: Any = None, *, gamma: float = 1.0) -> None:
        self.kernel = kernel
        self.gamma = gamma

    def problem(self, X: Any, y: Any = None) -> InformationProblem:
        gamma = _positive(self.gamma, "gamma", "how much signal there is to noise")
        return InformationProblem(read_kernel(X, self.kernel), gamma)


class InformationProblem(Problem):
    """A kernel and its scale gamma: observations have noise of variance 1 / gamma."""

    def __init__(self, K: Floats, gamma: float) -> None:
        self.K, self.gamma, self.n = K, gamma, len(K)

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        return FactorFunction(self.K, 1 / self.gamma, None, k) if bound.is_certain else None

    def samples(self, n_samples: int, k: int) -> Samples:
        return FactorSamples(self.K, 1 / self.gamma, None, n_samples, k)

    def value(self, chosen: Ints) -> float:
        part = self.gamma * self.K[np.ix_(chosen, chosen)]
        return float(np.linalg.slogdet(np.eye(len(chosen)) + part)[1])


class VarianceReduction(Utility):
    """Reduction of the variance of a Gaussian process by the chosen, summed over targets.

    It is exact without deletions; its expected value after deletions is sampled.

    It is not submodular: of a sum of two signals a record of one tells nothing of the other, and
    much once the sum is known. The greedy choice has no bound, and the lazy one may be another.

    Parameters
    ----------
    kernel : scikit-learn Gaussian process kernel or "precomputed", default=RBF()
    noise : float, default=0.1
        The variance of the noise in what is observed.
    targets : array-like, default=None
        Where the variance counts: features of shape (n_targets, n_features), or, with
        ``precomputed``, their kernel with the records, of shape (n_records, n_targets). By default
        the records themselves.

    References
    ----------
    Krause, McMahan, Guestrin and Gupta, Robust submodular observation selection, JMLR 2008.
    Das and Kempe, Algorithms for subset selection in linear regression, STOC 2008: on when it is
    submodular.
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendix C.2.

    Examples
    --------
    >>> problem = VarianceReduction("precomputed", noise=1.0).problem(np.eye(3))
    >>> problem.value(np.array([0, 2]))
    1.0
    """

    def __init__(self, kernel: Any = None, *, noise: float = 0.1, targets: Any = None) -> None:
        self.kernel = kernel
        self.noise = noise
        self.targets = targets

    def problem(self, X: Any, y: Any = None) -> VarianceProblem:
        noise = read_noise(self.noise)
        K = read_kernel(X, self.kernel)
        return VarianceProblem(K, noise, self._cross(X, K))

    def _cross(self, X: Any, K: Floats) -> Floats:
        """Return the kernel of records with targets."""
        if self.targets is None or isinstance(self.kernel, str):
            return read_cross(self.targets, K)
        kernel = RBF() if self.kernel is None else self.kernel
        records, targets = read_numbers(X), read_numbers(self.targets)
        if targets.shape[1] != records.shape[1]:
            raise InvalidInputError(
                f"targets has shape {targets.shape} for records of shape {records.shape}; expected "
                "the same features"
            )
        return np.asarray(kernel(records, targets), dtype=np.float64)


class VarianceProblem(Problem):
    """A kernel, the variance of the noise, and the kernel with targets."""

    def __init__(self, K: Floats, noise: float, cross: Floats) -> None:
        check_memory(8.0 * len(K) ** 2, "products of the kernel", "choose from fewer records")
        self.K, self.noise, self.cross, self.n = K, noise, cross, len(K)
        self.Q = _products(cross)

    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        return FactorFunction(self.K, self.noise, self.Q, k) if bound.is_certain else None

    def samples(self, n_samples: int, k: int) -> Samples:
        return FactorSamples(self.K, self.noise, self.Q, n_samples, k)

    def value(self, chosen: Ints) -> float:
        part = self.K[np.ix_(chosen, chosen)] + self.noise * np.eye(len(chosen))
        cross = self.cross[chosen]
        return float((cross * np.linalg.solve(part, cross)).sum()) if len(chosen) else 0.0


def _products(cross: Floats) -> Floats:
    """Return the products of rows, shape (n_records, n_records); equal rows have equal products.

    A matrix product rounds by where a row is, and then records that are worth the same differ.
    """
    Q = cross @ cross.T
    first: dict[bytes, int] = {}
    same = np.array([first.setdefault(row.tobytes(), j) for j, row in enumerate(cross)])
    again = np.flatnonzero(same != np.arange(len(same)))
    Q[again] = Q[same[again]]
    Q[:, again] = Q[:, same[again]]
    return Q


def read_kernel(X: Any, kernel: Any) -> Floats:
    """Return a symmetric positive semi-definite kernel of shape (n_records, n_records), float64."""
    if isinstance(kernel, str) and kernel == "precomputed":
        K = read_numbers(X).astype(np.float64, copy=False)
        if K.shape[0] != K.shape[1]:
            raise InvalidInputError(
                f"the kernel has shape {K.shape}; expected (n_records, n_records); pass a square "
                "matrix, or features and a kernel"
            )
    elif kernel is None or isinstance(kernel, Kernel):
        features = read_numbers(X)
        check_memory(8.0 * len(features) ** 2, "the kernel", "choose from fewer records")
        K = np.asarray((RBF() if kernel is None else kernel)(features), dtype=np.float64)
    else:
        raise InvalidParameterError(
            f"kernel={shorten(kernel)}; expected a kernel of sklearn.gaussian_process or "
            "'precomputed'; pass RBF(1.0), or a matrix as X"
        )
    scale = largest(K)
    if not np.isfinite(scale):
        raise InvalidDataError("the kernel holds NaN or infinity; expected finite numbers")
    if _asymmetry(K) > 1e-6 * scale or K.diagonal().min(initial=0.0) < 0:
        raise InvalidDataError(
            "the kernel is not symmetric, or has a variance below 0; expected a positive "
            "semi-definite matrix; pass (K + K.T) / 2, or another kernel"
        )
    if scale and not is_definite_by_form(RBF() if kernel is None else kernel):
        refuse_indefinite(K)
    return np.ascontiguousarray(K)


def _asymmetry(K: Floats) -> float:
    """Return the largest difference of K and its transpose, without copies."""
    worst, width = 0.0, 256
    for low in range(0, len(K), width):
        rows, columns = K[low : low + width, low:], K[low:, low : low + width]
        worst = max(worst, float(np.abs(rows - columns.T).max(initial=0.0)))
    return worst


def read_cross(targets: Any, K: Floats) -> Floats:
    """Return the kernel of records with targets, by default that of the records themselves."""
    if targets is None:
        return K
    cross = read_numbers(targets).astype(np.float64)
    if len(cross) != len(K):
        raise InvalidInputError(
            f"targets has shape {cross.shape} for {len(K)} records; expected their kernel "
            "with the records, (n_records, n_targets); transpose it"
        )
    return cross


def read_noise(value: Any) -> float:
    """Return the variance of the noise, above 0."""
    return _positive(value, "noise", "the variance of what is observed")


def _positive(value: Any, name: str, meaning: str) -> float:
    if not is_number(value) or not 0 < value <= LARGEST:
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected a number above 0: {meaning}; pass 1.0"
        )
    return float(value)


_DEFINITE = (
    kernels.ConstantKernel,
    kernels.DotProduct,
    kernels.Matern,
    kernels.RBF,
    kernels.RationalQuadratic,
    kernels.WhiteKernel,
)
_ROUNDING = 1e-6  # of the largest entry, in each entry: that of float32, and of sums in it


def is_definite_by_form(kernel: Any) -> bool:
    """Tell whether a kernel is positive semi-definite for all features."""
    if type(kernel) in (kernels.Sum, kernels.Product):
        return is_definite_by_form(kernel.k1) and is_definite_by_form(kernel.k2)
    return type(kernel) in _DEFINITE


def largest(K: Floats) -> float:
    """Return the largest absolute entry, without a copy; NaN if there is one."""
    return float(np.maximum(K.max(initial=0.0), -K.min(initial=0.0)))


def refuse_indefinite(K: Floats) -> None:
    """Refuse a symmetric matrix with an eigenvalue below 0 by more than rounding explains.

    With one, a determinant or a variance could be negative, and a record could have a negative
    gain.
    """
    n = len(K)
    check_memory(8.0 * n**2, "a factor of the kernel", "choose from fewer records")
    least = _ROUNDING * np.sqrt(n) * largest(K)
    factor = np.array(K, order="F")  # LAPACK's order: it is overwritten, and not copied again
    np.fill_diagonal(factor, K.diagonal() + least)
    try:
        scipy.linalg.cholesky(factor, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        lowest = scipy.linalg.eigvalsh(K, subset_by_index=[0, 0])[0]
        if lowest < -least:
            raise InvalidDataError(
                f"the kernel has the eigenvalue {lowest:.3g}; expected a positive semi-definite "
                "matrix, without eigenvalues below 0"
            ) from None
