"""Quantised k-means (Ginart et al. 2019), corrected so that its deletions are exact."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from erasable.core._schema import Array, Decimal, Fields
from erasable.core.arrays import Floats
from erasable.core.moments import Moments
from erasable.core.tape import Stream

from ._kmeans import ModelRun, SingleRunModel
from ._layout import Rule


class QuantizedKMeans(SingleRunModel):
    """k-means whose centroids are rounded to a lattice, so that few deletions move them.

    The algorithm of Ginart et al. [1]_, Algorithm 4, with what its deletion needs to be exact: the
    phases of the lattice come from the tape and are the same after a deletion; the balance
    correction is a mean; every imbalanced cluster and the stopping rule are checked on every
    deletion; the seeding is the one of the smaller data set.

    A deletion that leaves every rounded centroid where it was costs ``O(max_iter * n_clusters *
    n_features)``. When one moves, the iterations from there on are brought up to date, looking
    only at the records that the movement can reach.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    max_iter : int, default=10
        Lloyd iterations; fewer are made where the loss stops falling.
    epsilon : float or None, default=None
        Step of the lattice, in the units of the data. None takes the rule of appendix D.1.2,
        ``2 ** round(-log10(n / (k d**1.5)) - 3)``, times the power of two that covers the widest
        feature (1 for data in the unit cube). It depends on the number of records: when a
        deletion changes it, the model is learned again.
    gamma : float, default=0.2
        Clusters with fewer than ``gamma * n_records / n_clusters`` records are averaged with
        their previous centroid up to that mass.
    n_jobs : int or None, default=None
        Threads that fit and predict; None is one, and -1 are all cores. The model is the same with
        any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the tape, for the seeding and the phases. None draws one from the system.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Rounded centroids.
    epsilon_ : float
        Step of the lattice.
    losses_ : ndarray of shape (n_kept + 1,)
        Loss of the seeds, and of every iteration that was kept.
    n_iter_ : int
        Iterations that were made; the last one was not kept if the loss did not fall.
    init_centers_, labels_, inertia_, ids_, seed_, n_features_in_
        See `KMeans`.

    Notes
    -----
    It learns from records that stay in files, too (`erasable.Records.from_parquet`), as `KMeans`
    does. A deletion that moves no rounded centroid reads nothing of the files but who leaves.

    References
    ----------
    .. [1] Ginart, Guan, Valiant and Zou, "Making AI forget you: data deletion in machine
       learning", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.cluster import QuantizedKMeans
    >>> X = np.random.default_rng(0).random((500, 3))
    >>> model = QuantizedKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.delete([4, 7]).action in {"updated", "resumed", "refit"}
    True
    >>> keep = np.delete(np.arange(500), [4, 7])
    >>> fresh = QuantizedKMeans(n_clusters=2, random_state=0).fit(X[keep], ids=keep)
    >>> model.digest() == fresh.digest()
    True
    """

    algorithm_version: ClassVar[int] = 1
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SingleRunModel._parameter_constraints,
        "epsilon": [None, Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        max_iter: int = 10,
        epsilon: float | None = None,
        gamma: float = 0.2,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.epsilon = epsilon
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _needs_moments(self) -> bool:
        return True

    def _setting(self, gridded: ModelRun) -> float:
        epsilon = self._at_fit("epsilon")
        if epsilon is not None:
            return float(epsilon)
        n, d = self._attached().n_live, self.n_features_in_
        widest = int(gridded.grid.top.max())
        return math.ldexp(1.0, default_exponent(n, self._at_fit("n_clusters"), d) + widest)

    def _rule(self, gridded: ModelRun, n_levels: int) -> Rule:
        assert gridded.moments is not None
        if gridded.phases is None or gridded.phases.shape[0] < n_levels:
            gridded.phases = self._phases(n_levels)
        return Rule(
            self._at_fit("gamma") * self._attached().n_live / self._at_fit("n_clusters"),
            self._setting(gridded),
            gridded.phases,
            -1.0,
            _squares(gridded.moments),
        )

    def _phases(self, n_levels: int) -> Floats:
        """Phases of the lattice in steps, one for every iteration and feature, by its name."""
        keys = np.array([self._tape.key_of(name) for name in self._call_columns()], np.uint64)
        draws = [self._tape.uniform(keys, Stream.PHASE, t) for t in range(n_levels)]
        return np.array(draws) - 0.5

    def _read_run(self, gridded: ModelRun) -> dict[str, Any]:
        run = gridded.run
        return {
            **super()._read_run(gridded),
            "lattice": {
                "epsilon": self._setting(gridded),
                "losses": run.levels.losses[: run.final + 1],
            },
        }

    def _schema(self) -> Fields:
        # A loss near 0 may be rounded to a negative number.
        losses = Array("float64", ("n_levels",))
        lattice = Fields({"epsilon": Decimal(least=0.0), "losses": losses})
        return super()._schema().joined(Fields({"lattice": lattice}))

    @property
    def epsilon_(self) -> float:
        """Step of the lattice, in the units of the data."""
        self._check_fitted()
        return float(self._run_state["lattice"]["epsilon"])

    @property
    def losses_(self) -> Floats:
        """Loss of the seeds, and of every iteration that was kept, shape (n_kept + 1,)."""
        self._check_fitted()
        return np.array(self._run_state["lattice"]["losses"])

    @property
    def n_iter_(self) -> int:
        """Iterations that were made; the last one was not kept if the loss did not fall."""
        return min(self._n_levels(), int(self._at_fit("max_iter")))


def default_exponent(n: int, k: int, d: int) -> int:
    """Return ``round(-log10(n / (k d**1.5)) - 3)``, halves up, by integers alone.

    A logarithm does not decide: its last bit differs between machines.
    """
    ratio = Fraction(n * n, k * k * d**3)  # its log10 is twice the one in question
    e = round(-math.log10(ratio) / 2 - 3)
    # e is right when 2 e + 5 <= -log10(ratio) < 2 e + 7; the float only says where to look.
    while ratio > Fraction(10) ** (-2 * e - 5):
        e -= 1
    while ratio <= Fraction(10) ** (-2 * e - 7):
        e += 1
    return e


def _squares(moments: Moments) -> Floats:
    """Sum of the squares of every feature, in a fixed order from exact sums."""
    _, hh, hl, ll = moments.sums
    quantum = moments.grid.quantum
    total: Floats = ((hh * 2.0**26 + hl * 2.0**14) + ll) * quantum * quantum
    return total
