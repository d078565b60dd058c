"""Deletion of records from models: prepared beside the current files, then put in place.

The law kept here: the result is the model that the recipe makes of the remaining records, or no
model at all. `prepare_model` changes no pointer; `adopt` changes all of them in the caller's
transaction. A model with too few records is retired, so that it never stops an erasure. New or
corrected records that it cannot learn from are an error.
"""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sqlalchemy import Connection

from erasable.core.errors import (
    AcceleratorWarning,
    ArtifactError,
    ElsewhereError,
    TooFewRecordsError,
    WorkspaceError,
)
from erasable.core.estimator import Erasable, load
from erasable.core.mapped.beside import make_ready
from erasable.core.mapped.pages import MappedFile, StaleError
from erasable.core.persistent import UnsavableError
from erasable.core.records import Records
from erasable.workspace.context import Context
from erasable.workspace.data.catalogue import get
from erasable.workspace.evidence import commitments, ledger_checks
from erasable.workspace.ledger.treatments import (
    DELETED,
    NOT_COVERED,
    REFITTED,
    RETIRED,
    RETRAINED,
    TREATMENTS,
    UPDATED,
    Treatment,
)
from erasable.workspace.models import estimates, recipes
from erasable.workspace.models.catalogue import Model, Version
from erasable.workspace.models.following import Arriving, carry_over, may_follow
from erasable.workspace.models.model_columns import (
    ModelColumns,
    Tables,
    ids_of,
    reads_blocks,
    refuse_empty_targets,
    without_records,
)
from erasable.workspace.models.parameters import is_refit
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import Made, algorithm_of, software, to_bytes, train
from erasable.workspace.models.versions import log_model, new_version, retire_model
from erasable.workspace.store.accelerators import folder_of, secret_of
from erasable.workspace.store.artifacts import LocalStore, StoredArtifact


def keep_accelerator(
    context: Context, key: str, model: Erasable, file: MappedFile | None = None
) -> None:
    """Write the accelerator of the artifact with a key, if the store is a folder.

    None is written for a model that learns again of all records, or if the disk is full. `file` is
    the file that the model was opened from, with changed parts.
    """
    if not isinstance(context.store, LocalStore):
        return
    try:
        if file is not None:
            file.prepare(model, key)
            return
        ready: Any = make_ready(model)
        MappedFile.make(context.disk, folder_of(key), key, ready, secret_of(context.keys))
    except (UnsavableError, OSError):
        with suppress(OSError):  # what is left of it is removed with what nothing refers to
            context.disk.remove_folder(folder_of(key))


def has_accelerator(context: Context, version: Version) -> bool:
    """Tell whether a version seems to have an accelerator, without reading it."""
    return version.key is not None and context.disk.path(folder_of(version.key)).is_dir()


def find_accelerator(context: Context, version: Version) -> tuple[MappedFile, Erasable] | str:
    """Return the accelerator of a version and the model with its records, or why there is none."""
    if not isinstance(context.store, LocalStore) or version.key is None:
        return "it is kept in folders only"
    if version.software != software():
        return "other versions of software made it"
    folder, secret = folder_of(version.key), secret_of(context.keys)
    try:
        file, model = MappedFile.open(context.disk, folder, version.key, secret)
        model.get_params()  # that it was made with, of which a newer class may have more
        model._attached().of(model)
    except StaleError as error:
        return str(error)
    except AttributeError:
        return "another version of its class made it"
    return file, model


@dataclass(frozen=True, slots=True)
class ModelOutcome:
    """A model after a change, before it is put in place."""

    treatment: Treatment
    exactness: str
    data: bytes
    digest: str
    algorithm: str
    fitted: Erasable | None
    file: MappedFile | None = None  # an accelerator of which parts have changed

    def keep(self, context: Context, key: str) -> None:
        """Write an accelerator for the artifact with a key, once the ledger refers to it."""
        if self.fitted is not None:
            keep_accelerator(context, key, self.fitted, self.file)


