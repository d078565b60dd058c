"""Methods that continue training: on what is left, or against what is to be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from erasable.neural._learning import TrainingPlan
from erasable.neural.approximate._method import OPTIMIZING, Method, UnlearningRun


class FineTune(Method):
    """Learn on from the records that are left.

    What was learned from the others is overwritten as chance has it.

    Parameters
    ----------
    n_epochs : int, default=2
    optimizer : {"adam", "sgd"}, default="adam"
    learning_rate : float, default=5e-4
    momentum, weight_decay : float, default=0.0
    batch_size : int, default=128
    random_state : int, RandomState or None, default=None
        Seed of the order of records, and of what the network draws.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, appendix B.2.2,
    of which all defaults are.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    >>> forget, retain = (X[:1], y[:1]), (X[1:], y[1:])
    >>> network, report = FineTune(random_state=0)(torch.nn.Linear(4, 2), forget, retain)
    >>> report.n_gradients, report.n_gradients_of_retraining
    (6, 30)
    """

    def __init__(
        self,
        n_epochs: int = 2,
        *,
        optimizer: str = "adam",
        learning_rate: float = 5e-4,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int = 128,
        random_state: Any = None,
    ) -> None:
        self.n_epochs = n_epochs
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.random_state = random_state

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> None:
        work.descend(plan, self.n_epochs)


class Retrain(FineTune):
    """Train the network again from the records that are left: what the others are held against.

    It begins with weights that are drawn anew.

    Parameters
    ----------
    n_epochs : int, default=10
    optimizer : {"adam", "sgd"}, default="adam"
    learning_rate : float, default=1e-3
    momentum, weight_decay : float, default=0.0
    batch_size : int, default=128
    random_state : int, RandomState or None, default=None
        Seed of the weights, of the order of records, and of what the network draws.

    See Also
    --------
    erasable.refit.Refit : Trains again with the seeds that the records have, so that the outcome
        can be checked.

    Examples
    --------
    >>> Retrain().exactness
    'trained again'
    """

    exactness: ClassVar[str] = "trained again"

    def __init__(
        self,
        n_epochs: int = 10,
        *,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int = 128,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_epochs, optimizer=optimizer, learning_rate=learning_rate, momentum=momentum,
            weight_decay=weight_decay, batch_size=batch_size, random_state=random_state,
        )  # fmt: skip

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> None:
        work.network = work.subject.fresh(work.seed).to(plan.device)
        work.descend(plan, self.n_epochs)


class NegGradPlus(FineTune):
    """Learn on from the records that are left, and away from those that go.

    Each step goes down ``beta`` times the loss of a batch of what is left, less ``1 - beta`` times
    that of a batch of what is to be forgotten.

    Parameters
    ----------
    n_epochs : int, default=3
        How often it goes through the records that are left.
    beta : float, default=0.9
    optimizer : {"adam", "sgd"}, default="sgd"
    learning_rate : float, default=1e-3
    momentum : float, default=0.99
    weight_decay : float, default=0.1
    batch_size : int, default=128
    random_state : int, RandomState or None, default=None

    See Also
    --------
    WeightedFineTune : With a plus in the place of the minus, as the paper prints it.

    References
    ----------
    Kurmanji, Triantafillou, Hayes and Triantafillou, *Towards unbounded machine unlearning*,
    NeurIPS 2023. Defaults of Allouah et al., appendix B.2.2.

    Examples
    --------
    >>> NegGradPlus(beta=0.95)
    NegGradPlus(beta=0.95)
    """

    _sign: ClassVar[float] = -1.0
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OPTIMIZING,
        "beta": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        n_epochs: int = 3,
        *,
        beta: float = 0.9,
        optimizer: str = "sgd",
        learning_rate: float = 1e-3,
        momentum: float = 0.99,
        weight_decay: float = 0.1,
        batch_size: int = 128,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_epochs, optimizer=optimizer, learning_rate=learning_rate, momentum=momentum,
            weight_decay=weight_decay, batch_size=batch_size, random_state=random_state,
        )  # fmt: skip
        self.beta = beta

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> None:
        optimizer = plan.optimizer_of(work.network)
        work.network.train()
        going = _endless(work, plan)
        for _ in range(self.n_epochs):
            for places in work.batches(work.retain, plan.batch_size):
                left = work.mean_loss(work.retain, places, plan)
                gone = work.mean_loss(work.forget, next(going), plan)
                work.step(optimizer, self.beta * left + self._sign * (1 - self.beta) * gone)


class WeightedFineTune(NegGradPlus):
    """Learn on from all records, those that go weighing less: "NegGrad+" as the paper prints it.

    Each step goes down ``beta`` times the loss of a batch of what is left, *plus* ``1 - beta``
    times that of a batch of what is to be forgotten. It forgets little.

    Parameters
    ----------
    n_epochs, beta, optimizer, learning_rate, momentum, weight_decay, batch_size, random_state
        See `NegGradPlus`.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, appendix B.2.2.

    Examples
    --------
    >>> WeightedFineTune().beta
    0.9
    """

    _sign: ClassVar[float] = 1.0


def _endless(work: UnlearningRun, plan: TrainingPlan) -> Iterator[Any]:
    """Yield batches of what is to be forgotten without end, each round in a new order."""
    rounds = (work.batches(work.forget, plan.batch_size) for _ in iter(int, 1))
    return chain.from_iterable(rounds)
