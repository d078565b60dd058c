"""What the paper compares for every data set: selections, by figures 4 to 6, 12 to 14 and tables.

A `Case` is a data set with a utility and a metric. All functions return parts of a result, as
`report.py` stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import report
from command import say
from data import Data
from figures import line, panel
from numpy.typing import NDArray
from simulations import (
    Measure,
    NearestClassifier,
    Outcome,
    Score,
    Trained,
    after_departures,
    by_deletions,
    cvar_runs,
)

from erasable.selection import CVaR, SubsetSelector, expected_utility
from erasable.selection.staying import Staying, as_staying
from erasable.selection.utilities import Problem, Utility

Ints = NDArray[np.int64]
Stays = Mapping[str, Any]  # staying models by their names
RANDOM_RUNS = 10
THRESHOLDS = 6  # tried for the worst cases


class Prepared(Utility):
    """A utility over one data set, whose similarities or counts are computed once.

    Parameters
    ----------
    utility : Utility
    X, y
        The data that every selection is made from.
    """

    def __init__(self, utility: Utility, X: Any, y: Any) -> None:
        self.made = utility.problem(X, y)
        self.is_submodular = utility.is_submodular

    def problem(self, X: Any, y: Any = None) -> Problem:
        """Return the problem of the data it was prepared for."""
        return self.made


@dataclass
class Case:
    """A data set with what is compared on it.

    Attributes
    ----------
    X, y : ndarray
        Records to choose from, and their classes from 0.
    utility : Utility
    measure : callable
        Makes a Measure of the metric for chosen rows.
    metric : str
        Its name.
    n_judged : int, default=0
        How many other samples selections for the worst cases are judged by.
    sampled : bool, default=False
        Whether expected utilities may be means over samples, where there is no closed form.
    """

    X: Any
    y: Ints
    utility: Utility
    measure: Callable[[Ints], Measure]
    metric: str
    seed: int = 0
    n_judged: int = 0
    sampled: bool = False
    made: dict[Any, Ints] = field(default_factory=dict)

    def select(self, k: int, staying: Any = 1.0, objective: Any = None) -> Ints:
        """Choose k records; once for each way to."""
        if k > len(self.y):
            raise ValueError(f"{k} of {len(self.y)} records are to be chosen; expected fewer")
        key = (k, repr(staying), repr(objective))
        if key not in self.made:
            selector = SubsetSelector(
                self.utility, k=k, staying=staying, objective=objective, random_state=self.seed
            )
            self.made[key] = selector.fit(self.X, self.y).selected_
        return self.made[key]

    def random(self, k: int, run: int) -> Ints:
        """Choose k records at random, of each class its share; so are the first of them."""
        rng = np.random.default_rng([self.seed, run])
        place = np.empty(len(self.y))
        for label, count in enumerate(np.bincount(self.y)):
            of_class = rng.permutation(np.flatnonzero(self.y == label))
            place[of_class] = (np.arange(count) + rng.random()) / count
        return np.argsort(place, kind="stable")[:k]

    def expected(self, selected: Ints, staying: Any) -> float:
        """Return the expected utility: exactly, or from samples where they are allowed."""
        found = expected_utility(
            rows=selected, X=self.X, y=self.y, utility=self.utility, staying=staying,
            random_state=self.seed,
        )  # fmt: skip
        if found.standard_error and not self.sampled:
            raise RuntimeError(f"the utility by {staying!r} is sampled; expected a closed form")
        return found.value

    def left(self, selected: Ints, staying: Any, n_simulations: int) -> Outcome:
        """Simulate the metric after departures."""
        return after_departures(
            self.measure(selected), staying, len(selected), n_simulations,
            labels=self.y[selected], seed=self.seed,
        )  # fmt: skip


def case_of(
    read: Data,
    utility: Utility,
    metric: tuple[str, Score],
    seed: int,
    own_utility: Callable[[], Utility] | None = None,
    estimator: Callable[[], Any] | None = None,
) -> Case:
    """Compare on data: by the nearest neighbour, or what makes a utility or an estimator."""
    absent = [name for name in ("X", "y", "X_new", "y_new") if not hasattr(read, name)]
    if absent:
        raise ValueError(
            f"--data returned {type(read).__name__} without {', '.join(absent)}; expected an "
            "object with X, y, X_new and y_new"
        )
    given = (read.X, read.y, read.X_new, read.y_new, metric[1])

    def measure(selected: Ints) -> Measure:
        return (
            Trained(estimator, *given, selected)
            if estimator
            else NearestClassifier(*given, selected)
        )

    prepared = Prepared(own_utility() if own_utility else utility, read.X, read.y)
    return Case(
        read.X, read.y, prepared, measure, metric[0], seed, sampled=own_utility is not None
    )  # fmt: skip


def _over_runs(found: Sequence[Outcome]) -> Outcome:
    return Outcome.of(np.array([each.mean for each in found]))


def name_of(model: Any) -> str:
    """Write a staying model as the tables name it: its class and its numbers."""
    if not isinstance(model, Staying):
        return str(model)
    return f"{type(model).__name__}({', '.join(f'{value:g}' for value in vars(model).values())})"


def by_number_chosen(
    case: Case,
    counts: Sequence[int],
    anticipated: Stays,
    simulated: Stays,
    n_simulations: int,
    title: str,
) -> dict[str, Any]:
    """Return figures 4 and 12: the metric against how many were chosen, where owners leave."""
    # Greedy selections for models without a fixed k are nested: fewer are the first of more.
    whole = {"DS": case.select(max(counts))} | {
        label: case.select(max(counts), staying) for label, staying in anticipated.items()
    }
    most = max(counts)
    each = -(-n_simulations // RANDOM_RUNS)
    measures = {label: case.measure(rows) for label, rows in whole.items()}
    chance = [case.random(most, run) for run in range(RANDOM_RUNS)]
    by_chance = [case.measure(rows) for rows in chance]

    def left(measure: Measure, rows: Ints, k: int, staying: Any, times: int) -> Outcome:
        return after_departures(
            first_of(measure, k, lambda: case.measure(rows[:k])), staying, k, times,
            labels=case.y[rows[:k]], seed=case.seed,
        )  # fmt: skip

    panels = []
    for heading, staying in simulated.items():
        say(f"the metric after departures, {heading}")
        lines = [
            line(label, counts, [left(measures[label], rows, k, staying, n_simulations)
                                 for k in counts])
            for label, rows in whole.items()
        ]  # fmt: skip
        found = [
            _over_runs([left(measure, rows, k, staying, each)
                        for measure, rows in zip(by_chance, chance, strict=True)])
            for k in counts
        ]  # fmt: skip
        panels.append(panel(heading, [*lines, line("random", counts, found)]))
    return {"kind": "lines", "title": title, "x": "chosen", "y": case.metric, "panels": panels}


def first_of(measure: Any, k: int, anew: Callable[[], Measure]) -> Measure:
    """Return the measure of the first k of the chosen: made of that of all where it can be."""
    return measure.first(k) if hasattr(measure, "first") else anew()


def objective_differences(
    case: Case, counts: Sequence[int], anticipated: Stays, simulated: Stays, title: str
) -> dict[str, Any]:
    """Return figure 13: expected utility of EDADS less that of DS."""
    plain = case.select(max(counts))
    panels = []
    for heading, staying in simulated.items():
        base = [case.expected(plain[:k], staying) for k in counts]
        lines = []
        for label, model in anticipated.items():
            rows = case.select(max(counts), model)
            more = [
                case.expected(rows[:k], staying) - less
                for k, less in zip(counts, base, strict=True)
            ]
            lines.append({"label": label, "x": list(counts), "y": more, "error": [0.0] * len(more)})
        panels.append(panel(heading, lines, "expected utility less that of DS"))
    return {"kind": "lines", "title": title, "x": "chosen", "y": "", "panels": panels}


def after_deletions(
    case: Case,
    k: int,
    models: Mapping[str, Stays],
    counts: Sequence[int],
    n_simulations: int,
    title: str,
    *,
    among: int | None = None,
    with_random: bool = True,
) -> dict[str, Any]:
    """Return figures 5, 14 and 17: the metric against the number of deletions.

    `models` has a panel for each heading. `among`: only records of this class leave.
    """

    def curve(selected: Ints) -> list[Outcome]:
        may_leave = None if among is None else case.y[selected] == among
        return by_deletions(
            case.measure(selected), len(selected), counts, n_simulations, among=may_leave,
            seed=case.seed,
        )  # fmt: skip

    say(f"the metric by deletions, k = {k}")
    shared = [line("DS", counts, curve(case.select(k)))]
    if with_random:
        runs = [curve(case.random(k, run)) for run in range(RANDOM_RUNS)]
        chance = [_over_runs(step) for step in zip(*runs, strict=True)]
        shared.append(line("random", counts, chance))
    panels = []
    for heading, stays in models.items():
        lines = [
            line(label, counts, curve(case.select(k, model))) for label, model in stays.items()
        ]
        panels.append(panel(heading, lines + shared))
    x = "deletions" if among is None else f"deletions of class {among}"
    return {"kind": "lines", "title": title, "x": x, "y": case.metric, "panels": panels}


def expected_table(case: Case, k: int, models: Stays, n_simulations: int) -> dict[str, Any]:
    """Return one of tables 7 to 11."""
    plain = case.select(k)
    rows = {}
    for name, model in models.items():
        say(f"table, k = {k}: {name}")
        chosen = case.select(k, model)
        rows[name] = report.table_row(*(
            (case.expected(each, model), case.left(each, model, n_simulations))
            for each in (chosen, plain)
        ))  # fmt: skip
    return {"metric": case.metric, "rows": rows}


def worst_cases(case: Case, alpha: float, n_samples: int, n_thresholds: int) -> CVaR:
    """Return the objective of the worst share alpha of cases."""
    return CVaR(alpha, n_samples, n_thresholds=n_thresholds, n_judged=case.n_judged)


def risk_table(
    case: Case,
    k: int,
    staying: Any,
    alphas: Sequence[float],
    utility_left: Callable[[Ints], Measure],
    n_samples: int,
    n_runs: int,
    n_fresh: int,
    *,
    n_thresholds: int = THRESHOLDS,
) -> dict[str, Any]:
    """Return one of tables 12 to 14, on fresh samples for both selections."""

    def judged(selected: Ints, which: Sequence[float]) -> Any:
        return cvar_runs(
            [utility_left(selected), case.measure(selected)], as_staying(staying), k, which,
            n_runs=n_runs, n_simulations=n_fresh, labels=case.y[selected], seed=1000,
        )  # fmt: skip

    say(f"table, k = {k}: EDADS")
    plain = judged(case.select(k, staying), alphas)
    rows = {}
    for alpha, expected in zip(alphas, plain, strict=True):
        say(f"table, k = {k}: the worst {alpha:g}")
        chosen = case.select(k, staying, worst_cases(case, alpha, n_samples, n_thresholds))
        say("  chosen")
        (averse,) = judged(chosen, [alpha])
        ours, theirs = ([Outcome.of(each) for each in runs] for runs in (averse, expected))
        rows[f"{alpha:g}"] = report.risk_row((ours[0], ours[1]), (theirs[0], theirs[1])) | {
            "runs": n_runs,
            "won": int((averse[0] > expected[0]).sum()),
        }
    return {"metric": case.metric, "rows": rows}


def risk_figure(
    case: Case,
    k: int,
    staying: Any,
    alphas: Sequence[float],
    n_samples: int,
    counts: Sequence[int],
    n_simulations: int,
    title: str,
    *,
    among: int | None = None,
    n_thresholds: int = THRESHOLDS,
) -> dict[str, Any]:
    """Return figures 6 and 18: the metric by deletions, and the difference from EDADS."""
    say(f"the metric by deletions for the worst cases, k = {k}")
    label = "alpha = 1 (EDADS)"
    objectives = {
        f"alpha = {alpha:g}": worst_cases(case, alpha, n_samples, n_thresholds) for alpha in alphas
    }
    selections = {label: case.select(k, staying)} | {
        name: case.select(k, staying, objective) for name, objective in objectives.items()
    }
    lines = []
    for name, rows in selections.items():
        may_leave = None if among is None else case.y[rows] == among
        found = by_deletions(
            case.measure(rows), k, counts, n_simulations, among=may_leave, seed=case.seed
        )
        lines.append(line(name, counts, found))
    base = np.array(lines[0]["y"])
    differences = [
        each | {"y": (np.array(each["y"]) - base).tolist(), "error": [0.0] * len(base)}
        for each in lines[1:]
    ]
    x = "deletions" if among is None else f"deletions of class {among}"
    panels = [
        panel("metric", lines, case.metric),
        panel("less that of EDADS", differences, "difference"),
    ]
    return {"kind": "lines", "title": title, "x": x, "y": case.metric, "panels": panels}