def outcome_of_training(model: Model, made: Made) -> ModelOutcome:
    """Describe the result of training a model again."""
    treatment = _training(model)
    exactness = treatment.exactness
    if model.kind == "estimator":
        assert made.fitted is not None
        exactness = made.fitted.exactness
    return ModelOutcome(treatment, exactness, made.data, made.digest, made.algorithm, made.fitted)


def _training(model: Model) -> Treatment:
    """Return the treatment of a model that learns again."""
    return RETRAINED if model.kind == "command" else REFITTED


def open_accelerator(
    context: Context, model: Model, version: Version
) -> tuple[MappedFile, Erasable] | None:
    """Open the model's accelerator, if it can be used."""
    found = find_accelerator(context, version)
    if not isinstance(found, str):
        return found
    if has_accelerator(context, version):
        warnings.warn(
            f"the accelerator of {model.name!r} cannot be used ({found}): all of its records "
            "are read, and it is made again",
            AcceleratorWarning,
            stacklevel=2,
        )
    return None


def outcome_of_change(
    loaded: Erasable, file: MappedFile | None = None, treatment: Treatment = DELETED
) -> ModelOutcome:
    """Describe the result of changing a model that was loaded or has an accelerator."""
    return ModelOutcome(
        treatment, loaded.exactness, to_bytes(loaded), loaded.digest(), algorithm_of(loaded),
        loaded, file,
    )  # fmt: skip


def load_with_records(
    context: Context, model: Model, version: Version, records: Records
) -> Erasable | None:
    """Load a model with its records; None if it has to be fitted again."""
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
    """Tell whether a model can delete records itself; a pipeline that ends in a `Refit` cannot."""
    steps = getattr(estimator, "steps", None)  # without importing pipelines for it
    return (
        not is_refit(steps[-1][1] if steps else estimator)
        and algorithm_of(estimator) == version.algorithm
    )


_MANY, _SHARE = 20, 0.002
"""Of the records of a model: from there on most pages of its accelerator change, so that writing it
takes longer than the deletion. It is left to the next deletion of few records, which needs it."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model with changed records, to be put in the place of the current version."""

    model_id: int
    number: int  # of the version that it follows
    name: str
    treatment: str  # the name of a row of `TREATMENTS`
    exactness: str  # "bitwise" or "converged", as its estimator says; else that of the treatment
    n_deleted: int  # records that left, came, or have other values
    stored: StoredArtifact | None = None
    salt: str | None = None  # of the new version
    commitment: str | None = None
    before: str | None = None  # commitment of the version before
    algorithm: str = ""
    dataset_versions: list[int] = field(default_factory=list)
    n_records: int = 0  # remaining
    seconds: float = 0.0
    reason: str = ""  # why it is retired

    @property
    def treated(self) -> Treatment:
        """The treatment."""
        return TREATMENTS[self.treatment]


def foresee(
    context: Context, model: Model, version: Version | None, n_deleted: int
) -> tuple[str, str]:
    """Return the treatment and exactness that an erasure would give a model, as far as is known."""
    if version is None or model.kind == "uncovered":
        return NOT_COVERED.name, NOT_COVERED.exactness
    if n_deleted >= version.n_records:
        return RETIRED.name, RETIRED.exactness
    again = _training(model)
    if model.kind != "estimator":
        return again.name, again.exactness
    estimator = recipes.make(model.recipe)
    deletes = _deletes(estimator, version, n_deleted) or (
        is_own(estimator, version) and has_accelerator(context, version)
    )
    return (DELETED if deletes else again).name, estimator.exactness


