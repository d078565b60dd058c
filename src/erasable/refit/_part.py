"""A fitted estimator as a file holds it, read attribute by attribute, with nothing trusted.

Each attribute that is read is compared with what the caller expects. At the end those that were not
read are counted, so that no attribute goes unseen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from erasable.core.digest import state_root
from erasable.core.params import check_params, function_path
from erasable.refit._codec import encode
from erasable.refit._names import Known

_NESTED = ("steps",)  # parameters that hold what is fitted itself
_TEXT = re.compile(r"<U([0-9]+)")


class UncheckedError(Exception):
    """A state is of no kind that is checked, or it fails a check; the message says why."""


class ContradictionError(UncheckedError):
    """A state is not that of its parameters: a fit to any records would be another."""


def refuse_contradictions(tree: Any, template: BaseEstimator, known: Known) -> None:
    """Raise ContradictionError where a fitted estimator has other numbers or strings as parameters.

    Steps of pipelines are compared too; what holds other estimators is not.
    """
    from sklearn.pipeline import Pipeline  # late, because it takes a while to import

    own = tree.get("attributes") if isinstance(tree, Mapping) else None
    if not isinstance(own, Mapping):
        return
    for name, value in template.get_params(deep=False).items():
        plain_value = value is None or isinstance(value, bool | int | float | str)
        if plain_value and not (name in own and same(own[name], encode(value, known))):
            raise ContradictionError(f"{name} is not that of the model")
    if isinstance(template, Pipeline):
        steps = members(own["steps"], "steps", ("list",))
        for each, (_, step) in zip(steps, template.steps, strict=False):
            if isinstance(step, BaseEstimator):
                refuse_contradictions(members(each, "steps", ("tuple",))[-1], step, known)


def expect(holds: Any, reason: str) -> None:
    """Raise UncheckedError where something does not hold."""
    if not holds:
        raise UncheckedError(reason)


def same(one: Any, other: Any) -> bool:
    """Tell whether two encoded values are equal, bit for bit."""
    return state_root({"": one}) == state_root({"": other})


def close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Tell whether sums are equal but for rounding."""
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9))


class FittedPart:
    """A fitted estimator of a file, whose parameters are those of `template`.

    `tree` may be anything; `columns` are the names of the columns it is given, if it needs them;
    `varying` are parameters that the caller reads like attributes. Raise UncheckedError if it is
    another estimator, or has other parameters.
    """

    def __init__(
        self,
        tree: Any,
        template: BaseEstimator,
        n_features: int,
        known: Known,
        columns: list[str] | None = None,
        varying: tuple[str, ...] = (),
    ) -> None:
        self.template, self.n_features, self.known = template, n_features, known
        self.columns = columns
        self.name = type(template).__name__
        expect(
            isinstance(tree, Mapping)
            and tree.keys() == {"is", "class", "feature_names", "attributes"}
            and (tree["is"], tree["class"]) == ("estimator", function_path(type(template))),
            f"{self.name} is expected, and something else is there",
        )
        names = tree["feature_names"]
        expect(names is None or names == columns, "feature_names are not those of the model")
        self._attributes: dict[str, Any] = dict(tree["attributes"])
        self._left = self._attributes.copy()
        check_params(template)
        for name, value in template.get_params(deep=False).items():
            if name not in (*_NESTED, *varying):
                own = self.raw(name)
                expect(same(own, encode(value, known)), f"{name} is not that of the model")

    def has(self, name: str) -> bool:
        """Tell whether there is an attribute that has not been read."""
        return name in self._left

    def raw(self, name: str) -> Any:
        """Take an attribute as it is encoded."""
        expect(name in self._left, f"{name} is missing")
        return self._left.pop(name)

    def value(self, name: str) -> Any:
        """Take an attribute that is a number, text, None or an array."""
        return plain(self.raw(name), name)

    def skip(self, *names: str) -> None:
        """Take attributes that are there with numbers that nothing is computed from."""
        for name in names:
            if name in self._left:
                value = self.value(name)
                dull = value is None or np.asarray(value).dtype.kind in "biuf"
                expect(dull or (name.endswith("solver_") and value in _SOLVERS), f"{name} is odd")

    def array(
        self, name: str, *shapes: tuple[int, ...], low: float = -np.inf, high: float = np.inf
    ) -> NDArray[Any]:
        """Take an array of finite numbers of one of some shapes, within bounds."""
        return numbers(self.value(name), name, *shapes, low=low, high=high)

    def integer(self, name: str, low: int, high: int) -> int:
        """Take an integer within bounds."""
        value = self.value(name)
        expect(type(value) is int and low <= value <= high, f"{name} is out of range")
        return int(value)

    def labels(self) -> NDArray[Any]:
        """Take the labels of classes, sorted and each once."""
        found = self.value("classes_")
        expect(
            isinstance(found, np.ndarray)
            and found.dtype.kind in "biufO"
            and found.ndim == 1
            and found.size > 0,
            "classes_ are no labels",
        )
        if found.dtype.kind == "O":
            expect({type(each) for each in found.tolist()} <= {str, int}, "classes_ are no labels")
        elif found.dtype.kind == "f":
            expect(np.isfinite(found).all(), "classes_ are not finite")
        listed = found.tolist()
        expect(listed == sorted(set(listed)), "classes_ are not sorted, or not unique")
        labels: NDArray[Any] = found
        return labels

    def features(self) -> int:
        """Take the number of features, and return it."""
        self.integer("n_features_in_", self.n_features, self.n_features)
        return self.n_features

    def expect_all(self, attributes: Mapping[str, Any]) -> None:
        """Hold all attributes, with those that have been read, against the ones of another fit."""
        expect(same(self._attributes, attributes), "it is not what a fit to its records gives")
        self._left.clear()

    def finish(self) -> None:
        """Raise UncheckedError if an attribute has not been read."""
        expect(not self._left, f"{next(iter(self._left), '')} of {self.name} is not checked")


