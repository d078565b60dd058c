"""The estimator `SubsetSelector`, which chooses records to acquire."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import erasable.selection._records as _records
from erasable.core.arrays import Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.records import Records
from erasable.core.seeds import seed_from
from erasable.core.threads import check_n_jobs
from erasable.selection._knapsack import ENUMERATION
from erasable.selection._objectives import SelectionTask
from erasable.selection._optimizers import OPTIMIZERS, CostBudget
from erasable.selection._valued import FittedSelection, Valued
from erasable.selection._warning import SelectionWarning
from erasable.selection._worst_cases import CVaR, check_objective
from erasable.selection.staying._independent import as_staying
from erasable.selection.utilities._nearest_neighbor import NearestNeighbor
from erasable.selection.utilities._utility import Problem, Utility, check_utility

_FEW = 10  # samples whose mean says little


class SubsetSelector(Valued, BaseEstimator):
    """Choose the records whose value for training survives the deletions to come.

    Where a budget allows `k` records (or owners), a conventional selection takes the most useful
    ones, and loses much when some of them are deleted. This one anticipates deletions: it maximises
    the expected utility of those that stay, or their utility in the worst cases.

    Parameters
    ----------
    utility : Utility, default=NearestNeighbor()
        The value of a set of records.
    k : float, default=100
        Number of records to choose; or, with `costs`, the limit of their total cost.
    staying : staying model, float, mapping or array-like, default=1.0
        Probabilities that owners stay: one for all, for each class or each record, or a
        model. 1.0 anticipates no deletions.
    objective : Expected or CVaR, default=Expected()
    optimizer : {"auto", "lazy", "greedy", "stochastic", "random-greedy", "partial-enumeration"}, \
            default="auto"
        ``greedy`` computes every gain in each round. ``lazy`` assumes that gains never grow: with a
        submodular utility it makes the same choice, faster; up to the error of the samples where
        owners depend on each other without a closed form, because there gains may grow by chance.
        ``auto`` is ``lazy`` where the utility is submodular, and ``greedy`` elsewhere.
        ``stochastic`` computes a random part of the gains in each round; ``random-greedy`` is for
        utilities that may shrink. ``partial-enumeration`` starts from every set of up to three
        records, and takes the best: for `costs`, and up to about 100 records.
    costs : array-like of shape (n_records,), default=None
        Cost of each record; by default 1.
    n_jobs : int or None, default=None
        Threads that keep sampled gains of `MutualInformation`, `VarianceReduction` and
        `NeuralVariance` up to date, and that read `Records`: None is one, -1 all cores. What is
        chosen is the same with any number.
    random_state : int, RandomState or None, default=None
        For samples, and for optimisers that draw.

    Attributes
    ----------
    selected_ : ndarray of shape (n_selected,), int64
        Rows that were chosen, in the order of their choice.
    selected_ids_ : ndarray of shape (n_selected,)
        Their ids.
    held_ : ndarray of shape (n_held,), int64
        Rows that were held already.
    gains_ : ndarray of shape (n_selected,), float64
        The gain of each in the objective.
    utility_ : float
        The objective's value of what was chosen, with what was held.
    utility_error_ : float
        Its standard error; 0.0 where it is exact, or all samples that count are equal.
    utility_exact_ : bool
        Whether the value is exact; otherwise it is that of samples: under `Expected` of those that
        records were chosen by, which is a little too good (see `value`), under `CVaR` of others.
    optimizer_ : str
        The optimiser that was used.
    n_evaluations_ : int
        How many marginal gains were computed; those of which a part was, by these parts.

    Notes
    -----
    A fitted selector keeps what its utility computed from the data, such as similarities, so that
    `value`, `distribution`, `tradeoff` and `balance` need no data and no selection. Of `Records` it
    keeps ids and places alone, and reads them again; once records have left or come, it has to be
    fitted again.

    The greedy choice reaches at least ``1 - 1/e`` of the best expected utility, where that is
    exact and the utility is submodular (its `is_submodular`): what is expected after deletions is
    then monotone and submodular, too (propositions 1 and 2). That holds for `NearestNeighbor`,
    `NaiveBayes` and `MutualInformation`, and not for `VarianceReduction` and `NeuralVariance`. Of
    samples it holds to their error. Under `CVaR` it holds for each threshold, not for the result.
    Under `costs` records are chosen by gain per cost, then by gain, and the better of both is
    taken: that reaches at least ``(1 - 1/e) / 2`` of the best (Leskovec et al. 2007). With
    ``partial-enumeration`` it is ``1 - 1/e`` (Sviridenko 2004).

    References
    ----------
    Sim, Fan, Tian, Jaillet and Low, Deletion-Anticipative Data Selection with a Limited Budget,
    ICML 2024.
    Leskovec et al., Cost-effective outbreak detection in networks, KDD 2007.
    Sviridenko, A note on maximizing a submodular set function subject to a knapsack constraint,
    Operations Research Letters 2004.

    Examples
    --------
    Two records in the middle of a cluster, and one apart: where owners are likely to leave, two of
    the cluster are worth more.

    >>> import numpy as np
    >>> similarity = np.array([[1.0, 1.0, 0.5, 0.5], [1.0, 1.0, 0.5, 0.5],
    ...                        [0.5, 0.5, 1.0, 0.0], [0.5, 0.5, 0.0, 1.0]])
    >>> utility = NearestNeighbor("precomputed")
    >>> SubsetSelector(utility, k=2).fit(similarity).selected_
    array([0, 2])
    >>> SubsetSelector(utility, k=2, staying=0.3).fit(similarity).selected_
    array([0, 1])
    """

    def __init__(
        self,
        utility: Utility | None = None,
        *,
        k: float = 100,
        staying: Any = 1.0,
        objective: Any = None,
        optimizer: str = "auto",
        costs: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.utility = utility
        self.k = k
        self.staying = staying
        self.objective = objective
        self.optimizer = optimizer
        self.costs = costs
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, ids: Any = None, selected: Any = None, rows: Any = None
    ) -> Self:
        """Choose records.

        Parameters
        ----------
        X : array-like or frame of shape (n_records, n_features), or Records
            What the utility takes; for precomputed similarities (n_records, n_targets). `Records`
            for `NearestNeighbor` are read where they are stored, with their classes and ids; rows
            count those that no model has deleted.
        y : array-like of shape (n_records,), default=None
            Classes, where the utility or the staying model is by class.
        ids : array-like, or the name of a column, default=None
            The id of each record; by default a pandas frame's index, or 0..n-1.
        selected : array-like of ids, default=None
            Records that are held already. They may be deleted, too, and what is chosen makes up
            for that (appendix E); `k` counts those that are chosen now.
        rows : array-like of int, or boolean mask of shape (n_records,), default=None
            The positions of the records that are held already, in place of `selected`.

        Returns
        -------
        SubsetSelector

        Raises
        ------
        InvalidInputError, InvalidParameterError
            Data or parameters do not fit each other; nothing is changed.
        """
        utility, objective = self._check_params()
        seed = int(seed_from(self.random_state))
        problem, names, held, y = self._read(utility, X, y, ids, selected, rows, seed)
        n = problem.n
        keys = _records.keys_of(names)
        items = np.setdiff1d(np.arange(n), held)
        items = items[np.argsort(keys[items], kind="stable")]  # what is drawn depends on ids
        budget = self._budget(items, problem)
        most = len(held) + budget.most(items)
        bound = problem.bind(as_staying(self.staying), most, y)
        optimizer = self.optimizer
        greedy = "lazy" if utility.is_submodular else "greedy"
        if optimizer == "auto":
            optimizer = greedy
        by_enumeration = optimizer == ENUMERATION
        task = SelectionTask(
            problem, bound, held, items, budget, greedy if by_enumeration else optimizer, seed,
            most, by_enumeration, self.n_jobs, keys,
        )  # fmt: skip
        solution = objective.solve(task)
        if isinstance(objective, CVaR) and objective.n_worst() < _FEW and not bound.is_certain:
            warnings.warn(
                f"the worst {objective.alpha:g} of the samples are {objective.n_worst():.3g}, "
                "which say little of the worst cases; pass a larger n_samples or alpha",
                SelectionWarning,
                stacklevel=2,
            )
        classes = copy(y)  # later changes of y do not count
        chosen = np.array([j for j, _ in solution.chosen], dtype=np.int64)
        held_and_chosen = np.concatenate([held, chosen])
        self._fitted = FittedSelection(
            problem, names, held_and_chosen, classes, self.staying, objective, seed
        )
        self.n_records_in_ = problem.n_records
        self.held_, self.selected_ = held, chosen
        if problem.places is not None:
            self.held_, self.selected_ = problem.places[held], problem.places[chosen]
        self.optimizer_ = optimizer
        self.selected_ids_ = names[chosen]
        self.gains_ = np.array([gain for _, gain in solution.chosen])
        self.utility_ = solution.value
        self.utility_error_ = solution.standard_error
        self.utility_exact_ = solution.exact
        self.n_evaluations_ = solution.n_evaluations
        return self

    def fit_resample(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Choose records, and return their rows, in the order of X.

        Parameters
        ----------
        X, y, **fit_params
            As for `fit`.

        Returns
        -------
        X_selected, or (X_selected, y_selected) where there is a y
            Of the kind that X and y are.

        Examples
        --------
        >>> X = np.array([[0.0], [0.1], [0.2], [5.0]])
        >>> SubsetSelector(k=2).fit_resample(X, [1, 1, 1, 0])
        (array([[0.1],
               [5. ]]), [1, 0])
        """
        rows = np.sort(self.fit(X, y, **fit_params).selected_)
        chosen = _records.rows_of(X, rows)
        return chosen if y is None else (chosen, _records.rows_of(y, rows))

    def get_support(self, indices: bool = False) -> Any:
        """Return which rows were chosen: a mask, or their numbers in ascending order.

        Raises
        ------
        sklearn.exceptions.NotFittedError
        """
        check_is_fitted(self)
        rows = np.sort(self.selected_)
        if indices:
            return rows
        mask = np.zeros(self.n_records_in_, dtype=bool)
        mask[rows] = True
        return mask

    def _check_params(self) -> tuple[Utility, Any]:
        utility = NearestNeighbor() if self.utility is None else check_utility(self.utility)
        objective = check_objective(self.objective)
        check_n_jobs(self.n_jobs)
        known = ["auto", *OPTIMIZERS, ENUMERATION]
        if not isinstance(self.optimizer, str) or self.optimizer not in known:
            raise InvalidParameterError(
                f"optimizer={shorten(self.optimizer)}; expected one of {', '.join(known)}; "
                "pass one of them"
            )
        whole = self.costs is None
        number = int | np.integer if whole else int | float | np.integer | np.floating
        if not isinstance(self.k, number) or isinstance(self.k, bool) or not 0 < self.k < np.inf:
            expected = "an integer of 1 or more" if whole else "a budget above 0"
            raise InvalidParameterError(
                f"k={shorten(self.k)}; expected {expected}; pass "
                + ("how many records to choose" if whole else "how much they may cost together")
            )
        return utility, objective

    def _read(
        self, utility: Utility, X: Any, y: Any, ids: Any, selected: Any, rows: Any, seed: int
    ) -> tuple[Problem, NDArray[Any], Ints, Any]:
        """Return the problem, the ids of its records, the rows of those held, and the classes."""
        if isinstance(X, Records):
            names, held = _records.read_held(X, y, ids, selected, rows)
            problem = utility.problem_of_records(X, held, seed, self.n_jobs)
            classes = None
        else:
            X, names = _records.read_ids(X, ids, y=y, costs=self.costs, staying=self.staying)
            named = [] if selected is None and rows is None else selected
            held = _records.read_selection(named, rows, names)
            problem, classes = utility.problem(X, y), y
        if problem.places is not None:
            names, held = names[problem.places], np.searchsorted(problem.places, held)
        return problem, names, held, classes

    def _budget(self, items: Any, problem: Problem) -> CostBudget:
        if self.costs is not None:
            costs = _records.read_costs(self.costs, problem.n_records)
            if problem.places is not None:
                costs = costs[problem.places]
            budget = CostBudget(float(self.k), costs)
            if len(items) and not budget.affords(costs[items].min(), self.k):
                raise InvalidInputError(
                    f"the cheapest record costs {costs[items].min():g} and the budget is k="
                    f"{self.k:g}; expected one that can be paid; pass a larger k"
                )
            return budget
        if self.k > len(items):
            warnings.warn(
                f"k={self.k} of {len(items)} records: all of them are chosen",
                SelectionWarning,
                stacklevel=3,
            )
        return CostBudget(float(min(self.k, len(items))))
