"""Training of a network, reproducible to the last bit.

The result is a function of the weights at the beginning, the records in their order, the plan and
the seed, on one kind of machine. For this, torch is limited to a number of threads and to
deterministic algorithms; its generator, which is one for the whole process, is seeded here and
restored; and records are copied into a buffer that begins where torch's own begin, because bits
depend on addresses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from erasable.core.arrays import Ints
from erasable.core.errors import InvalidInputError, InvalidParameterError, UnlearnableError
from erasable.neural._settings import seeded, settled

_SMALLEST = float(np.finfo(np.float32).tiny)

Loss = Callable[[Any, Any], Any]
"""Of what a network makes of a batch, and of targets: the loss of each record."""


@dataclass(frozen=True)
class TrainingPlan:
    """The settings of a training."""

    optimizer: str = "adam"  # "adam" or "sgd"
    learning_rate: float = 1e-3
    momentum: float = 0.0  # of "sgd"
    weight_decay: float = 0.0
    batch_size: int = 128  # the largest number of records of a step
    device: str = "cpu"
    mixed_precision: bool = False  # whether bfloat16 is used where possible
    n_threads: int = 1

    def optimizer_of(self, network: nn.Module) -> torch.optim.Optimizer:
        """Make the optimizer of the parameters that learn."""
        learning = [each for each in network.parameters() if each.requires_grad]
        if not learning:
            raise InvalidParameterError(
                f"the network, a {type(network).__name__}, has no weights that learn; expected "
                "some with requires_grad; use Embedding for a frozen one"
            )
        if self.optimizer == "adam":
            return torch.optim.Adam(
                learning, self.learning_rate, weight_decay=self.weight_decay, foreach=False
            )
        return torch.optim.SGD(
            learning, self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay,
            foreach=False,
        )  # fmt: skip

    @contextmanager
    def in_effect(self, seed: int) -> Iterator[None]:
        """Make torch compute as planned, with a generator of this seed; restore it at the end."""
        device = find_device(self.device)
        narrow = torch.autocast(device.type, torch.bfloat16, enabled=self.mixed_precision)
        learning = torch.inference_mode(False), torch.enable_grad()  # wherever the caller is
        with settled(self.n_threads), seeded(seed, device), narrow, learning[0], learning[1]:
            yield


def find_device(name: str) -> torch.device:
    """Return a device; one that is not available is refused."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or products differ each time
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
        torch.autocast(device.type, torch.bfloat16, enabled=False)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        told = str(error).splitlines()[0]
        raise InvalidParameterError(
            f"device={name!r} is not there: {told}; expected one that torch finds; pass 'cpu'"
        ) from None
    return device


def cross_entropy(made: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Return the log loss of each record."""
    return nn.functional.cross_entropy(made.float(), classes, reduction="none")


def squared_error(made: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the squared error of each record, averaged over its targets."""
    return ((made.float() - targets) ** 2).mean(dim=1)


@dataclass(frozen=True)
class Batches:
    """Records and targets, in the form that a network takes."""

    rows: Any  # (n_records, ...), float32 or int64
    targets: Any  # (n_records,), int64, or (n_records, n_targets), float32
    weights: Any = None  # (n_records,), float32, or None

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, places: Ints) -> Batches:
        """Return some of the records."""
        weights = None if self.weights is None else self.weights[places]
        return Batches(self.rows[places], self.targets[places], weights)

    def on(self, device: torch.device, places: Ints) -> tuple[Any, Any, Any]:
        """Return the rows, the targets and the weights of a batch, on a device."""
        given = (self.rows, self.targets, self.weights)
        rows, targets, weights = (
            None if each is None else sent(each[places], device) for each in given
        )
        return rows, targets, weights


def sent(part: Any, device: torch.device) -> torch.Tensor:
    """Copy an array into memory of torch, and to a device."""
    kind = torch.int64 if part.dtype == np.int64 else torch.float32
    made = torch.empty(part.shape, dtype=kind)
    made.numpy()[...] = part
    return made.to(device)


def parts_of(order: Ints, batch_size: int) -> list[Ints]:
    """Divide records into batches of nearly equal size, none of a single record beside larger ones.

    >>> [len(part) for part in parts_of(np.arange(257), 128)]
    [86, 86, 85]
    """
    return np.array_split(order, max(1, -(-len(order) // batch_size)))


def mean_loss(
    network: nn.Module, data: Batches, places: Ints, loss: Loss, plan: TrainingPlan
) -> Any:
    """Return the mean loss of a batch, with gradients."""
    rows, targets, weights = data.on(torch.device(plan.device), places)
    losses = loss(passed(network, rows), targets)
    if weights is None:
        return losses.mean()
    return (losses * weights).sum() / weights.sum().clamp(min=_SMALLEST)  # all may weigh nothing


def passed(network: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    """Return the outputs of a network for a batch, a row for each record."""
    try:
        made = network(rows)
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise InvalidInputError(
            f"the network needs more memory than there is for {len(rows)} records at a time; "
            f"expected a smaller batch_size; try {max(1, len(rows) // 2)}"
        ) from error
    except Exception as error:
        raise InvalidInputError(
            f"the network cannot take {len(rows)} records of shape {tuple(rows.shape[1:])}: "
            f"{type(error).__name__}: {error}; expected records that it can take; pass shape=, "
            "such as (1, 28, 28)"
        ) from error
    if not isinstance(made, torch.Tensor) or made.dim() == 0 or len(made) != len(rows):
        told = tuple(made.shape) if isinstance(made, torch.Tensor) else type(made).__name__
        raise InvalidParameterError(
            f"the network makes {told} of {len(rows)} records; expected a tensor with a row for "
            "each of them"
        )
    return made.reshape(len(rows), -1)


def epoch(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: Batches,
    loss: Loss,
    plan: TrainingPlan,
    generator: np.random.Generator,
) -> float:
    """Train a network on all records once, in a drawn order; return the mean loss.

    A loss that is no longer finite raises UnlearnableError.
    """
    network.train()
    total = 0.0
    for part in parts_of(generator.permutation(len(data)), plan.batch_size):
        optimizer.zero_grad(set_to_none=True)
        found = mean_loss(network, data, part, loss, plan)
        value = float(found.detach())
        refuse_no_number(value)
        found.backward()
        optimizer.step()
        total += value * len(part)
    return total / len(data)


def refuse_no_number(value: float) -> None:
    """Raise UnlearnableError for a loss that is not finite."""
    if not np.isfinite(value):
        raise UnlearnableError(
            f"the loss became {value}; expected a finite one; scale the columns, or pass a "
            "smaller learning_rate"
        )


def loss_of(network: nn.Module, data: Batches, loss: Loss, plan: TrainingPlan) -> float:
    """Return the mean loss of a network that does not learn."""
    network.eval()
    total = 0.0
    with torch.inference_mode():
        for part in parts_of(np.arange(len(data)), plan.batch_size):
            total += float(mean_loss(network, data, part, loss, plan)) * len(part)
    return total / len(data)


def answers(network: nn.Module, rows: Any, plan: TrainingPlan) -> Any:
    """Return the outputs of a network for rows, as an ndarray of float32."""
    network.eval()
    device = torch.device(plan.device)
    made = []
    with torch.inference_mode():
        for part in parts_of(np.arange(len(rows)), plan.batch_size):
            made.append(passed(network, sent(rows[part], device)).float().cpu().numpy())
    return np.concatenate(made)
