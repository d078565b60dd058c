"""Staying models of owners that decide independently, with given probabilities (section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import name_some
from erasable.selection._records import as_labels, codes_of
from erasable.selection.staying._alike import BetaBinomial
from erasable.selection.staying._model import Bound, Staying, check_probabilities, check_probability
from erasable.selection.staying._sizes import BinomialSizes, Sizes


@dataclass(frozen=True, eq=False)
class Independent(Staying):
    """Each owner stays or leaves independently of the others.

    A staying probability can also be the credibility of a record: the probability that it is true
    (appendix I.3).

    Parameters
    ----------
    s : float, mapping or array-like of shape (n_records,)
        The probability that a record stays: one for all, one for each class, or one for each
        record.

    Examples
    --------
    >>> Independent(0.9).subset_pmf(1)
    array([0.1, 0.9])
    """

    s: Any

    def __post_init__(self) -> None:
        if isinstance(self.s, Mapping):
            ours: Any = {
                label: check_probability(p, f"s[{label!r}]") for label, p in self.s.items()
            }
        elif not isinstance(self.s, list | tuple) and np.ndim(self.s) == 0:
            ours = check_probability(self.s, "s")
        else:
            ours = check_probabilities(self.s, "s")
        object.__setattr__(self, "s", ours)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Independent)
            and type(self.s) is type(other.s)
            and bool(np.all(self.s == other.s))
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def by_class(self) -> bool:
        return isinstance(self.s, Mapping)

    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        if isinstance(self.s, Mapping):
            probability = np.empty(n)
            for label, rows in rows_by_class(self.s, labels, n).items():
                probability[rows] = self.s[label]
        elif np.ndim(self.s):
            if len(self.s) != n:
                raise InvalidInputError(
                    f"s has {len(self.s)} probabilities for {n} records; expected one for each "
                    "record; pass them in the order of the rows"
                )
            probability = self.s.copy()
        else:
            probability = np.full(n, self.s)
        return Bound(probability, np.full(n, -1, dtype=np.int64))

    def sizes(self, k: int | None = None) -> Sizes:
        if isinstance(self.s, float):
            return BinomialSizes(self.s)
        return super().sizes(k)


@dataclass(frozen=True)
class Certain(Staying):
    """Everybody stays: selection that does not anticipate deletions.

    Examples
    --------
    >>> Certain().sample(3)
    array([[ True,  True,  True]])
    """

    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        return Bound(np.ones(n), np.full(n, -1, dtype=np.int64))

    def sizes(self, k: int | None = None) -> Sizes:
        return BinomialSizes(1.0)


@dataclass(frozen=True)
class PerClass(Staying):
    """Each class has its own staying model, and classes are independent.

    Parameters
    ----------
    models : mapping of label to staying model or float
        `Independent` with one probability (or that number), `BetaBinomial` or `Certain`: models
        that need not know how many of a class are chosen.
    labels : array-like of shape (n_records,), default=None
        The class of each record here, where it is not that of `y`: whether it is held, for example.

    Examples
    --------
    >>> patients = PerClass({"ill": BetaBinomial(4, 16), "well": Certain()})
    >>> patients.sample(3, labels=["well", "well", "ill"], random_state=0)
    array([[ True,  True, False]])
    >>> PerClass({"held": 0.0, "new": 1.0}, ["held", "new", "held"]).sample(3)
    array([[False,  True, False]])
    """

    models: Mapping[Any, Any]
    labels: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.models, Mapping) or not self.models:
            raise InvalidParameterError(
                f"models is a {type(self.models).__name__}; expected a mapping of class to staying "
                "model; pass {class: model}"
            )
        ours = {label: as_staying(model) for label, model in self.models.items()}
        for label, model in ours.items():
            plain = isinstance(model, Independent) and isinstance(model.s, float)
            if not plain and not isinstance(model, BetaBinomial | Certain):
                raise InvalidParameterError(
                    f"the model of class {label!r} is {type(model).__name__}; expected "
                    "Independent(s), BetaBinomial or Certain, because nobody knows before how "
                    "many of a class are chosen; take one of them"
                )
        object.__setattr__(self, "models", ours)
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(as_labels(self.labels, "labels").tolist()))

    @property
    def by_class(self) -> bool:
        return self.labels is None

    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        probability, block = np.empty(n), np.full(n, -1, dtype=np.int64)
        labels = labels if self.labels is None else self.labels
        laws: list[Sizes] = []
        for label, rows in rows_by_class(self.models, labels, n).items():
            law = self.models[label].sizes()
            probability[rows] = law.rank_weights(1)[0]
            if isinstance(self.models[label], BetaBinomial):
                block[rows] = len(laws)
                laws.append(law)
        return Bound(probability, block, laws)


@dataclass(frozen=True, eq=False)
class Groups(Staying):
    """Records of one group stay or leave together, as those of one owner do (appendix E).

    Parameters
    ----------
    labels : array-like of shape (n_records,)
        The group of each record.
    s : float, mapping of group to float, or staying model
        The probability that a group stays; or the model of which groups do, in which each group is
        one owner. Numbers of owners, as of `Uniform`, are then numbers of all groups. Of a model
        by class, all records of a group have to be of one class; of one with a probability for
        each owner, groups are in ascending order.

    Examples
    --------
    >>> Groups(["anna", "anna", "ben"], {"anna": 1.0, "ben": 0.0}).sample(3)
    array([[ True,  True, False]])
    >>> rate_is_uncertain = Groups(["anna", "anna", "ben"], BetaBinomial(8, 2))
    >>> rate_is_uncertain.bind(3).probability
    array([0.8, 0.8, 0.8])
    """

    labels: Any
    s: Any

    def __post_init__(self) -> None:
        labels = as_labels(self.labels, "labels")
        if labels.ndim != 1:
            raise InvalidInputError(
                f"labels has shape {labels.shape}; expected one group for each record; pass a list"
            )
        if isinstance(self.s, Staying):
            ours: Any = self.s
        elif isinstance(self.s, Mapping):
            ours = {each: check_probability(p, f"s[{each!r}]") for each, p in self.s.items()}
        else:
            ours = check_probability(self.s, "s")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "s", ours)

    @property
    def by_class(self) -> bool:
        return isinstance(self.s, Staying) and self.s.by_class

    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        if len(self.labels) != n:
            raise InvalidInputError(
                f"there are {len(self.labels)} labels of groups for {n} records; expected one for "
                "each record; pass them in the order of the rows"
            )
        unit = codes_of(self.labels, "labels of groups")
        if isinstance(self.s, Staying):
            return self._bound(self.s, unit, labels)
        groups = dict(zip(unit.tolist(), self.labels.tolist(), strict=True))
        if isinstance(self.s, Mapping):
            absent = [groups[code] for code in sorted(groups) if groups[code] not in self.s]
            if absent:
                raise InvalidInputError(
                    f"s has no probability for the groups {name_some(absent)}; expected one for "
                    "each; add them"
                )
            each = np.array([self.s[groups[code]] for code in sorted(groups)])
        else:
            each = np.full(len(groups), self.s)
        return Bound(each[unit], unit=unit)

    def _bound(self, model: Staying, unit: NDArray[np.int64], labels: Any) -> Bound:
        """Return the form of a model of groups, for their records."""
        n = int(unit.max(initial=-1)) + 1
        found = model.bound(n, k=n, labels=self._of_groups(unit, labels) if self.by_class else None)
        own = unit if found.unit is None else found.unit[unit]
        return Bound(found.probability[unit], found.block[unit], found.laws, own)

    def _of_groups(self, unit: NDArray[np.int64], labels: Any) -> Any:
        """Return the class of each group; several classes in one are refused."""
        if labels is None:
            return None
        classes = as_labels(labels, "labels")
        if classes.shape != unit.shape:
            return classes  # of which the model complains
        each = dict(zip(unit.tolist(), classes.tolist(), strict=True))
        mixed = {
            self.labels[row]
            for row, (code, label) in enumerate(zip(unit.tolist(), classes.tolist(), strict=True))
            if each[code] != label
        }
        if mixed:
            raise InvalidInputError(
                f"{len(mixed)} groups have records of several classes, such as "
                f"{name_some(sorted(mixed, key=str))}; expected one class of each group, because "
                "the staying model differs by class"
            )
        return np.array([each[code] for code in sorted(each)], dtype=classes.dtype)


def as_staying(given: Any) -> Staying:
    """Return a staying model; a number, a mapping or an array is that of independent owners.

    Raises
    ------
    InvalidParameterError
        It is not a staying model, and cannot be made into one.

    Examples
    --------
    >>> as_staying(0.9)
    Independent(s=0.9)
    """
    if isinstance(given, Staying):
        return given
    if given is None or isinstance(given, str | bytes | bool | type):
        raise InvalidParameterError(
            f"staying={given!r}; expected a probability, one for each class or record, or a "
            "staying model; pass 0.9, or Independent(0.9)"
        )
    return Independent(given)


def rows_by_class(by: Mapping[Any, Any], labels: Any, n: int) -> dict[Any, NDArray[np.int64]]:
    """Return the rows of each class of `by`, which must have exactly the classes of the labels."""
    if labels is None:
        raise InvalidInputError(
            "the staying model differs by class, and there are no labels; expected one for each "
            "record; pass y"
        )
    labels = as_labels(labels, "labels")
    if labels.shape != (n,):
        raise InvalidInputError(
            f"labels have shape {labels.shape} for {n} records; expected one for each record; "
            "pass them in the order of the rows"
        )
    classes = labels.tolist()
    present = set(classes)
    unknown, absent = sorted(present - by.keys(), key=str), sorted(by.keys() - present, key=str)
    if unknown or absent:
        fault = (
            f"has no entry for the classes {name_some(unknown)}"
            if unknown
            else f"names the classes {name_some(absent)}, which no record has"
        )
        raise InvalidInputError(
            f"the staying model {fault}; expected one for each class of y; correct its keys"
        )
    rows: dict[Any, list[int]] = {label: [] for label in by}
    for row, label in enumerate(classes):
        rows[label].append(row)
    return {label: np.array(each, dtype=np.int64) for label, each in rows.items()}
