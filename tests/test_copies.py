"""A fitted estimator comes back from every copy and every serializer, and deletes as before."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.base import clone

from erasable.core.attachment import Attachment
from erasable.linear_model import Ridge
from erasable.utils._checks.data_sets import MARKED, suited
from law_instances import first_instances
from naming import named

OURS = {
    "builtins.frozenset",
    "erasable.core.attachment.Attachment",
    "erasable.core.records.Records",
    "erasable.core.value_hash.ValueHash",
}
"""What skops is to trust besides the estimators."""


def _by_joblib(model: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def _skops() -> Any:
    return pytest.importorskip("skops.io", reason="skops is not installed: extra serving")


def _by_skops(model: Any) -> Any:
    skops = _skops()
    written = skops.dumps(model)
    types = skops.get_untrusted_types(data=written)
    parts = {f"{type(each).__module__}.{type(each).__name__}" for each in _estimators(model)}
    assert {each for each in types if each.startswith("erasable.")} <= OURS | parts
    return skops.loads(written, trusted=types)


def _estimators(model: Any) -> list[Any]:
    found = [model, *model.get_params(deep=True).values()]
    return [each for each in found if hasattr(each, "get_params")]


WAYS: dict[str, Callable[[Any], Any]] = {
    "cloudpickle": lambda model: pickle.loads(cloudpickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "joblib": _by_joblib,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "skops": _by_skops,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("estimator", first_instances(), ids=named)
def test_a_model_comes_back_and_deletes(estimator: Any, way: str) -> None:
    data = next(iter(suited(MARKED, estimator)))
    model = clone(estimator).fit(data.X, data.y, ids=data.ids)
    gone = data.ids[:1].tolist()
    again = WAYS[way](model)
    before = model.digest()
    assert again.digest() == before
    deleted = again.delete(gone)
    assert model.digest() == before  # it shares nothing with its copy
    assert deleted.digest_after == model.delete(gone).digest_after != before


def test_a_reference_to_a_model_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative control: an attachment refers weakly to its model, and is kept without that."""
    model = Ridge().fit(np.eye(3), [1.0, 2.0, 3.0])
    assert _by_skops(model).digest() == model.digest()
    monkeypatch.setattr(Attachment, "__reduce__", object.__reduce__)
    with pytest.raises(TypeError, match="ReferenceType"):
        _skops().dumps(model)
