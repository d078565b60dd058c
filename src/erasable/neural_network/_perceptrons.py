"""Multilayer perceptrons that delete, for classes and for numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

import erasable.neural_network._kernels as kernels
from erasable.core._schema import Array, Fields, Integer, Maybe, classes, refuse
from erasable.core._tape_kernels import fill_uniform
from erasable.core.arrays import Floats, Ints, Words
from erasable.core.changes import Delta
from erasable.core.classes import Classes
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidParameterError, MagnitudeError, TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.seeds import SEEDS
from erasable.core.tape import Stream
from erasable.neural_network._kernels import Batch, Rule, Shape
from erasable.neural_network._trajectory import Plan, Trajectory

_LARGEST = 2.0**480
_MOST_LAYERS, _MOST_UNITS = 8, 4096
_KINDS: Mapping[str, int] = {
    "identity": kernels.IDENTITY,
    "logistic": kernels.LOGISTIC,
    "relu": kernels.RELU,
    "tanh": kernels.TANH,
}


class _Perceptron(Erasable):
    """What both share; a subclass says what the outputs are, and what they should be."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, _MOST_UNITS, closed="both")],
        "activation": [StrOptions({*_KINDS})],
        "alpha": [Interval(Real, 0, 1024, closed="both")],
        "batch_size": [Interval(Real, 1e-4, 1, closed="both")],
        "learning_rate_init": [Interval(Real, 0, 1024, closed="right")],
        "max_iter": [Interval(Integral, 1, 10_000, closed="both")],
        "lattice_step": [Interval(Real, 2.0**-20, kernels.CLIP, closed="both")],
        "random_state": SEEDS,
    }
    _attaches_by_learning = True
    _refit_from = (1000, 0.05)
    _instead_of_memory = "its records are read in every step"
    _weights: Floats
    _accelerator: Trajectory

    def __init__(
        self,
        hidden_layer_sizes: Any = (32,),
        activation: str = "relu",
        *,
        alpha: float = 0.0001,
        batch_size: float = 0.05,
        learning_rate_init: float = 0.2,
        max_iter: int = 20,
        lattice_step: float = 0.03,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.lattice_step = lattice_step
        self.random_state = random_state

    # -- what a subclass says ------------------------------------------------------------------

    @property
    @abstractmethod
    def n_outputs_(self) -> int:
        """Number of outputs."""

    @property
    @abstractmethod
    def out_activation_(self) -> str:
        """What is done with the sums of the last layer."""

    @abstractmethod
    def _read_outputs(self) -> None:
        """Find out from all records which outputs there are."""

    @abstractmethod
    def _targets(self, rows: Ints) -> Floats:
        """Return what the outputs should be, shape (n_rows, n_outputs)."""

    @abstractmethod
    def _follow_outputs(self, delta: Delta) -> bool:
        """Follow records that leave and arrive; False if there are other outputs."""

    # -- what is learned -----------------------------------------------------------------------

    def _validate_params(self) -> None:
        super()._validate_params()
        self._hidden(self.hidden_layer_sizes)

    def _hidden(self, given: Any) -> list[int]:
        sizes = [given] if isinstance(given, Integral) else [*np.asarray(given).ravel().tolist()]
        whole = all(isinstance(each, int) and 1 <= each <= _MOST_UNITS for each in map(_int, sizes))
        if not whole or not len(sizes) <= _MOST_LAYERS:
            raise InvalidParameterError(
                f"hidden_layer_sizes must be > 0 (hidden_layer_sizes={given!r} of "
                f"{type(self).__name__}); expected at most {_MOST_LAYERS} integers from 1 to "
                f"{_MOST_UNITS}"
            )
        return [int(each) for each in sizes]

    def _sizes(self) -> Ints:
        hidden = self._hidden(self._at_fit("hidden_layer_sizes"))
        return np.array([self.n_features_in_, *hidden, self.n_outputs_], dtype=np.int64)

    def _shape(self) -> Shape:
        sizes = self._sizes()
        starts = np.concatenate([[0], np.cumsum((sizes[:-1] + 1) * sizes[1:])])
        output = {**_KINDS, "softmax": kernels.SOFTMAX}[self.out_activation_]
        return Shape(sizes, starts, _KINDS[self._at_fit("activation")], output)

    def _plan(self) -> Plan:
        shape, tape = self._shape(), self._tape.child("neural network")
        n_weights, seed = int(shape.starts[-1]), np.uint64(tape.seed)
        keys, penalised = np.zeros(n_weights, dtype=np.uint64), np.ones(n_weights)
        bounds = np.zeros(n_weights)
        factor = 2.0 if shape.hidden == kernels.LOGISTIC else 6.0
        for layer in range(shape.sizes.size - 1):
            n_in, n_out = shape.sizes[layer : layer + 2].tolist()
            own = slice(*shape.starts[layer : layer + 2].tolist())
            names = self._call_columns() if layer == 0 else [f"unit {j}" for j in range(n_in)]
            inputs = tape.child("layer", layer)
            of_inputs = [*(inputs.key_of(f"input {name}") for name in names)]
            of_inputs.append(inputs.key_of("intercept"))
            words = np.array(of_inputs, dtype=np.uint64)
            kernels.draw_keys(seed, words, np.uint32(layer), keys[own].reshape(n_in + 1, n_out))
            penalised[own][n_in * n_out :] = 0.0
            bounds[own] = np.sqrt(factor / (n_in + n_out))
        start, unused = np.zeros(n_weights), np.zeros(n_weights)
        fill_uniform(seed, keys, np.uint32(Stream.PHASE), np.uint32(0), start, unused)
        rate, lattice = float(self._at_fit("batch_size")), float(self._at_fit("lattice_step"))
        n_steps = max(round(int(self._at_fit("max_iter")) / rate), 1)
        falling = 1.0 - np.arange(n_steps) / n_steps
        lengths = lattice * float(self._at_fit("learning_rate_init")) * falling
        rule = Rule(lattice, float(self._at_fit("alpha")), penalised)
        return Plan(shape, rule, lengths, rate, seed, keys, (2.0 * start - 1.0) * bounds)

    def _batch(self, rows: Ints) -> tuple[Batch, Words]:
        """Return records with the keys by which they take part in steps."""
        held = self._attached().records
        matrix, targets = held.matrix, self._targets(rows)
        for name, values in (("X", matrix[rows]), ("y", targets)):
            if values.size and float(np.abs(values).max()) > _LARGEST:
                raise MagnitudeError(
                    f"{name} holds numbers beyond 2**480; expected smaller ones; scale the data"
                )
        return Batch(matrix, rows, targets), self._tape.record_keys(held.ids[rows])

    def _fit_rows(self) -> None:
        self._record_keys()  # two records with one are refused
        self._read_outputs()
        batch, keys = self._batch(self._attached().live_rows())
        self._accelerator = Trajectory(self._plan())
        self._accelerator.learn(batch, keys)
        self._weights = self._accelerator.weights

    def _update(self, delta: Delta) -> Outcome | None:
        if not self._follow_outputs(delta):
            return None
        steps = self._accelerator
        found = steps.change(self._batch(delta.leaving), self._batch(delta.arriving))
        if found is None:
            return Outcome("updated", 0, {"steps_repeated": 0})
        live = self._attached().live_rows()
        steps.learn(*self._batch(live), found + 1)
        self._weights = steps.weights
        return Outcome("resumed", live.size, {"steps_repeated": steps.counts.size - found - 1})

    # -- what follows --------------------------------------------------------------------------

    @property
    def n_layers_(self) -> int:
        """Number of layers, with inputs and outputs."""
        self._check_fitted()
        return int(self._sizes().size)

    @property
    def n_iter_(self) -> int:
        """Times that a record takes part in a step, on average."""
        self._check_fitted()
        return int(self._at_fit("max_iter"))

    @property
    def coefs_(self) -> list[Floats]:
        """Weights of each layer, of shape (n_inputs, n_units)."""
        return [line[:-1].copy() for line in self._layers()]

    @property
    def intercepts_(self) -> list[Floats]:
        """Intercepts of each layer, of shape (n_units,)."""
        return [line[-1].copy() for line in self._layers()]

    def _layers(self) -> list[Floats]:
        self._check_fitted()
        sizes, starts, *_ = self._shape()
        return [
            self._weights[starts[i] : starts[i + 1]].reshape(-1, sizes[i + 1])
            for i in range(sizes.size - 1)
        ]

    def _sums(self, X: Any) -> Floats:
        """Return the sums of the last layer for rows, shape (n_rows, n_outputs)."""
        matrix = np.ascontiguousarray(self._read_matrix(X))
        out = np.zeros((matrix.shape[0], self.n_outputs_))
        shape = self._shape()._replace(output=kernels.IDENTITY)
        kernels.predict(shape, self._weights, matrix, out)
        return out

    def _weights_schema(self) -> Array:
        return Array("float64", ("n_weights",), least=-(2.0**60), most=2.0**60)

    def _check_weights(self, found: int) -> None:
        wanted = int(self._shape().starts[-1])
        if found != wanted:
            refuse("weights", f"{found} numbers", f"{wanted}, for the layers")


def _int(value: Any) -> Any:
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


class MLPClassifier(ClassifierMixin, _Perceptron):
    """Classify by a multilayer perceptron whose steps can forget records exactly.

    After a deletion the network is, bit for bit, the one that is trained without the record. The
    deletion computes the record's gradients in the steps that it took part in. If no step changes
    its rounded direction without them, the network stays as it is; that takes milliseconds.
    Otherwise the steps from the first that changes are taken again.

    Parameters
    ----------
    hidden_layer_sizes : array-like of int, default=(32,)
        Units of each hidden layer.
    activation : {"relu", "tanh", "logistic", "identity"}, default="relu"
        Of the hidden units.
    alpha : float, default=0.0001
        L2 penalty: ``alpha / 2`` for each squared weight, beside the mean loss of a batch.
    batch_size : float, default=0.05
        Probability with which a record takes part in a step, at least 0.0001.
    learning_rate_init : float, default=0.2
        Length of the first step for a gradient of 1; it falls linearly to 0.
    max_iter : int, default=20
        Times that a record takes part in a step, on average: there are ``max_iter / batch_size``
        steps.
    lattice_step : float, default=0.03
        Step of the lattice that gradients are rounded to, from ``2**-20`` to 16. With a coarser one
        fewer deletions change a step, and the network learns less well.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the first weights, the batches, and the offsets of the lattice. None draws one from
        the system.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coefs_, intercepts_ : list of ndarray
        Weights of shape (n_inputs, n_units) and intercepts of each layer.
    n_layers_, n_outputs_, n_iter_, out_activation_
        As in scikit-learn.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    TooFewRecordsError
        From `fit` and `delete`, if fewer than two classes have records.
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    See Also
    --------
    erasable.ensemble.ShardedClassifier : Any network in shards.
    erasable.linear_model.LogisticRegression : Without hidden units; deletions are faster.

    Notes
    -----
    Stochastic gradient descent with the principles of Ginart et al. [1]_: quantization, and
    randomness by record. Whether a record takes part in a step is a hash of its id and the step, so
    it does not depend on the other records. Gradients of a record are cut at 16 and rounded to
    multiples of ``2**-22``, so that their sum is exact. It is divided by the number of records that
    take part, which is another exact sum: the number of all records occurs nowhere.

    The mean is rounded down to a lattice with a random offset for each weight and step, so that it
    is right on average. Of a deletion, the chance to change a step is at most the sum of the
    differences of the mean gradient, divided by `lattice_step`: it falls with the number of
    records, and rises with the number of weights and steps. Scale the features, for example with
    `erasable.preprocessing.StandardScaler(quantize=True)`, which few deletions change.

    In memory a model keeps 12 bytes for each weight and step. They are not in a file: a model that
    was loaded with its records is trained again.

    References
    ----------
    .. [1] Ginart, Guan, Valiant and Zou, "Making AI forget you: data deletion in machine
       learning", NeurIPS 2019, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.neural_network import MLPClassifier
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> network = MLPClassifier((16,), max_iter=40, learning_rate_init=0.5, random_state=0)
    >>> model = network.fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> report = model.delete([17, 40])
    >>> keep = np.delete(np.arange(400), [17, 40])
    >>> fresh = MLPClassifier((16,), max_iter=40, learning_rate_init=0.5, random_state=0)
    >>> model.digest() == fresh.fit(X[keep], y[keep], ids=keep).digest()
    True
    """

    _labels: NDArray[Any]
    _counts: Ints
    _classes: Classes

    def _read_outputs(self) -> None:
        held = self._attached()
        assert held.records.y is not None
        self._classes = Classes.fit(held.records.y, held.live_rows())
        self._refuse_few(self._classes.labels.size, f"the {held.n_live} records have")
        self._labels, self._counts = self._classes.labels, self._classes.counts

    def _refuse_few(self, n_classes: int, intro: str) -> None:
        if n_classes < 2:
            raise TooFewRecordsError(
                f"{intro} {n_classes} class{'' if n_classes == 1 else 'es'}; "
                f"{type(self).__name__} needs at least 2 (the data contains only one class); "
                "keep records of two"
            )

    def _check_deletion(self, rows: Ints) -> None:
        intro = f"deleting {rows.size} records would leave"
        self._refuse_few(self._classes.left(rows), intro)

    def _targets(self, rows: Ints) -> Floats:
        y, n = self._attached().records.y, self.n_outputs_
        assert y is not None
        place = {label: code for code, label in enumerate(self._labels.tolist())}
        codes = np.array([place[label] for label in y[rows].tolist()], dtype=np.int64)
        if n == 1:
            return codes[:, None].astype(np.float64)
        return np.eye(n)[codes]

    def _follow_outputs(self, delta: Delta) -> bool:
        y = self._attached().records.y
        assert y is not None
        if delta.leaving.size and self._classes.remove(delta.leaving) is not None:
            return False
        if delta.arriving.size and not self._classes.add(y, delta.arriving):
            return False
        self._labels, self._counts = self._classes.labels, self._classes.counts
        return True

    def _schema(self) -> Fields:
        return Fields({"classes": classes(), "weights": self._weights_schema()})

    def _state(self) -> dict[str, Any]:
        told = {"labels": self._labels, "counts": self._counts}
        return {"classes": told, "weights": self._weights}

    def _restore(self, state: dict[str, Any]) -> None:
        self._labels, self._counts = state["classes"]["labels"], state["classes"]["counts"]
        self._weights = state["weights"]
        self._refuse_few(self._labels.size, "the file has")
        self._check_weights(self._weights.size)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, sorted."""
        self._check_fitted()
        return np.array(self._labels)

    @property
    def n_outputs_(self) -> int:
        """One for two classes, and otherwise one for each."""
        self._check_fitted()
        n = int(self._labels.size)
        return 1 if n == 2 else n

    @property
    def out_activation_(self) -> str:
        """What is done with the sums of the last layer."""
        return "logistic" if self.n_outputs_ == 1 else "softmax"

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class, for every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            A column for each of `classes_`.
        """
        sums = self._sums(X)
        if sums.shape[1] == 1:
            second = expit(sums)
            return np.hstack([1.0 - second, second])
        shares: Floats = np.exp(sums - sums.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        with np.errstate(divide="ignore"):
            found: Floats = np.log(self.predict_proba(X))
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row; of several, the first in `classes_`.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels, of the type of `classes_`.
        """
        best = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self._labels[best]
        return found


class MLPRegressor(RegressorMixin, _Perceptron):
    """Predict numbers by a multilayer perceptron whose steps can forget records exactly.

    As `MLPClassifier`, for squared errors. Scale the targets, too: gradients are cut at 16.

    Parameters
    ----------
    hidden_layer_sizes, activation, alpha, batch_size, max_iter, lattice_step, random_state
        See `MLPClassifier`.
    learning_rate_init : float, default=0.2
        Length of the first step for a gradient of 1; it falls linearly to 0.

    Attributes
    ----------
    coefs_, intercepts_ : list of ndarray
        Weights of shape (n_inputs, n_units) and intercepts of each layer.
    n_layers_, n_outputs_, n_iter_, out_activation_
        As in scikit-learn.
    ids_, seed_, n_features_in_, feature_names_in_
        See `erasable.core.estimator.Erasable`.

    Raises
    ------
    MagnitudeError
        From `fit`, if values exceed ``2**480``.

    See Also
    --------
    MLPClassifier : For classes; its notes are on this class, too.

    Examples
    --------
    >>> import numpy as np
    >>> from erasable.neural_network import MLPRegressor
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(400, 1))
    >>> y = np.abs(X[:, 0])
    >>> network = MLPRegressor((16,), max_iter=40, random_state=0).fit(X, y)
    >>> network.score(X, y) > 0.9
    True
    >>> report = network.delete([17, 40])
    >>> keep = np.delete(np.arange(400), [17, 40])
    >>> fresh = MLPRegressor((16,), max_iter=40, random_state=0).fit(X[keep], y[keep], ids=keep)
    >>> network.digest() == fresh.digest()
    True
    """

    _n_targets: int | None  # None where predictions have one dimension

    def _read_outputs(self) -> None:
        y = self._attached().records.y
        assert y is not None
        n_targets = y.size // y.shape[0]
        self._n_targets = n_targets if n_targets > 1 else None

    def _targets(self, rows: Ints) -> Floats:
        y = self._attached().records.y
        assert y is not None
        return y[rows].astype(np.float64).reshape(rows.size, self.n_outputs_)

    def _follow_outputs(self, delta: Delta) -> bool:
        return True

    def _schema(self) -> Fields:
        return Fields({"n_targets": Maybe(Integer(2)), "weights": self._weights_schema()})

    def _state(self) -> dict[str, Any]:
        return {"n_targets": self._n_targets, "weights": self._weights}

    def _restore(self, state: dict[str, Any]) -> None:
        self._n_targets, self._weights = state["n_targets"], state["weights"]
        self._check_weights(self._weights.size)

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        self._check_fitted()
        return self._n_targets or 1

    @property
    def out_activation_(self) -> str:
        """Nothing is done with the sums of the last layer."""
        self._check_fitted()
        return "identity"

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets), float64
            Each depends on its own row alone.
        """
        found = self._sums(X)
        return found[:, 0] if self._n_targets is None else found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
