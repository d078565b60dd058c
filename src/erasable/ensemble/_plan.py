"""Plans for members to learn, before records are read: which of them, how, and from where on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier

from erasable.core.arrays import Ints
from erasable.core.classes import narrowed
from erasable.core.records import Records
from erasable.core.tape import Tape
from erasable.ensemble._allotment import Share
from erasable.ensemble._members import Task
from erasable.refit._given import weights_parameter
from erasable.refit._recipe import Recipe


@dataclass(frozen=True, eq=False)
class Plan:
    """What a member is to learn.

    Attributes
    ----------
    member : int
    name : str
        Of the member, for messages.
    recipe : Recipe
        For its columns, and for records of one class, if its are.
    tape : Tape
        Of the member.
    share : Share
        All its records.
    columns : ndarray of int64, or None
        Columns that it looks at; None for all.
    text : list of int
        Those of its columns that are text.
    labels : list
        Classes of its records, sorted; empty if it learns no classes.
    kept : dict of int to dict
        What is known after slices of which nothing has changed.
    """

    member: int
    name: str
    recipe: Recipe
    tape: Tape
    share: Share
    columns: Ints | None
    text: list[int]
    labels: list[Any]
    kept: dict[int, Any] = field(default_factory=dict)

    @property
    def basis(self) -> tuple[Any, ...]:
        """What the records decide as a whole: slices can be kept only while it is the same."""
        return tuple(self.labels), tuple(self.text)

    @property
    def sliced(self) -> bool:
        """Whether it is learned slice by slice."""
        return self.share.slices is not None and len(self.labels) != 1

    @property
    def begin(self) -> int:
        """Position of the first row that has to be learned."""
        if not self.kept or self.share.slices is None:
            return 0
        return int(np.searchsorted(self.share.slices, max(self.kept), side="right"))

    def task(self, records: Records) -> Task:
        """Take the records that have to be learned, in the form in which they are."""
        begin, share = self.begin, self.share
        rows, times = share.rows[begin:], share.times
        weighs = weights_parameter(self.recipe.template) is not None
        if times is not None and not weighs:
            rows = np.repeat(rows, times)
        X, y, weights = self.recipe.given(records, rows, self.text, self.columns)
        if times is not None and weighs:
            weights = times.astype(np.float64) if weights is None else weights * times
        assert y is not None
        if not self.sliced or share.slices is None:
            return Task(self.name, self.recipe, self.tape, X, y, weights)
        numbers, sizes = np.unique(share.slices[begin:], return_counts=True)
        ends = dict(zip(numbers.tolist(), np.cumsum(sizes).tolist(), strict=True))
        start = self.kept[max(self.kept)] if self.kept else None
        classes = None
        if self.labels:
            assert records.y is not None
            classes = narrowed(np.array(self.labels, dtype=records.y.dtype))
            y = y.astype(classes.dtype)  # of the last slices alone, it may be a narrower one
        return Task(self.name, self.recipe, self.tape, X, y, weights, ends, classes, start)


def of_one_class(recipe: Recipe) -> Recipe:
    """Return the recipe for records of one class, from which many estimators cannot learn.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from erasable.core.estimator import Erasable
    >>> recipe = of_one_class(Recipe.of(LogisticRegression(), Erasable()))
    >>> X, y = np.array([[0.0], [1.0]]), np.array(["a", "a"], dtype=object)
    >>> recipe.fitted(recipe.fit(Tape(3), X, y, None)).predict([[7.0]]).tolist()
    ['a']
    """
    return Recipe(DummyClassifier(), {}, recipe.columns, recipe.documents)
