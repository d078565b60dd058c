"""The base of all models that are made of trees: single trees, forests and boosting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from erasable.core.arrays import Floats, Ints
from erasable.core.errors import InvalidParameterError
from erasable.core.params import decode_params
from erasable.core.weighted import Weighted
from erasable.tree._flat import PlainTree, from_arrays, to_arrays
from erasable.tree._targets import ClassTargets, TreeTargets


class ModelOfTrees(Weighted):
    """Base; a subclass says what its trees are, what they learn, and how."""

    _takes_map: ClassVar[bool] = True
    _reads_blocks: ClassVar[bool] = True
    _kind_of_targets: ClassVar[type[TreeTargets]]
    _kind_of_trees: ClassVar[type[PlainTree]]

    _settings: dict[str, Any]
    _targets: Any
    _kept_flats: Any
    """The trees, where there is no accelerator."""

    @abstractmethod
    def _state_beside_trees(self) -> dict[str, Any]:
        """Return what the state holds beside trees."""

    def _fit_targets(self) -> TreeTargets:
        return self._kind_of_targets.fit(self._attached(), self._settings)

    def _check_deletion(self, rows: Ints) -> None:
        self._refuse_weightless(rows)

    def _flats(self) -> list[Any]:
        """Return the trees."""
        self._check_fitted()
        if self._accelerator is None:
            kept: list[Any] = self._kept_flats
            return kept
        grown: list[Any] = self._accelerator.flats()
        return grown

    def _state(self) -> dict[str, Any]:
        trees = to_arrays(self._kind_of_trees, self._flats())
        return {**self._state_beside_trees(), "trees": trees}

    def _restore(self, state: dict[str, Any]) -> None:
        self._settings = decode_params(self._info.params)
        self._targets = self._kind_of_targets.from_state(state, self._settings)
        self._kept_flats = from_arrays(self._kind_of_trees, state["trees"])

    def _own_units(self, X: Any, matrix: Floats) -> Floats:
        """Return rows of X as the trees see them, in the units in which columns came."""
        if not self._comes_mapped(X):
            return matrix
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(self._unmapped(matrix))


class ModelOfClasses(ClassifierMixin, ModelOfTrees):
    """Base of the classifiers."""

    _kind_of_targets = ClassTargets
    _targets: ClassTargets
    class_weight: Any

    def _validate_params(self) -> None:
        super()._validate_params()
        for weight in self.class_weight.values() if isinstance(self.class_weight, Mapping) else ():
            if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
                raise InvalidParameterError(
                    "class_weight= holds something that is no finite number from 0 on; "
                    "expected a weight for each class; pass {label: weight}"
                )

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted; a class goes with its last record."""
        self._check_fitted()
        return self._targets.classes.labels.copy()

    def _most_probable(self, shares: Floats) -> NDArray[Any]:
        """Return the label of the largest share in each row; of several, the first."""
        predicted: NDArray[Any] = self._targets.classes.labels[shares.argmax(axis=1)]
        return predicted
