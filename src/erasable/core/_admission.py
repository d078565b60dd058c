"""Which records a model takes: those it is fitted on, and those that a file of it comes with."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from sklearn.utils import get_tags

from erasable.core.complaints import no_target
from erasable.core.errors import ArtifactError, InvalidInputError, OutdatedModelWarning
from erasable.core.frames import difference
from erasable.core.ids import name_some
from erasable.core.inputs import read_table, refuse_records
from erasable.core.params import class_path, find_class
from erasable.core.records import Records
from erasable.core.unsettled import refuse_rows_without_text

if TYPE_CHECKING:
    from erasable.core.estimator import Erasable
    from erasable.core.stateful import Stateful

__all__ = ["class_for", "read_records", "records_for", "warn_if_outdated"]


def read_records(
    model: Erasable, X: Any, y: Any, sample_weight: Any, ids: Any, groups: Any
) -> Records:
    """Read what a model is to be fitted on; see `erasable.core.estimator.Erasable.fit`."""
    needs_target = get_tags(model).target_tags.required
    target: Any = X.y if isinstance(X, Records) else y
    if needs_target and target is None:
        raise no_target(model)
    if isinstance(X, Records):
        _refuse_besides(model, X, (y, sample_weight, ids, groups))
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
    return records


def _refuse_besides(model: Erasable, records: Records, given: tuple[Any, ...]) -> None:
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


def records_for(model: Stateful, records: Records | tuple[Any, ...]) -> Records:
    """Return the records that a file comes with, if they have the features of its model.

    Raises
    ------
    ArtifactError
        They have others, or the model was a step of a pipeline.
    InvalidInputError
        They are something else.
    """
    if not isinstance(records, Records):
        if not (isinstance(records, tuple) and len(records) in (2, 3)):
            length = f" of {len(records)}" if isinstance(records, tuple) else ""
            raise InvalidInputError(
                f"records are a {type(records).__name__}{length}; expected Records, or a tuple "
                "(X, ids) or (X, ids, groups); pass Records(X, ids=...)"
            )
        X, ids, *rest = records
        records = Records(X, ids=ids, groups=rest[0] if rest else None)
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


def class_for(cls: type[Any], header: dict[str, Any]) -> type[Any]:
    """Find the class of the model in a file: `cls`, or one that inherits from it."""
    path = str(header["class"])
    if path == class_path(cls):
        return cls
    found = find_class(path)
    if not (issubclass(found, cls) and class_path(found) == path):
        raise ArtifactError(
            f"the file holds a {path}; expected a {cls.__name__}; load it with erasable.load(path)"
        )
    return found


def warn_if_outdated(model: Stateful) -> None:
    """Warn of a model that an earlier version learned otherwise."""
    if model.outdated:
        warnings.warn(
            f"an earlier version learned another {type(model).__name__} of the same records: "
            f"{model.outdated}; expected one fitted by this version; fit again, or delete "
            "records, for which it learns again",
            OutdatedModelWarning,
            stacklevel=4,
        )
