"""Updates of models to the newest version of their data sets, with it or later.

The law kept here: an updated model is, bit for bit, a fit on the data sets as they are. Updated
with a data set, it changes in the same transaction: both are as they were, or both are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, update

import erasable.workspace.locking as locking
from erasable.core import _interruptions
from erasable.core.errors import ErasableError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data import datasets, gone_subjects, syncing
from erasable.workspace.data.catalogue import DataSet, FragmentRow
from erasable.workspace.data.datasets import DatasetChange
from erasable.workspace.data.differences import difference
from erasable.workspace.data.prepared_versions import Ahead, Followers
from erasable.workspace.data.sources import Source
from erasable.workspace.evidence import ledger_checks
from erasable.workspace.ledger import schema
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


def set_policy(context: Context, name: str, policy: str) -> None:
    """Set when a model follows its data sets; refuse one that is retired or trained elsewhere."""
    wanted = catalogue.stored_policy(policy)
    with context.lock(locking.models([name])), context.ledger.transaction() as connection:
        found = catalogue.find(connection, name)
        _refuse_without_version(found)
        ledger_checks.check_one(context, connection, "model", name)
        if found.policy == wanted:
            return
        at = schema.model.c.id == found.id
        connection.execute(update(schema.model).where(at).values(policy=wanted))
        log_model(context, connection, "model-changed", name, context.now())


def append(context: Context, name: str, source: Source, *, every: bool = False) -> DatasetChange:
    """Add records to a data set, and update models: those with "at-once", or with `every` all."""
    return _changed(context, name, source, datasets.append, "append", every=every)


def sync(context: Context, name: str, source: Source, *, every: bool = False) -> DatasetChange:
    """Bring a data set up to date with its source, and have models follow; see `append`."""
    return _changed(context, name, source, syncing.sync, "sync", every=every)


def refresh(context: Context, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Update models to the newest versions of their data sets; see `Workspace.refresh`."""

    def chosen(connection: Connection) -> list[Model]:
        if names is None:
            return [
                each
                for each in catalogue.every(connection)
                if each.is_live
                and catalogue.policy_of(each) != NEVER
                and overview.is_stale(connection, each)
            ]
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

    done: list[dict[str, Any]] = []
    failed: dict[str, WorkspaceError] = {}
    with _claimed(context, chosen) as models:
        context.clean()
        for each in models:
            following = ModelFollowers(context, [each], "refresh")
            try:
                following.prepare_now()
                with context.ledger.transaction() as connection:
                    following.adopt(connection)
            except NOT_THE_MODELS:
                raise
            except WorkspaceError as error:
                failed[each.name] = error
                continue
            finally:
                following.tidy()
            done += following.treatments
    if len(failed) == 1:
        raise failed.popitem()[1]
    if failed:
        raise WorkspaceError(
            f"{len(failed)} of {len(models)} models cannot follow, {', '.join(map(repr, failed))}: "
            f"{next(iter(failed.values()))}"
        )
    return done


class ModelFollowers(Followers):
    """Models that follow a data set into its next version; their locks are held."""

    def __init__(self, context: Context, models: Sequence[Model], cause: str) -> None:
        self._context, self._models, self._cause = context, models, cause
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

    def prepare(self, known: DataSet, found: Sequence[FragmentRow]) -> None:
        """See `Followers.prepare`; nothing is done where no model follows."""
        if self._models:
            self._prepare(Ahead({known.id: known}, {known.id: found}))

    def prepare_now(self) -> None:
        """Prepare for data sets as they are."""
        self._prepare(Ahead())

    def _prepare(self, ahead: Ahead) -> None:
        context = self._context
        with context.ledger.reading() as connection:
            ledger_checks.check(context, connection)
        before, after = Reader(context), Reader(context, ahead=ahead)
        with context.progress("updating models", len(self._models)) as advance:
            for model in self._models:
                made = _prepare_one(context, model, before, after, ahead)
                self._prepared.append((model, made))
                advance()

    def adopt(self, connection: Connection) -> None:
        """See `Followers.adopt`."""
        now = self._context.now()
        for model, made in self._prepared:
            deleting.adopt(self._context, connection, made, now, self._cause)
            if model.hook:
                hooks.add(self._context, connection, model.name)
        for each in sorted({id for model, _ in self._prepared for id in model.datasets}):
            gone_subjects.drop_unused(self._context, connection, each)

    def tidy(self) -> None:
        """Remove what nothing refers to any more, or not yet where it failed."""
        if self._models:
            gone_subjects.tidy(
                self._context, [id for model in self._models for id in model.datasets]
            )
            self._context.clean()


def _changed(
    context: Context,
    name: str,
    source: Source,
    change: Callable[[Context, str, Source, Followers], DatasetChange],
    cause: str,
    *,
    every: bool,
) -> DatasetChange:
    def chosen(connection: Connection) -> list[Model]:
        follows = (AT_ONCE, REFRESH) if every else (AT_ONCE,)
        known = data.find(connection, name)
        return [
            each
            for each in catalogue.models_of(connection, [known.id])
            if each.is_live and catalogue.policy_of(each) in follows
        ]

    own = locking.datasets([name])
    with _claimed(context, chosen, own, [locking.ADMISSION]) as models:
        followers = ModelFollowers(context, models, cause)
        try:
            changed = change(context, name, source, followers)
        except BaseException as error:
            _interruptions.release(error)
            with suppress(ErasableError):  # the next command does it
                followers.tidy()
            raise
        if followers.treatments:
            followers.tidy()
        with context.ledger.reading() as connection:
            known = data.find(connection, name)
            behind = [
                each.name
                for each in catalogue.models_of(connection, [known.id])
                if catalogue.policy_of(each) != NEVER and overview.is_stale(connection, each)
            ]
    return replace(changed, models=tuple(followers.treatments), stale=tuple(behind))


@contextmanager
def _claimed(
    context: Context,
    chosen: Callable[[Connection], list[Model]],
    changes: Sequence[str] = (),
    reads: Sequence[str] = (),
) -> Iterator[list[Model]]:
    """Have models to oneself, and their data sets as they are."""
    while True:
        with context.ledger.reading() as connection:
            models = chosen(connection)
            names = {data.get(connection, id).name for each in models for id in each.datasets}
        claim = [*changes, *locking.models(each.name for each in models)]
        read = [*reads, *locking.datasets(sorted(names))]
        if not claim:
            yield []
            return
        with context.lock(claim, reads=read):
            with context.ledger.reading() as connection:
                again = chosen(connection)
            if [(each.id, each.datasets) for each in again] == [
                (each.id, each.datasets) for each in models
            ]:
                yield again
                return


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
