"""Item-based collaborative filtering on counts of the users that have two items together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

import erasable.recommend._pair_kernels as kernels
from erasable.core._schema import Array, Fields, Sizes, refuse, refuse_many
from erasable.core.arrays import Floats, Ints, Ints32, Values
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.grid import MAX_ROWS
from erasable.core.ids import shorten
from erasable.core.messages import refuse_many_rows
from erasable.core.passes import Block, Pass
from erasable.core.sparse import parts
from erasable.core.tables import Table

MAX_PAIRS = 2**30
"""Most pairs of items that are counted: they take 8 bytes each."""

_SIMILARITIES = {
    "cosine": kernels.COSINE,
    "jaccard": kernels.JACCARD,
    "lift": kernels.LIFT,
}
_ROWS = 2**12  # at once, of those that recommendations are for


@dataclass(frozen=True, eq=False, slots=True)
class _Sets:
    """The items of each row, ascending, see `_pair_kernels`; and how many values are negative."""

    starts: Ints
    members: Ints32
    n_negative: int

    @classmethod
    def of(cls, rows: Values) -> Self:
        """Read all rows of a matrix, dense or sparse."""
        if issparse(rows):
            values, items, indptr = parts(rows)
            has = values > 0
            members, starts = items[has], np.append(0, np.cumsum(has))[indptr]
        else:
            values, has = rows, rows > 0
            members = np.nonzero(has)[1]
            starts = np.append(0, np.cumsum(np.count_nonzero(has, axis=1)))
        n_negative = int(np.count_nonzero(values < 0))
        return cls(starts.astype(np.int64), members.astype(np.int32), n_negative)


@dataclass(frozen=True, eq=False, slots=True)
class _Pairs:
    """The triangle of counts, see `_pair_kernels`."""

    starts: Ints
    items: Ints32
    counts: Ints32

    @classmethod
    def of(cls, sets: _Sets, n_items: int) -> Self:
        """Count the pairs of sets."""
        members = sets.members
        ends = _starts_of(np.bincount(members, minlength=n_items))[:-1].copy()
        places, stops = np.zeros((2, members.size), dtype=np.int64)
        kernels.find_places(sets.starts, members, ends, places, stops)
        sizes, seen = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.int32)
        kernels.count_sizes(members, ends, places, stops, seen, sizes)
        pairs = cls._empty(_starts_of(sizes))
        queue, found = np.zeros((2, n_items), dtype=np.int32)
        tails = pairs.starts[:-1].copy()
        kernels.count_pairs(
            members, ends, places, stops, queue, found, tails, pairs.items, pairs.counts
        )
        return pairs

    @classmethod
    def _empty(cls, starts: Ints) -> Self:
        size = int(starts[-1])
        if size > MAX_PAIRS:
            raise InvalidDataError(
                f"{size} pairs of items occur together; expected at most {MAX_PAIRS}, as each "
                "takes 8 bytes; leave out rare items, or users of very many"
            )
        return cls(starts, np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.int32))

    @property
    def arrays(self) -> tuple[Ints, Ints32, Ints32]:
        """Starts, items and counts."""
        return self.starts, self.items, self.counts

    @property
    def singles(self) -> Ints32:
        """Number of users of each item."""
        singles = np.zeros(self.starts.size - 1, dtype=np.int32)
        some = np.diff(self.starts) > 0
        singles[some] = self.counts[self.starts[1:][some] - 1]  # the last of a row is its own
        return singles

    def plus(self, other: _Pairs) -> _Pairs:
        """Return the counts of both together."""
        starts, none = np.zeros_like(self.starts), np.zeros(0, dtype=np.int32)
        kernels.merge(*self.arrays, *other.arrays, starts, none, none)
        both = self._empty(starts)
        kernels.merge(*self.arrays, *other.arrays, *both.arrays)
        return both

    def with_sets(self, sets: _Sets) -> _Pairs:
        """Add sets: in place, or in other arrays where there are new pairs."""
        if kernels.shift(*self.arrays, sets.starts, sets.members, 0):
            return self.plus(_Pairs.of(sets, self.starts.size - 1))
        kernels.shift(*self.arrays, sets.starts, sets.members, 1)
        return self

    def without_sets(self, sets: _Sets) -> _Pairs:
        """Subtract sets: in place, or in other arrays where pairs have no user any more."""
        gone = kernels.shift(*self.arrays, sets.starts, sets.members, -1)
        if not gone:
            return self
        items, counts = np.zeros((2, self.items.size - gone), dtype=np.int32)
        left = _Pairs(np.zeros_like(self.starts), items, counts)
        kernels.drop_zeros(*self.arrays, *left.arrays)
        return left

    def of_item(self, item: int) -> tuple[Ints, Ints32]:
        """Return the items that an item is in a pair with, ascending, and the counts."""
        first, own = self.starts[item : item + 2].tolist()
        later = own + np.flatnonzero(self.items[own:] == item)
        rows = np.searchsorted(self.starts, later, side="right") - 1
        places = np.append(np.arange(first, own), later)
        others = np.append(self.items[first:own], rows)
        kept = others != item
        return others[kept], self.counts[places[kept]]


def _starts_of(sizes: Ints) -> Ints:
    starts: Ints = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return starts


class _Count(Pass[tuple[_Pairs, int]]):
    """Count the pairs of items in rows, and the negative values."""

    def of_block(self, block: Block) -> tuple[_Pairs, int]:
        rows = block.matrix if block.every else block.matrix[block.rows]
        sets = _Sets.of(rows)
        return _Pairs.of(sets, rows.shape[1]), sets.n_negative

    def merge(self, one: tuple[_Pairs, int], other: tuple[_Pairs, int]) -> tuple[_Pairs, int]:
        return one[0].plus(other[0]), one[1] + other[1]


@dataclass(frozen=True, eq=False, slots=True)
class _Neighbors:
    """The similarities of each item with others, in rows as those of `_Pairs`."""

    starts: Ints
    items: Ints32
    values: Floats

    @classmethod
    def of(cls, pairs: _Pairs, kind: int, n_users: int) -> Self:
        """Compute all similarities that are not 0, ascending by item."""
        tails, none = np.zeros(pairs.starts.size - 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        how = kind, float(n_users), *pairs.arrays, pairs.singles
        kernels.mirror(*how, tails, none, np.zeros(0))
        made = cls._empty(_starts_of(tails))
        kernels.mirror(*how, made.starts[:-1].copy(), made.items, made.values)
        return made

    @classmethod
    def _empty(cls, starts: Ints) -> Self:
        return cls(starts, np.zeros(starts[-1], dtype=np.int32), np.zeros(starts[-1]))

    def best(self, n: int) -> _Neighbors:
        """Keep the largest similarities of each item."""
        made = self._empty(_starts_of(np.minimum(np.diff(self.starts), n)))
        whole = self.starts, self.items, self.values
        kernels.keep_best(*whole, made.starts, made.items, made.values)
        return made


class _Derived:
    """Cache of the similarities: reading them changes no attribute of the estimator."""

    neighbors: _Neighbors | None = None


class ItemNeighbors(Erasable):
    """Recommend the items that users have together with those of a user, and forget users exactly.

    A record is a user, and a column an item: a user has the items whose values are above 0. The
    model counts the users of every item, and of every pair of items. A deletion subtracts the pairs
    of the user, in time in their number; if no other user has some pair, the counts are also copied
    without it. Dense and sparse rows of the same values give the same model.

    Parameters
    ----------
    similarity : {"cosine", "jaccard", "lift"}, default="cosine"
        Similarity of two items, of which n users in all have one, the other, or both:
        ``both / sqrt(one * other)``, ``both / (one + other - both)``, or
        ``both * n / (one * other)``.
    n_neighbors : int or None, default=None
        How many of the items most similar to an item of a user count in a recommendation, for each
        of these items; None: all.

    Attributes
    ----------
    item_counts_ : ndarray of shape (n_items,), int64
        Number of users of each item.
    n_pairs_ : int
        Number of pairs of two items that some user has together.
    ids_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    InvalidDataError
        Negative values, from `fit`, `add`, `correct`, `replace` and `recommend`; more than
        ``2**30`` pairs of items that occur together.
    MagnitudeError
        From `fit`: more than ``2**27`` users.

    Notes
    -----
    The method is that of Sarwar et al. [1]_ on sets of items, with recommendations by sums of
    similarities, as those of Deshpande and Karypis [2]_. Similarities are computed from the counts
    at the first call of `recommend` after a change of the model, and kept until the next one, in 24
    bytes for each pair. Equal scores are in the order of the columns.

    The counts of the pairs that occur are kept, of each pair once, in 8 bytes: if all occur, they
    take as much memory as a square matrix of 32-bit integers. The saved file holds these counts.
    Counts of few users, such as that of a pair that only one user has, are data of these users: the
    file is to be protected as the data are.

    A record is a whole user. Rows of single interactions are not joined by `groups`, which says, as
    in every estimator, which records leave together: make one row of each user first.

    References
    ----------
    .. [1] Sarwar, Karypis, Konstan and Riedl, "Item-based collaborative filtering recommendation
       algorithms", WWW 2001.
    .. [2] Deshpande and Karypis, "Item-based top-N recommendation algorithms", ACM Transactions on
       Information Systems 22, 2004.

    Examples
    --------
    >>> import pandas as pd
    >>> from erasable.recommend import ItemNeighbors
    >>> has = pd.DataFrame(
    ...     {"tea": [1, 1, 0, 1], "milk": [1, 1, 0, 0], "rice": [0, 1, 1, 0]},
    ...     index=["ann", "bob", "cyd", "dan"],
    ... )
    >>> model = ItemNeighbors().fit(has)
    >>> model.recommend(ids=["ann", "dan"])
    [array(['rice'], dtype=object), array(['milk', 'rice'], dtype=object)]
    >>> model.similar_items("tea", return_scores=True)
    (array(['milk', 'rice'], dtype=object), array([0.81649658, 0.40824829]))
    >>> model.delete(["bob"], digest=False).action
    'updated'
    >>> model.recommend(ids=["ann", "dan"])
    [array([], dtype=object), array(['milk'], dtype=object)]
    >>> model.digest() == ItemNeighbors().fit(has.drop(index="bob")).digest()
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "similarity": [StrOptions(set(_SIMILARITIES))],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
    }
    _attaches_by_learning = True
    _reads_blocks = True
    _sees_storage: ClassVar[bool] = False
    _as_if_dense: ClassVar[bool] = True
    _pairs: _Pairs
    _derived: _Derived

    def __init__(self, similarity: str = "cosine", *, n_neighbors: int | None = None) -> None:
        self.similarity = similarity
        self.n_neighbors = n_neighbors

    # -- what is learned -----------------------------------------------------------------------

    def _fit_rows(self) -> None:
        held = self._attached()
        refuse_many_rows(held.n_live, MAX_ROWS)
        pairs, n_negative = Table.of(held).run(_Count())
        self._refuse_negative(n_negative)
        self._take(pairs)

    def _take(self, pairs: _Pairs) -> None:
        self._pairs = self._accelerator = pairs
        self._derived = _Derived()

    def _sets(self, rows: Ints) -> _Sets:
        """Read the items of rows of the records."""
        matrix, places = Table.of(self._attached()).in_memory(rows)
        return _Sets.of(matrix[places])

    def _refuse_negative(self, n_negative: int) -> None:
        if n_negative:
            name = type(self).__name__
            raise InvalidDataError(
                f"Negative values in data passed to {name}: {n_negative} of them; expected 0 where "
                "a user lacks an item, and more where a user has it; pass X > 0 where that is meant"
            )

    def _update(self, delta: Delta) -> Outcome | None:
        pairs = self._pairs
        if delta.leaving.size:
            pairs = pairs.without_sets(self._sets(delta.leaving))
        if delta.arriving.size:
            refuse_many_rows(self._attached().n_live, MAX_ROWS)
            sets = self._sets(delta.arriving)
            self._refuse_negative(sets.n_negative)
            pairs = pairs.with_sets(sets)
        self._take(pairs)
        return Outcome("updated")

    def _state(self) -> dict[str, Any]:
        pairs = self._pairs
        return {"starts": pairs.starts, "items": pairs.items, "counts": pairs.counts}

    def _restore(self, state: dict[str, Any]) -> None:
        self._pairs = _Pairs(state["starts"], state["items"], state["counts"])
        self._derived = _Derived()

    def _schema(self) -> Fields:
        refuse_many(self._n_records)
        d = self.n_features_in_
        return Fields(
            {
                "starts": Array("int64", (d + 1,), least=0),
                "items": Array("int32", ("n_pairs",), least=0, most=d - 1),
                "counts": Array("int32", ("n_pairs",), least=1, most=1, per_record=True),
            },
            relations=(_check_triangle,),
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    # -- what follows --------------------------------------------------------------------------

    @property
    def item_counts_(self) -> Ints:
        """Number of users of each item."""
        self._check_fitted()
        return self._pairs.singles.astype(np.int64)

    @property
    def n_pairs_(self) -> int:
        """Number of pairs of two items that some user has together."""
        self._check_fitted()
        return int(self._pairs.counts.size - np.count_nonzero(self._pairs.singles))

    @property
    def _how(self) -> tuple[int, float]:
        """The first arguments of kernels of similarities."""
        return _SIMILARITIES[self._at_fit("similarity")], float(self._n_records)

    def similar_items(self, item: Any, n: int = 10, *, return_scores: bool = False) -> Any:
        """Return the items that are most similar to an item.

        Parameters
        ----------
        item : int or str
            Number of its column, or its name where the model was fitted on a frame.
        n : int, default=10
            How many items.
        return_scores : bool, default=False
            Return the similarities, too.

        Returns
        -------
        items : ndarray of shape (n_found,), object or int64
            At most `n` names of columns, or numbers where they have none, by falling similarity.
            Items that no user has together with this one are left out.
        scores : ndarray of shape (n_found,), float64
            Their similarities, if `return_scores`.

        Raises
        ------
        InvalidInputError
            There is no such item, or `n` is no integer of 1 or more.
        """
        self._check_fitted()
        _check_n(n)
        column = self._column(item)
        others, both = self._pairs.of_item(column)
        singles, values = self._pairs.singles, np.zeros(others.size)
        kernels.compare(*self._how, both, float(singles[column]), singles[others], values)
        best = _best(values, n)
        items = self._named(others[best])
        return (items, values[best]) if return_scores else items

    def recommend(
        self,
        X: Any = None,
        *,
        ids: Iterable[Any] | None = None,
        n: int = 10,
        return_scores: bool = False,
    ) -> Any:
        """Recommend items that users lack, by the sum of the similarities to those they have.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_users, n_items), default=None
            Items of users, as in `fit`, whether or not the model holds them.
        ids : array-like of int or str, default=None
            Records that the model holds, in the place of `X`. By default all, in row order.
        n : int, default=10
            How many items for each user.
        return_scores : bool, default=False
            Return the sums, too.

        Returns
        -------
        items : list of ndarray, object or int64
            For each user at most `n` names of columns, or numbers where they have none, by falling
            score. Items without similarity to those of the user are left out.
        scores : list of ndarray of float64
            Their scores, if `return_scores`.

        Raises
        ------
        InvalidInputError
            Both `X` and `ids` are given, or `n` is no integer of 1 or more.
        InvalidDataError
            Values of `X` that `fit` does not take.
        UnknownIdError
            Ids that the model does not hold.
        DetachedError
            `X` is not given, and the model was loaded without its records.
        """
        self._check_fitted()
        _check_n(n)
        if X is not None and ids is not None:
            raise InvalidInputError("X and ids were given; expected one of them; leave one out")
        neighbors, scores = self._neighbors(), np.zeros(self.n_features_in_)
        items: list[NDArray[Any]] = []
        sums: list[Floats] = []
        for sets in self._asked(X, ids):
            for first, stop in pairwise(sets.starts.tolist()):
                scores[:] = 0.0
                kernels.add_scores(
                    neighbors.starts, neighbors.items, neighbors.values,
                    sets.members[first:stop], scores,
                )  # fmt: skip
                best = _best(scores, n)
                items.append(self._named(best))
                sums.append(scores[best])
        return (items, sums) if return_scores else items

    def _asked(self, X: Any, ids: Iterable[Any] | None) -> Iterator[_Sets]:
        """Yield the items of rows that recommendations are for."""
        if X is not None:
            sets = _Sets.of(self._read_matrix(X))
            self._refuse_negative(sets.n_negative)
            yield sets
            return
        held = self._attached()
        rows = held.live_rows() if ids is None else held.rows(ids)
        for start in range(0, rows.size, _ROWS):
            yield self._sets(rows[start : start + _ROWS])

    def _neighbors(self) -> _Neighbors:
        if self._derived.neighbors is None:
            kind, _ = self._how
            neighbors = _Neighbors.of(self._pairs, kind, self._n_records)
            most = self._at_fit("n_neighbors")
            self._derived.neighbors = neighbors if most is None else neighbors.best(most)
        return self._derived.neighbors

    def _column(self, item: Any) -> int:
        """Return the number of the column of an item."""
        names = self._column_names
        if isinstance(item, str):
            if names is not None and item in names:
                return names.index(item)
        elif _is_integer(item) and 0 <= item < self.n_features_in_:
            return int(item)
        numbers = f"a number from 0 to {self.n_features_in_ - 1}"
        raise InvalidInputError(
            f"item={shorten(item)} is no column; expected {numbers}"
            + ("" if names is None else ", or a name of a column")
            + "; pass one"
        )

    def _named(self, items: Any) -> NDArray[Any]:
        if "feature_names_in_" not in self.__dict__:
            return np.asarray(items, dtype=np.int64)
        return np.asarray(self.__dict__["feature_names_in_"][items])


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_n(n: Any) -> None:
    if not _is_integer(n) or n < 1:
        raise InvalidInputError(f"n={shorten(n)}; expected an integer of 1 or more; pass one")


def _best(values: Floats, n: int) -> Ints:
    """Return the places of the largest values above 0, by falling value; equal ones in order."""
    places = np.flatnonzero(values > 0)
    if places.size > n:
        least = np.partition(values[places], places.size - n)[places.size - n]
        places = places[values[places] >= least]
    return places[np.argsort(-values[places], kind="stable")][:n]


def _check_triangle(value: dict[str, Any], at: str, sizes: Sizes) -> None:
    """Refuse counts of pairs that are no triangle, or more than their items have."""
    starts, items, counts = value["starts"], value["items"], value["counts"]
    lengths = np.diff(starts)
    if starts[0] != 0 or starts[-1] != items.size or (lengths < 0).any():
        refuse("starts", "numbers that do not ascend to the number of pairs", "starts of rows")
    rows = np.repeat(np.arange(lengths.size), lengths)
    ends = starts[1:][lengths > 0] - 1
    later = np.ones(items.size, dtype=np.bool_)
    later[1:] = (items[1:] > items[:-1]) | (rows[1:] > rows[:-1])
    if not later.all() or (items > rows).any() or (items[ends] != rows[ends]).any():
        refuse("items", "other items", "ascending ones, up to the item of the row")
    singles = _Pairs(starts, items, counts).singles
    if (counts > np.minimum(singles[rows], singles[items])).any():
        refuse("counts", "more users of a pair than of an item", "as many, or fewer")
