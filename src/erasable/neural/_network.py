"""Base of networks as estimators of scikit-learn: deterministic, with plain arrays as state."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from rich.progress import track
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

import erasable.neural._learning as learning
from erasable.core.errors import InvalidInputError
from erasable.core.params import check_params
from erasable.core.trust import Naming
from erasable.neural._factories import find_factory, refuse_no_path
from erasable.neural._learning import Batches, TrainingPlan
from erasable.neural._modules import arrays_of, made, shaped, take_arrays, take_weights, takes
from erasable.neural._settings import kind_of_machine

_BELOW_SEED = 2**31
_MADE: WeakKeyDictionary[Network, tuple[Any, torch.nn.Module]] = WeakKeyDictionary()
"""Weights and networks of estimators that have answered, so that the next answer is fast."""


class Network(Naming, BaseEstimator):
    """Base of networks for classes and for numbers."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "network": [str],
        "network_params": [dict, None],
        "weights": [str, None],
        "shape": [tuple, list, None],
        "optimizer": [StrOptions({"adam", "sgd"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "device": [str],
        "mixed_precision": ["boolean"],
        "n_threads": [Interval(Integral, 1, 1024, closed="both")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        network: str,
        *,
        network_params: dict[str, Any] | None = None,
        weights: str | None = None,
        shape: tuple[int, ...] | None = None,
        optimizer: str = "adam",
        learning_rate: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        max_epochs: int = 10,
        batch_size: int = 128,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 1e-4,
        device: str = "cpu",
        mixed_precision: bool = False,
        n_threads: int = 1,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.network_params = network_params
        self.weights = weights
        self.shape = shape
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.device = device
        self.mixed_precision = mixed_precision
        self.n_threads = n_threads
        self.verbose = verbose
        self.random_state = random_state

    # -- learning ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the network from its first weights.

        Parameters
        ----------
        X : array-like of shape (n_records, n_features)
        y : array-like of shape (n_records,)
        sample_weight : array-like of shape (n_records,), default=None

        Returns
        -------
        self
        """
        return self._more(X, y, sample_weight, first=True)

    def _more(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool, classes: Any = None
    ) -> Self:
        check_params(self)
        refuse_no_path(self.network, "network")
        before = dict(vars(self))
        try:
            data = self._read(X, y, sample_weight, first=first, classes=classes)
            if first:
                self._begin()
            return self._learn(data)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def refuse_in_file(self) -> None:
        """Refuse a function that a file must not name; see `erasable.core.trust.Naming`."""
        find_factory(self.network, trusted=False)

    def _begin(self) -> None:
        """Draw a seed, and make the first weights of the network by it."""
        self.seed_ = int(check_random_state(self.random_state).randint(_BELOW_SEED))
        self.n_parts_ = 0
        self.loss_curve_: list[float] = []
        with self._plan().in_effect(self.seed_):
            network = self._make()
            if self.weights is not None:
                take_weights(network, self.weights)
        self.weights_ = arrays_of(network)
        self.platform_ = " ".join(kind_of_machine())

    def _learn(self, data: Batches) -> Self:
        plan = self._plan()
        generator = np.random.default_rng([self.seed_, self.n_parts_])
        with plan.in_effect(int(generator.integers(_BELOW_SEED))):
            network = self._make().to(plan.device)
            take_arrays(network, self.weights_)
            losses = self._epochs(network, data, plan, generator)
            self._adopt(network)
        self.n_parts_ += 1
        self.loss_curve_ = [*self.loss_curve_, *losses]
        self.n_iter_ = len(self.loss_curve_)
        return self

    def _adopt(self, network: torch.nn.Module) -> None:
        """Take over the weights of a network that has changed."""
        self.weights_ = arrays_of(network)

    def _epochs(
        self,
        network: torch.nn.Module,
        data: Batches,
        plan: TrainingPlan,
        generator: np.random.Generator,
    ) -> list[float]:
        """Train, with or without records for early stopping."""
        judged = None
        if self.early_stopping:
            order = generator.permutation(len(data))
            n_judged = max(1, int(self.validation_fraction * len(data)))
            if n_judged == len(data):
                raise InvalidInputError(
                    f"early_stopping with {len(data)} records leaves none to learn from; expected "
                    "more records; pass early_stopping=False"
                )
            judged, data = data.some(order[:n_judged]), data.some(order[n_judged:])
        optimizer = plan.optimizer_of(network)
        losses: list[float] = []
        best, kept, since = np.inf, None, 0
        for _ in track(
            range(self.max_epochs), description=f"{type(self).__name__}: epochs",
            disable=not self.verbose,
        ):  # fmt: skip
            losses.append(learning.epoch(network, optimizer, data, self._loss, plan, generator))
            if judged is None:
                continue
            loss = learning.loss_of(network, judged, self._loss, plan)
            since = 0 if loss < best - self.tol else since + 1
            if loss < best:
                best, kept = loss, arrays_of(network)
            if since >= self.n_iter_no_change:
                break
        if kept is not None:
            take_arrays(network, kept)
        return losses

    def _plan(self) -> TrainingPlan:
        return TrainingPlan(
            self.optimizer, self.learning_rate, self.momentum, self.weight_decay, self.batch_size,
            self.device, bool(self.mixed_precision), self.n_threads,
        )  # fmt: skip

    def _make(self) -> torch.nn.Module:
        sizes = {"n_features": self.n_features_in_, "n_outputs": self._n_outputs()}
        function = find_factory(self.network, trusted=True)
        told = {name: size for name, size in sizes.items() if takes(function, name)}
        return made(self.network, trusted=True, **(self.network_params or {}) | told)

    @abstractmethod
    def _loss(self, made: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of outputs, one number for each record."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Return how many outputs the network needs for the targets of records."""

    # -- reading -------------------------------------------------------------------------------

    def _read(
        self, X: Any, y: Any, sample_weight: Any, *, first: bool, classes: Any = None
    ) -> Batches:
        X, y = validate_data(
            self, X, y, reset=first, dtype=np.float32, multi_output=True, y_numeric=False
        )
        targets = self._read_targets(y, first=first, classes=classes)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float32)
            if weights.min() < 0 or not weights.any():
                raise ValueError("sample_weight is negative, or zero throughout; expected weights")
        return Batches(self._shaped(X), targets, weights)

    @abstractmethod
    def _read_targets(self, y: Any, *, first: bool, classes: Any) -> Any:
        """Return targets as the loss takes them."""

    def _shaped(self, X: Any) -> Any:
        return X.reshape(len(X), *shaped(self.shape, X.shape[1]))

    # -- answering -----------------------------------------------------------------------------

    def module(self) -> torch.nn.Module:
        """Return a copy of the trained network as a torch module, on the processor."""
        check_is_fitted(self, "weights_")
        with self._plan().in_effect(self.seed_):
            network = self._make()
        take_arrays(network, self.weights_)
        return network.eval()

    def _answers(self, X: Any) -> Any:
        check_is_fitted(self, "weights_")
        rows = self._shaped(validate_data(self, X, reset=False, dtype=np.float32))
        plan = self._plan()
        weights, network = _MADE.get(self, (None, None))
        if network is None or weights is not self.weights_:
            network = self.module().to(plan.device)
            _MADE[self] = self.weights_, network
        with plan.in_effect(self.seed_):
            return learning.answers(network, rows, plan)
