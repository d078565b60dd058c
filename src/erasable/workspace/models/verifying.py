"""Verification of models by fits on the remaining records.

The law kept here: a verdict is about the file that is in use. It is compared with the commitment in
the log, and with a model that the recipe makes of the records in the data.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import erasable.workspace.locking as locking
from erasable.audit import equality
from erasable.core.errors import ArtifactError, ErasableError, InvalidParameterError, WorkspaceError
from erasable.core.estimator import Erasable
from erasable.workspace.context import Context
from erasable.workspace.data.catalogue import get
from erasable.workspace.evidence import commitments, ledger_checks
from erasable.workspace.models import catalogue, recipes, verified
from erasable.workspace.models.catalogue import NOT_THE_MODELS, Model, Version
from erasable.workspace.models.deleting import design_of
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import (
    Made,
    algorithm_of,
    digest_of,
    from_bytes,
    software,
    train,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying a model; see `Workspace.verify`."""

    model: str
    verdict: str
    detail: str  # one line, or empty
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict not in ("different", "damaged")

    def to_json(self) -> dict[str, str]:
        """Return what is kept of it, and printed."""
        return {"model": self.model, "verdict": self.verdict, "detail": self.detail}


def verify(
    context: Context, names: Sequence[str] | None = None, *, retrain: bool = False
) -> list[Verdict]:
    """Verify models; return verdicts sorted by name.

    `retrain` also runs commands again; their models are compared by their files. Faults of the
    ledger, the disk or the server are raised: they say nothing of a model.
    """
    with context.lock(reads=[locking.WHOLE] if names is None else locking.models(names)):
        with context.ledger.reading() as connection:
            ledger_checks.check(context, connection)
            models: Iterable[Model] = catalogue.every(connection)
            if names is not None:
                models = [catalogue.find(connection, name) for name in dict.fromkeys(names)]
            found = [(model, catalogue.current(connection, model)) for model in models]
        verdicts = []
        with context.progress("verifying models", len(found)) as advance:
            for model, version in found:
                began = time.perf_counter()
                verdict, detail = _judge(context, model, version, retrain)
                took = time.perf_counter() - began
                verdicts.append(Verdict(model.name, verdict, detail, took))
                advance()
        if not context.ledger.is_read_only:
            versions = {model.name: version.number for model, version in found if version}
            _keep(context, verdicts, versions)
    return verdicts


def _keep(context: Context, verdicts: list[Verdict], versions: dict[str, int]) -> None:
    """Put verdicts about versions of models on record, in the place of earlier ones."""
    with context.ledger.transaction() as connection:
        kept = dict(verified.on_record(connection))
        at = context.now().isoformat()
        for each in verdicts:
            if each.model in versions:
                about = {"at": at, "version": versions[each.model]}
                kept[each.model] = {**each.to_json(), **about}
        in_order = [kept[name] for name in sorted(kept)]
        context.ledger.set(connection, verified.SETTING, {"verdicts": in_order})


def _judge(
    context: Context, model: Model, version: Version | None, retrain: bool
) -> tuple[str, str]:
    if model.state == "retired":
        return "retired", "it was given up, or too few records were left"
    if version is None:
        return "not covered", "trained elsewhere, without a recipe"
    try:
        other = _other_software(model, version)
    except InvalidParameterError as error:  # what it is made of is not here
        return "other version", _line(error)
    try:
        data = context.store.open(version.stored)
        stored = from_bytes(data) if _is_ours(version) else None
        digest = digest_of(model.kind, data) if stored is None else stored.digest()
    except NOT_THE_MODELS:
        raise
    except ArtifactError as error:
        return ("other version", other) if other else ("damaged", _line(error))
    except WorkspaceError as error:
        return "damaged", _line(error)
    if not _matches(version, digest):
        return "damaged", "the file is not the model that was committed to"
    if model.kind == "command" and not retrain:
        return "not checked", "its command is run again with --retrain"
    try:
        made = _again(context, model, version)
    except NOT_THE_MODELS:
        raise
    except ErasableError as error:
        return ("other version", other) if other else ("different", _line(error))
    if made.digest == digest:
        return "equal", _staleness(context, model, version)
    detail, other = _compare(made, stored, other)
    if other:
        return "other version", other
    if stored is not None and stored.exactness == "approximate":
        return "approximate", "it forgets about: that it has forgotten is measured, not proved"
    return "different", f"{detail}{_other_causes(context, model, version, made)}"


def _again(context: Context, model: Model, version: Version) -> Made:
    design = design_of(model)
    reader = Reader(context)
    tables = reader.to_learn_from(model.datasets, version.dataset_versions, design)
    recipe = ledger_checks.recorded(context, model.name, model.recipe, "recipe")
    return train(context, recipe, tables, design, reader.records)


def _compare(made: Made, stored: Erasable | None, other: str) -> tuple[str, str]:
    """Tell what differs, and which other software or machine it comes from, if any does."""
    if stored is None or made.fitted is None:
        return "the file differs", other
    found = equality(stored, made.fitted)
    if found.elsewhere:
        where = "; ".join(str(each) for each in found.differences if "platform" in each.name)
        other = other or f"made on another kind of machine, where last bits differ: {where}"
    return "; ".join(map(str, found.differences[:3])) or "the digests differ", other


def _other_causes(context: Context, model: Model, version: Version, made: Made) -> str:
    """Say what else than tampering makes a program of the user's come to another model."""
    if model.kind == "entry" and not _repeats(context, model, version, made):
        return (
            f"; {model.recipe['entry']} is not deterministic: two refits differ from each other, "
            "too, so this is no sign of tampering; fix its seeds, and fit the model again"
        )
    if model.kind in ("entry", "command"):
        return (
            "; it may have been tampered with, or its program has changed since, or depends on "
            "more than its data, such as a seed or the time"
        )
    return ""


def _repeats(context: Context, model: Model, version: Version, made: Made) -> bool:
    try:
        return _again(context, model, version).digest == made.digest
    except NOT_THE_MODELS:
        raise
    except ErasableError:  # now it fails
        return False


def _is_ours(version: Version) -> bool:
    """Tell whether the file is a model of erasable; others have the kind of their recipe."""
    return version.algorithm not in ("entry", "command")


def _matches(version: Version, digest: str) -> bool:
    salt, commitment = version.salt, version.commitment
    if salt is None or commitment is None:
        return False
    return commitments.matches(salt, commitment, digest)


def _other_software(model: Model, version: Version) -> str:
    """Say which software made the model where that is not what is here."""
    messages = []
    if model.kind == "estimator":
        here = algorithm_of(recipes.make(model.recipe))
        messages += [] if here == version.algorithm else [f"{version.algorithm}, here {here}"]
    now = software()
    for name in sorted({*now, *version.software}):
        before, here = version.software.get(name, "none"), now.get(name, "none")
        if before != here:
            messages.append(f"{name} {before}, here {here}")
    return f"made by {'; '.join(messages)}" if messages else ""


def _staleness(context: Context, model: Model, version: Version) -> str:
    with context.ledger.reading() as connection:
        newest = [get(connection, each) for each in model.datasets]
    old = [
        f"{each.name} {used}, newest {each.version}"
        for each, used in zip(newest, version.dataset_versions, strict=True)
        if used != each.version
    ]
    return f"stale: fitted on {', '.join(old)}" if old else ""


def _line(error: Any) -> str:
    return " ".join(str(error).split())
