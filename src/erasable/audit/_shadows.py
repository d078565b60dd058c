"""Shadow models: models of the same recipe that have learned from known halves of a pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from erasable.audit._data import Sample
from erasable.audit._signals import Signal, signals_of
from erasable.core.arrays import Flags, Floats
from erasable.core.errors import InvalidInputError, TooFewRecordsError
from erasable.core.estimator import Erasable
from erasable.core.ids import shorten
from erasable.core.leave_out import each_without

__all__ = ["Recipe", "Shadows", "train_shadows"]

_BELOW_SEED = 2**32

Recipe = Callable[[Any, Any, int], Any]
"""Trains a model of records, targets and a seed."""


@dataclass(frozen=True, eq=False)
class Shadows:
    """How sure each shadow is of each record, and from which records it has learned."""

    confidence: Floats  # (n_models, n_records); see `Signals`
    logit: Floats  # of the same shape
    members: Flags  # (n_models, n_records): whether a shadow has learned from a record
    # logits of members when just that record is deleted exactly; NaN of records that are no members
    # or were not paired
    without: Floats | None = None

    def but(self, model: int) -> Shadows:
        """Return the answers of all models but one."""
        rest = np.arange(len(self.members)) != model
        without = None if self.without is None else self.without[rest]
        return Shadows(self.confidence[rest], self.logit[rest], self.members[rest], without)

    def of_models(self, models: Any, n_records: int | None = None) -> Shadows:
        """Return the answers of some models on the first records, without the paired ones."""
        part = (models, slice(n_records))
        return Shadows(self.confidence[part], self.logit[part], self.members[part])


def train_shadows(
    recipe: Any,
    pool: Sample,
    asked: Sample | None = None,
    *,
    n_models: int,
    seed: int,
    temperature: float = 1.0,
    signal: Signal | None = None,
    paired: Any = (),
    n_jobs: int = 1,
) -> Shadows:
    """Train models on independent halves of a pool, and ask each of them for records.

    Every record is in half of the halves; each model has its own seed. A `recipe` is an estimator,
    of which every `random_state` is set, or ``recipe(X, y, seed)`` returns a trained model. Columns
    of `asked` come after those of the pool. `paired` are rows of the pool that are deleted, one by
    one and exactly, from each shadow that has learned from them; only estimators of erasable can do
    this. Too few records raise TooFewRecordsError, also where a half lacks a class and the recipe
    fails.
    """
    rows = np.asarray(paired, dtype=np.int64)
    if rows.size and not (isinstance(recipe, Erasable) and recipe.exactness != "approximate"):
        raise InvalidInputError(
            f"paired records of a {type(recipe).__name__}; expected an estimator of erasable that "
            "deletes exactly"
        )
    if len(pool) < 4:
        raise TooFewRecordsError(f"{pool.name} has {len(pool)} records; expected at least 4")
    source = np.random.default_rng(seed)
    # A random half of the models for every record.
    members = source.random((n_models, len(pool))).argsort(axis=0) < max(1, n_models // 2)
    if n_models == 1:
        members = (source.permutation(len(pool)) < len(pool) // 2)[np.newaxis]
    seeds = source.integers(_BELOW_SEED, size=n_models).tolist()
    everything = pool if asked is None else pool.join(asked)

    def one(k: int) -> tuple[Floats, Floats, Floats]:
        learned = np.flatnonzero(members[k])
        part = replace(pool.take(learned), ids=learned)  # those of members and others may repeat
        model = _fit_half(recipe, part, seeds[k], everything)
        signals = signals_of(
            model, everything, temperature=temperature, signal=signal, knows_all=False
        )
        without = np.full(len(everything), np.nan)
        inside = np.flatnonzero(members[k][rows])
        if inside.size:
            places = np.searchsorted(learned, rows[inside])
            each = each_without(model, places[:, np.newaxis])
            for row, left in zip(inside.tolist(), each, strict=True):
                alone = pool.take(rows[[row]])
                found = signals_of(left, alone, signal=signal, knows_all=False)
                without[rows[row]] = found.logit[0]
        return signals.confidence, signals.logit, without

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(one)(k) for k in range(n_models))
    confidence, logit, without = (np.array(each) for each in zip(*found, strict=True))
    if asked is not None:
        members = np.hstack([members, np.zeros((n_models, len(asked)), dtype=bool)])
    return Shadows(confidence, logit, members, without if rows.size else None)


def _fit_half(recipe: Any, part: Sample, seed: int, everything: Sample) -> Any:
    """Train a model; the error of a half that lacks a class says so."""
    try:
        return fit(recipe, part, seed)
    except ValueError as error:
        if np.any(part.y != part.y[0]) or np.all(everything.y == part.y[0]):
            raise
        raise TooFewRecordsError(
            f"a model to compare with cannot learn from its {len(part)} records, half of the pool, "
            f"which are all of the class {shorten(part.y.tolist()[0])}; expected several classes "
            "in every half; give more others, or a pool="
        ) from error


def fit(recipe: Any, sample: Sample, seed: int) -> Any:
    """Train a model by a recipe; draws of estimators of erasable depend on the ids of records."""
    if hasattr(recipe, "get_params") and hasattr(recipe, "fit"):
        model = clone(recipe)
        names = [n for n in model.get_params() if n.split("__")[-1] == "random_state"]
        source = np.random.default_rng(seed)
        model.set_params(**{name: int(source.integers(_BELOW_SEED)) for name in names})
        ids = {"ids": sample.ids} if isinstance(model, Erasable) else {}
        return model.fit(sample.X, sample.y, **ids)
    if callable(recipe):
        return recipe(sample.X, sample.y, seed)
    raise InvalidInputError(
        f"the recipe is a {type(recipe).__name__}; expected an estimator, or a function of "
        "records, targets and a seed that returns a trained model"
    )
