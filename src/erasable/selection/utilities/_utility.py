"""Base of utilities, and their form for the records of one problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.records import Records
from erasable.selection._functions import SetFunction
from erasable.selection._sampled import Samples
from erasable.selection.staying._model import Bound, Staying


class Problem(ABC):
    """A utility with its data.

    Attributes
    ----------
    n : int
        How many records there are to choose from.
    places : ndarray of shape (n,), int64, or None
        Which of all the records these are; None where they are all.
    labels : ndarray of shape (n_records,), or None
        The classes of all records, as they were given, where these came with them.

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor
    >>> NearestNeighbor().problem([[0.0], [1.0]]).n
    2
    """

    n: int
    places: Ints | None = None

    @property
    def labels(self) -> NDArray[Any] | None:
        """The classes of all records, where these came with them."""
        return None

    @property
    def n_records(self) -> int:
        """How many records there are, those to choose from among them."""
        return self.n

    def bind(self, staying: Staying, k: int, y: Any) -> Bound:
        """Return the form of a staying model of all records for those to choose from.

        Parameters
        ----------
        staying : Staying
        k : int
            The largest number that will be held.
        y : array-like or None
            Classes, where these did not come with the records.
        """
        labels = y if self.labels is None else self.labels
        bound = staying.bound(self.n_records, k=k, labels=labels)
        return bound if self.places is None else bound.take(self.places)

    @abstractmethod
    def expected(self, bound: Bound, k: int) -> SetFunction | None:
        """Return the expected utility by a closed form; None where there is none."""

    @abstractmethod
    def samples(self, n_samples: int, k: int) -> Samples:
        """Return the utility in samples of who stays, none of them with a record yet of k."""

    def semivalues(self, bound: Bound) -> Floats | None:
        """Return what each record adds to a random part of the others; None without a formula."""
        return None

    @abstractmethod
    def value(self, chosen: Ints) -> float:
        """Return the utility of some records that all stay."""


class Utility(BaseEstimator, ABC):
    """Base of utilities: the value of a set of records for training.

    Utilities are parameters of a selection, and take their data when it is fitted.

    Attributes
    ----------
    is_submodular : bool
        Whether a record never adds more to some records than to a part of them, and never less than
        0. Then the lazy optimiser makes the choice of the greedy one, which reaches at least
        1 - 1/e of the best. False by default.

    Examples
    --------
    >>> from erasable.selection import NearestNeighbor
    >>> NearestNeighbor(metric="cosine").get_params()
    {'metric': 'cosine', 'n_candidates': None, 'n_neighbors': None, 'neighbors': None}
    """

    is_submodular = False

    @abstractmethod
    def problem(self, X: Any, y: Any = None) -> Problem:
        """Read the data.

        Raises
        ------
        InvalidInputError, InvalidParameterError
            Data or parameters from which it cannot be computed.
        """

    def problem_of_records(
        self, records: Records, held: Ints, seed: int, n_jobs: int | None = None
    ) -> Problem:
        """Read stored `Records` in passes, and choose candidates among them.

        Parameters
        ----------
        records : Records
        held : ndarray of int64
            Places of records that are held, among those that no model has deleted.
        seed : int
        n_jobs : int or None
            Threads.

        Raises
        ------
        InvalidInputError, InvalidParameterError
            As for `problem`; a utility that has no such passes.
        """
        raise InvalidInputError(
            f"X is {records!r}, and {type(self).__name__} compares records with each other in "
            "memory; expected NearestNeighbor, which reads them where they lie; pass an array, "
            "such as records.in_memory().matrix"
        )


def check_utility(given: Any) -> Utility:
    """Return a utility; anything else is refused."""
    if not isinstance(given, Utility):
        told = f"the class {given.__name__}" if isinstance(given, type) else shorten(given)
        raise InvalidParameterError(
            f"utility={told}; expected a utility; pass NearestNeighbor() or another of "
            "erasable.selection, or Custom(function)"
        )
    return given
