"""One Newton step on the loss of what is left, with a proven bound for linear networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval

from erasable.neural._learning import TrainingPlan
from erasable.neural.approximate._method import ApproximateReport, Method, UnlearningRun

_THIRD = 0.5**0.5
"""Bound of the third derivative of the log loss in what a network makes of a record: the variance
of a direction under any probabilities is at most half its square, and no entry is further from the
mean than the root of 2 times its length."""


_STRAIGHT = (torch.nn.Linear, torch.nn.Flatten)


@dataclass(frozen=True)
class NewtonReport(ApproximateReport):
    """What a Newton step did.

    Attributes
    ----------
    residual : float
        Norm of the gradient of the mean loss of what is left, after the step; 0 at its minimum.
    bound : float or None
        What the residual cannot be above, as is known before it is measured; None where the
        network is not linear.

    Examples
    --------
    >>> NewtonReport("NewtonStep", "approximate", 1, 9, 1, 9, 90, 0.1, 0.01, 0.02).bound
    0.02
    """

    residual: float
    bound: float | None


class NewtonStep(Method):
    """Take one Newton step on the loss of what is left.

    The step solves ``(H + damping) v = -g`` by conjugate gradients, where g is the gradient of the
    mean loss of the records that are left and H its Hessian, on a share of them.

    Parameters
    ----------
    damping : float, default=0.01
        What is added to the diagonal of the Hessian.
    weight_decay : float, default=0.0
        Half of it times the squared norm of the weights is part of the loss, as it was in training.
    n_iter : int, default=10
        Products with the Hessian.
    share : float, default=0.05
        Of the records that are left, for the Hessian.
    batch_size : int, default=128
    random_state : int, RandomState or None, default=None
        Seed of that share.

    Notes
    -----
    Of a network that is one linear layer, such as a head on a frozen backbone, the report has a
    bound of the gradient after the step: that of the linear system, and the third derivative of the
    log loss times the square of the step. Training with a noise of deviation sigma in the linear
    term of the loss makes a removal with a residual r (epsilon, delta)-certified for
    ``epsilon = r * sqrt(2 log(1.5 / delta)) / sigma``, theorem 3 of Guo et al.; residual and bound
    are those of the *mean* loss.

    References
    ----------
    Guo, Goldstein, Hannun and van der Maaten, *Certified data removal from machine learning
    models*, ICML 2020.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    >>> step = NewtonStep(weight_decay=0.1, share=1.0, random_state=0)
    >>> network, report = step(torch.nn.Linear(4, 2), (X[:1], y[:1]), (X[1:], y[1:]))
    >>> report.residual <= report.bound
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "damping": [Interval(Real, 0, None, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "share": [Interval(Real, 0, 1, closed="right")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        damping: float = 0.01,
        *,
        weight_decay: float = 0.0,
        n_iter: int = 10,
        share: float = 0.05,
        batch_size: int = 128,
        random_state: Any = None,
    ) -> None:
        self.damping = damping
        self.weight_decay = weight_decay
        self.n_iter = n_iter
        self.share = share
        self.batch_size = batch_size
        self.random_state = random_state

    def _forget(self, work: UnlearningRun, plan: TrainingPlan) -> tuple[float, float | None]:
        layer = _layer(work.network)
        if layer is None or work.subject.n_classes is None:
            system: _System = _Any(work, plan, self.weight_decay)
        else:
            system = _Linear(work, self.weight_decay, layer)
        everyone = np.arange(len(work.retain))
        n_some = max(1, round(self.share * len(everyone)))
        some = np.sort(work.generator.permutation(everyone)[:n_some])
        gradient = system.gradient(everyone)
        taken = system.move(self._solved(system, some, gradient))
        work.n_steps += 1
        bound = None
        if isinstance(system, _Linear):
            rest = gradient + system.product(everyone, taken, before=True)
            bound = float(rest.norm()) + system.beyond(taken)
        return float(system.gradient(everyone).norm()), bound

    def _solved(self, system: _System, some: Any, gradient: Any) -> Any:
        """Solve for the step by conjugate gradients."""
        step = torch.zeros_like(gradient)
        rest = -gradient
        direction, size = rest.clone(), rest @ rest
        for _ in range(self.n_iter):
            if float(size) == 0.0:
                break
            product = system.product(some, direction) + self.damping * direction
            along = direction @ product
            if not float(along) > 0:  # the loss bends down there: a longer step is no better
                break
            step = step + size / along * direction
            rest = rest - size / along * product
            size, before = rest @ rest, size
            direction = rest + size / before * direction
        return step

    def _report(self, found: tuple[float, float | None], told: dict[str, Any]) -> NewtonReport:
        residual, bound = found
        return NewtonReport(**told, residual=residual, bound=bound)


class _System(ABC):
    """The mean loss of what is left as a function of the weights that learn, in one vector."""

    def __init__(self, work: UnlearningRun, decay: float) -> None:
        self.work, self.decay = work, decay
        work.network.eval()
        self.weights = [each for each in work.network.parameters() if each.requires_grad]

    def flat(self, parts: Any) -> Any:
        """Concatenate parts in the shapes of the weights into one vector of float64."""
        return torch.cat(
            [
                (torch.zeros_like(each) if part is None else part).reshape(-1).double()
                for each, part in zip(self.weights, parts, strict=True)
            ]
        )

    def parts(self, vector: Any) -> Any:
        """Split a vector into the shapes of the weights."""
        split = torch.split(vector, [each.numel() for each in self.weights])
        return [part.reshape(each.shape) for part, each in zip(split, self.weights, strict=True)]

    def values(self) -> Any:
        """Return the weights."""
        return self.flat([each.detach() for each in self.weights])

    def move(self, step: Any) -> Any:
        """Add a step to the weights; return the change, which differs from the step by rounding."""
        before = self.values()
        with torch.no_grad():
            for each, part in zip(self.weights, self.parts(step), strict=True):
                each.copy_(each.double() + part)
        return self.values() - before

    @abstractmethod
    def gradient(self, places: Any) -> Any:
        """Return the gradient of the mean loss of records, and of the decay."""

    @abstractmethod
    def product(self, places: Any, vector: Any) -> Any:
        """Return the Hessian of the same times a vector."""


class _Any(_System):
    """Any network: by automatic differentiation, in the network's precision."""

    def __init__(self, work: UnlearningRun, plan: TrainingPlan, decay: float) -> None:
        super().__init__(work, decay)
        self.plan = plan

    def _mean(self, places: Any, of_loss: Any) -> Any:
        total = 0.0
        size = self.plan.batch_size
        for part in (places[start : start + size] for start in range(0, len(places), size)):
            loss = self.work.mean_loss(self.work.retain, part, self.plan)
            total = total + len(part) / len(places) * self.flat(of_loss(loss, len(part)))
        return total

    def gradient(self, places: Any) -> Any:
        def of_loss(loss: Any, n: int) -> Any:
            return torch.autograd.grad(loss, self.weights, allow_unused=True)

        return self._mean(places, of_loss) + self.decay * self.values()

    def product(self, places: Any, vector: Any) -> Any:
        along = self.parts(vector)

        def of_loss(loss: Any, n: int) -> Any:
            self.work.n_gradients += n  # it is two
            first = torch.autograd.grad(loss, self.weights, create_graph=True, allow_unused=True)
            inner = sum(
                (each * way.to(each)).sum()
                for each, way in zip(first, along, strict=True)
                if each is not None
            )
            return torch.autograd.grad(inner, self.weights, allow_unused=True)

        return self._mean(places, of_loss) + self.decay * vector


class _Linear(_System):
    """One linear layer: by its formulas, in float64, so that bounds hold."""

    def __init__(self, work: UnlearningRun, decay: float, layer: Any) -> None:
        super().__init__(work, decay)
        rows = torch.as_tensor(work.retain.rows).reshape(len(work.retain), -1).double()
        ones = torch.ones(len(rows), layer.bias is not None, dtype=torch.float64)
        self.rows = torch.cat([rows, ones], dim=1)
        self.classes = torch.as_tensor(work.retain.targets)
        self.n_classes = int(work.subject.n_classes or 0)
        self.n_columns = rows.shape[1]
        self.first = self._matrix(self.values())

    def _matrix(self, vector: Any) -> Any:
        parts = self.parts(vector)
        return torch.cat([part.reshape(len(parts[0]), -1) for part in parts], dim=1)

    def _vector(self, matrix: Any) -> Any:
        cut = [matrix[:, : self.n_columns], matrix[:, self.n_columns :]]
        return self.flat(
            [part.reshape(each.shape) for part, each in zip(cut, self.weights, strict=False)]
        )

    def _chances(self, rows: Any, matrix: Any) -> Any:
        made = rows @ matrix.T
        made[:, self.n_classes :] = -torch.inf  # no class is theirs
        return made.softmax(dim=1)

    def gradient(self, places: Any) -> Any:
        self.work.n_gradients += len(places)
        rows = self.rows[places]
        chances = self._chances(rows, self._matrix(self.values()))
        chances[torch.arange(len(rows)), self.classes[places]] -= 1
        return self._vector(chances.T @ rows / len(rows)) + self.decay * self.values()

    def product(self, places: Any, vector: Any, *, before: bool = False) -> Any:
        self.work.n_gradients += 2 * len(places)
        rows = self.rows[places]
        chances = self._chances(rows, self.first if before else self._matrix(self.values()))
        along = rows @ self._matrix(vector).T
        along = chances * (along - (chances * along).sum(dim=1, keepdim=True))
        return self._vector(along.T @ rows / len(rows)) + self.decay * vector

    def beyond(self, step: Any) -> float:
        """Bound the part of the gradient after a step that is beyond its linear approximation."""
        moved = (self.rows @ self._matrix(step).T)[:, : self.n_classes]
        sizes = self.rows.norm(dim=1)
        return float((0.5 * _THIRD * (moved**2).sum(dim=1) * sizes).mean())


def _layer(network: torch.nn.Module) -> Any:
    """Return the linear layer of which a network consists, or None; all of its weights learn."""
    parts = _in_turn(network)
    linear = [each for each in parts if type(each) is torch.nn.Linear]
    if len(linear) != 1 or any(type(each) not in _STRAIGHT for each in parts):
        return None
    return linear[0] if all(each.requires_grad for each in linear[0].parameters()) else None


def _in_turn(network: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the layers that a record passes; a module of any other class counts as one."""
    if type(network) is not torch.nn.Sequential:
        return [network]
    return [part for each in network for part in _in_turn(each)]
