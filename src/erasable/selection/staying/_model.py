"""Base of staying models, and their form for the records of one problem."""

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


@dataclass(frozen=True)
class Bound:
    """A staying model over n records: who decides for each, and by which law.

    Records of one `unit` stay or leave together. Units of block -1 decide on their own, with
    `probability`; those of block b >= 0 are alike, and `laws[b]` says how many of them stay. What
    blocks do is independent of each other. Where everybody stays, all models say the same, and are
    kept as one: each record decides on its own. So their selections agree to the last bit.

    Attributes
    ----------
    probability : ndarray of shape (n_records,), float64
        That the record stays, whatever is known of the others: its marginal probability.
    block : ndarray of shape (n_records,), int64
    laws : list of Sizes
    unit : ndarray of shape (n_records,), int64, or None
        None where each record decides for itself.

    Examples
    --------
    >>> Bound(np.ones(2), np.array([-1, -1])).is_certain
    True
    """

    probability: Floats
    block: Ints
    laws: list[Sizes] = field(default_factory=list)
    unit: Ints | None = None

    def __post_init__(self) -> None:
        if self.is_certain:
            object.__setattr__(self, "block", np.full(len(self.probability), -1, dtype=np.int64))
            object.__setattr__(self, "laws", [])
            object.__setattr__(self, "unit", None)

    @property
    def is_certain(self) -> bool:
        """Whether everybody stays."""
        return bool((self.probability == 1).all())


class Staying(ABC):
    """How likely owners are to leave their data with you.

    A staying model says with which probability exactly a given part of the owners stays. Every one
    here is a margin of one law over all the records, which is what keeps the expectation of a
    monotone and submodular utility monotone and submodular (propositions 1 and 2).

    Examples
    --------
    >>> from erasable.selection import Independent
    >>> isinstance(Independent(0.9), Staying)
    True
    """

    @abstractmethod
    def bind(self, n: int, *, k: int | None = None, labels: Any = None) -> Bound:
        """Say what it means for n records, k of which will be chosen.

        Raises
        ------
        InvalidParameterError, InvalidInputError
            It does not suit them.
        """

    def sizes(self, k: int | None = None) -> Sizes:
        """Return the law of how many stay, where owners are alike.

        Raises
        ------
        InvalidParameterError
            They are not, so that sizes say too little.
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
            How many were chosen so far.
        k : int, default=t
            How many will be chosen in all; models that are given by numbers of owners need it.

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
        from erasable.selection.staying._sampling import Sampler

        check_size(n, "n")
        if not check_size(n_samples, "n_samples"):
            raise InvalidParameterError("n_samples=0; expected 1 or more")
        sampler = Sampler(self.bind(n, k=n, labels=labels), n_samples, random_state)
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
        told = f"has shape {given.shape}" if given.ndim != 1 else f"holds {wrong} outside of [0, 1]"
        raise InvalidInputError(
            f"{name} {told}; expected probabilities from 0 to 1 in one dimension; pass one for "
            "each record"
        )
    return given
