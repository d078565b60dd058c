"""Semivalues of records: Shapley values and their relatives (appendix G).

A semivalue of a record is what it adds to a random part of the others, drawn by a staying model; so
it is the marginal gain of a deletion-anticipating selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from erasable.core.arrays import Floats
from erasable.core.errors import InvalidParameterError
from erasable.core.frames import as_frame, refuse_other_index
from erasable.core.seeds import seed_from
from erasable.selection._objectives import check_count
from erasable.selection.staying._alike import BetaBinomial
from erasable.selection.staying._independent import as_staying
from erasable.selection.staying._model import Sampler, Staying
from erasable.selection.utilities._utility import Utility, check_utility


def semivalues(
    utility: Utility,
    X: Any,
    y: Any = None,
    *,
    weights: Any = "shapley",
    n_samples: int = 1000,
    random_state: Any = None,
) -> Floats:
    """Compute what each record adds to a random part of the others.

    Exact for nearest neighbours where owners of a class are independent or exchangeable; a sample
    average otherwise.

    Parameters
    ----------
    utility : Utility
    X, y
        The records, as for `SubsetSelector.fit`.
    weights : "shapley", staying model, float or array-like, default="shapley"
        Which parts of the others count how much. ``"shapley"``: all sizes alike, that is
        ``BetaBinomial(1, 1)``. Beta Shapley (a, b) is ``BetaBinomial(b, a)``; multinomial values
        are ``Independent(s)``; Banzhaf values ``Independent(0.5)``; leave-one-out ``Certain()``.
    n_samples : int, default=1000
        How many parts are drawn, where there is no closed form.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    ndarray of shape (n_records,), float64

    Raises
    ------
    InvalidInputError, InvalidParameterError

    References
    ----------
    Ghorbani and Zou, Data Shapley, ICML 2019. Kwon and Zou, Beta Shapley, AISTATS 2022.
    Sim et al., Deletion-Anticipative Data Selection with a Limited Budget, appendix G.

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor
    >>> twins = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> semivalues(NearestNeighbor("precomputed"), twins)
    array([1., 1., 1.])
    """
    check_count(n_samples, "n_samples")
    refuse_other_index(as_frame(X), y, "y")
    problem = check_utility(utility).problem(X, y)
    model: Staying = BetaBinomial(1, 1) if _is_shapley(weights) else as_staying(weights)
    bound = model.bound(problem.n, k=problem.n, labels=y)
    exact = problem.semivalues(bound)
    if exact is not None:
        return exact
    n_samples = 1 if bound.is_certain else n_samples  # all would be alike
    seed = int(seed_from(random_state))
    sampler = Sampler(bound, n_samples, seed)
    stays = np.array([sampler.add(j) for j in range(problem.n)])
    totals = np.zeros(problem.n)
    for each in stays.T:
        everybody = np.flatnonzero(each)
        whole = problem.value(everybody)
        for j in range(problem.n):
            if each[j]:
                totals[j] += whole - problem.value(everybody[everybody != j])
            else:
                totals[j] += problem.value(np.append(everybody, j)) - whole
    return totals / n_samples


def _is_shapley(weights: Any) -> bool:
    if isinstance(weights, str):
        if weights != "shapley":
            raise InvalidParameterError(
                f"weights={weights!r}; expected 'shapley' or a staying model; pass "
                "BetaBinomial(b, a) for Beta Shapley, Independent(s) for multinomial values"
            )
        return True
    return False
