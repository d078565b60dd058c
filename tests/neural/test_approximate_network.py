"""A network that forgets about: by its method, said everywhere, and never by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

import erasable  # noqa: E402
from erasable import Records, load  # noqa: E402
from erasable.core.errors import (  # noqa: E402
    InvalidParameterError,
    UnlearnableError,
)
from erasable.neural import (  # noqa: E402
    ApproximateNetwork,
    NetworkClassifier,
    NetworkRegressor,
    approximate,
)
from erasable.pipeline import make_pipeline  # noqa: E402
from erasable.preprocessing import StandardScaler  # noqa: E402
from erasable.refit import Refit  # noqa: E402
from erasable.utils.estimator_checks import check_erasable  # noqa: E402

METHODS = [
    name
    for name in approximate.__all__
    if issubclass(getattr(approximate, name), approximate.Method)
    and name not in ("Method", "Retrain")
]
GONE = [3, 70, 149]


def records() -> tuple[Any, Any]:
    X = np.random.default_rng(1).normal(size=(150, 5))
    return X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def network() -> NetworkClassifier:
    return NetworkClassifier("neural.backbones.layers", max_epochs=4, random_state=0)


def model(method: str = "SalUn", **params: Any) -> ApproximateNetwork:
    return ApproximateNetwork(network(), method, method_params=params, random_state=0)


@pytest.mark.parametrize("method", METHODS)
def test_a_deletion_is_what_the_method_does(method: str) -> None:
    X, y = records()
    fitted = model(method, batch_size=32).fit(X, y)
    assert fitted.digest() != Refit(network(), random_state=0).fit(X, y).digest()
    before = fitted.estimator_
    deletion = fitted.delete(GONE)
    assert (deletion.exactness, deletion.action) == ("approximate", "updated")
    assert deletion.counts["gradients"] == fitted.report_.n_gradients
    assert (fitted.report_.n_forgotten, fitted.report_.n_retained) == (3, 147)
    # The records in the order of the tape, as the model was taught them.
    rows = fitted._sorted_rows()
    seed = fitted._tape.child("forget", 147).seed % 2**32
    want, _ = getattr(approximate, method)(batch_size=32, random_state=seed)(
        before, (X[GONE], y[GONE]), (X[rows], y[rows])
    )
    for name, value in fitted.estimator_.weights_.items():
        np.testing.assert_array_equal(value, want.weights_[name])
    left = np.setdiff1d(np.arange(150), GONE)
    fresh = model(method, batch_size=32).fit(X[left], y[left], ids=left)
    assert fresh.digest() != fitted.digest()  # it is not exact, and nobody should think so


def test_a_fit_is_that_of_a_refit() -> None:
    X, y = records()
    one, two = model().fit(X, y), Refit(network(), random_state=0).fit(X, y)
    for name, value in one.estimator_.weights_.items():
        np.testing.assert_array_equal(value, two.estimator_.weights_[name])


def test_files_of_it_delete_on(tmp_path: Path) -> None:
    X, y = records()
    fitted = model().fit(X, y)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m", Records(X, y), trusted=True)
    assert again.delete(GONE).digest_after == fitted.delete(GONE).digest_after
    fitted.save(tmp_path / "later")
    left = np.setdiff1d(np.arange(150), GONE)
    later = load(tmp_path / "later", Records(X[left], y[left], ids=left), trusted=True)
    assert later.digest() == fitted.digest()
    assert later.delete([5]).digest_after == fitted.delete([5]).digest_after


def test_it_is_no_step_of_what_is_exact() -> None:
    X, y = records()
    for whole in (
        make_pipeline(StandardScaler(), model()),
        make_pipeline(StandardScaler(), make_pipeline(model())),
    ):
        with pytest.raises(InvalidParameterError, match=r"forgets about.*use it alone"):
            whole.fit(X, y)


def test_numbers() -> None:
    X, _ = records()
    own = NetworkRegressor("neural.backbones.layers", max_epochs=4)
    fitted = ApproximateNetwork(own, "FineTune", random_state=0).fit(X, X[:, 0])
    assert fitted.delete(GONE).exactness == "approximate"
    assert np.isfinite(fitted.predict(X)).all()


def test_one_that_diverges_stays() -> None:
    X, y = records()
    fitted = model("NegGradPlus", learning_rate=1e6, beta=0.1, n_epochs=9).fit(X, y)
    before = fitted.digest()
    with pytest.raises(UnlearnableError, match="smaller learning_rate"):
        fitted.delete(GONE)
    assert fitted.digest() == before
    assert fitted.ids_.size == 150


def test_bad_input_is_told() -> None:
    X, y = records()
    with pytest.raises(InvalidParameterError, match="method='Retrain'; expected one of FineTune"):
        model("Retrain").fit(X, y)
    with pytest.raises(InvalidParameterError, match="expected parameters of SalUn: batch_size"):
        model("SalUn", depth=3).fit(X, y)
    with pytest.raises(InvalidParameterError, match="expected a NetworkClassifier"):
        ApproximateNetwork(StandardScaler(), "SalUn").fit(X, y)
    with pytest.raises(InvalidParameterError, match="share"):
        model("SalUn", share=7.0).fit(X, y)
    with pytest.raises(InvalidParameterError, match="method_params has 'random_state'; expected"):
        model("SalUn", random_state=3).fit(X, y)
    own = NetworkRegressor("neural.backbones.layers", max_epochs=1)
    with pytest.raises(InvalidParameterError, match="Scrub is for networks that learn classes"):
        ApproximateNetwork(own, "Scrub").fit(X, X[:, 0])


def test_it_is_listed_among_no_others() -> None:
    assert "ApproximateNetwork" not in [name for name, _, _ in erasable.all_estimators()]
    with pytest.raises(Exception, match="approximate"):
        check_erasable(model())
