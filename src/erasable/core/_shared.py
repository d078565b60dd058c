"""Records that several models share, held against what one of them can learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils import get_tags

from erasable.core.errors import InvalidDataError, InvalidInputError
from erasable.core.records import Records
from erasable.core.targets import check_target
from erasable.core.values import refuse_unsuited

if TYPE_CHECKING:
    from erasable.core.estimator import Erasable

__all__ = ["refuse_unsuited_records"]


def refuse_unsuited_records(
    model: Erasable, X: Records, y: Any, sample_weight: Any, ids: Any, groups: Any
) -> None:
    """Raise InvalidInputError for records that a model cannot be fitted on.

    Records that other models have deleted do not count, even where some still hold them.
    """
    if any(given is not None for given in (y, sample_weight, ids, groups)):
        raise InvalidInputError(
            "fit was given Records together with y, sample_weight, ids or groups; expected "
            "one or the other; pass them to Records(X, y, ids=..., groups=...)"
        )
    if X.weights is not None and not model._takes_weights:
        raise InvalidInputError(
            f"the records have weights, of which {type(model).__name__} makes no use; expected "
            "none; leave sample_weight out of Records"
        )
    live = ~X._withdrawn
    if X.y is not None and get_tags(model).target_tags.required:
        target = X.y if live.all() else X.y[live]
        if check_target(model, target).ndim < X.y.ndim:
            raise InvalidDataError(
                f"the records have targets of shape {X.y.shape}; expected ({X.n_rows},); "
                "pass y.ravel() to Records"
            )
    refuse_unsuited(model, X.matrix, live, X.feature_names)
