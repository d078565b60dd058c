"""Training of a model by its recipe: an estimator, a Python function, or a command.

The law kept here: the result depends only on the recipe and the records. Files for a command are in
a scratch folder, which is removed when it has ended.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import io
import platform
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import erasable
from erasable.core.errors import ErasableError, TooFewRecordsError, WorkspaceError
from erasable.core.estimator import Erasable, load
from erasable.core.params import class_path
from erasable.core.records import Records
from erasable.workspace.context import Context
from erasable.workspace.evidence.ledger_checks import Trusted
from erasable.workspace.locking import environment
from erasable.workspace.models import recipes
from erasable.workspace.models.model_columns import ModelColumns, Tables, joined_table
from erasable.workspace.store.disk import Disk

_PACKAGES = ("numpy", "scikit-learn", "scipy")


@dataclass(frozen=True, slots=True)
class Made:
    """A trained model."""

    data: bytes  # the file of the model
    digest: str  # of an estimator its own, otherwise of its file
    algorithm: str  # models of different algorithms are not compared
    recipe: dict[str, Any]  # with the seeds that were drawn
    features: tuple[str, ...] | None
    n_records: int
    seconds: float
    fitted: Erasable | None


def train(
    context: Context,
    trusted: Trusted[dict[str, Any]],
    tables: Tables,
    design: ModelColumns | None,
    records_for: Callable[[ModelColumns, Erasable], Records],
) -> Made:
    """Train the model of a recipe.

    `design` is None except for an estimator; `records_for` makes the records that it learns from.
    Raise TooFewRecordsError if the model cannot exist on so few records.
    """
    began = time.perf_counter()
    n_records = sum(part.num_rows for _, part in tables)
    if n_records == 0:
        raise TooFewRecordsError("there is no record to learn from; expected one or more; add data")
    recipe = trusted.value
    kind = recipe["kind"]
    if kind == "estimator":
        assert design is not None
        model = recipes.make(recipe)
        model.fit(records_for(design, model))
        made = to_bytes(model)
        return Made(
            made, model.digest(), algorithm_of(model), recipes.with_seeds(recipe, model),
            design.features, n_records, time.perf_counter() - began, model,
        )  # fmt: skip
    if kind == "entry":
        result = _by_entry(recipe["entry"], joined_table(tables))
        if isinstance(result, Erasable):
            made, digest = to_bytes(result), result.digest()
            algorithm, seconds = algorithm_of(result), time.perf_counter() - began
            return Made(made, digest, algorithm, dict(recipe), None, n_records, seconds, result)
        if not isinstance(result, bytes | bytearray) or not result:
            raise WorkspaceError(
                f"{recipe['entry']} returned a {type(result).__name__}; expected bytes, or a "
                "fitted estimator of erasable; return one of these"
            )
        data = bytes(result)
    else:
        data = _by_command(context, Trusted(recipe["command"]), joined_table(tables))
    seconds = time.perf_counter() - began
    return Made(data, digest_of(kind, data), kind, dict(recipe), None, n_records, seconds, None)


def _by_entry(entry: str, data: pa.Table) -> Any:
    """Call a function of the user's; what its error says may hold values of records."""
    function = recipes.find_entry(entry)
    try:
        return function(data)
    except ErasableError:
        raise
    except Exception as error:
        raise WorkspaceError(
            f"{entry} failed with {type(error).__name__}; expected bytes, or a fitted estimator of "
            "erasable; mend it, and set ERASABLE_DEBUG=1 to see where"
        ) from error


def run(trusted: Trusted[str], root: Path, **places: Path) -> None:
    """Run a command of the user, without a shell; its output goes to standard error.

    In its words ``{name}`` stands for a path of `places`; `root` is the folder of the workspace.
    Raise WorkspaceError if it cannot be started, or its exit code is not 0.

    >>> run(Trusted("false"), Path.cwd())
    Traceback (most recent call last):
    erasable.core.errors.WorkspaceError: the command 'false' exited with 1; ...
    """
    command = trusted.value
    try:
        words = shlex.split(command)
        for name, path in places.items():
            words = [word.replace(f"{{{name}}}", str(path)) for word in words]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=2, check=False, env=environment(root)
        )
    except (OSError, ValueError, IndexError) as error:
        message = getattr(error, "strerror", None) or type(error).__name__
        raise WorkspaceError(
            f"the command {command!r} cannot be run ({message}); expected a program; "
            "check its path and its quotes"
        ) from None
    if done.returncode:
        raise WorkspaceError(
            f"the command {command!r} exited with {done.returncode}; expected 0; "
            "see what it wrote, and mend it"
        )


def to_bytes(model: Erasable) -> bytes:
    """Return the file of a model; `from_bytes` reads it."""
    held = io.BytesIO()
    model.save(held)
    return held.getvalue()


def from_bytes(data: bytes) -> Erasable:
    """Load a model, without records, from the bytes of a file whose hash the caller has checked."""
    return load(io.BytesIO(data), trusted=True)


def algorithm_of(model: Erasable) -> str:
    """Return the class of a model, and the version of its algorithm."""
    parts = {f"{class_path(type(model))}/{model.algorithm_version}"}
    own = parts.copy()
    for part in model.get_params(deep=True).values():
        if isinstance(part, Erasable):
            parts.add(f"{class_path(type(part))}/{part.algorithm_version}")
    return " ".join([*own, *sorted(parts - own)])


def digest_of(kind: str, data: bytes) -> str:
    """Return the digest of a model that has none of its own."""
    return f"{kind}:{hashlib.sha256(data).hexdigest()}"


def software() -> dict[str, str]:
    """Return the versions of the software that a model is made with."""
    return {
        "erasable": erasable.__version__,
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: _version_of(name) for name in _PACKAGES},
    }


@functools.cache
def _version_of(package: str) -> str:
    """Read the version that is installed; what is imported stays what it is."""
    return importlib.metadata.version(package)


def _by_command(context: Context, trusted: Trusted[str], data: pa.Table) -> bytes:
    from erasable.core._arrow_files import parquet_bytes

    written = parquet_bytes(data, use_dictionary=True)  # as fragments: what is left shows its bytes
    with context.scratch() as folder:
        Disk(folder).write("data.parquet", written)
        out = folder / "model"
        run(trusted, context.root, data=folder / "data.parquet", out=out)
        if not out.is_file() or not out.stat().st_size:
            raise WorkspaceError(
                f"the command {trusted.value!r} wrote no model; expected a file at {{out}}; "
                "let it write there"
            )
        return out.read_bytes()
