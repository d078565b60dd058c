"""Updates of models to the newest version of their data sets, with it or later.

The law kept here: an updated model is, bit for bit, a fit on the data sets as they are. Updated
with a data set, it changes in the same transaction: both are as they were, or both are new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, update

import erasable.workspace.locking as locking
from erasable.core.errors import ErasableError, WorkspaceBusyError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data import gone_subjects
from erasable.workspace.data.catalogue import DataSet, FragmentRow
from erasable.workspace.data.datasets import Append, DatasetChange
from erasable.workspace.data.differences import difference
from erasable.workspace.data.operation import Operation, carry_out
from erasable.workspace.data.prepared_versions import Ahead, Followers
from erasable.workspace.data.sources import Source
from erasable.workspace.data.syncing import Sync
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.ledger import schema
from erasable.workspace.locking import Claim
from erasable.workspace.models import catalogue, deleting, hooks, overview
from erasable.workspace.models.catalogue import (
    AT_ONCE,
    NEVER,
    NOT_THE_MODELS,
    REFRESH,
    Model,
    Version,
)
from erasable.workspace.models.following import Arriving
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.versions import log_model


class SetPolicy(Operation[None]):
    """Set when a model follows its data sets; refuse one that is retired or trained elsewhere."""

    def __init__(self, context: Context, name: str, policy: str) -> None:
        super().__init__(context)
        self._name, self._policy = name, catalogue.stored_policy(policy)

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        return Claim.of(locking.models([self._name]))

    def commit(self, connection: Connection) -> None:
        """See `Operation`."""
        found = catalogue.find(connection, self._name)
        _refuse_without_version(found)
        ledger_checks.check_one(self.context, connection, "model", self._name)
        if found.policy != self._policy:
            at = schema.model.c.id == found.id
            connection.execute(update(schema.model).where(at).values(policy=self._policy))
            log_model(self.context, connection, "model-changed", self._name, self.context.now())


def append(context: Context, name: str, source: Source, *, every: bool = False) -> DatasetChange:
    """Add records to a data set, and update models: those with "at-once", or with `every` all."""
    followers = ModelFollowers(context, "append", partial(_following, name, every))
    return carry_out(Append(context, name, source, followers))


def sync(context: Context, name: str, source: Source, *, every: bool = False) -> DatasetChange:
    """Bring a data set up to date with its source, and have models follow; see `append`."""
    followers = ModelFollowers(context, "sync", partial(_following, name, every))
    return carry_out(Sync(context, name, source, followers))


def refresh(context: Context, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Update models to the newest versions of their data sets; see `Workspace.refresh`."""
    with context.ledger.reading() as connection:
        models = _stale(connection, names)
    if not models:
        with suppress(WorkspaceBusyError), context.lock(wait=0.0):
            context.clean()  # as every operation does: of commands that were killed
    done: list[dict[str, Any]] = []
    failed: dict[str, WorkspaceError] = {}
    for name in (each.name for each in models):
        try:
            done += carry_out(Refresh(context, name))
        except NOT_THE_MODELS:
            raise
        except WorkspaceError as error:
            failed[name] = error
    if len(failed) == 1:
        raise failed.popitem()[1]
    if failed:
        raise WorkspaceError(
            f"{len(failed)} of {len(models)} models cannot follow, {', '.join(map(repr, failed))}: "
            f"{next(iter(failed.values()))}"
        )
    return done


def _stale(connection: Connection, names: Sequence[str] | None) -> list[Model]:
    """Return models that are behind and may follow; refuse names of others that may not."""
    if names is None:
        found = [
            each
            for each in catalogue.every(connection)
            if each.is_live and catalogue.policy_of(each) != NEVER
        ]
    else:
        found = [catalogue.find(connection, name) for name in dict.fromkeys(names)]
        for each in found:
            _refuse_without_version(each)
            if catalogue.policy_of(each) == NEVER:
                raise WorkspaceError(
                    f"the model {each.name!r} never follows its data sets; expected one that may; "
                    f"give it another policy with `erasable model policy {each.name} refresh`, or "
                    f"fit it with `erasable model fit {each.name}`"
                )
    return [each for each in found if overview.is_stale(connection, each)]


def _following(name: str, every: bool, connection: Connection) -> list[Model]:
    """Return the models that follow a data set into its next version."""
    follows = (AT_ONCE, REFRESH) if every else (AT_ONCE,)
    return [
        each
        for each in catalogue.models_of(connection, [data.find(connection, name).id])
        if each.is_live and catalogue.policy_of(each) in follows
    ]


