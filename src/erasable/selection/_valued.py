"""Methods of a fitted selector that evaluate the records it chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from erasable.core.display import Listing
from erasable.core.errors import InvalidInputError
from erasable.core.seeds import seed_from
from erasable.selection._balance import GroupBalance, balance
from erasable.selection._evaluation import ExpectedUtility, task_of, values_of, worth_of
from erasable.selection._objectives import Expected, SelectionTask
from erasable.selection._records import as_labels
from erasable.selection._tradeoff import Tradeoff, tradeoff
from erasable.selection._worst_cases import CVaR, check_objective
from erasable.selection.utilities._utility import Problem


@dataclass(frozen=True)
class FittedSelection:
    """The data and settings by which a fitted selector evaluates its choice."""

    problem: Problem
    names: NDArray[Any]  # shape (n,), the id of each record of the problem
    rows: NDArray[np.int64]  # those held and chosen
    y: Any
    staying: Any
    objective: Expected | CVaR
    seed: int


class Valued:
    """A selector that evaluates the records it chose."""

    _fitted: FittedSelection
    held_: NDArray[np.int64]
    selected_: NDArray[np.int64]

    def value(
        self, *, staying: Any = None, objective: Any = None, random_state: Any = None
    ) -> ExpectedUtility:
        """Compute the utility of the chosen records after deletions, with those held already.

        Where it is sampled, the samples are not those that records were chosen by.

        Parameters
        ----------
        staying : staying model, float, mapping or array-like, default=None
            By default the selector's.
        objective : Expected or CVaR, default=None
            By default the selector's.
        random_state : int, RandomState or None, default=None
            By default a seed that is derived from the selector's.

        Returns
        -------
        ExpectedUtility

        Raises
        ------
        sklearn.exceptions.NotFittedError
        InvalidInputError, InvalidParameterError

        Examples
        --------
        >>> from erasable.selection import NearestNeighbor, SubsetSelector
        >>> selector = SubsetSelector(NearestNeighbor("precomputed"), k=1).fit(np.eye(2))
        >>> float(selector.value()), float(selector.value(staying=0.5))
        (1.0, 0.5)
        """
        check_is_fitted(self)
        goal = self._fitted.objective if objective is None else check_objective(objective)
        return worth_of(self._task(staying, random_state), goal)

    def distribution(
        self, *, staying: Any = None, n_samples: int = 1000, random_state: Any = None
    ) -> NDArray[np.float64]:
        """Return samples of the utility of the records chosen and held, after deletions.

        Parameters
        ----------
        n_samples : int, default=1000
        staying, random_state
            As for `value`.

        Returns
        -------
        ndarray of shape (n_samples,), float64

        Examples
        --------
        >>> from erasable.selection import NearestNeighbor, SubsetSelector
        >>> selector = SubsetSelector(NearestNeighbor("precomputed"), k=1).fit(np.eye(2))
        >>> selector.distribution(n_samples=2)
        array([1., 1.])
        """
        check_is_fitted(self)
        task = self._task(staying, random_state)
        return values_of(task, Expected(n_samples).samples_needed())

    def tradeoff(self, metric: Any = None, **options: Any) -> Tradeoff:
        """Measure a metric after random deletions of records chosen and held.

        Parameters
        ----------
        metric : callable, default=None
            ``metric(ids)`` of the ids of those that are left; by default their utility.
        **options
            `n_deletions`, `n_simulations` and `random_state`, as for the function `tradeoff`.

        Returns
        -------
        Tradeoff

        Examples
        --------
        >>> from erasable.selection import NearestNeighbor, SubsetSelector
        >>> selector = SubsetSelector(NearestNeighbor("precomputed"), k=2).fit(np.eye(3))
        >>> selector.tradeoff(n_deletions=[0, 1]).mean
        array([2., 1.])
        """
        check_is_fitted(self)
        rows = self._rows()
        if metric is None:
            return tradeoff(rows=rows, metric=self._fitted.problem.value, **options)
        return tradeoff(self._fitted.names[rows], metric, **options)

    def balance(self, groups: Any = None, *, staying: Any = None) -> Listing[GroupBalance]:
        """Compare groups among the records chosen and held with groups in the data.

        Parameters
        ----------
        groups : array-like of shape (n_records,), default=None
            The group of each record, in the order of X; by default the classes of `fit`.
        staying : staying model, float, mapping or array-like, default=None
            By default the selector's.

        Returns
        -------
        list of GroupBalance
            As for the function `balance`.

        Examples
        --------
        >>> from erasable.selection import SubsetSelector
        >>> selector = SubsetSelector(k=2).fit([[0.0], [0.1], [9.0], [9.1]], ["a", "a", "b", "b"])
        >>> [(each.group, each.n_selected) for each in selector.balance()]
        [('a', 1), ('b', 1)]
        """
        check_is_fitted(self)
        if self._fitted.problem.places is not None:
            raise InvalidInputError(
                "the selector was fitted on Records, of which it keeps no ids but those of "
                "candidates; expected an array; call balance(groups, selector.selected_ids_, ids=)"
            )
        if groups is None and self._fitted.y is not None:
            groups = as_labels(self._fitted.y, "y")  # by position, as it was fitted
        if groups is None:
            raise InvalidInputError(
                "there are no groups; expected the group of each record, because fit had no y"
            )
        return balance(
            groups, rows=self._rows(), ids=self._fitted.names, y=self._fitted.y,
            staying=self._fitted.staying if staying is None else staying,
        )  # fmt: skip

    def _rows(self) -> NDArray[np.int64]:
        """Return the rows held and chosen, of those of the problem."""
        return self._fitted.rows

    def _task(self, staying: Any, random_state: Any) -> SelectionTask:
        seed = self._fitted.seed + 1 if random_state is None else int(seed_from(random_state))
        model = self._fitted.staying if staying is None else staying
        fitted = self._fitted
        return task_of(fitted.problem, self._rows(), model, fitted.y, seed, fitted.names)
