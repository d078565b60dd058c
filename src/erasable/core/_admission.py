"""Checks of the records that a model is fitted on, or that a file of it is loaded with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from erasable.core.errors import ArtifactError, InvalidDataError, InvalidInputError
from erasable.core.frames import difference
from erasable.core.ids import name_some
from erasable.core.inputs import read_table
from erasable.core.messages import no_target
from erasable.core.records import Records
from erasable.core.targets import check_target
from erasable.core.undecided_types import may_be_rounded, refuse_rounded, refuse_rows_without_text
from erasable.core.values import ANYTHING, Accepts, refuse_unsuited

if TYPE_CHECKING:
    from erasable.core.model import Model

IN_MEMORY = (
    "Embedding on a cluster, MLPClassifier, MLPRegressor, Refit, and shards and bags of "
    "erasable's own estimators"
)
"""What learns from features in memory alone, for messages."""

# Parts of a tuple of records, by its length.
_WITH_TARGETS = {2: ("X", "y"), 3: ("X", "y", "ids"), 4: ("X", "y", "ids", "groups")}
_WITHOUT_TARGETS = {2: ("X", "ids"), 3: ("X", "ids", "groups"), 4: ("X", "y", "ids", "groups")}


def read_records(
    model: Model, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any
) -> Records:
    """Read what a model is to be fitted on; see `erasable.core.estimator.Erasable.fit`."""
    needs_target = get_tags(model).target_tags.required
    target: Any = X.y if isinstance(X, Records) else y
    if needs_target and target is None:
        raise no_target(model)
    if isinstance(X, Records):
        _refuse_besides(model, X, (y, sample_weight, ids, groups))
        _refuse_stored(model, X)
        refuse_records(model, X)
        model._take_features(X.n_features, X.feature_names)
        records = X
    else:
        records = Records.from_table(
            read_table(
                X,
                y if needs_target else None,
                sample_weight=sample_weight,
                ids=ids,
                groups=groups,
                estimator=model,
            )
        )
    model._refuse_mixed_numbers(records)
    if "X" in records.unsettled and model._heeds_objects:
        refuse_rows_without_text(type(model).__name__)
    _refuse_rounded(model, records)
    return records


def refuse_records(estimator: BaseEstimator, records: Records) -> None:
    """Raise InvalidDataError where an estimator does not take values or targets of `Records`."""
    live = ~records._withdrawn  # what other models have deleted does not count
    y = records.y if get_tags(estimator).target_tags.required else None
    if y is not None and check_target(estimator, y if live.all() else y[live]).ndim < y.ndim:
        raise InvalidDataError(
            f"the records have targets of shape {y.shape}; expected ({records.n_rows},); "
            "pass y.ravel() to Records"
        )
    refuse_unsuited(estimator, records.matrix, live, records.feature_names)


def _refuse_stored(model: Model, records: Records) -> None:
    remote = records.is_remote
    if records.is_stored and (parts := model._not_by_blocks(remote=remote)):
        where = "on a cluster" if remote else "in files"
        raise InvalidInputError(
            f"the features of the records lie {where}, from which {type(parts[0]).__name__} does "
            "not learn; expected an estimator that learns block by block, as all of erasable do "
            f"but {IN_MEMORY}; pass records.in_memory(){parts[0]._instead_of_memory}"
        )


def _refuse_rounded(model: Model, records: Records) -> None:
    if Accepts.of(model).exact:
        stored = records.is_stored and may_be_rounded(records.matrix)
        if stored or "rounded" in records.unsettled:
            refuse_rounded(type(model).__name__, stored=stored)


def _refuse_besides(model: Model, records: Records, given: tuple[Any, ...]) -> None:
    if any(each is not None for each in given):
        raise InvalidInputError(
            "fit was given Records together with y, sample_weight, ids or groups; expected "
            "one or the other; pass them to Records(X, y, ids=..., groups=...)"
        )
    if records.weights is not None and not model._takes_weights:
        raise InvalidInputError(
            f"the records have weights, of which {type(model).__name__} makes no use; expected "
            "none; leave sample_weight out of Records"
        )


def records_for(model: Model, records: Records | tuple[Any, ...]) -> Records:
    """Return the records that a file comes with, if they have the features of its model."""
    predicts = get_tags(model).target_tags.required
    if not isinstance(records, Records):
        records = _from_tuple(model, records, predicts)
    if model._info.values is not None and model._info.values.tells_objects:
        records.read_as_objects()
    if predicts and records.y is None:
        raise ArtifactError(
            f"the records have no targets, from which {type(model).__name__} learns; expected "
            "those it was fitted on, with their targets; pass Records(X, y, ids=...) or a tuple "
            "(X, y, ids)"
        )
    _refuse_stored(model, records)
    if records.n_features != model.n_features_in_:
        raise ArtifactError(
            f"the records have {records.n_features} features; expected "
            f"{model.n_features_in_}; pass the records the model was fitted on"
        )
    names = getattr(model, "feature_names_in_", None)
    known = records.feature_names
    if names is not None and known is not None and names.tolist() != known:
        raise ArtifactError(
            "the records have other features than the model: "
            f"{difference(known, names.tolist())}; expected {name_some(names.tolist())}; "
            "pass the records the model was fitted on"
        )
    if model._map is not None:
        raise ArtifactError(
            "the model was a step of a pipeline, and has learned from records that other "
            "steps scaled; expected the pipeline; save that, and load it with the records"
        )
    return records


def _from_tuple(model: Model, given: tuple[Any, ...], predicts: bool) -> Records:
    forms = _WITH_TARGETS if predicts else _WITHOUT_TARGETS
    if not (isinstance(given, tuple) and len(given) in forms):
        length = f" of {len(given)}" if isinstance(given, tuple) else ""
        *some, last = (_shown(names) for names in forms.values())
        raise InvalidInputError(
            f"records are a {type(given).__name__}{length}; expected Records, or a tuple "
            f"{', '.join(some)} or {last}; pass Records({'X, y' if predicts else 'X'}, ids=...)"
        )
    parts = dict(zip(forms[len(given)], given, strict=True))
    if not predicts:
        parts.pop("y", None)
    hashed = model._info.values  # old files hash unread columns, too
    unread = model if hashed is None or hashed.unread else None
    accepts = Accepts.of(model)
    if accepts.objects:  # it may have learned from records that were read as numbers
        accepts = ANYTHING
    records = Records._read_for(unread, accepts=accepts, **parts)
    if records.y is not None:
        records.y = check_target(model, records.y)  # a column of one, as `fit` takes it
    return records


@contextmanager
def telling_form(model: Model, records: Records | tuple[Any, ...]) -> Iterator[None]:
    """Add to an error how a tuple of records was read, in case it was meant in another order."""
    forms = _WITH_TARGETS if get_tags(model).target_tags.required else _WITHOUT_TARGETS
    try:
        yield
    except (ArtifactError, InvalidInputError) as error:
        if not (isinstance(records, tuple) and len(records) in forms):
            raise
        told = f"{error}; the tuple was read as {_shown(forms[len(records)])}"
        raise type(error)(told) from None


def _shown(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"