def prepare_model(
    context: Context,
    model: Model,
    version: Version | None,
    gone: Mapping[int, Iterable[Any]],
    reader: Reader | None = None,
    arriving: Arriving | None = None,
) -> Prepared:
    """Make a model without the records `gone` (ids by data set), and with those `arriving`.

    `version` is None for a model that is not covered. `reader` is of a batch: the models of one
    data set read it once. The file of the result is in the store; nothing points to it yet. Raise
    WorkspaceError if the model's file is damaged or a command fails, InvalidInputError or
    TooFewRecordsError if it cannot learn from what comes; nothing has changed then.
    """
    began = time.perf_counter()
    n_deleted = sum(len(list(ids)) for ids in gone.values())
    common: dict[str, Any] = {
        "model_id": model.id, "number": model.version, "name": model.name,
        "n_deleted": n_deleted,
    }  # fmt: skip
    if version is None:
        return Prepared(**common, treatment=NOT_COVERED.name, exactness=NOT_COVERED.exactness)
    common |= {"before": version.commitment, "dataset_versions": list(version.dataset_versions)}
    left, n_changed = version.n_records - n_deleted, n_deleted
    reader = reader or Reader(context)
    if arriving is not None:
        left, n_changed = left + arriving.n_come, max(n_deleted, arriving.n_records)
        common |= {"n_deleted": n_changed, "dataset_versions": list(arriving.versions)}
    try:
        if arriving is None:
            outcome = _without(context, model, version, gone, reader)
        else:
            outcome = _following(context, model, version, gone, reader, arriving)
    except TooFewRecordsError as error:
        if arriving is not None:  # no erasure alone asks for it
            raise
        said = " ".join(str(error).split()).split("; ")[:2]  # and not to delete fewer
        return Prepared(
            **common, treatment=RETIRED.name, exactness=RETIRED.exactness,
            algorithm=version.algorithm, seconds=time.perf_counter() - began,
            reason="; ".join(said),
        )  # fmt: skip
    stored = context.store.put(f"models/{model.name}", outcome.data)
    few = n_changed < _MANY or n_changed <= _SHARE * version.n_records
    if few or arriving is not None:
        outcome.keep(context, stored.key)
    salt, commitment = commitments.commit(outcome.digest)
    return Prepared(
        **common, treatment=outcome.treatment.name, exactness=outcome.exactness, stored=stored,
        salt=salt, commitment=commitment, algorithm=outcome.algorithm, n_records=left,
        seconds=time.perf_counter() - began,
    )  # fmt: skip


def adopt(
    context: Context,
    connection: Connection,
    prepared: Prepared,
    now: datetime,
    cause: str = "erase",
) -> None:
    """Put what was prepared in the place of the version before, in the caller's transaction."""
    if not prepared.treated.is_covered:
        return
    ledger_checks.check_one(context, connection, "model", prepared.name)
    if prepared.stored is None:
        retire_model(context, connection, prepared.model_id, prepared.name, now)
    else:
        new_version(
            context, connection, prepared.model_id, prepared.number + 1, cause, prepared.stored,
            dataset_versions=prepared.dataset_versions, salt=prepared.salt,
            commitment=prepared.commitment, algorithm=prepared.algorithm,
            n_records=prepared.n_records, seconds=prepared.seconds,
        )  # fmt: skip
        log_model(context, connection, "model-updated", prepared.name, now)
    is_request = cause in ("erase", "correct")
    kind = (prepared.treated if is_request else UPDATED).measured_as
    estimates.note(
        connection, prepared.model_id, kind, prepared.n_records, prepared.n_deleted,
        prepared.seconds, now,
    )  # fmt: skip


def _without(
    context: Context,
    model: Model,
    version: Version,
    gone: Mapping[int, Iterable[Any]],
    reader: Reader,
) -> ModelOutcome:
    design = design_of(model)
    if design is not None:
        outcome = _deleted_at_rest(context, model, version, gone)
        if outcome is not None:
            return outcome
    tables = reader.to_learn_from(model.datasets, version.dataset_versions, design)
    if design is not None:
        outcome = _deleted(context, model, version, reader, tables, design, gone)
        if outcome is not None:
            return outcome
    left = without_records(tables, gone)

    def records_left(design: ModelColumns, estimator: Erasable) -> Records:
        records = reader.records(design, estimator)
        own = ids_of([known for known, _ in tables], gone)
        held = records.attach()
        rows = held.select(own)
        if records.is_remote:
            held.exclude(rows)
            held.release(rows)
            return records
        return records.take(np.delete(np.arange(records.n_rows), rows))

    recipe = ledger_checks.recorded(context, model.name, model.recipe, "recipe")
    return outcome_of_training(model, train(context, recipe, left, design, records_left))


