"""Outcomes of models, and how a model is opened for them: at rest, or with its records."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from erasable.core.errors import AcceleratorWarning, ArtifactError, ElsewhereError, WorkspaceError
from erasable.core.estimator import Erasable, load
from erasable.core.mapped.pages import MappedFile
from erasable.core.records import Records
from erasable.workspace.context import Context
from erasable.workspace.models import accelerators
from erasable.workspace.models.catalogue import Model, Version
from erasable.workspace.models.parameters import is_refit
from erasable.workspace.models.training import Made, algorithm_of, software, to_bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """A model as it is to be, and what was done to it."""

    treatment: str
    exactness: str
    data: bytes
    digest: str
    algorithm: str
    fitted: Erasable | None
    file: MappedFile | None = None  # an accelerator of which parts have changed

    def keep(self, context: Context, key: str) -> None:
        """Have an accelerator for the artifact with a key, once the ledger refers to it."""
        if self.fitted is not None:
            accelerators.keep(context, key, self.fitted, self.file)


def of_training(model: Model, made: Made) -> Outcome:
    """Say what came of training a model again."""
    treatment = "retrained" if model.kind == "command" else "refitted"
    exactness = "trained again"
    if model.kind == "estimator":
        assert made.fitted is not None
        exactness = made.fitted.exactness
    return Outcome(treatment, exactness, made.data, made.digest, made.algorithm, made.fitted)


def at_rest(context: Context, model: Model, version: Version) -> tuple[MappedFile, Erasable] | None:
    """Open the model's accelerator, where it can be used."""
    found = accelerators.find(context, version)
    if not isinstance(found, str):
        return found
    if accelerators.is_there(context, version):
        warnings.warn(
            f"the accelerator of {model.name!r} cannot be used ({found}): all of its records "
            "are read, and it is made again",
            AcceleratorWarning,
            stacklevel=2,
        )
    return None


def of_change(
    loaded: Erasable, file: MappedFile | None = None, treatment: str = "deleted"
) -> Outcome:
    """Say what came of changing a model, that was loaded or has an accelerator."""
    return Outcome(
        treatment, loaded.exactness, to_bytes(loaded), loaded.digest(), algorithm_of(loaded),
        loaded, file,
    )  # fmt: skip


def loaded_with(
    context: Context, model: Model, version: Version, records: Records
) -> Erasable | None:
    """Load a model with its records; None where it has to be fitted again."""
    data = context.store.open(version.stored)
    try:
        # The files of the model and of the data have the hashes that the ledger knows.
        return load(io.BytesIO(data), records, vouched=True, trusted=True)
    except ElsewhereError:
        return None  # it is fitted again, and is one of this machine from there on
    except ArtifactError as error:
        if version.software != software():
            return None  # other numbers than this software comes to
        raise WorkspaceError(
            f"the model {model.name!r} does not fit its records, or what it was made with "
            f"({error}); fit it again with `erasable model fit {model.name}`"
        ) from error


def is_own(estimator: Erasable, version: Version) -> bool:
    """Tell whether a model can delete by itself, as it was made.

    A pipeline that ends in a `Refit` is fitted again.
    """
    steps = getattr(estimator, "steps", None)  # without importing pipelines for it
    return (
        not is_refit(steps[-1][1] if steps else estimator)
        and algorithm_of(estimator) == version.algorithm
    )
