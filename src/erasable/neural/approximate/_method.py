"""Base of methods: their call, their report, and what they refuse."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

import erasable.neural._learning as learning
from erasable.core.errors import InvalidParameterError, UnlearnableError
from erasable.core.params import check_params
from erasable.neural._learning import Batches, TrainingPlan
from erasable.neural.approximate._subject import NetworkToForget, refuse_copies, weights_are_finite

_BELOW_SEED = 2**31
_LARGEST_LOSS = 1e6

OPTIMIZING: dict[str, Any] = {
    "optimizer": [StrOptions({"adam", "sgd"})],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "momentum": [Interval(Real, 0, 1, closed="left")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "n_epochs": [Interval(Integral, 1, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}


@dataclass(frozen=True)
class ApproximateReport:
    """What a method did.

    Attributes
    ----------
    method : str
    exactness : str
        "approximate": how far the network is from one that never saw the records is not known. Of
        `Retrain`, "trained again".
    n_forgotten, n_retained : int
    n_steps : int
        Changes of the weights.
    n_gradients : int
        Gradients of single records that were computed; a product with a Hessian counts as two.
    n_gradients_of_retraining : int
        That training the network again would compute.
    seconds : float

    Examples
    --------
    >>> report = ApproximateReport("FineTune", "approximate", 5, 100, 2, 200, 1000, 0.1)
    >>> report.saving
    0.8
    """

    method: str
    exactness: str
    n_forgotten: int
    n_retained: int
    n_steps: int
    n_gradients: int
    n_gradients_of_retraining: int
    seconds: float

    @property
    def saving(self) -> float:
        """The share of a training's gradients that was not computed; it may be negative."""
        return 1 - self.n_gradients / self.n_gradients_of_retraining

    def __str__(self) -> str:
        """Return one line."""
        share = self.n_gradients / self.n_gradients_of_retraining
        return (
            f"{self.method}, {self.exactness}: {self.n_gradients:,} gradients of records, "
            f"{share:.0%} of a training's, {self.seconds:.1f} s"
        )


class UnlearningRun:
    """A network while it forgets, with a count of the gradients computed."""

    def __init__(
        self, subject: NetworkToForget, forget: Batches, retain: Batches, seed: int
    ) -> None:
        self.subject = subject.shown(retain)
        self.forget, self.retain, self.seed = forget, retain, seed
        self.network = subject.network.to(subject.plan.device)
        self.loss = subject.loss
        self.generator = np.random.default_rng(seed)
        self.n_steps = self.n_gradients = 0

    def batches(self, data: Batches, size: int) -> list[Any]:
        """Divide records into batches, in an order drawn."""
        return learning.parts_of(self.generator.permutation(len(data)), size)

    def mean_loss(self, data: Batches, places: Any, plan: TrainingPlan) -> Any:
        """Return the mean loss of a batch; its gradients are counted."""
        self.n_gradients += len(places)
        return learning.mean_loss(self.network, data, places, self.loss, plan)

    def step(self, optimizer: torch.optim.Optimizer, loss: Any, kept: Any = None) -> None:
        """Change the weights down a loss; of parameters in `kept` only where it is true.

        A loss that is not finite or beyond all bounds raises UnlearnableError.
        """
        value = float(loss.detach())
        if not abs(value) < _LARGEST_LOSS:
            raise diverged(value)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if kept is None:
            optimizer.step()
        else:
            step_where(optimizer, kept)
        self.n_steps += 1

    def descend(self, plan: TrainingPlan, n_epochs: int, kept: Any = None) -> None:
        """Train on the records that are left."""
        optimizer = plan.optimizer_of(self.network)
        self.network.train()
        for _ in range(n_epochs):
            for places in self.batches(self.retain, plan.batch_size):
                self.step(optimizer, self.mean_loss(self.retain, places, plan), kept)


def step_where(optimizer: torch.optim.Optimizer, kept: Any) -> None:
    """Take a step, and restore the weights of which `kept` is false."""
    learning_ones = list(kept)
    before = [each.detach().clone() for each in learning_ones]
    optimizer.step()
    with torch.no_grad():
        for each, old in zip(learning_ones, before, strict=True):
            each.copy_(torch.where(kept[each], each, old))


def diverged(value: float) -> UnlearnableError:
    """Return the error for a loss beyond all bounds."""
    return UnlearnableError(
        f"the loss became {value:.3g}; expected one below {_LARGEST_LOSS:.0e}; the network is as "
        "it was; pass a smaller learning_rate or fewer epochs"
    )


class Method(BaseEstimator):
    """A way to make a network forget records: call it with a network and two sets of records.

    Examples
    --------
    >>> from erasable.neural.approximate import FineTune
    >>> FineTune(n_epochs=1)
    FineTune(n_epochs=1)
    """

    exactness: ClassVar[str] = "approximate"
    of_classes_only: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = OPTIMIZING

    def __call__(
        self, network: Any, forget: Any, retain: Any, *, allow_copies: bool = False
    ) -> tuple[Any, ApproximateReport]:
        """Return a network that has forgotten, about; the one that is given stays as it is.

        Parameters
        ----------
        network : fitted NetworkClassifier or NetworkRegressor, or torch.nn.Module
            A module is taken for one that makes a number for each class.
        forget, retain : tuple of (X, y)
            Records that it has learned from: those that go, and the others.
        allow_copies : bool, default=False
            Whether a record may be in both sets: a copy of it, which another person has given.

        Returns
        -------
        network : as was given
        report : ApproximateReport

        Raises
        ------
        InvalidParameterError
            A parameter out of range, or no network.
        InvalidInputError, InvalidDataError
            A set that is empty, holds what the network cannot take, or a record of the other.
        UnlearnableError
            The loss or the weights are no numbers any more.
        """
        check_params(self)
        began = time.perf_counter()
        subject = NetworkToForget.of(network)
        self.refuse_numbers(learns_classes=subject.n_classes is not None)
        gone, left = subject.records(forget, "forget"), subject.records(retain, "retain")
        if not allow_copies:
            refuse_copies(gone, left)
        seed = int(check_random_state(self.random_state).randint(_BELOW_SEED))
        plan = subject.other(self._plan())
        with plan.in_effect(seed):
            work = UnlearningRun(subject, gone, left, seed)
            found = self._forget(work, plan)
            changed = work.network.to("cpu")
        if not weights_are_finite(changed):
            raise diverged(np.nan)
        told = {
            "method": type(self).__name__,
            "exactness": self.exactness,
            "n_forgotten": len(gone),
            "n_retained": len(left),
            "n_steps": work.n_steps,
            "n_gradients": work.n_gradients,
            "n_gradients_of_retraining": subject.n_epochs * len(left),
            "seconds": time.perf_counter() - began,
        }
        return subject.returned(changed), self._report(found, told)

    def refuse_numbers(self, *, learns_classes: bool) -> None:
        """Raise InvalidParameterError for a network of numbers, if the method takes none."""
        if self.of_classes_only and not learns_classes:
            raise InvalidParameterError(
                f"{type(self).__name__} is for networks that learn classes; expected a "
                "NetworkClassifier; take FineTune or NegGradPlus for numbers"
            )

    def _plan(self) -> TrainingPlan:
        given = self.get_params(deep=False)
        names = ("optimizer", "learning_rate", "momentum", "weight_decay", "batch_size")
        return TrainingPlan(**{name: given[name] for name in names if name in given})

    @abstractmethod
    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> Any:
        """Change the network of the run; return further fields of the report."""

    def _report(self, found: Any, told: dict[str, Any]) -> ApproximateReport:
        return ApproximateReport(**told)
