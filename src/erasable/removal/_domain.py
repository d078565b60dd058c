"""The estimator `DomainRemoval`, which chooses the records by which a domain leaves."""

from __future__ import annotations

import warnings
from functools import cached_property
from importlib import import_module
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from erasable.core._plots import axes
from erasable.core.arrays import Floats
from erasable.core.errors import DetachedError, InvalidInputError, InvalidParameterError
from erasable.core.grid import PrecisionWarning
from erasable.core.ids import name_some, shorten
from erasable.core.records import Records
from erasable.core.seeds import is_number, seed_from
from erasable.core.tables import RecordRows
from erasable.removal._frontier import FULL_COVARIANCE, Frontier, trace
from erasable.removal._records import certificate_of, read_records, read_sets
from erasable.removal._sets import Sets
from erasable.removal.budgets import Coverage, Curve, as_budget
from erasable.removal.scores._named import SCORES, as_score
from erasable.removal.scores._score import Ranking, Score

_REPEATS = 4
_JUDGED = 1_000  # records of forget whose ranks are compared
_HALF = 2_000  # records of each set in a half, at most


def reliability(sets: Sets, ranking: Ranking, seed: int) -> float:
    """Estimate the rank correlation of the scores with those from other samples of this size.

    Both sets are split in halves; some records of forget are kept apart (all of them, where a score
    does not learn from forget), and scored against one half and the other. Spearman's correlation
    of the two, averaged over splits, is stepped up from the size of a half to that of the sets
    (Spearman and Brown), by the smaller of the two factors. The result is from 0 (chance, or halves
    too small to learn from) to 1; NaN for scores that contrast nothing.
    """
    reference = ranking.reference
    if reference is None or sets.retain is None:
        return float("nan")
    rng = np.random.default_rng(seed)
    found, factor = [], 1.0
    for _ in range(_REPEATS):
        judged, own, other = _split(sets, ranking.learns_from_forget, rng)
        if min(part.size for part in (judged, *own, *other)) < 2:
            return 0.0
        factor = sets.retain.shape[0] / other[0].size
        if ranking.learns_from_forget:
            factor = min(factor, sets.forget.shape[0] / own[0].size)
        rows = sets.forget[judged]
        draw = int(rng.integers(2**32))
        try:
            scores = [
                reference(sets.part(a, b), rows, draw) for a, b in zip(own, other, strict=True)
            ]
        except InvalidInputError:  # half of a set may be too little to learn from
            return 0.0
        found.append(spearman(*scores))
    mean = max(float(np.mean(found)), 0.0)
    return factor * mean / (1.0 + (factor - 1.0) * mean)


