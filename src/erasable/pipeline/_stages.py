"""From steps to stages: which table each step reads, and what lies between the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags

from erasable.core.errors import InvalidDataError, InvalidInputError, UnsupportedStepError
from erasable.core.estimator import Erasable
from erasable.core.steps import Rows

__all__ = ["Stage", "active", "carry", "check_steps", "compose", "lead", "plan"]

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One step of a pipeline, and where its input comes from.

    Attributes
    ----------
    name : str
    step : estimator
    learns : bool
        Whether it is an estimator of erasable; otherwise it is stateless.
    path : tuple of Stage
        What lies between the table that was made last (at first, the records) and this step.
    mapped : bool
        The path is a chain of maps of columns, and the step takes it as one map.
    """

    name: str
    step: Any
    learns: bool
    path: tuple[Stage, ...]
    mapped: bool

    @property
    def tabled(self) -> bool:
        """Whether the path has to be made into a table for this step to learn from."""
        return self.learns and bool(self.path) and not self.mapped


def active(steps: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that do anything."""
    return [(name, step) for name, step in steps if not (step is None or isinstance(step, str))]


def plan(steps: Iterable[tuple[str, Any]]) -> list[Stage]:
    """Lay out the active steps."""
    stages: list[Stage] = []
    path: tuple[Stage, ...] = ()
    for name, step in active(steps):
        learns = isinstance(step, Erasable)
        maps = bool(path) and all(stage.learns and stage.step._is_affine for stage in path)
        stage = Stage(name, step, learns, path, learns and maps and step._takes_affine)
        stages.append(stage)
        path = (stage,) if stage.tabled else (*path, stage)
    return stages


def check_steps(steps: Sequence[tuple[str, Any]]) -> None:
    """Refuse steps that cannot be part of a pipeline.

    Raises
    ------
    InvalidInputError
        There are none.
    UnsupportedStepError
        One that learns but cannot delete, or is no estimator, or hands nothing on.
    """
    if not steps:
        raise InvalidInputError("The pipeline is empty; expected steps. Please add steps.")
    for place, (name, step) in enumerate(steps):
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if isinstance(step, type) or not hasattr(step, "fit"):
            raise UnsupportedStepError(
                f"step {name!r} is {step!r}; expected an estimator or the string 'passthrough' "
                "(Last step of Pipeline should implement fit); pass an instance"
            )
        learns = isinstance(step, Erasable)
        if not learns and get_tags(step).requires_fit:
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which learns from records and cannot "
                "delete them; expected an estimator of erasable, or a stateless transformer; "
                "use its counterpart in erasable, or transform the data before the pipeline"
            )
        if not hasattr(step, "transform") and (place < len(steps) - 1 or not learns):
            raise UnsupportedStepError(
                f"step {name!r} is a {type(step).__name__}, which has no transform; "
                "All intermediate steps should be transformers; put it last, or leave it out"
            )


def compose(path: Sequence[Stage]) -> tuple[Floats, Floats]:
    """Return (shift, scale) of a chain of maps as one map."""
    shift, scale = path[0].step._affine()
    for stage in path[1:]:
        then_shift, then_scale = stage.step._affine()
        shift, scale = shift + scale * then_shift, scale * then_scale
    return shift, scale


def carry(rows: NDArray[Any], path: Iterable[Stage]) -> NDArray[Any]:
    """Send rows, float64 and C-contiguous, through transformers.

    Raises
    ------
    InvalidDataError
        A stateless step made something else than a table of finite numbers of them.
    """
    for stage in path:
        if stage.learns:
            rows = np.ascontiguousarray(stage.step.transform(Rows(rows)), dtype=np.float64)
        else:
            rows = _checked(stage, stage.step.transform(rows), rows.shape[0])
    return rows


def _checked(stage: Stage, out: Any, n_rows: int) -> Floats:
    what = f"step {stage.name!r} made"
    if sparse.issparse(out):
        raise InvalidDataError(f"{what} a sparse matrix; expected an array; let it make one")
    try:
        matrix = np.ascontiguousarray(out, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDataError(
            f"{what} something that is not a table of numbers; expected numbers; change the step"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != n_rows:
        raise InvalidDataError(
            f"{what} an array of shape {matrix.shape} of {n_rows} rows; expected 2 dimensions and "
            "a row for each; change the step"
        )
    if not np.isfinite(matrix).all():
        raise InvalidDataError(
            f"{what} NaN or infinity in {int((~np.isfinite(matrix)).any(axis=0).sum())} columns; "
            "expected finite numbers; change the step, or the values it is given"
        )
    return matrix


def lead(rows: NDArray[Any], stages: Sequence[Stage]) -> Any:
    """Send rows through all steps but the last; return what the last one is to be given."""
    for stage in stages:
        if stage.tabled:
            rows = carry(rows, stage.path)
    last = stages[-1]
    if last.mapped:
        return Rows(rows, unmapped=True)
    if not last.tabled:
        rows = carry(rows, last.path)
    return Rows(rows) if last.learns else rows
