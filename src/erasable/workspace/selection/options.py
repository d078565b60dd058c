"""Read the options of a selection that are text: a utility, an objective, who stays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from erasable.core.errors import WorkspaceError
from erasable.core.ids import shorten
from erasable.workspace.requests.history import History
from erasable.workspace.selection.candidates import Candidates

UTILITIES = ("nearest-neighbor", "naive-bayes", "mutual-information", "variance-reduction")
_METRICS = ("euclidean", "sqeuclidean", "cosine")
_COLUMN = "column:"
_FORMS = (
    "expected a probability as 0.6, one for each class as yes=0.5,no=1, column:NAME, "
    "uniform:LOW:HIGH, point:N, beta-binomial:ALPHA:BETA or history:DATASET"
)


@dataclass(frozen=True)
class StayingText:
    """How likely owners are to stay, as text.

    Parameters
    ----------
    text : str
    history : callable
        Takes the name of a data set and a day or None, and returns its `History`.

    Examples
    --------
    >>> StayingText("beta-binomial:4:2", lambda name, since: None)._one("0.6", [])
    0.6
    """

    text: str
    history: Callable[[str, datetime | None], History]

    def model(self, given: Candidates) -> tuple[Any, list[str]]:
        """Return the staying model, and a line for each history that it is made of."""
        from erasable.selection import Independent, PerClass

        past: list[str] = []
        if given.subjects is not None:
            return self._together(given, past), past
        if staying_column(self.text) is not None:
            return Independent(given.stays), past
        if "=" not in self.text:
            found = self._one(self.text, past)
            return Independent(found) if isinstance(found, float) else found, past
        if given.y is None:
            raise WorkspaceError(
                "--staying differs by class, and there is no --target; expected the column of "
                "classes; name it with --target, or pass one probability for all"
            )
        there = set(given.y)
        each = {label: self._one(text, past) for label, text in self._by_class(there).items()}
        self._check_classes(each, there)
        if all(isinstance(value, float) for value in each.values()):
            return Independent(each), past
        return PerClass(each), past

    def _together(self, given: Candidates, past: list[str]) -> Any:
        """Return the model of people who leave with all of their records."""
        from erasable.selection import BetaBinomial, Groups

        labels = given.subjects or []
        if staying_column(self.text) is not None:
            each = dict(zip(labels, given.stays.tolist(), strict=True))
            unequal = sum(each[label] != p for label, p in zip(labels, given.stays, strict=True))
            if unequal:
                raise WorkspaceError(
                    f"--staying differs between records of one person, in {unequal} of "
                    f"{len(labels)}; expected one probability for each person of --subject"
                )
            return Groups(labels, each)
        found = None if "=" in self.text else self._one(self.text, past)
        if isinstance(found, float):
            return Groups(labels, found)
        advice = "pass a probability, or leave --subject out"
        if isinstance(found, BetaBinomial):
            mean = found.alpha / (found.alpha + found.beta)
            advice = f"pass --staying {mean:.3g}, which is its mean, or leave --subject out"
        raise WorkspaceError(
            f"--staying is {shorten(self.text)}, and with --subject people leave with all of their "
            f"records; expected a probability, or column:NAME; {advice}"
        )

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
        from erasable.selection import BetaBinomial, PointMass, Uniform, from_history

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
    """Return the column of probabilities that was named, if one was.

    >>> staying_column("column:stay"), staying_column("0.6")
    ('stay', None)
    """
    return text.removeprefix(_COLUMN) if text.startswith(_COLUMN) else None


def read_utility(text: str, metric: str | None, n_neighbors: int | None, n_features: int) -> Any:
    """Return the utility of a name.

    A Gaussian process has the kernel that scikit-learn's support vector machines call "scale", for
    features of variance 1.

    >>> utility("nearest-neighbor", "cosine", None, 5)
    NearestNeighbor(metric='cosine')
    """
    if text not in UTILITIES:
        raise WorkspaceError(
            f"--utility is {shorten(text)}; expected one of {', '.join(UTILITIES)}"
        )
    from erasable.selection import MutualInformation, NaiveBayes, NearestNeighbor, VarianceReduction

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
    from sklearn.gaussian_process.kernels import RBF

    kernel = RBF(math.sqrt(n_features / 2))
    return MutualInformation(kernel) if text == "mutual-information" else VarianceReduction(kernel)


def read_objective(text: str, samples: int | None) -> Any:
    """Return the objective of a name.

    >>> objective("cvar:0.2", None).alpha
    0.2
    """
    from erasable.selection import CVaR, Expected

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
