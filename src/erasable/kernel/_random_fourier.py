"""Ridge regression on random Fourier features, cosine waves whose products average to a kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

import erasable.kernel._wave_kernels as kernels
from erasable.core._function_kernels import draw_normals
from erasable.core._grid_kernels import MIN_TOP, ceil_log2
from erasable.core._schema import FieldType, refuse_unbounded
from erasable.core.arrays import Floats, Ints
from erasable.core.attachment import HeldRecords
from erasable.core.gram import MAX_FEATURES, Gram
from erasable.core.grid import Grid, GridChange
from erasable.core.passes import Block, Pass, storage
from erasable.core.row_arrays import PerRow
from erasable.core.seeds import SEEDS
from erasable.core.sparse import parts
from erasable.core.tables import Table
from erasable.core.tape import Stream, Tape
from erasable.core.threads import N_JOBS, in_threads
from erasable.linear_model._design import WeightedTargets
from erasable.linear_model._linear import LinearModel
from erasable.linear_model._solve import least_squares
from erasable.linear_model._solve_kernels import LeastSquares

_PER_TURN = 0.15915494309189535  # 1 / (2 pi)
_BLOCK = 2**19  # values that are made at once
_LEAST = 1024  # rows at least, because every block of them costs a sum of matrices


@dataclass(frozen=True, slots=True)
class Waves:
    """Waves ``cos(2 pi (phase + x frequency))``, functions of a row x."""

    frequencies: Floats  # turns for each unit of a feature, shape (n_features, n_waves)
    phases: Floats  # turns where all features are 0

    @classmethod
    def draw(cls, tape: Tape, names: Sequence[str], n_waves: int, gamma: float) -> Self:
        """Draw waves for the kernel ``exp(-gamma |x - x'|**2)``: by feature name and wave.

        A feature's draw does not depend on its place or on the other features, nor a wave on their
        number.
        """
        own = tape.child("random Fourier features")
        seed, stream = np.uint64(own.seed), np.uint32(Stream.PHASE)
        keys = np.array([own.key_of(name) for name in names], dtype=np.uint64)
        frequencies, phases = np.zeros((len(names), n_waves)), np.zeros(n_waves)
        of_waves = own.child("phases")
        draw_normals(seed, keys, stream, frequencies)
        kernels.draw_uniforms(np.uint64(of_waves.seed), np.uint64(0), stream, phases)
        frequencies *= np.sqrt(2.0 * gamma) * _PER_TURN
        return cls(frequencies, phases)

    @property
    def n_waves(self) -> int:
        """How many there are."""
        return int(self.phases.size)

    def at(self, matrix: Any, rows: Ints) -> Floats:
        """Return the waves, from -1 to 1, at rows of a matrix; each depends on its row alone."""
        out = np.zeros((rows.size, self.n_waves))
        table = Table(matrix)
        if table.is_sparse:
            kernels.waves_at_sparse(parts(matrix), rows, self.frequencies, self.phases, out)
        else:
            kernels.waves_at(*table.in_memory(rows), self.frequencies, self.phases, out)
        return out

    def blocks(self, matrix: Any, rows: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield some rows at a time, and the waves at them."""
        for block in storage(matrix).blocks(rows):
            for some in self.portions(block.positions):
                yield block.first + some, self.at(block.matrix, some)

    def portions(self, rows: Ints) -> list[Ints]:
        """Cut rows into portions whose waves are made at once."""
        size = max(_LEAST, _BLOCK // self.n_waves)
        return [rows[start : start + size] for start in range(0, rows.size, size)]


class WaveDesign(WeightedTargets):
    """Sums over live rows; `gram` and `origin` are state, the rest an accelerator."""

    def __init__(
        self,
        waves: Waves,
        records: HeldRecords,
        live_rows: Ints,
        warn: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(records, live_rows)
        self._waves = waves
        rows = self._counted(live_rows)
        self._weigh_first(rows)
        names = [f"y[{k}]" for k in range(self._targets.shape[1])]
        grid = Grid.fit(self._targets, rows, names=names, warn=warn)
        zeros, nothing = np.zeros(waves.n_waves), np.zeros((0, waves.n_waves))
        of_waves = Grid.from_state({"top": np.full(zeros.size, self._top(grid)), "origin": zeros})
        none = Table(nothing, targets=np.zeros((0, self._targets.shape[1])))
        self.gram = Gram.fit(of_waves, none, grid)
        self._set_origin()
        self._sum(rows, n_jobs)

    def _sum(self, rows: Ints, n_jobs: int | None) -> None:
        """Add rows to the sums; each thread has sums of its own first."""
        table, weights, none = Table(self._records.matrix), self._records.weights, self.gram.copy()
        roots = None if weights is None else np.sqrt(weights)
        wanted = _SumWaves(self._waves, none, self._targets, roots)
        if table.is_remote:
            self.gram.merge(table.run(wanted, rows))
            return
        own, parts = threading.local(), []

        def add(block: Block, places: Ints) -> None:
            if not hasattr(own, "gram"):
                own.gram = none.copy()
                parts.append(own.gram)
            wanted.add(own.gram, block, places)

        for block in storage(table.matrix).blocks(rows):
            portions = self._waves.portions(block.positions)
            for _ in in_threads(partial(add, block), portions, n_jobs):
                pass
        for part in parts:
            self.gram.merge(part)

    def _accumulate(self, live_rows: Callable[[], Ints], rows: Ints, sign: int) -> int | None:
        grid, targets = self.gram.target_grid, Table(self._targets, live_rows)
        change = (grid.add if sign > 0 else grid.subtract)(targets, rows)
        if not self._is_on_grids(change):
            return None
        waves = self._weighted(self._waves.at(self._records.matrix, rows), rows)
        table = Table(waves, targets=self._targets[rows])
        self.gram.accumulate(table, table.live_rows(), sign)
        return 0

    def parts(self, rows: Ints) -> Iterator[tuple[slice, Any, Any, Any, Any]]:
        """See `WeightedTargets`."""
        start = 0
        for some, waves in self._waves.blocks(self._records.matrix, rows):
            part = slice(start, start + some.size)
            start += some.size
            weighted = self._weighted(waves, some)
            yield part, weighted, self._targets[some], waves, np.arange(some.size)

    def _graded(self) -> list[tuple[Any, Any]]:
        targets = self.gram.target_grid, self._targets
        return [targets, *zip(self._outer, (self._plain,), strict=False)]

    def _again(self, live_rows: Ints) -> Self:
        return type(self)(self._waves, self._records, live_rows)

    def _weighted(self, table: Floats, rows: Ints) -> Floats:
        weights = self._records.weights
        return table if weights is None else table * np.sqrt(weights[rows])[:, None]

    def _is_on_grids(self, change: GridChange) -> bool:
        """Whether the sums are on the grids as they are now."""
        return not change.exponents and self._top(self.gram.target_grid) == int(self.gram.top[0])

    def _top(self, targets: Grid) -> int:
        return max(ceil_log2(float(targets.high[0])), MIN_TOP) if self._outer else 0


class _SumWaves(Pass[Gram]):
    """Add rows to sums of waves; `none` has no rows, `roots` are those of the weights."""

    def __init__(self, waves: Waves, none: Gram, targets: Floats, roots: Floats | None) -> None:
        self._waves, self._none = waves, none
        self._targets, self._roots = PerRow(targets), None if roots is None else PerRow(roots)

    def of_block(self, block: Block) -> Gram:
        gram = self._none.copy()
        for some in self._waves.portions(block.positions):
            self.add(gram, block, some)
        return gram

    def add(self, gram: Gram, block: Block, some: Ints) -> None:
        """Add some rows of a block."""
        waves = self._waves.at(block.matrix, some)
        if self._roots is not None:
            waves *= self._roots.of(block)[some, None]
        table = Table(waves, targets=self._targets.of(block)[some])
        gram.accumulate(table, table.live_rows(), 1)

    def merge(self, one: Gram, other: Gram) -> Gram:
        one.merge(other)
        return one


class RandomFourierRidge(LinearModel):
    """Kernel ridge regression for many records, by random features, which can delete.

    Learns smooth functions of a few features without keeping the n x n matrix of a kernel machine.
    Each record becomes `n_components` random waves, whose products approximate the kernel
    ``exp(-gamma |x - x'|^2)``, and a ridge regression learns from these. The waves are drawn
    without looking at the data, so that a deletion computes those of the record and subtracts its
    products from exact sums: ``O(n_components * (n_features + n_components))``.

    Parameters
    ----------
    alpha : float, default=1.0
        What a squared coefficient costs, 0 or more.
    gamma : float, default=1.0
        How fast the kernel falls with the squared distance of two records. Put the features on
        one scale first: with `preprocessing.StandardScaler(quantize=True)`, which few deletions
        change, and start from 1 / n_features.
    n_components : int, default=100
        Number of waves, at most 4096. The error of the kernel falls as its inverse root.
    fit_intercept : bool, default=True
        Learn a constant, which is not penalised?
    n_jobs : int or None, default=None
        Threads that read the records, and predict: None is one, -1 all cores. The model is the same
        with any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the waves. None draws one from the system.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,) or (n_targets, n_components), float64
        Coefficients of the features ``sqrt(2 / n_components) cos(x @ weights + offset)``.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant; 0.0 without one.
    random_weights_ : ndarray of shape (n_features, n_components), float64
        Normal, of variance ``2 gamma``.
    random_offset_ : ndarray of shape (n_components,), float64
        Uniform from 0 to 2 pi.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        From `fit`, if targets exceed ``2**480``.

    See Also
    --------
    erasable.linear_model.Ridge : Without a kernel.

    Notes
    -----
    The method of Rahimi and Recht [1]_; the same as scikit-learn's ``RBFSampler`` before ``Ridge``,
    but for which waves are drawn: a weight depends on the name of its feature (x0, x1, ... without
    names), on the number of its wave and on the seed. There is no ``gamma="scale"``: that depends
    on the data, and every deletion would change every wave.

    Waves are rounded to multiples of ``2**-26``, which depend on no record. Only where a deletion
    changes the grid of the targets, because the record was alone at their extreme, are all records
    read again. An angle of more than ``2**51`` turns has no digits left, and its wave is 0.

    References
    ----------
    .. [1] Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.kernel import RandomFourierRidge
    >>> X = np.linspace(-3.0, 3.0, 200)[:, None]
    >>> y = np.sin(2.0 * X[:, 0])
    >>> model = RandomFourierRidge(alpha=0.01, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    >>> model.delete([17, 40]).action
    'updated'
    >>> keep = np.delete(np.arange(200), [17, 40])
    >>> fresh = RandomFourierRidge(alpha=0.01, random_state=0).fit(X[keep], y[keep], ids=keep)
    >>> model.digest() == fresh.digest()
    True
    """

    _takes_map: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "n_components": [Interval(Integral, 1, MAX_FEATURES, closed="both")],
        "fit_intercept": ["boolean"],
        "n_jobs": N_JOBS,
        "random_state": SEEDS,
    }
    _without_effect = ("n_jobs",)
    _always_has_origins = True
    _reads_blocks = True
    _drawn: _Drawn

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        gamma: float = 1.0,
        n_components: int = 100,
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        self._drawn = _Drawn()
        super()._fit_rows()

    def _restore(self, state: dict[str, Any]) -> None:
        self._drawn = _Drawn()
        super()._restore(state)

    def _schema(self) -> FieldType:
        refuse_unbounded(self)
        return super()._schema()

    @property
    def _waves(self) -> Waves:
        if self._drawn.waves is None:
            names = list(map(str, self._call_columns()))
            n_waves, gamma = self._n_columns, self._at_fit("gamma")
            self._drawn.waves = Waves.draw(self._tape, names, n_waves, gamma)
        return self._drawn.waves

    def _new_design(self, warn: bool = False) -> WaveDesign:
        held = self._attached()
        return WaveDesign(self._waves, held.records, held.live_rows(), warn, self._n_jobs)

    @property
    def _n_columns(self) -> int:
        return int(self._at_fit("n_components"))

    def _count_targets(self, y: Any) -> int | None:
        n_targets = y.size // y.shape[0]
        return n_targets if n_targets > 1 else None

    # -- what follows --------------------------------------------------------------------------

    def _penalties(self) -> Floats:
        return np.full(1, float(self._at_fit("alpha")))

    def _problem(self, gram: Gram, origin: Floats | None) -> LeastSquares:
        """State the problem for features that are waves times ``sqrt(2 / n_components)``."""
        shift = np.zeros(self._n_columns)
        affine = shift, np.full(shift.size, np.sqrt(shift.size / 2.0))
        return least_squares(gram, origin, self._penalties(), self._at_fit("fit_intercept"), affine)

    @property
    def random_weights_(self) -> Floats:
        """Frequencies in radians for each unit of a feature."""
        self._check_fitted()
        return self._waves.frequencies * (2.0 * np.pi)

    @property
    def random_offset_(self) -> Floats:
        """Phases in radians."""
        self._check_fitted()
        return self._waves.phases * (2.0 * np.pi)

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), float64
            Each depends on its own row alone.
        """
        matrix = self._read_matrix(X)
        solution = self._solved()
        out = np.zeros((matrix.shape[0], solution.problem.n_targets))
        waves = self._waves

        def answer(rows: Ints) -> None:
            out[rows] = solution.predict(waves.at(matrix, rows), mapped=False)

        for _ in in_threads(answer, waves.portions(np.arange(matrix.shape[0])), self._n_jobs):
            pass
        return out[:, 0] if self._n_targets is None else out

    def _features_of(self, rows: Ints) -> Any:
        return self._waves.at(self._attached().records.matrix, rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # With a gamma of 1, ten standardised features have no neighbours.
        tags.regressor_tags.poor_score = True
        return tags


@dataclass(eq=False, slots=True)
class _Drawn:
    """The waves, once they were needed: a file may name more features than there is memory for."""

    waves: Waves | None = None
