"""Random projections, drawn from the tape by the names of the columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from erasable.core._eigen_kernels import project
from erasable.core._function_kernels import draw_normals
from erasable.core._schema import Fields, FieldType, refuse_unbounded
from erasable.core._sparse_kernels import project_sparse
from erasable.core._tape_kernels import fill_uniform
from erasable.core.arrays import Floats
from erasable.core.changes import NOTHING, Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidParameterError
from erasable.core.estimator import NEVER, Erasable
from erasable.core.passes import Block, Pass, run
from erasable.core.seeds import SEEDS
from erasable.core.sparse import parts
from erasable.core.tables import Table
from erasable.core.tape import Stream

_MOST = 2**16
_COMPONENTS = [Interval(Integral, 1, _MOST, closed="both")]


class _Look(Pass[None]):
    """Reads every value, so that a gap is refused, as in memory."""

    def of_block(self, block: Block) -> None:
        """Find nothing."""

    def merge(self, one: None, other: None) -> None:
        """Find nothing."""


class _Drawn:
    """Cache of the matrix, made when it is needed: a file may name more columns than fit."""

    basis: Floats | None = None  # (n_features, n_components)


class _RandomProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Erasable):
    """What both projections share; a subclass draws the matrix."""

    _sees_storage = False
    _as_if_dense = True
    _makes_dense = True
    _reads_blocks = True
    _follows_table = True
    _refit_from = NEVER
    _drawn: _Drawn

    @abstractmethod
    def _draw(self, keys: NDArray[np.uint64], seed: np.uint64, n_components: int) -> Floats:
        """Draw the matrix, of shape (n_features, n_components)."""

    def _validate_params(self) -> None:
        wanted: Any = self.n_components
        if isinstance(wanted, str) and wanted == "auto":
            raise InvalidParameterError(
                f"{type(self).__name__} was given n_components='auto', which depends on the number "
                "of records, so that every deletion could change it; expected an integer; "
                "sklearn.random_projection.johnson_lindenstrauss_min_dim computes one"
            )
        super()._validate_params()

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        held = self._attached()
        if not Table(held.records.matrix).is_sparse:
            run(_Look(), held.records.matrix, held.live_rows(), n_jobs=self._n_jobs)
        self._drawn = _Drawn()
        self._accelerator = self._drawn

    def _update(self, delta: Delta) -> Outcome | None:
        if delta.table is not None and (delta.table.origin is not None or not delta.table.known):
            return None  # other columns
        self._change = NOTHING
        return Outcome("updated")

    def _schema(self) -> FieldType:
        refuse_unbounded(self)
        return Fields({})

    def _state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        self._drawn = _Drawn()

    # -- what follows --------------------------------------------------------------------------

    @property
    def _basis(self) -> Floats:
        self._check_fitted()
        if self._drawn.basis is None:
            tape = self._tape.child("random projection")
            names: Sequence[str] = [*map(str, self._call_columns())]
            keys = np.array([tape.key_of(name) for name in names], dtype=np.uint64)
            self._drawn.basis = self._draw(keys, np.uint64(tape.seed), self.n_components_)
        return self._drawn.basis

    @property
    def n_components_(self) -> int:
        """Number of columns of a projection."""
        self._check_fitted()
        return int(self._at_fit("n_components"))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> NDArray[Any]:
        """Project rows.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_components), float64 or float32 as `X`
            Each depends on its own row alone, and is the same for dense and sparse rows.
        """
        rows = self._read_matrix(X)
        basis = self._basis
        out = np.zeros((rows.shape[0], basis.shape[1]))
        if Table(rows).is_sparse:
            project_sparse(*parts(rows), basis, out)
        else:
            dense = np.ascontiguousarray(rows, dtype=np.float64)
            project(dense, np.zeros(basis.shape[0]), basis, out)
        return out.astype(rows.dtype, copy=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class GaussianRandomProjection(_RandomProjection):
    """Project records on random directions of normal numbers, which keep distances roughly.

    The directions are drawn without looking at the records. So a deletion changes nothing, and a
    step behind the projection, such as `erasable.cluster.QuantizedKMeans`, learns from fewer
    columns, and deletes as it does without a projection.

    Parameters
    ----------
    n_components : int, default=100
        Number of columns of a projection, from 1 to 65,536. The relative error of squared distances
        falls as its inverse root. It cannot be "auto", which depends on the number of records.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the directions. None draws one from the system.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features), float64
        Normal numbers of variance ``1 / n_components``.
    n_components_ : int
        Number of columns of a projection.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    See Also
    --------
    SparseRandomProjection : Most of its numbers are 0.
    erasable.decomposition.PCA : Finds directions in the records; every deletion turns them.

    Notes
    -----
    A column of `components_` depends on the seed, on the name of its feature (x0, x1, ... without
    names) and on `n_components`, and on no other feature: records with more, fewer or reordered
    columns get the same projection of the columns that stay, up to rounding.

    Random projections keep the distances of any n records up to a factor of ``1 +- eps``, if
    ``n_components`` is ``4 ln(n) / (eps**2 / 2 - eps**3 / 3)`` or more (Johnson and Lindenstrauss;
    Dasgupta and Gupta [1]_). Ginart et al. [2]_, appendix E.2, propose them for k-means of many
    features with quantization.

    References
    ----------
    .. [1] Dasgupta and Gupta, "An elementary proof of a theorem of Johnson and Lindenstrauss",
       Random Structures and Algorithms 22 (2003).
    .. [2] Ginart, Guan, Valiant and Zou, "Making AI forget you: data deletion in machine learning",
       NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.cluster import QuantizedKMeans
    >>> from erasable.pipeline import make_pipeline
    >>> from erasable.random_projection import GaussianRandomProjection
    >>> X = np.repeat(np.eye(3), 100, axis=0) @ np.arange(600.0).reshape(3, 200)
    >>> projection = GaussianRandomProjection(10, random_state=0)
    >>> model = make_pipeline(projection, QuantizedKMeans(3, random_state=0)).fit(X)
    >>> model[-1].cluster_centers_.shape
    (3, 10)
    >>> before = model[0].components_
    >>> report = model.delete([17, 170])
    >>> bool(np.array_equal(model[0].components_, before))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": _COMPONENTS,
        "random_state": SEEDS,
    }

    def __init__(self, n_components: int = 100, *, random_state: Any = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, keys: NDArray[np.uint64], seed: np.uint64, n_components: int) -> Floats:
        out = np.zeros((keys.size, n_components))
        draw_normals(seed, keys, np.uint32(Stream.PHASE), out)
        out /= np.sqrt(n_components)
        return out

    @property
    def components_(self) -> Floats:
        """The directions, as rows."""
        return self._basis.T.copy()