_SOLVERS = ("cholesky", "svd", "sparse_cg", "lsqr", "sag", "saga", "lbfgs", "eigen", "full")


def numbers(
    value: Any, name: str, *shapes: tuple[int, ...], low: float = -np.inf, high: float = np.inf
) -> NDArray[Any]:
    """Hold an array against its shapes and bounds."""
    array = np.asarray(value)
    expect(array.dtype.kind in "biuf", f"{name} are no numbers")
    expect(array.shape in shapes, f"{name} has the shape {array.shape}")
    expect(np.isfinite(array).all(), f"{name} is not finite")
    expect(((array >= low) & (array <= high)).all(), f"{name} is out of range")
    return array


def plain(tree: Any, name: str) -> Any:
    """Decode a number, text, None or an array, and nothing else."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, np.ndarray):
        return tree
    kind = tree.get("is") if isinstance(tree, Mapping) else None
    if kind == "scalar" and isinstance(tree["array"], np.ndarray) and tree["array"].ndim == 0:
        expect(tree["array"].dtype.kind in "biuf", f"{name} is no number")
        return tree["array"].item()
    if kind == "columns" and isinstance(tree["array"], np.ndarray):
        return tree["array"].T
    if kind == "text" and isinstance(tree["array"], np.ndarray):
        return _text(tree, name)
    if kind in ("tuple", "list") and isinstance(tree.get("items"), np.ndarray):
        return tree["items"].tolist()
    raise UncheckedError(f"{name} is of no kind that is checked")


def _text(tree: Mapping[str, Any], name: str) -> NDArray[Any]:
    array: NDArray[Any] = tree["array"]
    expect(
        array.dtype.kind == "O" and all(type(each) is str for each in array.ravel().tolist()),
        f"{name} is no text",
    )
    width = _TEXT.fullmatch(str(tree["dtype"]))
    longest = max(map(len, array.ravel().tolist()), default=1)
    # A type of wider text takes memory for it in each item.
    expect(width is not None and int(width[1]) == max(longest, 1), f"{name} has another width")
    return array


def members(tree: Any, name: str, kinds: Sequence[str] = ("list", "tuple")) -> list[Any]:
    """Return the encoded items of a list or tuple."""
    expect(
        isinstance(tree, Mapping) and tree.get("is") in kinds and tree.get("of") == "parts",
        f"{name} is no list",
    )
    parts = tree["parts"]
    expect(set(parts) == {str(place) for place in range(len(parts))}, f"{name} is no list")
    return [parts[str(place)] for place in range(len(parts))]
