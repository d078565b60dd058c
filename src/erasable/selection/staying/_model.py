"""Base of staying models, their form for the records of one problem, and draws of who stays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from erasable.core.arrays import Flags, Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.seeds import integer_below, is_number
from erasable.selection._records import as_reals
from erasable.selection.staying._sizes import Sizes

_ROUNDING = 1e-12  # of sums of probabilities


@dataclass(frozen=True)
class Bound:
    """A staying model for n records: the unit of each, and the distribution of units that stay.

    Records of one `unit` stay or leave together. Units of block -1 are independent, with
    `probability`; those of block b >= 0 are exchangeable, and `laws[b]` is the distribution of the
    number who stay. Blocks are independent of each other. Models in which everybody stays have one
    form, that of independent records, so that their selections agree to the last bit.

    Attributes
    ----------
    probability : ndarray of shape (n_records,), float64
        The marginal probability that the record stays.
    block : ndarray of shape (n_records,), int64, or None
        By default -1 of all: records are independent.
    laws : list of Sizes
    unit : ndarray of shape (n_records,), int64, or None
        None where each record is a unit of its own.

    Examples
    --------
    >>> Bound(np.ones(2)).is_certain
    True
    """

    probability: Floats
    block: Ints = None  # type: ignore[assignment]
    laws: list[Sizes] = field(default_factory=list)
    unit: Ints | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "probability", np.asarray(self.probability, dtype=np.float64))
        if self.block is None or self.is_certain:
            object.__setattr__(self, "block", np.full(len(self.probability), -1, dtype=np.int64))
        if self.is_certain:
            object.__setattr__(self, "laws", [])
            object.__setattr__(self, "unit", None)

    @property
    def is_certain(self) -> bool:
        """Whether everybody stays."""
        return bool((self.probability == 1).all())

    def take(self, places: Ints) -> Bound:
        """Return its form for some of the records.

        Parameters
        ----------
        places : ndarray of int64

        Returns
        -------
        Bound
        """
        unit = None if self.unit is None else self.unit[places]
        return Bound(self.probability[places], self.block[places], self.laws, unit)


class Sampler:
    """Samples of which chosen records stay; each unit is drawn once.

    Random numbers depend on the record alone, not on when it is chosen: common random numbers, so
    that a difference of two selections comes from their records, not from chance. Two selections
    of different records have none in common; for these, random numbers by the order of choice make
    as many stay in one as in the other.

    Parameters
    ----------
    bound : Bound
    n_samples : int
    random_state : int, sequence of int, Generator or None
    by_order : bool, default=False
        Whether numbers depend on when a record is chosen, not on which one it is.
    keys : ndarray of shape (n_records,), uint64, default=None
        By which records are told from each other; by default their rows. Records of one unit are
        told by their unit.

    Examples
    --------
    >>> from erasable.selection import Independent
    >>> sampler = Sampler(Independent(0.5).bind(2), 4, 0)
    >>> sampler.add(1).shape, sampler.probability(0)
    ((4,), 0.5)
    """

    def __init__(
        self,
        bound: Bound,
        n_samples: int,
        random_state: Any = None,
        *,
        by_order: bool = False,
        keys: Any = None,
    ) -> None:
        self.bound, self.n_samples, self.by_order = bound, n_samples, by_order
        self._keys = keys if bound.unit is None else None
        self._seed = int(np.random.default_rng(random_state).integers(2**63))
        self._stayed = np.zeros((len(bound.laws), n_samples), dtype=np.int64)
        self._chosen = [0] * len(bound.laws)
        self._n_drawn = 0
        self._units: dict[int, Flags] = {}

    def probability(self, j: int) -> float | Floats:
        """Return the probability that record j stays, given who of the others does.

        Returns
        -------
        float, or ndarray of shape (n_samples,)
        """
        unit = None if self.bound.unit is None else int(self.bound.unit[j])
        if unit in self._units:
            return self._units[unit].astype(np.float64)
        block = int(self.bound.block[j])
        if block < 0:
            return float(self.bound.probability[j])
        return self.bound.laws[block].next_stays(self._chosen[block], self._stayed[block])

    def add(self, j: int) -> Flags:
        """Choose record j; return in which samples it stays, shape (n_samples,)."""
        unit = j if self.bound.unit is None else int(self.bound.unit[j])
        if self.bound.unit is not None and unit in self._units:
            return self._units[unit]
        own = unit if self._keys is None else int(self._keys[j])
        key = self._n_drawn if self.by_order else own
        self._n_drawn += 1
        draws = np.random.default_rng([self._seed, key]).random(self.n_samples)
        stays: Flags = draws < self.probability(j)
        block = int(self.bound.block[j])
        if block >= 0:
            self._chosen[block] += 1
            self._stayed[block] += stays
        if self.bound.unit is not None:
            self._units[unit] = stays
        return stays


class Staying(ABC):
    """Base of the models of which owners let their data stay.

    A staying model gives the probability that exactly a given part of the owners stays. Each of
    them is a margin of one distribution over all the records; this keeps the expectation of a
    monotone and submodular utility monotone and submodular (propositions 1 and 2). A subclass has a
    method `bind`; what it returns has no other distributions, so the law is kept.

    Attributes
    ----------
    by_class : bool
        Whether `bind` needs labels. False by default.

    Examples
    --------
    >>> class Fading(Staying):
    ...     def __init__(self, years):
    ...         self.years = years
    ...     def bind(self, n, *, k=None, labels=None):
    ...         return Bound(0.9 ** np.asarray(self.years))
    >>> Fading([0, 1]).bind(2).probability
    array([1. , 0.9])
    """

    @property
    def by_class(self) -> bool:
        """Whether it needs labels."""
        return False

    @abstractmethod
    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        """Return its form for n records, k of which will be chosen.

        Parameters
        ----------
        n : int
        k : int, default=None
            The largest number that will be held; None where it is not known.
        labels : array-like of shape (n,), default=None
            Classes, where there are any.

        Returns
        -------
        Bound

        Raises
        ------
        InvalidParameterError, InvalidInputError
            It does not fit these records.
        """

    def bound(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        """Return what `bind` returns; refuse what is no form for n records.

        The parameters and errors are those of `bind`.

        Examples
        --------
        >>> from erasable.selection import Independent
        >>> Independent(0.5).bound(2).probability
        array([0.5, 0.5])
        """
        found = self.bind(n, k=k, labels=labels)
        of = f"{type(self).__name__}.bind returned"
        if not isinstance(found, Bound):
            raise InvalidInputError(f"{of} {shorten(found)}; expected a Bound")
        if len(found.probability) != n or len(found.block) != n:
            raise InvalidInputError(
                f"{of} the form of {len(found.probability)} records for {n}; expected a "
                "probability, and a block, for each"
            )
        if not ((found.probability >= 0) & (found.probability <= 1 + _ROUNDING)).all():
            raise InvalidInputError(f"{of} probabilities outside [0, 1]; expected numbers in it")
        if int(found.block.max(initial=-1)) >= len(found.laws):
            raise InvalidInputError(
                f"{of} block {found.block.max()} and {len(found.laws)} laws; expected one for each "
                "block from 0"
            )
        return found

    def sizes(self, k: int | None = None) -> Sizes:
        """Return the distribution of the number who stay, where owners are exchangeable.

        Raises
        ------
        InvalidParameterError
            They are not exchangeable.
        """
        raise InvalidParameterError(
            f"{self!r} has no probabilities by sizes alone, because owners differ in it; expected "
            "a model in which all are alike; sample from it instead"
        )

    def subset_pmf(self, t: int, *, k: int | None = None) -> Floats:
        """Return p_t(a): the probability that of t owners exactly a given subset of a stays.

        Parameters
        ----------
        t : int
            Number chosen so far.
        k : int, default=t
            Number to be chosen in all; models that are given by numbers of owners need it.

        Returns
        -------
        ndarray of shape (t + 1,), float64

        Raises
        ------
        InvalidParameterError
            Owners differ in this model, or t is above k.

        Examples
        --------
        >>> from erasable.selection import Uniform
        >>> Uniform(0, 2).subset_pmf(2)
        array([0.33333333, 0.16666667, 0.33333333])
        """
        return self._sizes_of(t, k).subset_pmf(t)

    def size_pmf(self, t: int, *, k: int | None = None) -> Floats:
        """Return the probability that a of t owners stay, for a = 0..t.

        The parameters and errors are those of `subset_pmf`.

        Examples
        --------
        >>> from erasable.selection import Independent
        >>> Independent(0.5).size_pmf(2)
        array([0.25, 0.5 , 0.25])
        """
        return self._sizes_of(t, k).size_pmf(t)

    def _sizes_of(self, t: int, k: int | None) -> Sizes:
        check_size(t, "t")
        k = t if k is None else check_size(k, "k")
        if t > k:
            raise InvalidParameterError(
                f"t={t} of k={k} owners; expected t from 0 to k; pass how many were chosen so far"
            )
        return self.sizes(k)

    def sample(
        self, n: int, n_samples: int = 1, *, labels: Any = None, random_state: Any = None
    ) -> Flags:
        """Draw who stays of n chosen owners.

        Parameters
        ----------
        n : int
            Owners, in the order in which they were chosen.
        n_samples : int, default=1
        labels : array-like of shape (n,), default=None
            Classes, for models that depend on them.
        random_state : int, Generator or None, default=None

        Returns
        -------
        ndarray of shape (n_samples, n), bool

        Examples
        --------
        >>> from erasable.selection import PointMass
        >>> PointMass(2).sample(5, 3, random_state=0).sum(axis=1)
        array([2, 2, 2])
        """
        check_size(n, "n")
        if not check_size(n_samples, "n_samples"):
            raise InvalidParameterError("n_samples=0; expected 1 or more")
        sampler = Sampler(self.bound(n, k=n, labels=labels), n_samples, random_state)
        columns = [sampler.add(j) for j in range(n)]
        return np.array(columns, dtype=bool).reshape(n, n_samples).T


def check_size(value: Any, name: str) -> int:
    """Return a count of owners as an int of 0 or more."""
    size = integer_below(value, 2**40)
    if size is None:
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected a whole number of 0 or more; pass how many"
        )
    return size


def check_probability(value: Any, name: str) -> float:
    """Return a probability as a float."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InvalidParameterError(
            f"{name}={shorten(value)}; expected a probability from 0 to 1; pass how likely it is "
            "that data stay"
        )
    return float(value)


def check_probabilities(values: Any, name: str) -> Floats:
    """Return probabilities as an array."""
    try:
        given = as_reals(values)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"{name} is a {type(values).__name__} that holds no numbers; expected probabilities "
            "from 0 to 1; pass one for each record"
        ) from None
    wrong = int((~((given >= 0) & (given <= 1))).sum())
    if given.ndim != 1 or wrong:
        fault = (
            f"has shape {given.shape}" if given.ndim != 1 else f"holds {wrong} outside of [0, 1]"
        )
        raise InvalidInputError(
            f"{name} {fault}; expected probabilities from 0 to 1 in one dimension; pass one for "
            "each record"
        )
    return given
