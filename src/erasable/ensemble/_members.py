"""Members of an ensemble: the tasks from which they learn, and their fitted estimators.

A member is a pure function of its recipe, its tape and its own records in the order of their keys.
So it can be learned in any process, and a deletion concerns only the members that hold the record.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from erasable.core._changing import Change
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.attachment import HeldRecords
from erasable.core.classes import narrowed
from erasable.core.digest import LeafHash, leaf_hash, state_root
from erasable.core.errors import UnlearnableError
from erasable.core.passes import storage
from erasable.core.tape import Tape
from erasable.ensemble._allotment import Share
from erasable.refit._fitting import ask, one_thread
from erasable.refit._recipe import Recipe

Tree = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """The task of one member: the process that learns it gets no other records."""

    name: str  # of the member, for messages
    recipe: Recipe
    tape: Tape  # of the member
    # as the estimator takes them:
    X: Any
    y: NDArray[Any]
    weights: Floats | None
    # for each slice to be learned, where it ends in `X`; None where there are no slices
    ends: dict[int, int] | None = None
    # labels of all the member's records, where its estimator learns classes slice by slice
    classes: NDArray[Any] | None = None
    start: Tree | None = None  # what it knew after the slices before; None where it knew nothing


@dataclass(eq=False)
class Trail:
    """States of a member after each of its slices, from which learning can be resumed.

    It holds nothing of a deleted record, because all after the slice of that record is learned
    again. It is an accelerator: in neither state, pickle nor file, and rebuilt when it is missing.
    """

    # what the member's records as a whole decide: their classes, and which columns are text
    basis: tuple[Any, ...]
    trees: dict[int, Tree]  # for each slice with records, what was known after it

    def before(self, piece: int) -> dict[int, Tree]:
        """Return what was known before a slice, slice by slice."""
        return {number: tree for number, tree in self.trees.items() if number < piece}


@dataclass(eq=False)
class Member:
    """A member that has learned; a subclass says what its estimator is."""

    size: float  # its records, or the sum of their weights
    record_set: Words  # (2,); hash of the set of their ids
    columns: Ints | None  # columns that it looks at; None for all
    text: list[int]  # columns that it takes as text, of those that it looks at
    estimator: Any  # None where it has to be fitted again

    @abstractmethod
    def learned(self) -> dict[str, Any]:
        """Return what its estimator has learned, as plain values."""

    def state(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "fitted": self.learned(),
            "record_set": self.record_set,
            "size": self.size,
            "text_columns": np.array(self.text, dtype=np.int64),
        }

    @abstractmethod
    def hashed_state(self, name: str) -> LeafHash:
        """Return the hash of its state."""

    @abstractmethod
    def shown(self, recipe: Recipe) -> Any:
        """Return its estimator for users, who cannot change the member by it."""

    @abstractmethod
    def ask(self, method: str, matrix: Any, recipe: Recipe) -> Any:
        """Ask the estimator about rows."""

    def attach(self, records: HeldRecords, share: Callable[[], Share], *, vouched: bool) -> None:
        """Take its records, where it came from a file or a pickle; `share` finds them."""

    def following(
        self, name: str, records: HeldRecords, share: Share, leaving: Ints, arriving: Ints
    ) -> Following | None:
        """Return the change that makes its estimator one of `share`; None: it is fitted again.

        `leaving` are rows of its records, `arriving` rows of `share`.
        """
        return None

    def let_go(self) -> None:
        """Leave nothing of records in it: another replaces it, and somebody may keep it."""


@dataclass(frozen=True, eq=False)
class Following:
    """A change of the records that a member's own model holds, which it is ready to follow."""

    name: str  # of the member, for messages
    member: Member
    change: Change
    # of the member, afterwards:
    size: float
    record_set: Words


@dataclass(eq=False)
class Fitted(Member):
    """A member whose estimator is scikit-learn's, and keeps no records."""

    tree: Tree  # what `estimator` has learned, as plain values, see `erasable.refit`
    _root: LeafHash | None = field(default=None, repr=False)

    def learned(self) -> dict[str, Any]:
        """Return what its estimator has learned, as plain values."""
        return self.tree

    def hashed_state(self, name: str) -> LeafHash:
        """Return the hash of its state, made once."""
        if self._root is None:
            self._root = leaf_hash(name, state_root(self.state()).hex())
        return self._root

    def shown(self, recipe: Recipe) -> Any:
        """Return a copy of the estimator; None without one."""
        return None if self.estimator is None else recipe.copied(self.tree)

    def ask(self, method: str, matrix: Any, recipe: Recipe) -> Any:
        """Ask the estimator about rows."""
        if self.columns is not None:
            matrix, recipe = matrix[:, self.columns], recipe.on(self.columns)
        given = recipe.show(matrix, self.text)
        return ask(
            self.estimator, method, given,
            matrix=matrix, names=recipe.columns, columns=self.columns,
        )  # fmt: skip


def takes(estimator: Any, method: str, name: str) -> bool:
    """Tell whether a method of an estimator takes something by name.

    >>> from sklearn.linear_model import SGDClassifier
    >>> takes(SGDClassifier(), "partial_fit", "classes")
    True
    """
    return name in signature(getattr(estimator, method)).parameters


def carry_out(task: Task) -> dict[int, Tree]:
    """Learn what a task says; return what was known after each slice, or, without, after slice 0.

    Learning goes through plain values after every slice, whether they are kept or not: resuming
    from them is then the same as having come so far without a break.
    """
    recipe = task.recipe
    try:
        if task.ends is None:
            return {0: recipe.fit(task.tape, task.X, task.y, task.weights)}
        trees: dict[int, Tree] = {}
        tree, begin = task.start, 0
        for number, end in task.ends.items():
            part = slice(begin, end)
            named: dict[str, Any] = {}
            if task.weights is not None:
                named["sample_weight"] = task.weights[part]
            if tree is None:
                estimator = recipe.begin(task.tape)
                if task.classes is not None:
                    named["classes"] = task.classes
            else:
                estimator = recipe.copied(tree)
            # Numbers go by slice: what is resumed is given fewer of them than what begins anew.
            y = task.y[part] if task.classes is not None else narrowed(task.y[part])
            tree = trees[number] = recipe.go_on(estimator, task.X[part], y, **named)
            begin = end
        return trees
    except UnlearnableError as error:
        raise UnlearnableError(f"{task.name}: {error}") from None


def carry_out_all(
    tasks: Iterable[Task], n_tasks: int, n_jobs: int | None, matrix: Any
) -> Iterable[dict[int, Tree]]:
    """Carry out tasks, in several processes where there is something to share out.

    Records are sent to the processes and never through files, in which they would stay. Where
    their features are on workers, these learn, and tasks are read as workers have room for them.
    """
    if storage(matrix).n_calls:
        called: Iterable[dict[int, Tree]] = matrix.call(partial(carry_out, task) for task in tasks)
        return called
    if n_tasks < 2 or effective_n_jobs(n_jobs) < 2:
        return map(carry_out, tasks)
    first = next(iterator := iter(tasks))
    # With threads as the backend, tasks would reset each other's limits but for this one.
    with one_thread(first.recipe.template):
        calls = (delayed(carry_out)(task) for task in itertools.chain([first], iterator))
        found: list[dict[int, Tree]] = Parallel(n_jobs=n_jobs, max_nbytes=None)(calls)
    return found
