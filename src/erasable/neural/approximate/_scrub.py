"""SCRUB: away from the original network on what is to be forgotten, and close to it elsewhere."""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral, Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval

import erasable.neural._learning as learning
from erasable.neural._learning import Batches, TrainingPlan
from erasable.neural.approximate._method import OPTIMIZING, Method, UnlearningRun


class Scrub(Method):
    """Disagree with the network as it was on the records that go, and agree on the others.

    In its first epochs it goes up the divergence from the network as it was on what is to be
    forgotten; in each epoch it goes down the divergence and the loss on what is left.

    Parameters
    ----------
    n_epochs : int, default=2
        How often it goes through the records that are left.
    n_max_epochs : int, default=2
        In how many of these it goes through the records that go, too.
    agreement : float, default=0.5
        Weight of the divergence on what is left; that of the loss is 1.
    temperature : float, default=2.0
        By which outputs are divided in divergences.
    optimizer : {"adam", "sgd"}, default="adam"
    learning_rate : float, default=5e-4
    momentum, weight_decay : float, default=0.0
    batch_size : int, default=128
    random_state : int, RandomState or None, default=None

    References
    ----------
    Kurmanji, Triantafillou, Hayes and Triantafillou, *Towards unbounded machine unlearning*,
    NeurIPS 2023. They have more epochs, and stop going up later.

    Examples
    --------
    >>> Scrub(n_epochs=3)
    Scrub(n_epochs=3)
    """

    of_classes_only: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OPTIMIZING,
        "n_max_epochs": [Interval(Integral, 0, None, closed="left")],
        "agreement": [Interval(Real, 0, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_epochs: int = 2,
        *,
        n_max_epochs: int = 2,
        agreement: float = 0.5,
        temperature: float = 2.0,
        optimizer: str = "adam",
        learning_rate: float = 5e-4,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int = 128,
        random_state: Any = None,
    ) -> None:
        self.n_epochs = n_epochs
        self.n_max_epochs = n_max_epochs
        self.agreement = agreement
        self.temperature = temperature
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.random_state = random_state

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> None:
        teacher = deepcopy(work.network).eval().requires_grad_(False)
        optimizer = plan.optimizer_of(work.network)
        work.network.train()
        for number in range(self.n_epochs):
            if number < self.n_max_epochs:
                for places in work.batches(work.forget, plan.batch_size):
                    away, _ = self._losses(work, teacher, work.forget, places, plan)
                    work.step(optimizer, -away)
            for places in work.batches(work.retain, plan.batch_size):
                away, loss = self._losses(work, teacher, work.retain, places, plan)
                work.step(optimizer, self.agreement * away + loss)

    def _losses(
        self,
        work: UnlearningRun,
        teacher: torch.nn.Module,
        data: Batches,
        places: Any,
        plan: TrainingPlan,
    ) -> tuple[Any, Any]:
        """Return the divergence from the teacher, and the loss, of a batch."""
        work.n_gradients += len(places)
        rows, targets, _ = data.on(torch.device(plan.device), places)
        made = learning.passed(work.network, rows)
        with torch.no_grad():
            known = learning.passed(teacher, rows)
        n, warm = work.subject.n_classes, self.temperature
        away = torch.nn.functional.kl_div(
            (made[:, :n].float() / warm).log_softmax(dim=1),
            (known[:, :n].float() / warm).log_softmax(dim=1),
            reduction="batchmean", log_target=True,
        )  # fmt: skip
        return away * warm**2, work.loss(made, targets).mean()
