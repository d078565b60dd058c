"""Choose records, and hold the choice against one that does not anticipate deletions.

The law kept here: both selections are valued under the same staying model, by a closed form or on
the same samples, which are not those that they were chosen on.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from erasable.cli.frame import fail
from erasable.selection import (
    CVaR,
    Expected,
    ExpectedUtility,
    SubsetSelector,
    expected_utility,
    plot_tradeoff,
)
from erasable.selection.utilities import Problem, Utility

if TYPE_CHECKING:
    from pathlib import Path

    from erasable.cli.selection_data import Given

__all__ = ["Chosen", "Worth", "choose"]


class _Prepared(Utility):
    """A utility that has read its data already: similarities are computed once."""

    def __init__(self, made: Problem, is_submodular: bool) -> None:
        self.made = made
        self.is_submodular = is_submodular

    def problem(self, X: Any, y: Any = None) -> Problem:
        return self.made


@dataclass(frozen=True)
class Worth:
    """What a selection is worth.

    Attributes
    ----------
    selection : {"anticipating", "conventional"}
    expected, expected_error : float
        After deletions, and the standard error.
    expected_exact : bool
        Whether that is exact; otherwise it is sampled, as the worst cases always are.
    worst, worst_error : float or None
        The same of the worst cases, where these were the objective.
    without_deletions : float
    """

    selection: str
    expected: float
    expected_error: float
    expected_exact: bool
    worst: float | None
    worst_error: float | None
    without_deletions: float


@dataclass(frozen=True)
class Chosen:
    """A selection.

    Attributes
    ----------
    ids : list of str
        In the order of their choice.
    gains : list of float
        What each added to the objective.
    worth : list of Worth
        The selection, and the conventional one unless nobody is expected to leave.
    balance : list of GroupBalance
        Classes among those held and chosen; empty without classes.
    rows : dict of str to ndarray
        Those held and chosen, for each of `worth`.
    metric : callable
        The utility of some rows.
    """

    ids: list[str]
    gains: list[float]
    worth: list[Worth]
    balance: list[Any]
    rows: dict[str, Any]
    metric: Any

    def draw(self, place: Path, kind: str, seed: int) -> None:
        """Draw what the utility falls to as more and more of them leave at random."""
        drawn = plot_tradeoff(rows=self.rows, metric=self.metric, random_state=seed)
        drawn.set_xlabel("deletions, at random")
        drawn.set_ylabel("utility of those who stay")
        drawn.figure.savefig(place, format=kind)


def choose(
    given: Given,
    held: list[str],
    *,
    utility: Any,
    k: float,
    staying: Any,
    objective: Any,
    seed: int,
) -> Chosen:
    """Choose records.

    Parameters
    ----------
    given : Given
    held : list of str
        Ids of records that are held already.
    utility : Utility
    k : int or float
        How many, or, with costs, for how much.
    staying : Staying
    objective : Expected or CVaR
    seed : int

    Returns
    -------
    Chosen
    """
    import numpy as np

    _refuse_unknown(held, given.ids)
    y = given.y
    prepared = _Prepared(utility.problem(given.X, y), utility.is_submodular)
    common: dict[str, Any] = {"k": k, "costs": given.costs, "random_state": seed}
    selector = SubsetSelector(prepared, staying=staying, objective=objective, **common)
    selector.fit(given.X, y, ids=given.ids, selected=held)
    rows = {"anticipating": np.concatenate([selector.held_, selector.selected_])}
    if not staying.bind(len(given.ids), k=len(rows["anticipating"]), labels=y).is_certain:
        plain = SubsetSelector(prepared, objective=Expected(objective.n_samples), **common)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was said already
            plain.fit(given.X, y, ids=given.ids, selected=held)
        rows["conventional"] = np.concatenate([plain.held_, plain.selected_])

    def worth(chosen: Any, model: Any, goal: Any) -> ExpectedUtility:
        return expected_utility(
            rows=chosen, X=given.X, y=y, utility=prepared, staying=model, objective=goal,
            random_state=seed + 1,
        )  # fmt: skip

    valued = []
    for name, chosen in rows.items():
        expected = worth(chosen, staying, Expected(objective.n_samples))
        worst: tuple[float | None, float | None] = (None, None)
        if isinstance(objective, CVaR):
            found = worth(chosen, staying, objective)
            worst = found.value, found.standard_error
        valued.append(
            Worth(
                name, expected.value, expected.standard_error, expected.exact,
                *worst, prepared.made.value(chosen),
            )
        )  # fmt: skip
    classes = [] if y is None else selector.balance()
    return Chosen(
        selector.selected_ids_.tolist(), selector.gains_.tolist(), valued, classes, rows,
        prepared.made.value,
    )  # fmt: skip


def _refuse_unknown(held: list[str], ids: list[str]) -> None:
    unknown = set(held) - set(ids)
    if unknown:
        fail(
            f"--held has {len(unknown)} of {len(held)} ids that are in no row; expected ids of "
            "the table, which has the records that are held, too; correct them, or name their "
            "column with --id"
        )