class ModelFollowers(Followers):
    """Models, those that `chosen` returns, that follow their data sets; see `Followers`."""

    def __init__(
        self, context: Context, cause: str, chosen: Callable[[Connection], list[Model]]
    ) -> None:
        self._context, self._cause, self._chosen = context, cause, chosen
        self._models: list[Model] = []
        self._prepared: list[tuple[Model, deleting.Prepared]] = []

    @property
    def treatments(self) -> list[dict[str, Any]]:
        """What was done, per model."""
        return [
            {
                "model": model.name, "version": made.number + 1, "treatment": made.treatment,
                "exactness": made.exactness, "n_records": made.n_deleted, "seconds": made.seconds,
            }
            for model, made in self._prepared
        ]  # fmt: skip

    def choose(self, connection: Connection) -> Claim:
        """See `Followers`."""
        self._models = self._chosen(connection)
        names = {data.get(connection, id).name for each in self._models for id in each.datasets}
        return Claim(
            frozenset(locking.models(each.name for each in self._models)),
            frozenset(locking.datasets(names)),
        )

    def prepare(self, known: DataSet, found: Sequence[FragmentRow]) -> None:
        """See `Followers`."""
        self.prepare_for(Ahead({known.id: known}, {known.id: found}))

    def prepare_for(self, ahead: Ahead) -> None:
        """Prepare for data sets as they will be."""
        if not self._models:
            return
        context = self._context
        with context.ledger.reading() as connection:
            ledger_checks.check(context, connection)
        before, after = Reader(context), Reader(context, ahead=ahead)
        with context.progress("updating models", len(self._models)) as advance:
            for model in self._models:
                made = _prepare_one(context, model, before, after, ahead)
                self._prepared.append((model, made))
                advance()

    def adopt(self, connection: Connection) -> set[int]:
        """See `Followers`."""
        now = self._context.now()
        for model, made in self._prepared:
            deleting.adopt(self._context, connection, made, now, self._cause)
            if model.hook:
                hooks.add(self._context, connection, model.name)
        vacated = {id for model, _ in self._prepared for id in model.datasets}
        for each in sorted(vacated):
            gone_subjects.drop_unused(self._context, connection, each)
        return vacated

    def left_behind(self, connection: Connection, known: DataSet) -> list[str]:
        """See `Followers`."""
        return [
            each.name
            for each in catalogue.models_of(connection, [known.id])
            if catalogue.policy_of(each) != NEVER and overview.is_stale(connection, each)
        ]


class Refresh(Operation[list[dict[str, Any]]]):
    """Update a model to the newest versions of its data sets."""

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context)
        self._name = name
        self._followers = ModelFollowers(context, "refresh", lambda c: _stale(c, [name]))

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        return Claim.of(locking.models([self._name])) | self._followers.choose(connection)

    def prepare(self) -> None:
        """See `Operation`."""
        self._followers.prepare_for(Ahead())

    def commit(self, connection: Connection) -> list[dict[str, Any]]:
        """See `Operation`."""
        self.vacated = self._followers.adopt(connection)
        return self._followers.treatments


def _prepare_one(
    context: Context, model: Model, before: Reader, after: Reader, ahead: Ahead
) -> deleting.Prepared:
    """Prepare a model, or say which one cannot follow, and what to do."""
    with context.ledger.reading() as connection:
        version = catalogue.current(connection, model)
    if version is None:
        raise WorkspaceError(
            f"the model {model.name!r} has no version; expected one that is fitted"
        )
    try:
        gone, arriving = _what_comes(context, model, version, after, ahead)
        return deleting.prepare_model(context, model, version, gone, before, arriving)
    except NOT_THE_MODELS:
        raise
    except ErasableError as error:
        raise _cannot_follow(model, " ".join(str(error).split())) from error
    except Exception as error:  # what it says may hold values of records
        line = f"its program failed with {type(error).__name__}"
        raise _cannot_follow(model, line) from error


def _cannot_follow(model: Model, line: str) -> WorkspaceError:
    return WorkspaceError(
        f"the model {model.name!r} cannot follow its data ({line}); expected records that it can "
        "learn from; nothing was changed for it, mend these, or give it another policy with "
        f"`erasable model policy {model.name} never`"
    )


def _what_comes(
    context: Context, model: Model, version: Version, after: Reader, ahead: Ahead
) -> tuple[dict[int, list[Any]], Arriving]:
    """Compare what a model learned from with its data sets as they will be."""
    design = deleting.design_of(model)
    gone: dict[int, list[Any]] = {}
    come: dict[int, Any] = {}
    versions = []
    for id, used in zip(model.datasets, version.dataset_versions, strict=True):
        with context.ledger.reading() as connection:
            newest = ahead.get(connection, id)
            was = Ahead().parts_of(connection, replace(newest, version=used))
            found = ahead.parts_of(connection, newest)
        versions.append(newest.version)
        columns = [newest.id_column] if design is None else design.columns(newest)
        differs = difference(context, newest, was, found, list(dict.fromkeys(columns)))
        gone[id], come[id] = differs.gone, differs.come
    return gone, Arriving(after, versions, come)


def _refuse_without_version(model: Model) -> None:
    if not model.is_live:
        what = "retired" if model.state == "retired" else "trained elsewhere, without a command"
        raise WorkspaceError(
            f"the model {model.name!r} is {what}; expected one that the workspace trains; list "
            "them with `erasable model list`"
        )
