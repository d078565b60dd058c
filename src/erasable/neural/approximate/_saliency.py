"""Methods that change the weights that matter most to what is to be forgotten."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval

from erasable.neural._learning import Batches, TrainingPlan
from erasable.neural.approximate._method import OPTIMIZING, Method, UnlearningRun


class _Salient(Method):
    """Base of methods that change salient weights."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OPTIMIZING,
        "share": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        n_epochs: int = 3,
        *,
        share: float = 0.2,
        optimizer: str = "adam",
        learning_rate: float = 5e-4,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batch_size: int = 128,
        random_state: Any = None,
    ) -> None:
        self.n_epochs = n_epochs
        self.share = share
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.random_state = random_state

    def _salient(self, work: UnlearningRun, plan: TrainingPlan) -> dict[torch.Tensor, torch.Tensor]:
        """Return masks of the weights with the largest gradients of the loss of what is to go."""
        learning_ones = [each for each in work.network.parameters() if each.requires_grad]
        total = [torch.zeros_like(each) for each in learning_ones]
        work.network.eval()
        for places in work.batches(work.forget, plan.batch_size):
            loss = work.mean_loss(work.forget, places, plan) * len(places)
            gradients = torch.autograd.grad(loss, learning_ones, allow_unused=True)
            for sums, each in zip(total, gradients, strict=True):
                if each is not None:
                    sums += each
        sizes = torch.cat([each.abs().reshape(-1) for each in total])
        n_kept = max(1, round(self.share * sizes.numel()))
        # By rank, so that a tie does not keep more of them.
        kept = torch.zeros_like(sizes, dtype=torch.bool)
        kept[torch.sort(sizes, descending=True, stable=True).indices[:n_kept]] = True
        parts = torch.split(kept, [each.numel() for each in learning_ones])
        return {
            each: part.reshape(each.shape) for each, part in zip(learning_ones, parts, strict=True)
        }


class SalUn(_Salient):
    """Teach other classes for the records that go, by the weights that matter to them.

    The weights with the largest gradients of the loss of these records learn on, from what is left
    as it is, and from these with classes drawn at random, others than their own. The authors'
    method; see `SaliencyReset` for what the paper on removal describes.

    Parameters
    ----------
    n_epochs : int, default=3
    share : float, default=0.2
        Of the weights, that learn on.
    optimizer : {"adam", "sgd"}, default="adam"
    learning_rate : float, default=5e-4
    momentum, weight_decay : float, default=0.0
    batch_size : int, default=128
    random_state : int, RandomState or None, default=None
        Seed of the classes, of the order of records, and of what the network draws.

    Notes
    -----
    Of a network that learns numbers, the records that go are given the targets of others.

    References
    ----------
    Fan, Liu, Zhang, Wong, Wei and Liu, *SalUn: empowering machine unlearning via gradient-based
    weight saliency*, ICLR 2024. Defaults of Allouah et al., appendix B.2.2.

    Examples
    --------
    >>> SalUn(share=0.5)
    SalUn(share=0.5)
    """

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> None:
        kept = self._salient(work, plan)
        n_gone = len(work.forget)
        both = Batches(
            np.concatenate([work.forget.rows, work.retain.rows]),
            np.concatenate([work.forget.targets, work.retain.targets]),
        )
        optimizer = plan.optimizer_of(work.network)
        work.network.train()
        for _ in range(self.n_epochs):
            both.targets[:n_gone] = _others(work)
            for places in work.batches(both, plan.batch_size):
                work.step(optimizer, work.mean_loss(both, places, plan), kept)


class SaliencyReset(_Salient):
    """Put the weights that matter to the records that go back to their first values, and fine-tune.

    "SalUn" as the paper on removal describes it.

    Parameters
    ----------
    n_epochs : int, default=3
    share : float, default=0.2
        Of the weights, that are put back.
    optimizer, learning_rate, momentum, weight_decay, batch_size, random_state
        See `SalUn`. First values are drawn anew.

    References
    ----------
    Allouah et al., *Distributional Machine Unlearning via Selective Data Removal*, appendix B.2.2.

    Examples
    --------
    >>> SaliencyReset().share
    0.2
    """

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> None:
        kept = self._salient(work, plan)
        fresh = work.subject.fresh(work.seed).to(plan.device)
        drawn = dict(fresh.named_parameters())
        with torch.no_grad():
            for name, each in work.network.named_parameters():
                if each in kept:
                    each.copy_(torch.where(kept[each], drawn[name], each))
        work.descend(plan, self.n_epochs)


def _others(work: UnlearningRun) -> Any:
    """Draw for each record to forget a target other than its own."""
    own, n = work.forget.targets, work.subject.n_classes
    if n is None:
        return work.retain.targets[work.generator.integers(len(work.retain), size=len(own))]
    return (own + work.generator.integers(1, n, size=len(own))) % n
