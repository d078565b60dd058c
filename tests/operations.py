"""Operations of a workspace, each as one call."""

from __future__ import annotations

from typing import Any

from erasable.workspace.context import Context
from erasable.workspace.data.datasets import AddDataset, DatasetChange
from erasable.workspace.data.operation import carry_out
from erasable.workspace.models import updating
from erasable.workspace.models.fitting import Fit, FittedVersion, Register, Retire


def add(context: Context, *args: Any, **kwargs: Any) -> DatasetChange:
    """Add a data set."""
    return carry_out(AddDataset(context, *args, **kwargs))


append, sync = updating.append, updating.sync


def fit(context: Context, *args: Any, **kwargs: Any) -> FittedVersion:
    """Train a model."""
    return carry_out(Fit(context, *args, **kwargs))


def register(context: Context, *args: Any, **kwargs: Any) -> FittedVersion:
    """Register a model that is trained elsewhere."""
    return carry_out(Register(context, *args, **kwargs))


def retire(context: Context, name: str) -> None:
    """Retire a model."""
    carry_out(Retire(context, name))
