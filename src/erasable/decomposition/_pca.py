"""Principal components: exact second moments, updated by deletions, and their eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from erasable.core._eigen_kernels import eigh, project
from erasable.core._fit_info import FitInfo
from erasable.core._schema import FieldType, OneOf, gram, refuse, refuse_many
from erasable.core.arrays import Floats, Values
from erasable.core.attachment import Attachment
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidInputError, MagnitudeError
from erasable.core.estimator import Erasable
from erasable.core.gram import MAX_FEATURES, Gram
from erasable.core.inputs import read_matrix
from erasable.core.matrices import to_dense
from erasable.core.tables import Table
from erasable.core.threads import N_JOBS


@dataclass(frozen=True, slots=True, eq=False)
class _Axes:
    """The eigenvectors and eigenvalues of the moments."""

    middle: Floats
    components: Floats  # sorted by variance, n_features or fewer
    variances: Floats
    total: float  # variance of all columns together
    chosen: int  # how many components are kept


class _Solved:
    """Cache of the axes: reading them changes no attribute of the estimator."""

    axes: _Axes | None = None


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Erasable):
    """Project records on the directions in which they vary most, and forget records exactly.

    A deletion subtracts the record's products from exact sums, in O(n_features^2). The components
    are computed from the sums on access, in O(n_features^3), for any number of
    records.

    Every deletion turns the components by a little, so that a step behind learns again at every
    deletion.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a number between 0 and 1: as many as explain that share of
        the variance; None: as many as there can be.
    whiten : bool, default=False
        Scale projections to variance 1?
    n_jobs : int or None, default=None
        Threads that read the records: None is one, -1 all cores. The model is the same with any
        number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), float64
        Directions of unit length, by falling variance; the largest entry of each is positive.
    mean_ : ndarray of shape (n_features,), float64
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components_,), float64
        Variance along each direction (divided by n - 1), and its share of the whole.
    singular_values_ : ndarray of shape (n_components_,), float64
    noise_variance_ : float
        Mean variance along the directions that are not kept.
    n_components_ : int
    n_samples_ : int
        Number of records held.

    Raises
    ------
    InvalidInputError
        From `fit`: more components than features.
    InvalidDataError
        From `fit`: more than 4,096 features.
    TooFewRecordsError
        Fewer than 2 records, or than `n_components`.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    Notes
    -----
    Columns are rounded once to 26 bits below their largest magnitude (`erasable.core.grid`), so
    components agree with scikit-learn's to about 1e-8, divided by the relative gap between
    variances. Sparse records are centred, too. Behind scalers of a pipeline the components are
    solved from the moments of records before scaling.

    Examples
    --------
    >>> from erasable.decomposition import PCA
    >>> X = [[1.0, 1.0], [2.0, 2.1], [3.0, 2.9], [4.0, 9.0]]
    >>> pca = PCA(1).fit(X, ids=["a", "b", "c", "d"])
    >>> pca.delete(["d"], digest=False).action
    'updated'
    >>> pca.components_.round(3)
    array([[0.724, 0.69 ]])
    >>> pca.digest() == PCA(1).fit(X[:3], ids=["a", "b", "c"]).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "whiten": ["boolean"],
        "n_jobs": N_JOBS,
    }
    _without_effect = ("n_jobs",)
    _reads_blocks = True
    _takes_map: ClassVar[bool] = True
    _attaches_by_learning = True
    _makes_dense = True
    _gram: Gram
    _solution: _Solved

    def __init__(
        self,
        n_components: float | None = None,
        *,
        whiten: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.n_jobs = n_jobs

    # -- what is learned -----------------------------------------------------------------------

    def _minimum_records(self) -> int:
        wanted: Any = self._at_fit("n_components")
        return max(2, int(wanted)) if isinstance(wanted, Integral) else 2

    def _minimum_parameter(self) -> str | None:
        return "n_components" if self._minimum_records() > 2 else None

    def _begin(self, held: Attachment, before: FitInfo | None = None) -> None:
        wanted = self.n_components if before is None else before.param("n_components")
        if isinstance(wanted, Integral) and int(wanted) > self.n_features_in_:
            raise InvalidInputError(
                f"n_components={wanted} for {self.n_features_in_} features; expected "
                "at most one for each; keep fewer components"
            )
        super()._begin(held, before)

    def _fit_rows(self) -> None:
        self._gram = self._accelerator = self._moments()
        self._solution = _Solved()

    def _moments(self) -> Gram:
        return Gram.fit_with_grid(self._table())

    def _table(self) -> Table:
        return Table.of(self._attached(), n_jobs=self._n_jobs)

    def _update(self, delta: Delta) -> Outcome | None:
        scanned = self._gram.update(self._table(), delta) or 0
        self._solution.axes = None
        touched = self._attached().n_live if scanned else 0
        return Outcome("updated", touched, {"columns_scanned": scanned})

    def _schema(self) -> FieldType:
        n_records, d = self._n_records, self.n_features_in_
        refuse_many(n_records)
        wanted = self._at_fit("n_components")
        if isinstance(wanted, Integral) and int(wanted) > d:
            refuse("params.n_components", wanted, f"at most {d}, one for each feature")
        if d > MAX_FEATURES:
            refuse("n_features", d, f"at most {MAX_FEATURES}")
        # Sparse columns have no origins.
        return OneOf((gram(n_records, d, 0), gram(n_records, d, d)))

    def _state(self) -> dict[str, Any]:
        return dict(self._gram.state())

    def _restore(self, state: dict[str, Any]) -> None:
        self._gram = Gram.from_state(state, self.n_features_in_, self._n_records)
        self._solution = _Solved()

    # -- what follows --------------------------------------------------------------------------

    def _solved(self) -> _Axes:
        self._check_fitted()
        if self._solution.axes is None:
            self._solution.axes = self._solve()
        return self._solution.axes

    def _solve(self) -> _Axes:
        gram, quantum = self._gram, self._gram.quantum
        high, low = gram.centred()
        mean, rest = gram.means()
        middle = gram.columns[0] + (mean + rest) * quantum
        unit = quantum
        if self._map is not None:
            shift, scale = self._map
            middle, unit = (middle - shift) / scale, quantum / scale
        # A common power of two keeps squares of tiny and of huge columns within range.
        largest = float(np.sqrt(np.max(np.diag(high) * (unit / unit.max()) ** 2))) * unit.max()
        exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
        small = np.ldexp(unit, -exponent)
        covariance = (high + low) * small[:, None] * small / (gram.n_rows - 1)
        d = covariance.shape[0]
        values, vectors = np.zeros(d), np.zeros((d, d))
        total = float(np.sum(np.diag(covariance)))
        if not eigh(covariance, values, vectors):
            raise MagnitudeError(
                "the components did not converge; expected columns of comparable size; "
                "scale them first"
            )
        order = np.argsort(-values, kind="stable")
        order = order[: min(d, gram.n_rows)]
        variances, components = np.maximum(values[order], 0.0), vectors[order]
        peaks = np.argmax(np.abs(components), axis=1)
        components *= np.where(components[np.arange(order.size), peaks] < 0, -1.0, 1.0)[:, None]
        variances, total = np.ldexp(variances, 2 * exponent), float(np.ldexp(total, 2 * exponent))
        return _Axes(middle, components, variances, total, self._choose(variances, total))

    def _choose(self, variances: Floats, total: float) -> int:
        wanted = self._at_fit("n_components")
        if wanted is None:
            return variances.size
        if isinstance(wanted, Integral):
            return int(wanted)
        shares = np.cumsum(variances) / total if total > 0 else np.ones(variances.size)
        return min(int(np.searchsorted(shares, wanted, side="right")) + 1, variances.size)

    @property
    def n_components_(self) -> int:
        """Number of components kept."""
        return self._solved().chosen

    @property
    def _n_features_out(self) -> int:
        return self._solved().chosen

    @property
    def n_samples_(self) -> int:
        """Number of records held."""
        self._check_fitted()
        return self._gram.n_rows

    @property
    def mean_(self) -> Floats:
        """Mean of each column."""
        return self._solved().middle.copy()

    @property
    def components_(self) -> Floats:
        """Directions of unit length, by falling variance."""
        axes = self._solved()
        return axes.components[: axes.chosen].copy()

    @property
    def explained_variance_(self) -> Floats:
        """Variance along each direction."""
        axes = self._solved()
        return axes.variances[: axes.chosen].copy()

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Share of each direction in the variance of all columns."""
        total = self._solved().total
        return self.explained_variance_ / total if total > 0 else self.explained_variance_

    @property
    def singular_values_(self) -> Floats:
        """Singular values of the centred records."""
        return np.sqrt(self.explained_variance_ * (self._gram.n_rows - 1))

    @property
    def noise_variance_(self) -> float:
        """Mean variance along the directions that are not kept."""
        axes = self._solved()
        rest = axes.variances[axes.chosen : min(self._gram.n_rows, axes.variances.size)]
        return float(rest.mean()) if rest.size else 0.0

    def _scales(self) -> Floats:
        """Return what projections are divided by."""
        if not self._at_fit("whiten"):
            return np.ones(self._solved().chosen)
        scales = np.sqrt(self.explained_variance_)
        scales[scales < np.finfo(np.float64).eps * max(float(scales.max()), 2.0**-960)] = 1.0
        return scales

    def transform(self, X: Any) -> NDArray[Any]:
        """Project rows.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_components_), float64 or float32 as `X`
            Each depends on its own row alone.
        """
        rows = self._read_matrix(X)
        kind = rows.dtype
        dense: Values = to_dense(rows)
        dense = np.ascontiguousarray(dense, dtype=np.float64)
        if not self._comes_mapped(X):
            dense = self._mapped(dense)
        axes = self._solved()
        basis = np.ascontiguousarray(axes.components[: axes.chosen].T)
        out = np.zeros((dense.shape[0], axes.chosen))
        project(dense, axes.middle, basis, out)
        return (out / self._scales()).astype(kind, copy=False)

    def inverse_transform(self, X: Any) -> Floats:
        """Bring projections back among the records.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_components_)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
        axes = self._solved()
        reader = PCA()
        reader.n_features_in_ = axes.chosen
        rows = read_matrix(reader, X.to_numpy() if hasattr(X, "to_numpy") else X)
        out: Floats = (rows * self._scales()) @ axes.components[: axes.chosen] + axes.middle
        return out

    def get_covariance(self) -> Floats:
        """Return the covariance of the columns under the model of Tipping and Bishop (1999).

        Returns
        -------
        ndarray of shape (n_features, n_features), float64
        """
        noise = self.noise_variance_
        above = np.maximum(self.explained_variance_ - noise, 0.0)
        components = self.components_
        out: Floats = (components.T * above) @ components
        out[np.diag_indices_from(out)] += noise
        return out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
