"""A model that is deleted takes its records with it at once, not when garbage is collected."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from erasable.utils._checks.compare import fit, outputs
from erasable.utils._checks.data_sets import FAST, suited
from law_instances import law_instances
from naming import named


@contextmanager
def _without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _holders(model: Any) -> list[weakref.ref[Any]]:
    """Point to the records of a model, and to the tables that its steps read."""
    engine = model.__dict__.get("_engine")
    views = [] if engine is None else engine._reads.values()
    records = [held.records for held in (model._held, *views)]
    matrices = [each.matrix for each in records]
    return [weakref.ref(each) for each in (model, model._held, *records, *matrices)]


def _use(model: Any, data: Any) -> None:
    outputs(model, data)
    model.delete(data.doomed_ids[:1])
    model.delete(data.doomed_ids[1:3], digest=False)
    outputs(model, data)
    model.digest()


def _once_fitted(model: Any, data: Any) -> Any:
    return model


def _unpickled(model: Any, data: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def _fitted_again(model: Any, data: Any) -> Any:
    return model.fit(data.X, data.y, ids=data.ids, groups=data.groups)


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("life", [_once_fitted, _unpickled], ids=lambda f: f.__name__)
@pytest.mark.parametrize("estimator", list(law_instances()), ids=named)
def test_no_model_keeps_its_records_when_it_is_gone(
    estimator: Any, life: Callable[[Any, Any], Any]
) -> None:
    (data,) = suited([FAST[0]], estimator)
    with _without_collection():
        model = life(fit(estimator, data), data)
        _use(model, data)
        pointers = _holders(model)
        del model
        alive = [type(pointer()).__name__ for pointer in pointers if pointer() is not None]
        assert alive == []


@pytest.mark.filterwarnings("ignore::erasable.core.grid.PrecisionWarning")
@pytest.mark.parametrize("estimator", list(law_instances()), ids=named)
def test_a_new_fit_lets_go_of_the_records_before(estimator: Any) -> None:
    (data,) = suited([FAST[0]], estimator)
    with _without_collection():
        model = fit(estimator, data)
        _use(model, data)
        pointers = _holders(model)[1:]
        _fitted_again(model, data)
        assert [pointer() for pointer in pointers if pointer() is not None] == []


def test_a_cycle_is_noticed() -> None:
    class Cyclic(type(next(law_instances()))):  # type: ignore[misc]
        def _fit_rows(self) -> None:
            super()._fit_rows()
            self._myself = self

    (data,) = suited([FAST[0]], Cyclic())
    with _without_collection():
        model = fit(Cyclic(), data)
        pointers = _holders(model)
        del model
        assert all(pointer() is not None for pointer in pointers)
    gc.collect()
    assert not any(pointer() is not None for pointer in pointers)