def spearman(a: Floats, b: Floats) -> float:
    """Return the rank correlation; 0 where one of the two is constant."""
    x, y = rankdata(a), rankdata(b)
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def _split(sets: Sets, learns_from_forget: bool, rng: Any) -> tuple[Any, Any, Any]:
    n1, n2 = sets.forget.shape[0], sets.retain.shape[0]
    mixed, other = rng.permutation(n1), rng.permutation(n2)
    if learns_from_forget:
        judged, rest = np.split(mixed, [min(_JUDGED, max(2, n1 // 3))])
        halves = rest[: len(rest) // 2][:_HALF], rest[len(rest) // 2 :][: len(rest) // 2][:_HALF]
    else:
        judged = mixed[:_JUDGED]
        halves = judged, judged
    half = n2 // 2
    others = other[:half][:_HALF], other[half : 2 * half][:_HALF]
    return judged, halves, others


LEAST_TRUST = 0.5
_AT_ONCE = 2**27  # multiplications: a tenth of a second


class RemovalWarning(UserWarning):
    """A choice of records rests on too few records to be trusted."""


class DomainRemoval(BaseEstimator):
    """Choose the few records of an unwanted domain whose deletion removes it from models.

    Given records of a domain that is to leave (`forget`, drawn from p1) and of what is to stay
    (`retain`, from p2), records of forget are ranked by how typical they are of p1 and not of p2. A
    budget determines how many leave. Pass their ids to `delete` of any estimator or workspace.

    Parameters
    ----------
    score : str, score or callable, default="density-ratio"
        Ranking of the records: a name of `erasable.removal.scores.SCORES`, a score, or
        ``score(forget, retain)``, a number for each row of forget. Higher leaves first; of equal
        ones the earlier record.
    budget : int, float or budget, default=None
        Records that leave: an integer is a count, a float a share of forget. By default
        ``Coverage(0.8)``: the fewest that hold 80 % of the total score.
    covariance : {"shared", "free"}, default="shared"
        Whether `frontier_` fits one covariance to forget, retain and what is left, or one to each;
        see `Frontier`.
    delta : float, default=0.05
        The probability that `certificate_` is wrong.
    random_state : int, RandomState or None, default=None
        For folds, and for scores that draw.

    Attributes
    ----------
    order_ : ndarray of shape (n_forget,), int64
        Rows of forget, first to delete first.
    scores_ : ndarray of shape (n_forget,), float64
        Of the rows of forget, in their order.
    selected_ : ndarray of shape (n_selected,), int64
        Rows of forget that the budget takes, first to delete first.
    selected_ids_ : ndarray of shape (n_selected,)
        Their ids.
    frontier_ : Frontier
        `alpha`, `epsilon` and the share of the score at every budget from 0 to n_forget, estimated
        by the moments of what is left; see `Frontier`. For much data it is computed at its
        first use. Without retain, it and its derivatives raise InvalidInputError.
    alpha_, epsilon_ : float
        Removal and shift that the selection reaches, by the same estimate; on `frontier_`, unless
        a budget leaves out records of the beginning of the order.
    trust_ : float
        From 0 to 1: how well the order agrees, by rank correlation, with the one that other samples
        of this size from the same domains would give; estimated by halving both sets. NaN for
        scores that contrast nothing, and without retain. Below 0.5 a `RemovalWarning` is given.
    certificate_ : Certificate
        Bounds of the selection that hold except with probability `delta`, with Gaussians whose
        covariances are fitted. It is computed at its first use, and refused (InvalidDataError) for
        sparse records, and where forget or retain has no more records than features.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where forget has names.

    Notes
    -----
    Removing a domain is not erasing a person: records of the unwanted domain that are kept remain
    trained on.

    Text goes through a vectoriser first, and images through features of a network.

    The fitted object refers to both sets, without a copy, until it is pickled, because
    `certificate_`, and the `frontier_` of much data, are computed from them: use these before
    records are overwritten. For `Records` they are refused (DetachedError) once a model has deleted
    one. A pickle holds the frontier and no record.

    `Records` are scored by passes, and results do not depend on where they are stored, bit for bit:
    a score is a function of a row and of exact sums. A frontier, and records that a density ratio
    scores, are read here in parts of 128 MiB.

    See Also
    --------
    remove_domain : Choose, delete from a model, and report on each group of records.
    certificate : For a known covariance.

    References
    ----------
    Allouah, Guerraoui and Koyejo, Distributional Machine Unlearning via Selective Data Removal,
    ICLR 2026.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> forget, retain = rng.normal(0.0, 1.0, (500, 2)), rng.normal(1.0, 1.0, (500, 2))
    >>> removal = DomainRemoval(budget=50, random_state=0).fit(forget, retain)
    >>> len(removal.selected_ids_), removal.trust_ > 0.9
    (50, True)
    >>> bool(removal.frontier_.alpha[50] > 2 * removal.frontier_.alpha[0])
    False
    """

    def __init__(
        self,
        score: Any = "density-ratio",
        *,
        budget: Any = None,
        covariance: str = "shared",
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.score = score
        self.budget = budget
        self.covariance = covariance
        self.delta = delta
        self.random_state = random_state

    def fit(self, forget: Any, retain: Any = None, *, ids: Any = None, rows: Any = None) -> Self:
        """Rank the forget set, and choose by the budget.

        Parameters
        ----------
        forget : array-like, frame or sparse matrix of shape (n_forget, n_features), or Records
            Records of the domain that is to leave. `Records`, of files or of a cluster, are read
            where they lie, by scores that take passes; see `rows`.
        retain : of the same kind, shape (n_retain, n_features), default=None
            Records of what is to stay; a small sample will do, see `trust_`. Scores that look at
            forget alone (`norm`, `coreset`, `k-center`, `random`, `craig`, `gradmatch`, `ccs`) do
            without; then there is no `frontier_`, and nothing that needs it.
        ids : array-like, the name of a column, or a pair of array-likes, default=None
            The id of each row of forget; a column that both sets have; or ids of forget and of
            retain. By default a pandas frame's index, or 0..n-1. Where ids of both are known, they
            must not overlap. `Records` have their own.
        rows : array-like of shape (n_records,), bool, default=None
            Where `Records` of both domains came as forget, and no retain: which of those that no
            model has deleted are to leave.

        Returns
        -------
        DomainRemoval

        Raises
        ------
        InvalidInputError, InvalidParameterError
            Data or parameters that cannot be used, or a target that cannot be reached; nothing is
            changed.

        Warns
        -----
        PrecisionWarning
            Once, of columns whose values are too far apart, or too far from 0, for exact sums.
        RemovalWarning
            The order is unreliable; see `trust_`.
        """
        score = as_score(self.score)
        budget = Coverage() if self.budget is None else as_budget(self.budget)
        _check(self.covariance, self.delta)
        if retain is None and rows is None and score.needs_retain:
            raise InvalidInputError(
                f"no retain was given, and score={shorten(self.score)} compares forget with it; "
                "expected records of what is to stay; pass them, or one of "
                f"{', '.join(name for name, each in SCORES.items() if not each.needs_retain)}"
            )
        if isinstance(forget, Records) or isinstance(retain, Records) or rows is not None:
            _refuse_arrays_only(score, self.score)
            sets, names, features = read_records(forget, retain, ids, rows)
        else:
            sets, names, features = read_sets(forget, retain, ids)
        seed = int(seed_from(self.random_state))
        ranking = score.rank_first(sets, seed, budget.most(sets.forget.shape[0]))
        tracer = _Tracer(sets, ranking, self.covariance)
        selected = budget.choose(Curve(ranking.order, ranking.weights, lambda: tracer.frontier))
        trust = reliability(sets, ranking, seed)
        for name in [name for name in vars(self) if name.endswith("_in_")]:
            delattr(self, name)
        for name, value in features.items():
            setattr(self, name, value)
        self._tracer = tracer
        self.order_, self.scores_ = ranking.order, ranking.scores
        self.selected_, self.selected_ids_ = selected.copy(), names[selected]
        self.trust_ = trust
        _warn_of_precision(sets, features.get("feature_names_in_"))
        if trust < LEAST_TRUST:
            warnings.warn(
                f"trust_={trust:.2f}: other samples of this size ({len(ranking.order)} records of "
                f"forget, {sets.retain.shape[0]} of retain) would order the records otherwise; "
                "pass more records, fewer features, or a simpler score",
                RemovalWarning,
                stacklevel=2,
            )
        return self

    @property
    def frontier_(self) -> Frontier:
        """Removal, shift and share of the score at every budget."""
        check_is_fitted(self)
        return self._tracer.frontier

    @property
    def alpha_(self) -> float:
        """Removal that the selection reaches, estimated."""
        check_is_fitted(self)
        return self._tracer.reached(self.selected_)[0]

    @property
    def epsilon_(self) -> float:
        """Shift of the wanted domain that the selection reaches, estimated."""
        check_is_fitted(self)
        return self._tracer.reached(self.selected_)[1]

    @property
    def certificate_(self) -> Any:
        """Bounds of the selection that hold except with probability `delta`.

        Raises
        ------
        InvalidDataError
            Sparse records; no more records of forget, or of retain, than features: sigma is not
            known here, and neither fits a covariance. `certificate` takes a known one. Also where
            a covariance is singular.
        DetachedError
            Unpickled, without the records.
        """
        check_is_fitted(self)
        sets = self._tracer.records("a certificate")
        if isinstance(sets.forget, RecordRows):
            return certificate_of(sets, self.selected_, self.delta)
        # By name: a fit does not need its imports.
        certificates = import_module("erasable.removal.certificates")
        return certificates.certificate(sets.forget, sets.retain, self.selected_, self.delta)

    def plot(self, ax: Any = None) -> Any:
        """Plot removal and shift against the number of deletions, with the budget.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default a new one.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingPackageError
            matplotlib is not installed.
        sklearn.exceptions.NotFittedError

        Examples
        --------
        >>> forget, retain = np.array([[0.0], [1.0], [2.0]]), np.array([[2.0], [3.0], [5.0]])
        >>> removal = DomainRemoval("norm", budget=1).fit(forget, retain)
        >>> removal.plot().get_xlabel()
        'records deleted'
        """
        return draw(self.frontier_, len(self.selected_), ax)


class _Tracer:
    """The frontier of a ranking, computed at its first use; its pickle holds no record."""

    def __init__(self, sets: Sets, ranking: Any, covariance: str) -> None:
        self.sets: Sets | None = sets
        self._covariance, self._contrasts = covariance, sets.retain is not None
        self._order, self._weights = ranking.order, ranking.weights
        width = 1 if sets.sparse else sets.n_features * min(sets.n_features, FULL_COVARIANCE)
        if self._contrasts and sets.forget.shape[0] * width <= _AT_ONCE:
            _ = self.frontier

    def records(self, what: str) -> Sets:
        """Return both sets; without them, because of a pickle or without retain, it raises."""
        if not self._contrasts:
            raise InvalidInputError(
                f"no retain was given to fit, and {what} compares what is left with it; expected "
                "records of what is to stay; pass them to fit"
            )
        if self.sets is None:
            raise _detached(what)
        return self.sets

    @cached_property
    def frontier(self) -> Frontier:
        """Compute the frontier."""
        return trace(self.records("a frontier"), self._order, self._weights, self._covariance)

    def reached(self, selected: Any) -> tuple[float, float]:
        """Return removal and shift of a selection, which need not be the beginning of the order."""
        n, frontier = selected.size, self.frontier
        if np.array_equal(selected, self._order[:n]):
            return float(frontier.alpha[n]), float(frontier.epsilon[n])
        sets = self.records("what it reaches")
        others = self._order[~np.isin(self._order, selected)]
        order = np.concatenate([selected, others])
        frontier = trace(sets, order, self._weights, self._covariance)
        return float(frontier.alpha[n]), float(frontier.epsilon[n])

    def __getstate__(self) -> dict[str, Any]:
        kept = {"sets": None, "_order": self._order, "_contrasts": self._contrasts}
        return kept | ({"frontier": self.frontier} if self._contrasts else {})


def _detached(what: str) -> DetachedError:
    return DetachedError(
        f"this DomainRemoval was unpickled without its records, from which {what} is made; "
        "expected one that was fitted here; fit it again"
    )


def _warn_of_precision(sets: Sets, names: Any) -> None:
    """Warn once of all columns in which scores and frontier lose precision."""
    sets.note_offsets()
    warned = []
    for what, columns in sets.coarse.items():
        some = [column if names is None else names[column] for column in sorted(columns)]
        warned.append(f"{len(some)} columns ({name_some(some)}): {what}")
    if warned:
        warnings.warn(". ".join(warned), PrecisionWarning, stacklevel=3)


def _refuse_arrays_only(score: Score, given: Any) -> None:
    """Refuse a score that needs all records in memory, for records that are stored."""
    if not score.by_passes:
        named = ", ".join(name for name, each in SCORES.items() if each.by_passes)
        raise InvalidInputError(
            f"score={shorten(given)} looks at all records together, and Records are read where "
            f"they lie; expected one of {named}; pass one, or an array, such as "
            "records.in_memory().matrix"
        )


def _check(covariance: Any, delta: Any) -> None:
    if not isinstance(covariance, str) or covariance not in ("shared", "free"):
        raise InvalidParameterError(
            f"covariance={shorten(covariance)}; expected 'shared' or 'free'; pass one"
        )
    if not is_number(delta) or not 0 < delta < 1:
        raise InvalidParameterError(
            f"delta={shorten(delta)}; expected a probability above 0 and below 1; pass one"
        )


def draw(frontier: Frontier, n_selected: int, ax: Any) -> Any:
    """Plot removal and shift at every budget, on new axes by default."""
    ax = axes(ax)
    ax.plot(frontier.n_deleted, frontier.alpha, label="removal, alpha = KL(p1, p)")
    ax.plot(frontier.n_deleted, frontier.epsilon, label="shift, epsilon = KL(p2, p)")
    ax.axvline(n_selected, color="0.5", linestyle=":", label=f"budget: {n_selected}")
    ax.set_xlabel("records deleted")
    ax.set_ylabel("nats")
    ax.legend(frameon=False)
    return ax