class SparseRandomProjection(_RandomProjection):
    """Project records on random directions of few numbers that are not 0.

    As `GaussianRandomProjection`: a deletion changes nothing.

    Parameters
    ----------
    n_components : int, default=100
        Number of columns of a projection, from 1 to 65,536. It cannot be "auto", which depends on
        the number of records.
    density : float or "auto", default="auto"
        Share of numbers that are not 0, at most 1; "auto" is ``1 / sqrt(n_features)``. Pass a
        number where columns may come and go: with "auto" that changes the projection of all.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the directions. None draws one from the system.

    Attributes
    ----------
    components_ : csr_array of shape (n_components, n_features), float64
        0, or ``sqrt(1 / (density * n_components))`` with a random sign.
    n_components_ : int
        Number of columns of a projection.
    density_ : float
        Share of numbers that are not 0.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    See Also
    --------
    GaussianRandomProjection : Of normal numbers.

    Notes
    -----
    The matrix is that of Li, Hastie and Church [1]_; with a density of 1/3 that of Achlioptas.
    Projections are dense.

    References
    ----------
    .. [1] Li, Hastie and Church, "Very sparse random projections", KDD 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.random_projection import SparseRandomProjection
    >>> projection = SparseRandomProjection(4, density=0.25, random_state=0).fit(np.eye(100))
    >>> projection.transform(np.eye(100)).shape
    (100, 4)
    >>> np.unique(projection.components_.toarray()).tolist()
    [-1.0, 0.0, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": _COMPONENTS,
        "density": [Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})],
        "random_state": SEEDS,
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        density: float | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.density = density
        self.random_state = random_state

    def _draw(self, keys: NDArray[np.uint64], seed: np.uint64, n_components: int) -> Floats:
        density, out = self.density_, np.zeros((n_components, keys.size))
        size = np.sqrt(1.0 / (density * n_components))
        chosen, sign = np.zeros(keys.size), np.zeros(keys.size)
        for i in range(n_components):
            fill_uniform(seed, keys, np.uint32(Stream.PHASE), np.uint32(i), chosen, sign)
            out[i] = np.where(chosen < density, np.where(sign < 0.5, -size, size), 0.0)
        return np.ascontiguousarray(out.T)

    @property
    def density_(self) -> float:
        """Share of numbers that are not 0."""
        self._check_fitted()
        density = self._at_fit("density")
        return 1.0 / float(np.sqrt(self.n_features_in_)) if density == "auto" else float(density)

    @property
    def components_(self) -> csr_array:
        """The directions, as rows."""
        return csr_array(self._basis.T)
