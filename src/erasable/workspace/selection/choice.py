"""Choice of records, and its comparison with one that does not anticipate deletions.

Both selections are valued under the same staying model, by a closed form or on the same samples,
which are not the samples that they were chosen on.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from erasable.core.display import facts, table
from erasable.core.errors import WorkspaceError
from erasable.core.ids import shorten
from erasable.selection import (
    BetaBinomial,
    CVaR,
    Expected,
    ExpectedUtility,
    Groups,
    Independent,
    MutualInformation,
    NaiveBayes,
    NearestNeighbor,
    PerClass,
    PointMass,
    SubsetSelector,
    Uniform,
    VarianceReduction,
    expected_utility,
    from_history,
    plot_tradeoff,
)
from erasable.selection.utilities import Problem, Utility
from erasable.workspace.data.dialects import UNSAID, Dialect
from erasable.workspace.data.features import check_fill
from erasable.workspace.requests.history import History
from erasable.workspace.selection.candidates import (
    ColumnRoles,
    SelectionCandidates,
    read_candidates,
)

UTILITIES = ("nearest-neighbor", "naive-bayes", "mutual-information", "variance-reduction")
_METRICS = ("euclidean", "sqeuclidean", "cosine")
_COLUMN = "column:"
_FORMS = (
    "expected a probability as 0.6, one for each class as yes=0.5,no=1, column:NAME, "
    "uniform:LOW:HIGH, point:N, beta-binomial:ALPHA:BETA or history:DATASET"
)


@dataclass(frozen=True)
class StayingText:
    """A staying model as text; `history` takes the name of a data set and a day or None.

    >>> StayingText("beta-binomial:4:2", lambda name, since: None)._one("0.6", [])
    0.6
    """

    text: str
    history: Callable[[str, datetime | None], History]

    def model(self, given: SelectionCandidates) -> tuple[Any, list[str]]:
        """Return the staying model, and a line for each history that it is made of."""
        past: list[str] = []
        column = staying_column(self.text) is not None
        if column and given.subjects is not None:
            return self._by_person(given.subjects, given.stays), past
        if column:
            return Independent(given.stays), past
        found = self._one(self.text, past) if "=" not in self.text else self._classes(given, past)
        if given.subjects is None:
            return (Independent(found) if isinstance(found, float) else found), past
        if isinstance(found, Uniform | PointMass):
            raise WorkspaceError(
                f"--staying is {shorten(self.text)}, a number of records, and with --subject "
                "people leave with all of theirs; expected a probability, beta-binomial:A:B, a "
                "history, or one for each class"
            )
        return Groups(given.subjects, found), past

    def _classes(self, given: SelectionCandidates, past: list[str]) -> Any:
        """Return the model of owners that differ by class."""
        if given.y is None:
            raise WorkspaceError(
                "--staying differs by class, and there is no --target; expected the column of "
                "classes; name it with --target, or pass one probability for all"
            )
        if given.subjects is not None:
            of = dict(zip(given.subjects, given.y, strict=True))
            pairs = set(zip(given.subjects, given.y, strict=True))
            if len(pairs) > len(of):
                raise WorkspaceError(
                    f"--staying differs by class, and {len(pairs) - len(of)} of {len(of)} people "
                    "have records of several classes; expected one class for each person of "
                    "--subject; pass one probability for all"
                )
        there = set(given.y)
        each = {label: self._one(text, past) for label, text in self._by_class(there).items()}
        self._check_classes(each, there)
        plain = all(isinstance(value, float) for value in each.values())
        return Independent(each) if plain else PerClass(each)

    @staticmethod
    def _by_person(labels: list[str], stays: Any) -> Any:
        """Return the model of people who leave with all of their records, by a column."""
        each = dict(zip(labels, stays.tolist(), strict=True))
        unequal = sum(each[label] != p for label, p in zip(labels, stays, strict=True))
        if unequal:
            raise WorkspaceError(
                f"--staying differs between records of one person, in {unequal} of "
                f"{len(labels)}; expected one probability for each person of --subject"
            )
        return Groups(labels, each)

    def _by_class(self, there: set[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in self.text.split(","):
            label, equals, value = part.rpartition("=")
            if label not in there:  # a space behind a comma
                label = label.strip()
                alike = [each for each in there if each.strip() == label]
                label = alike[0] if len(alike) == 1 else label
            if not equals or label in found:
                raise WorkspaceError(
                    f"--staying has {shorten(part)}, which is no class with a probability, or a "
                    "class that came before; expected CLASS=P, each class once, as in "
                    "yes=0.5,no=1"
                )
            found[label] = value
        return found

    @staticmethod
    def _check_classes(each: Mapping[str, Any], there: set[str]) -> None:
        unknown, missing = sorted(each.keys() - there), sorted(there - each.keys())
        if unknown or missing:
            message = (
                f"names the class {shorten(unknown[0])}, which no record has"
                if unknown
                else f"has no probability for the class {shorten(missing[0])}"
            )
            raise WorkspaceError(
                f"--staying {message}; expected one for each of {_some(sorted(there))}"
            )

    def _one(self, text: str, past: list[str]) -> Any:
        """Return a probability, or a model."""
        kind, *rest = text.strip().split(":")
        if kind == "uniform" and len(rest) == 2:
            return Uniform(self._count(rest[0]), self._count(rest[1]))
        if kind == "point" and len(rest) == 1:
            return PointMass(self._count(rest[0]))
        if kind == "beta-binomial" and len(rest) == 2:
            return BetaBinomial(self._float(rest[0]), self._float(rest[1]))
        if kind == "history" and len(rest) in (1, 2):
            found = self.history(rest[0], _day(rest[1]) if len(rest) == 2 else None)
            days = round(found.days)
            time = f"{days:,} day{'s' * (days != 1)}" if days else "less than a day"
            people = "person" if found.held == 1 else "people"
            past.append(
                f"{found.requested:,} of {found.held:,} {people} in {found.dataset} "
                f"asked to leave in {time}; the same is anticipated for a time as long"
            )
            return from_history(found.requested, found.held)
        value = self._float(text)
        if not 0 <= value <= 1:
            raise WorkspaceError(
                f"--staying is {shorten(text)}; {_FORMS}; a probability lies from 0 to 1"
            )
        return value

    def _float(self, text: str) -> float:
        value = _as_float(text)
        if value is None:
            raise WorkspaceError(f"--staying is {shorten(self.text)}; {_FORMS}")
        return value

    def _count(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise WorkspaceError(
                f"--staying is {shorten(self.text)}; {_FORMS}; LOW, HIGH and N are whole numbers"
            )
        return int(text)


def staying_column(text: str) -> str | None:
    """Return the column of probabilities if the text names one.

    >>> staying_column("column:stay"), staying_column("0.6")
    ('stay', None)
    """
    return text.removeprefix(_COLUMN) if text.startswith(_COLUMN) else None


def read_utility(text: str, metric: str | None, n_neighbors: int | None, n_features: int) -> Any:
    """Return the utility of a name.

    A Gaussian process has the kernel that scikit-learn's support vector machines call "scale", for
    features of variance 1.

    >>> read_utility("nearest-neighbor", "cosine", None, 5)
    NearestNeighbor(metric='cosine')
    """
    if text not in UTILITIES:
        raise WorkspaceError(
            f"--utility is {shorten(text)}; expected one of {', '.join(UTILITIES)}"
        )
    if text == "nearest-neighbor":
        metric = metric or "euclidean"
        if metric not in _METRICS:
            raise WorkspaceError(
                f"--metric is {shorten(metric)}; expected one of {', '.join(_METRICS)}"
            )
        return NearestNeighbor(metric, n_neighbors=n_neighbors)
    if metric is not None or n_neighbors is not None:
        raise WorkspaceError(
            f"{'--metric' if metric is not None else '--n-neighbors'} came with --utility {text}; "
            "expected it with nearest-neighbor alone"
        )
    if text == "naive-bayes":
        return NaiveBayes()
    kernel = RBF(math.sqrt(n_features / 2))
    return MutualInformation(kernel) if text == "mutual-information" else VarianceReduction(kernel)


def read_objective(text: str, samples: int | None) -> Any:
    """Return the objective of a name.

    >>> read_objective("cvar:0.2", None).alpha
    0.2
    """
    if text == "expected":
        return Expected(samples)
    kind, _, share = text.partition(":")
    alpha = _as_float(share)
    if kind != "cvar" or alpha is None or not 0 < alpha <= 1:
        raise WorkspaceError(
            f"--objective is {shorten(text)}; expected 'expected', or cvar:SHARE with a share of "
            "worst cases above 0, to 1; write cvar:0.2 for the worst fifth"
        )
    return CVaR(alpha, samples)


def _as_float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _day(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise WorkspaceError(
            f"--staying has the day {shorten(text)}; expected one as 2026-03-31; write "
            "history:DATASET:2026-03-31, or leave the day out"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _some(labels: list[str]) -> str:
    return ", ".join(map(shorten, labels[:5])) + (", ..." if len(labels) > 5 else "")


SCALES = ("standard", "none")
LARGE = 2**31
"""Bytes of similarities above which a warning names the option that needs less memory."""


class _Prepared(Utility):
    """A utility that has read its data already: similarities are computed once."""

    def __init__(self, made: Problem, is_submodular: bool) -> None:
        self.made = made
        self.is_submodular = is_submodular

    def problem(self, X: Any, y: Any = None) -> Problem:
        return self.made


@dataclass(frozen=True)
class Worth:
    """The value of a selection."""

    selection: str  # "anticipating" or "conventional"
    expected: float  # after deletions
    expected_error: float  # standard error
    expected_exact: bool  # otherwise it is sampled, as the worst cases always are
    worst: float | None  # mean of the worst cases, if these were the objective
    worst_error: float | None
    without_deletions: float


@dataclass(frozen=True)
class ChosenRecords:
    """Records that were chosen, and their value."""

    ids: list[str]  # in the order of their choice
    gains: list[float]  # what each added to the objective
    # of the selection, and of the conventional one unless no owner is expected to leave
    worth: list[Worth]
    balance: list[Any]  # classes among those held and chosen; empty without classes
    n_records: int  # to choose from
    features: tuple[str, ...]  # columns that records were compared by
    texts: tuple[str, ...]  # those of them that hold text
    left_out: tuple[str, ...]  # other columns
    scaled: bool
    history: list[str]  # a line for each history in the staying model
    # positions of those held and chosen, for each of `worth`
    rows: dict[str, Any] = field(repr=False)
    metric: Callable[[Any], float] = field(repr=False)  # the utility of some rows

    def _repr_html_(self) -> str:
        chosen = f"chosen {len(self.ids):,} of {self.n_records:,} records"
        compared = {"features": ", ".join(self.features), "scaled": self.scaled}
        parts = [self.worth, self.balance]
        tables = [table([asdict(row) for row in part]) for part in parts if part]
        return "".join([facts(chosen, compared), *tables])

    def draw(
        self, path: str | os.PathLike[str], *, format: str | None = None, seed: int = 0
    ) -> None:
        """Draw what the utility falls to as more and more of them leave at random."""
        drawn = plot_tradeoff(rows=self.rows, metric=self.metric, random_state=seed)
        drawn.set_xlabel("deletions, at random")
        drawn.set_ylabel("utility of those who stay")
        drawn.figure.savefig(path, format=format)


def select(
    source: str,
    k: float,
    staying: float | str,
    *,
    id_column: str | None = None,
    subject: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    fill: str | None = None,
    scale: str = "standard",
    utility: str = "nearest-neighbor",
    metric: str | None = None,
    n_neighbors: int | None = None,
    objective: str = "expected",
    samples: int | None = None,
    held: Sequence[str] = (),
    cost: str | None = None,
    random_state: int = 0,
    dialect: Dialect = UNSAID,
    history: Callable[[str, datetime | None], History],
) -> ChosenRecords:
    """Choose the records of a table to acquire; see `Workspace.select`."""
    if scale not in SCALES:
        raise WorkspaceError(f"--scale is {str(scale)[:60]!r}; expected standard or none")
    check_fill(fill)
    read_utility(utility, metric, n_neighbors, 1)
    if utility == "naive-bayes" and target is None:
        raise WorkspaceError(
            "naive-bayes counts by class, and there is no --target; expected the column of classes"
        )
    goal = read_objective(objective, samples)
    text = str(staying)
    roles = ColumnRoles(id_column, subject, target, cost, staying_column(text), features)
    given = read_candidates(
        source, roles, categories=utility == "naive-bayes", scaled=scale == "standard", fill=fill,
        dialect=dialect,
    )  # fmt: skip
    for line in given.filled_in:
        warnings.warn(line, UserWarning, stacklevel=2)
    if utility == "nearest-neighbor" and n_neighbors is None:
        _warn_of_size(given)
    model, past = StayingText(text, history).model(given)
    worth = read_utility(utility, metric, n_neighbors, given.X.shape[1])
    return _choose(given, list(held), worth, k, model, goal, random_state, past)


def _choose(
    given: SelectionCandidates, held: list[str], utility: Utility, k: float, staying: Any,
    objective: Any, seed: int, past: list[str],
) -> ChosenRecords:  # fmt: skip
    _refuse_unknown(held, given.ids)
    y = given.y
    prepared = _Prepared(utility.problem(given.X, y), utility.is_submodular)
    common: dict[str, Any] = {"k": k, "costs": given.costs, "random_state": seed}
    selector = SubsetSelector(prepared, staying=staying, objective=objective, **common)
    selector.fit(given.X, y, ids=given.ids, selected=held)
    rows = {"anticipating": np.concatenate([selector.held_, selector.selected_])}
    if not staying.bound(len(given.ids), k=len(rows["anticipating"]), labels=y).is_certain:
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
    return ChosenRecords(
        selector.selected_ids_.tolist(), selector.gains_.tolist(), valued, classes, len(given.ids),
        given.features, given.texts, given.left_out, given.scaled, past, rows, prepared.made.value,
    )  # fmt: skip


def _refuse_unknown(held: list[str], ids: list[str]) -> None:
    unknown = set(held) - set(ids)
    if unknown:
        raise WorkspaceError(
            f"--held has {len(unknown)} of {len(held)} ids that are in no row; expected ids of "
            "the table, which has the records that are held, too; name their column with --id"
        )


def _warn_of_size(given: SelectionCandidates) -> None:
    counts = Counter(given.y or ["all"] * len(given.ids)).values()
    n_bytes = sum(8 * count**2 for count in counts)
    if n_bytes > LARGE:
        warnings.warn(
            f"the similarities of all pairs take {n_bytes / 2**30:,.1f} GiB; --n-neighbors 64 "
            "keeps those to the nearest, and is faster",
            UserWarning,
            stacklevel=3,
        )