def _following(
    context: Context,
    model: Model,
    version: Version,
    gone: Mapping[int, Iterable[Any]],
    reader: Reader,
    arriving: Arriving,
) -> ModelOutcome:
    """Have a model follow from its accelerator or its file, or learn again."""
    design = design_of(model)
    if design is not None:
        with context.ledger.reading() as connection:
            known = [arriving.reader.described(connection, each) for each in model.datasets]
        n_changed = arriving.n_records + sum(len(list(ids)) for ids in gone.values())
        file, loaded = _opened(context, model, version, reader, design, n_changed)
        if loaded is not None and carry_over(loaded, known, design, gone, arriving):
            return outcome_of_change(loaded, file, arriving.treatment)
    tables = arriving.reader.to_learn_from(model.datasets, arriving.versions, design)
    if design is not None:
        refuse_empty_targets(tables, design.target)
    recipe = ledger_checks.recorded(context, model.name, model.recipe, "recipe")
    made = train(context, recipe, tables, design, arriving.reader.records)
    return outcome_of_training(model, made)


def _opened(
    context: Context,
    model: Model,
    version: Version,
    reader: Reader,
    design: ModelColumns,
    n_changed: int,
) -> tuple[MappedFile | None, Erasable | None]:
    """Open a model that may follow, at rest or with its records; or say that it learns again."""
    fresh = recipes.make(model.recipe)
    if not (may_follow(fresh) and is_own(fresh, version)):
        return None, None
    found = open_accelerator(context, model, version)
    if found is not None:
        return found
    if not _deletes(fresh, version, n_changed):
        return None, None
    reader.to_learn_from(model.datasets, version.dataset_versions, design)
    return None, load_with_records(context, model, version, reader.records(design, fresh))


def _deleted_at_rest(
    context: Context, model: Model, version: Version, gone: Mapping[int, Iterable[Any]]
) -> ModelOutcome | None:
    """Delete from the model's accelerator, without its records; None where there is none."""
    if not is_own(recipes.make(model.recipe), version):
        return None
    found = open_accelerator(context, model, version)
    if found is None:
        return None
    file, loaded = found
    with context.ledger.reading() as connection:
        known = [get(connection, each) for each in model.datasets]
    try:
        loaded.delete(ids_of(known, gone))
    except ElsewhereError:
        return None  # it needs vectors that this machine would make otherwise
    return outcome_of_change(loaded, file)


def _deleted(
    context: Context,
    model: Model,
    version: Version,
    reader: Reader,
    tables: Tables,
    design: ModelColumns,
    gone: Mapping[int, Iterable[Any]],
) -> ModelOutcome | None:
    """Delete from the model itself; None where it has to be fitted again."""
    fresh = recipes.make(model.recipe)
    if not _deletes(fresh, version, sum(len(list(ids)) for ids in gone.values())):
        return None
    loaded = load_with_records(context, model, version, reader.records(design, fresh))
    if loaded is None:
        return None
    loaded.delete(ids_of([known for known, _ in tables], gone))
    return outcome_of_change(loaded)


def _deletes(estimator: Erasable, version: Version, n_deleted: int) -> bool:
    """Tell whether records are deleted from a model that is loaded, or it is fitted again."""
    sooner = estimator._fits_sooner(n_deleted, version.n_records)
    return is_own(estimator, version) and not sooner


def goes_alone(model: Model) -> bool:
    """Tell whether a model is prepared while no other one of its kind is.

    Programs of others, such as scikit-learn's estimators, may change what all threads share: the
    number of threads of BLAS, NumPy's random numbers.
    """
    if model.kind != "estimator":
        return True
    estimator = recipes.make(model.recipe)
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return any(
        isinstance(part, MetaEstimatorMixin)
        or (isinstance(part, BaseEstimator) and not isinstance(part, Erasable))
        for part in parts
    )


def design_of(model: Model) -> ModelColumns | None:
    """Return which columns a model learns from; None where its program chooses."""
    if model.kind != "estimator":
        return None
    estimator = recipes.make(model.recipe)
    tags = estimator.__sklearn_tags__().input_tags
    documents = tags.string and not tags.two_d_array
    features = tuple(model.features or ())
    return ModelColumns(features, model.target, documents, *reads_blocks(estimator))
