"""The estimator `ApproximateNetwork`: a network that deletes by an approximate method."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import erasable.neural.approximate as approximate
from erasable.core._changing import in_two_steps
from erasable.core.arrays import Ints
from erasable.core.changes import Delta
from erasable.core.deletion import Outcome
from erasable.core.errors import InvalidParameterError
from erasable.core.ids import shorten
from erasable.core.params import check_params
from erasable.neural._estimators import NetworkClassifier
from erasable.neural._network import Network
from erasable.neural.approximate._method import Method
from erasable.refit import Refit
from erasable.refit._codec import encode

_BELOW_SEED = 2**32


class ApproximateNetwork(Refit):
    """A network that forgets about: a deletion runs a method, and trains nothing again.

    It is not exact, and says so: `exactness`, every deletion and every receipt of a workspace have
    the word "approximate". What it has learned depends on the deletions and their order, and no
    digest shows that it has forgotten. Take `Refit` or shards where you need that. For the same
    reason it is no step of a pipeline, whose deletions are exact.

    Parameters
    ----------
    estimator : NetworkClassifier or NetworkRegressor
    method : {"FineTune", "NegGradPlus", "NewtonStep", "SalUn", "SaliencyReset", "Scrub", \
"WeightedFineTune"}
        See `erasable.neural.approximate`.
    method_params : dict, default=None
        Its parameters; its seed is drawn here.
    random_state : int, RandomState or None, default=None
        Seed of the tape from which all seeds are drawn.

    Attributes
    ----------
    estimator_ : estimator
        The trained network. Do not change it.
    report_ : ApproximateReport
        Of the last deletion; none after `fit`.

    Raises
    ------
    InvalidParameterError
        From `fit`: the estimator is no network, there is no such method or parameter.
    UnlearnableError
        From `delete`, which then changes nothing: the method diverges.

    See Also
    --------
    erasable.refit.Refit : The same, exactly.

    Examples
    --------
    >>> from erasable.neural import NetworkClassifier
    >>> line = {"in_features": 1, "out_features": 2}
    >>> network = NetworkClassifier("torch.nn.Linear", network_params=line)
    >>> model = ApproximateNetwork(network, "FineTune", random_state=0)
    >>> deletion = model.fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1]).delete([3])
    >>> deletion.exactness, dict(deletion.counts)
    ('approximate', {'gradients': 6})
    """

    exactness: ClassVar[str] = "approximate"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Refit._parameter_constraints,
        "method": [str],
        "method_params": [dict, None],
    }

    def __init__(
        self,
        estimator: Any,
        method: str,
        *,
        method_params: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(estimator, random_state=random_state)
        self.method = method
        self.method_params = method_params

    def _validate_params(self) -> None:
        if not isinstance(self.estimator, Network):
            raise InvalidParameterError(
                f"estimator is a {type(self.estimator).__name__}; expected a NetworkClassifier or "
                "a NetworkRegressor; wrap others in Refit"
            )
        super()._validate_params()
        method = self._method(0, self.method, self.method_params)
        method.refuse_numbers(learns_classes=isinstance(self.estimator, NetworkClassifier))

    @staticmethod
    def _method(seed: int, name: str, params: dict[str, Any] | None) -> Method:
        known = {
            each: getattr(approximate, each)
            for each in approximate.__all__
            if issubclass(getattr(approximate, each), Method) and each not in ("Method", "Retrain")
        }
        if name not in known:
            raise InvalidParameterError(
                f"method={shorten(name)}; expected one of {', '.join(sorted(known))}"
            )
        allowed = sorted({*known[name]().get_params()} - {"random_state"})
        others = [each for each in params or {} if each not in allowed]
        if others:
            raise InvalidParameterError(
                f"method_params has {', '.join(map(shorten, others))}; expected parameters of "
                f"{name}: {', '.join(allowed)}"
            )
        made: Method = known[name](**(params or {}), random_state=seed)
        check_params(made)
        return made

    def _prepare_deletion(self, rows: Ints) -> None:
        learned = self._forgotten(rows, self._sorted_rows(without=rows))
        self._pending = (rows, self._attached().records.matrix, *learned)

    _adds: ClassVar[bool] = False

    def _update(self, delta: Delta) -> Outcome | None:
        return in_two_steps(self, delta)

    def _delete_rows(self, rows: Ints) -> Outcome:
        pending, self._pending = self.__dict__.get("_pending"), None
        held = self._attached()
        if pending is None or not (
            np.array_equal(pending[0], rows) and pending[1] is held.records.matrix
        ):
            learned = self._forgotten(rows, self._sorted_rows())
        else:
            learned = pending[2:]
        self._adopt_tree(*learned)
        return Outcome("updated", held.n_live, {"gradients": self.report_.n_gradients})

    def _forgotten(self, gone: Ints, left: Ints) -> tuple[dict[str, Any], list[int]]:
        """Run the method; return what is then known, as plain values."""
        records, text = self._attached().records, self._text
        forget, retain = (self._recipe.given(records, each, text)[:2] for each in (gone, left))
        # Of the same deletion of the same model come the same seeds.
        seed = self._tape.child("forget", len(left)).seed % _BELOW_SEED
        method = self._method(seed, self._at_fit("method"), self._at_fit("method_params"))
        found, self.report_ = method(self.estimator_, forget, retain, allow_copies=True)
        return encode(found, self._recipe.known), text
