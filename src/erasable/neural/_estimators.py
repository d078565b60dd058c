"""Networks that learn classes or numbers, as estimators of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

import erasable.neural._learning as learning
from erasable.core.errors import InvalidParameterError
from erasable.neural._network import Network


class NetworkClassifier(ClassifierMixin, Network):
    """A network that learns classes, as an estimator of scikit-learn.

    Trained again from the same records in the same order it has the same weights, to the last bit.
    So `erasable.refit.Refit` and `erasable.ensemble.ShardedClassifier` make it forget exactly, and
    the methods of `erasable.neural.approximate` faster and not exactly.

    Parameters
    ----------
    network : str
        Import path of a function that makes the network, such as ``"nets.small"``. Where it has an
        argument ``n_features`` or ``n_outputs``, it is told how many columns or classes there are;
        of a network with more outputs the first stand for the classes.
    network_params : dict, default=None
        Other arguments for that function.
    weights : str, default=None
        File of first weights, as ``torch.save(network.state_dict(), file)`` writes it. By default
        they are drawn.
    shape : tuple of int, default=None
        What the columns of a record are made to be, such as (3, 32, 32); by default they are left
        in a row.
    optimizer : {"adam", "sgd"}, default="adam"
    learning_rate : float, default=1e-3
    momentum : float, default=0.0
        Of "sgd".
    weight_decay : float, default=0.0
    max_epochs : int, default=10
        How often it learns from all records.
    batch_size : int, default=128
        The most records of a step.
    early_stopping : bool, default=False
        Whether to set records aside, and to stop where their loss no longer falls; the best weights
        are kept.
    validation_fraction : float, default=0.1
        The share that is set aside.
    n_iter_no_change : int, default=5
        Epochs without a lower loss after which it stops.
    tol : float, default=1e-4
        What counts as lower.
    device : str, default="cpu"
    mixed_precision : bool, default=False
        Whether to compute in bfloat16 where that is safe.
    n_threads : int, default=1
        Threads of torch's. With another number the last bits are others.
    verbose : int, default=0
        1 shows a progress bar.
    random_state : int, RandomState or None, default=None
        Seed of the first weights, of the order of records, and of what the network draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    weights_ : dict of str to ndarray
        Parameters and buffers.
    loss_curve_ : list of float
        Mean loss of each epoch.
    n_iter_ : int
        Epochs so far.
    n_parts_ : int
        How often `fit` or `partial_fit` have taught it.
    platform_ : str
        Version of torch and instructions of the processor.
    seed_, n_features_in_, feature_names_in_

    Raises
    ------
    InvalidParameterError
        From `fit`: no such function, too few outputs, a device that is not there.
    InvalidInputError
        From `fit`: records of a shape that the network cannot take; memory that is not enough.
    UnlearnableError
        From `fit`: the loss became infinite, or no number.

    See Also
    --------
    Embedding : A frozen network before an estimator that deletes exactly, and fast.

    Notes
    -----
    One training runs at a time in a process, because torch has one generator for all of it. The
    same bits come out on one kind of machine: with the same version of torch, the same
    instructions of the processor, the same number of threads. On a graphics card only algorithms
    are used that torch calls deterministic.

    Examples
    --------
    >>> from erasable.neural import NetworkClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"]
    >>> model = NetworkClassifier(
    ...     "torch.nn.Linear", network_params={"in_features": 1, "out_features": 2},
    ...     learning_rate=0.1, max_epochs=100, random_state=0,
    ... )
    >>> model.fit(X, y).predict([[0.5], [4.5]]).tolist()
    ['low', 'high']
    """

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on, for `max_epochs` epochs of these records.

        Parameters
        ----------
        X : array-like of shape (n_records, n_features)
        y : array-like of shape (n_records,)
        classes : array-like, default=None
            All classes, at the first call; by default those of `y`.
        sample_weight : array-like of shape (n_records,), default=None

        Returns
        -------
        self
        """
        first = not hasattr(self, "weights_")
        return self._more(X, y, sample_weight, first=first, classes=classes)

    def _read_targets(self, y: Any, *, first: bool, classes: Any) -> Any:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class; expected two or more")
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y has classes that are not among classes_ ({np.unique(y[~known])[:5].tolist()}); "
                "expected those that the network began with; call fit"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _loss(self, made: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        n = self._n_outputs()
        if made.shape[1] < n:
            raise InvalidParameterError(
                f"{self.network} makes {made.shape[1]} numbers of a record; expected one for each "
                f"of {n} classes; give it an argument n_outputs"
            )
        return learning.cross_entropy(made[:, :n], targets)

    def _logits(self, X: Any) -> Any:
        made = self._answers(X)
        return made[:, : len(self.classes_)].astype(np.float64)

    def decision_function(self, X: Any) -> Any:
        """Return what the network makes of each record, of each class.

        Returns
        -------
        ndarray of shape (n_records, n_classes), or (n_records,) of two classes, float64
            Of two classes, that of the second less that of the first.
        """
        made = self._logits(X)
        return made[:, 1] - made[:, 0] if made.shape[1] == 2 else made

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class.

        Returns
        -------
        ndarray of shape (n_records, n_classes), float64
        """
        return softmax(self._logits(X), axis=1)

    def predict(self, X: Any) -> Any:
        """Return the class of each record."""
        best = self._logits(X).argmax(axis=1)
        return self.classes_[best]


class NetworkRegressor(RegressorMixin, Network):
    """A network that learns numbers, as an estimator of scikit-learn.

    It learns by squared errors, of targets as they are: scale them, if they are large.

    Parameters
    ----------
    network, network_params, weights, shape, optimizer, learning_rate, momentum, weight_decay
        See `NetworkClassifier`; ``n_outputs`` is the number of targets.
    max_epochs, batch_size, early_stopping, validation_fraction, n_iter_no_change, tol
        See `NetworkClassifier`.
    device, mixed_precision, n_threads, verbose, random_state
        See `NetworkClassifier`.

    Attributes
    ----------
    weights_, loss_curve_, n_iter_, n_parts_, platform_, seed_
        See `NetworkClassifier`.
    n_features_in_, feature_names_in_

    Raises
    ------
    InvalidParameterError, InvalidInputError, UnlearnableError
        See `NetworkClassifier`.

    See Also
    --------
    NetworkClassifier : The same for classes; its notes hold here, too.

    Examples
    --------
    >>> from erasable.neural import NetworkRegressor
    >>> model = NetworkRegressor(
    ...     "torch.nn.Linear", network_params={"in_features": 1, "out_features": 1},
    ...     learning_rate=0.1, max_epochs=300, random_state=0,
    ... )
    >>> model.fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[4.0]]).round(1)
    array([9.])
    """

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on, for `max_epochs` epochs of these records; see `fit`."""
        return self._more(X, y, sample_weight, first=not hasattr(self, "weights_"))

    def _read_targets(self, y: Any, *, first: bool, classes: Any) -> Any:
        y = np.asarray(y, dtype=np.float64)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if first:
            self._shape_of_targets = list(y.shape[1:])
        elif list(y.shape[1:]) != self._shape_of_targets:
            raise ValueError(
                f"y has shape {y.shape}; expected {tuple(self._shape_of_targets)} for a record, "
                "as the network began with"
            )
        return y.reshape(len(y), -1).astype(np.float32)

    def _n_outputs(self) -> int:
        return int(np.prod(self._shape_of_targets))

    def _loss(self, made: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if made.shape[1] != targets.shape[1]:
            raise InvalidParameterError(
                f"{self.network} makes {made.shape[1]} numbers of a record; expected "
                f"{targets.shape[1]}, one for each target; give it an argument n_outputs"
            )
        return learning.squared_error(made, targets)

    def predict(self, X: Any) -> Any:
        """Return what the network makes of each record."""
        made = self._answers(X)
        return made.reshape(len(made), *self._shape_of_targets).astype(np.float64)
