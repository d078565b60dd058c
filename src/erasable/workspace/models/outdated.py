"""Models that an earlier version of erasable learned otherwise, and that say so when loaded.

Only a function of the user's can make one: a recipe of estimators has no compositions in a
composition. Their files are read for that.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from erasable.core.errors import OutdatedModelWarning, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.models import catalogue

if TYPE_CHECKING:
    from erasable.core.estimator import Erasable

_COMPOSED = ("erasable.compose.ColumnTransformer", "erasable.pipeline.Pipeline")


def names(context: Context, connection: Connection) -> list[str]:
    """Name the models in use that are outdated; a file that cannot be read is not."""
    found = []
    for model in catalogue.every(connection):
        version = catalogue.current(connection, model)
        if model.kind != "entry" or version is None or not model.is_live:
            continue
        if any(each in version.algorithm for each in _COMPOSED):
            try:
                outdated = read_quietly(context.store.open(version.stored)).outdated
            except (WorkspaceError, ValueError):  # gone by now, or damaged, as `verify` says
                continue
            if outdated:
                found.append(model.name)
    return found


def read_quietly(data: bytes) -> Erasable:
    """Load a model; the caller says itself whether it is outdated."""
    from erasable.workspace.models.training import of_bytes  # slow to import, and rarely needed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutdatedModelWarning)
        return of_bytes(data)
