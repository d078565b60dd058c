"""Bitwise comparison of two models, component by component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from erasable.core.digest import flatten, leaf_hash
from erasable.core.errors import InvalidInputError
from erasable.core.estimator import Erasable
from erasable.core.params import class_path

E = TypeVar("E", bound=Erasable)


def refit(model: E) -> E:
    """Fit a new model on the records that another model still holds.

    Parameters
    ----------
    model : fitted estimator of erasable
        Not changed.

    Returns
    -------
    estimator of the same class
        With the same parameters and seeds, fitted on a copy of the live records. By the law
        it equals `model`.

    Raises
    ------
    InvalidInputError
        Not an estimator of erasable.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    DetachedError
        The model was loaded without its records.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [3.0]])
    >>> _ = model.delete([2])
    >>> refit(model).digest() == model.digest()
    True
    """
    refuse_other(model)
    records = model._attached().copy_records()
    return model._seeded_clone().fit(records)


def refuse_other(model: object) -> None:
    """Refuse anything but an estimator of erasable."""
    if not isinstance(model, Erasable):
        raise InvalidInputError(
            f"the model is a {type(model).__name__}; expected an estimator of erasable"
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in one component of two states.

    Attributes
    ----------
    name : str
        Dotted name of the component.
    reason : str
        What differs.

    Examples
    --------
    >>> print(Difference("sums", "1 of 8 values"))
    sums: 1 of 8 values
    """

    name: str
    reason: str

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Equality:
    """Whether two models are the same.

    Attributes
    ----------
    equal : bool
        Their classes, digests and all components are equal, bit for bit.
    differences : tuple of Difference
        The components that are not.
    n_components : int
        How many components were compared.
    digests : tuple of two str

    Examples
    --------
    >>> print(Equality(True, (), 9, ("a/1:00", "a/1:00")))
    equal: 9 components, digest a/1:00
    """

    equal: bool
    differences: tuple[Difference, ...]
    n_components: int
    digests: tuple[str, str]

    @property
    def elsewhere(self) -> bool:
        """Whether they were made on different kinds of machines, so that no more is said of them.

        The bits of what a network makes depend on the machine; its models say where they were made.
        Which records a model has, and the weights of a network, do not depend on it.
        """
        differ = [each.name.split(".") for each in self.differences]
        of_more = any(
            name[-1] in ("record_set", "n_records") or name[-2:] == ["network", "weights"]
            for name in differ
        )
        return not of_more and any("platform" in name for name in differ)

    def __bool__(self) -> bool:
        """Return whether the models are equal."""
        return self.equal

    def __str__(self) -> str:
        """Return one line, and one more for each difference."""
        if self.equal:
            return f"equal: {self.n_components} components, digest {self.digests[0]}"
        lines = [f"different: {len(self.differences)} of {self.n_components} components"]
        if self.elsewhere:
            lines.append("  made on another kind of machine, where last bits differ: compare there")
        lines += [f"  {difference}" for difference in self.differences]
        lines += [f"  digest: {self.digests[0]}", f"     and: {self.digests[1]}"]
        return "\n".join(lines)


def equality(model: Erasable, other: Erasable | None = None) -> Equality:
    """Compare a model with another, or with its refit on what is left.

    Parameters
    ----------
    model : fitted estimator of erasable
    other : fitted estimator of erasable, default=None
        By default ``refit(model)``.

    Returns
    -------
    Equality
        True where they are the same; prints what differs.

    Examples
    --------
    >>> from erasable.preprocessing import MinMaxScaler
    >>> model = MinMaxScaler().fit([[1.0], [2.0], [3.0]])
    >>> _ = model.delete([2])
    >>> bool(equality(model))
    True
    >>> print(equality(model, MinMaxScaler().fit([[1.0], [2.0]], ids=[0, 7])))
    different: 1 of ... components
      record_set: ...
    """
    if other is None:
        other = refit(model)
    for each in (model, other):
        refuse_other(each)
    digests = (model.digest(), other.digest())
    left, right = dict(flatten(model.state())), dict(flatten(other.state()))
    names = sorted(left.keys() | right.keys())
    differences = [
        Difference(name, _reason(left, right, name))
        for name in names
        if not (
            name in left
            and name in right
            and leaf_hash(name, left[name]) == leaf_hash(name, right[name])
        )
    ]
    if type(model) is not type(other):
        reason = f"{class_path(type(model))} and {class_path(type(other))}"
        differences.insert(0, Difference("class", reason))
    elif digests[0] != digests[1] and not differences:
        differences.append(Difference("digest", "the states are equal, the digests are not"))
    return Equality(
        equal=not differences and digests[0] == digests[1],
        differences=tuple(differences),
        n_components=len(names),
        digests=digests,
    )


def _reason(left: dict[str, Any], right: dict[str, Any], name: str) -> str:
    if name not in left or name not in right:
        return f"only in the {'first' if name in left else 'second'}"
    a, b = left[name], right[name]
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return f"{_shown(a)} and {_shown(b)}"
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype} of shape {a.shape} and {b.dtype} of shape {b.shape}"
    n_different = int(np.count_nonzero(_bits(a) != _bits(b)))
    text = f"{n_different} of {a.size} values"
    if a.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            text += f", at most {np.nanmax(np.abs(a - b), initial=0.0):.3g} apart"
    return text


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, np.ndarray) else f"an array of {value.shape}"
    return text if len(text) <= 60 else text[:57] + "..."


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind != "f":
        return array
    return array.view(f"u{array.dtype.itemsize}")
