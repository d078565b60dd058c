"""A network that is to forget, from an estimator or a torch module, and the records for it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import erasable.neural._learning as learning
from erasable.core.errors import InvalidDataError, InvalidInputError, InvalidParameterError
from erasable.neural._estimators import NetworkClassifier
from erasable.neural._learning import Batches, Loss, TrainingPlan
from erasable.neural._modules import arrays_of
from erasable.neural._network import Network

_EPOCHS = 10  # of a training, where a network does not say
_UNSEEN = 0  # classes of a network of torch, before it is shown a record


@dataclass(frozen=True)
class NetworkToForget:
    """A network that is to forget."""

    network: torch.nn.Module  # a copy
    loss: Loss
    plan: TrainingPlan  # of its training; devices and threads are taken from it
    n_epochs: int  # of its training
    n_classes: int | None  # None where it learns numbers
    read: Callable[[Any, Any], Batches]  # makes batches of a pair of records and targets
    # makes the result for the caller from a network that has changed
    returned: Callable[[torch.nn.Module], Any]
    fresh: Callable[[int], torch.nn.Module]  # makes an untrained network by a seed

    @classmethod
    def of(cls, network: Any) -> NetworkToForget:
        """Copy a fitted estimator, or a network of torch for classes."""
        if isinstance(network, Network):
            return _of_estimator(network)
        if isinstance(network, torch.nn.Module):
            return _of_module(network)
        raise InvalidParameterError(
            f"network is a {type(network).__name__}; expected a fitted NetworkClassifier or "
            "NetworkRegressor, or a torch.nn.Module"
        )

    def records(self, given: Any, name: str) -> Batches:
        """Read a set of records: a pair of records and targets that is not empty."""
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise InvalidInputError(
                f"{name} is a {type(given).__name__}; expected records and their targets; pass "
                "(X, y)"
            )
        X, y = given
        n = len(y) if hasattr(y, "__len__") else 0
        if n == 0:
            raise InvalidInputError(
                f"{name} has no records; expected one or more; there is nothing to do without"
            )
        try:
            return self.read(X, y)
        except ValueError as error:
            raise InvalidDataError(f"{name}: {error}") from error

    def shown(self, data: Batches) -> NetworkToForget:
        """Return it with its number of classes, found by a record; one output is refused."""
        if self.n_classes != _UNSEEN:
            return self
        rows, _, _ = data.on(torch.device(self.plan.device), np.arange(1))
        with torch.no_grad():
            n = learning.passed(self.network.eval(), rows).shape[1]
        if n < 2:
            raise InvalidParameterError(
                f"the network makes {n} number of a record; expected one for each of two or more "
                "classes; pass a fitted NetworkRegressor, if it learns numbers"
            )
        return replace(self, n_classes=n)

    def other(self, plan: TrainingPlan) -> TrainingPlan:
        """Return a plan with the device, the precision and the threads of the network."""
        mine = self.plan
        return replace(
            plan, device=mine.device, mixed_precision=mine.mixed_precision,
            n_threads=mine.n_threads,
        )  # fmt: skip


def _of_estimator(estimator: Network) -> NetworkToForget:
    check_is_fitted(estimator, "weights_")

    def read(X: Any, y: Any) -> Batches:
        return estimator._read(X, y, None, first=False)

    def returned(network: torch.nn.Module) -> Any:
        found = deepcopy(estimator)
        found._adopt(network)
        return found

    def fresh(seed: int) -> torch.nn.Module:
        made = clone(estimator).set_params(random_state=seed)
        for name in ("classes_", "n_features_in_", "_shape_of_targets"):
            if hasattr(estimator, name):
                setattr(made, name, getattr(estimator, name))
        made._begin()
        return made.module()

    n_classes = len(estimator.classes_) if isinstance(estimator, NetworkClassifier) else None
    return NetworkToForget(
        estimator.module(), estimator._loss, estimator._plan(), estimator.max_epochs, n_classes,
        read, returned, fresh,
    )  # fmt: skip


def _of_module(module: torch.nn.Module) -> NetworkToForget:
    network = deepcopy(module).to("cpu")

    def read(X: Any, y: Any) -> Batches:
        rows, targets = np.asarray(X, dtype=np.float32), np.asarray(y)
        if targets.ndim != 1 or targets.dtype.kind not in "iu" or targets.min() < 0:
            raise ValueError(
                f"targets of {targets.dtype} and shape {targets.shape}; expected the number of a "
                "class for each record, from 0"
            )
        if len(rows) != len(targets):
            raise ValueError(f"{len(rows)} records and {len(targets)} targets; expected as many")
        if not np.isfinite(rows).all():
            raise ValueError("records with NaN or infinite values; expected finite ones")
        return Batches(rows, targets.astype(np.int64))

    def fresh(seed: int) -> torch.nn.Module:
        made = deepcopy(network)
        parts = [each for each in made.modules() if hasattr(each, "reset_parameters")]
        own = {id(each) for part in parts for each in part.parameters(recurse=False)}
        if any(id(each) not in own for each in made.parameters()):
            raise InvalidParameterError(
                "the network has parameters outside of layers with reset_parameters(); expected "
                "a network that can be begun anew; pass a fitted NetworkClassifier"
            )
        for part in parts:
            part.reset_parameters()
        return made

    def loss(made: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        if int(classes.max()) >= made.shape[1]:
            raise InvalidDataError(
                f"a record of class {int(classes.max())}, and the network makes {made.shape[1]} "
                "numbers of a record; expected classes that it knows"
            )
        return learning.cross_entropy(made, classes)

    def returned(changed: torch.nn.Module) -> torch.nn.Module:
        found = deepcopy(module)
        found.load_state_dict(changed.state_dict())
        return found

    return NetworkToForget(network, loss, TrainingPlan(), _EPOCHS, _UNSEEN, read, returned, fresh)


def refuse_copies(forget: Batches, retain: Batches) -> None:
    """Refuse records that are in both sets."""
    known = set(_keys(forget))
    n = sum(key in known for key in _keys(retain))
    if n:
        raise InvalidInputError(
            f"{n} records are to be forgotten and retained; expected sets without a record in "
            "common; take them out of one, or pass allow_copies=True if they are other people's"
        )


def _keys(data: Batches) -> list[bytes]:
    return [
        row.tobytes() + target.tobytes()
        for row, target in zip(data.rows, data.targets, strict=True)
    ]


def weights_are_finite(network: torch.nn.Module) -> bool:
    """Tell whether all weights are numbers."""
    return all(np.isfinite(each).all() for each in arrays_of(network).values())
