"""Fit models in a workspace, and register those that are trained elsewhere.

The law kept here: a fit that ends has a version in the ledger, a file in the store and an entry in
the log, together; one that does not end has changed nothing. The version before goes, with the
salt of its commitment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, insert, update

from erasable.core.errors import InvalidParameterError, NotInWorkspaceError, WorkspaceError
from erasable.workspace import locking
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data import leavers
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.syncing import drop_unused
from erasable.workspace.evidence import reliance
from erasable.workspace.ledger import schema
from erasable.workspace.models import (
    accelerators,
    catalogue,
    estimates,
    pending_hooks,
    policies,
    recipes,
    unused,
    versions,
)
from erasable.workspace.models.catalogue import Model
from erasable.workspace.models.commands import check_command
from erasable.workspace.models.model_columns import ModelColumns
from erasable.workspace.models.names import check_name
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import Made, train
from erasable.workspace.models.versions import new_version, tell


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit did.

    Attributes
    ----------
    name : str
    version : int
    n_records : int
    seconds : float
    features : list of str or None
    target : str or None
    commitment : str or None
        To the digest of the model.
    left_out : list of str
        Columns that it does not learn from, but for those that name records and people.
    warnings : list of str
        What was decided about columns where no features were named, a line each.

    Examples
    --------
    >>> Fitted("risk", 1, 442, 0.2, ["age"], "disease", None).version
    1
    """

    name: str
    version: int
    n_records: int
    seconds: float
    features: list[str] | None
    target: str | None
    commitment: str | None
    left_out: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be fitted: what is in the ledger, with what the user says now."""

    before: Model | None
    recipe: dict[str, Any]
    datasets: list[DataSet]
    features: list[str] | None
    target: str | None
    hook: str | None
    policy: str | None


def fit(
    context: Context,
    name: str,
    estimator: str | None = None,
    *,
    datasets: Sequence[str] = (),
    target: str | None = None,
    features: Sequence[str] | None = None,
    params: Mapping[str, Any] | None = None,
    hook: str | None = None,
    policy: str | None = None,
) -> Fitted:
    """Train a model; under a name that is known, train it again, on the newest data.

    Parameters
    ----------
    context : Context
    name : str
    estimator : str, default=None
        See `recipes.parse`; or a Python function "module:function", which is called with a
        pyarrow.Table and returns bytes, or a fitted estimator of erasable. By default, as with
        the other parameters, what it was.
    datasets : sequence of str
        Names; several must have the same columns.
    target : str, default=None
        Column to predict.
    features : sequence of str, default=None
        Columns to learn from: by default every numeric one but ids, subjects and target, or the
        one column of text where the estimator learns from documents.
    params : dict, default=None
        Parameters of the estimator; see `recipes.parse`. What is to be an estimator is named:
        ``{"estimator": "sklearn.svm.SVC", "estimator__C": 2}``.
    hook : str, default=None
        A command with {model}, run after every update, without a shell.
    policy : {"at-once", "refresh", "never"}, default=None
        When it follows its data sets to a new version; see `updating`. By default what it was;
        of a new model "refresh".

    Returns
    -------
    Fitted

    Raises
    ------
    NotInWorkspaceError
        There is no such data set; or no such model, and no estimator was named.
    InvalidParameterError
        There is no such estimator or parameter.
    WorkspaceError
        The columns are not there, or are not to be learned from; or the hook needs a shell, or a
        program that is not there.
    InvalidDataError
        Records that the estimator cannot learn from.
    """
    check_name(name)
    if hook is not None:
        check_command(hook, "hook")
    recipe = None if estimator is None else _recipe(estimator, params)
    if recipe is None and params:
        raise InvalidParameterError(
            "parameters were given without an estimator; expected both; name the estimator, too"
        )
    return _fit(context, name, recipe, datasets, features, target, hook, policy)


def register(
    context: Context,
    name: str,
    *,
    datasets: Sequence[str],
    retrain: str | None = None,
    hook: str | None = None,
    policy: str | None = None,
) -> Fitted:
    """Register a model that is trained elsewhere.

    Parameters
    ----------
    context : Context
    name : str
    datasets : sequence of str
        What it was trained on.
    retrain : str, default=None
        A command with {data}, a Parquet file, and {out}, where it writes the model. It is run now,
        and at every erasure. Without it the model is not covered, and every receipt says so.
    hook : str, default=None
        A command with {model}, run after every update. Both are run without a shell.
    policy : {"at-once", "refresh", "never"}, default=None
        See `fit`.

    Raises
    ------
    NotInWorkspaceError
        There is no such data set.
    WorkspaceError
        The name is taken, or the command fails; or a command needs a shell, or a program that
        is not there.
    """
    check_name(name)
    for what, command in (("command", retrain), ("hook", hook)):
        if command is not None:
            check_command(command, what)
    with context.ledger.reading() as connection:
        if catalogue.known(connection, name) is not None:
            raise WorkspaceError(f"there is a model {name!r} already; expected a new name")
    if retrain is not None:
        return _fit(
            context, name, recipes.parse_command(retrain), datasets, None, None, hook, policy
        )
    with context.lock(locking.models([name])):
        context.clean()
        with context.ledger.transaction() as connection:
            reliance.check(context, connection)
            plan = _plan(connection, name, {"kind": "uncovered"}, datasets, None, None, hook, None)
            _put_model(context, connection, name, plan, "uncovered", None, 0)
            tell(context, connection, "model-registered", name, context.now())
    return Fitted(name, 0, 0, 0.0, None, None, None)


def retire(context: Context, name: str) -> None:
    """Give a model up: its file is erased, and no later request concerns it.

    Raises
    ------
    NotInWorkspaceError
        There is no such model.
    WorkspaceError
        It is retired already.
    """
    with context.lock(locking.models([name])):
        context.clean()
        with context.ledger.transaction() as connection:
            model = catalogue.find(connection, name)
            if model.state == "retired":
                raise WorkspaceError(
                    f"the model {name!r} is retired already; expected one that is in use; "
                    "list them with `erasable model list`"
                )
            reliance.check_one(context, connection, "model", name)
            pending_hooks.discard(context, connection, name)  # another of that name owes nothing
            versions.retire(context, connection, model.id, name, context.now())
        context.clean()


def _fit(
    context: Context,
    name: str,
    recipe: dict[str, Any] | None,
    datasets: Sequence[str],
    features: Sequence[str] | None,
    target: str | None,
    hook: str | None,
    policy: str | None,
) -> Fitted:
    from erasable.workspace.evidence import commitments

    with _planned(context, name, recipe, datasets, features, target, hook, policy) as plan:
        context.clean()
        design = _design(plan)
        reader = Reader(context)
        tables = reader.to_learn_from([each.id for each in plan.datasets], design=design)
        with context.progress(f"fitting {name}", 1) as advance:
            made = train(context, _trusted(context, name, plan), tables, design, reader.records)
            advance()
        stored = context.store.put(f"models/{name}", made.data)
        salt, commitment = commitments.commit(made.digest)
        number = 1 if plan.before is None else plan.before.version + 1
        with context.ledger.transaction() as connection:
            model_id = _put_model(context, connection, name, plan, "ready", made, number)
            versions = [each.version for each in plan.datasets]
            new_version(
                context, connection, model_id, number, "fit", stored, dataset_versions=versions,
                salt=salt, commitment=commitment, algorithm=made.algorithm,
                n_records=made.n_records, seconds=made.seconds,
            )  # fmt: skip
            estimates.note(
                connection, model_id, "fit", made.n_records, 0, made.seconds, context.now()
            )
            tell(context, connection, "model-fitted", name, context.now())
            for each in plan.datasets:
                drop_unused(context, connection, each.id)
            messages = []
            if made.features is not None and plan.features is None:
                messages = unused.remarks(
                    connection, name, plan.datasets, made.features, plan.target
                )
        if made.fitted is not None and design is not None:
            accelerators.keep(context, stored.key, made.fitted)
        leavers.tidy(context, [each.id for each in plan.datasets])
        context.clean()
    chosen = None if made.features is None else list(made.features)
    return Fitted(
        name, number, made.n_records, made.seconds, chosen, plan.target, commitment,
        list(unused.left_out(plan.datasets, chosen, plan.target)), messages,
    )  # fmt: skip


@contextmanager
def _planned(context: Context, name: str, *said: Any) -> Iterator[_Plan]:
    """Have a model to oneself, and the data sets as they are, which the plan names."""
    while True:
        with context.ledger.reading() as connection:
            read = [each.name for each in _plan(connection, name, *said).datasets]
        with context.lock(locking.models([name]), reads=locking.datasets(read)):
            with context.ledger.reading() as connection:
                reliance.check(context, connection)
                plan = _plan(connection, name, *said)
            if [each.name for each in plan.datasets] == read:  # or another fit has changed them
                yield plan
                return


def _recipe(estimator: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    if ":" not in estimator:
        return recipes.parse(estimator, params)
    if params:
        raise InvalidParameterError(
            "parameters were given with a Python function; expected none; let the function set them"
        )
    recipe = recipes.parse_entry(estimator)
    recipes.find_entry(recipe["entry"])
    return recipe


def _plan(
    connection: Connection,
    name: str,
    recipe: dict[str, Any] | None,
    datasets: Sequence[str],
    features: Sequence[str] | None,
    target: str | None,
    hook: str | None,
    policy: str | None,
) -> _Plan:
    before = catalogue.known(connection, name)
    stored = None if policy is None else policies.stored(policy)
    chosen = list(features) if features else None
    if before is None and recipe is None:
        catalogue.find(connection, name)  # says which models there are
    if before is not None and before.kind == "uncovered":
        raise WorkspaceError(f"{name!r} is registered as trained elsewhere; expected another name")
    found = [data.find(connection, each) for each in dict.fromkeys(datasets)]
    if not found and before is not None:
        found = [data.get(connection, each) for each in before.datasets]
    if not found:
        raise NotInWorkspaceError(
            f"no data set was named for {name!r}; expected one or more; name them with --dataset"
        )
    if before is None:
        assert recipe is not None
        return _Plan(None, recipe, found, chosen, target, hook, stored)
    new = recipe is not None and recipe != _unseeded(before.recipe)
    known = before.features if not (new and features is None) else None
    return _Plan(
        before,
        recipe if new and recipe is not None else before.recipe,
        found,
        chosen or known,
        target or before.target,
        hook or before.hook,
        before.policy if policy is None else stored,
    )


def _trusted(context: Context, name: str, plan: _Plan) -> reliance.Trusted[dict[str, Any]]:
    """Trust a recipe that was passed now; one of before is held against the log."""
    if plan.before is None or plan.recipe is not plan.before.recipe:
        return reliance.given(plan.recipe)
    return reliance.recorded(context, name, plan.recipe, "recipe")


def _unseeded(recipe: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in recipe.items() if name != "seeds"}


def _design(plan: _Plan) -> ModelColumns | None:
    if plan.recipe["kind"] != "estimator":
        return None
    estimator = recipes.make(plan.recipe)
    return ModelColumns.choose(plan.datasets, estimator, plan.features, plan.target)


def _put_model(
    context: Context,
    connection: Connection,
    name: str,
    plan: _Plan,
    state: str,
    made: Made | None,
    number: int,
) -> int:
    recipe = plan.recipe if made is None else made.recipe
    features = None if made is None or made.features is None else list(made.features)
    values = {
        "kind": recipe["kind"], "recipe": recipe, "features": features, "target": plan.target,
        "datasets": [each.id for each in plan.datasets], "state": state, "hook": plan.hook,
        "policy": plan.policy,
    }  # fmt: skip
    if plan.before is not None:
        at = schema.model.c.id == plan.before.id
        connection.execute(update(schema.model).where(at).values(**values))
        return plan.before.id
    added = connection.execute(
        insert(schema.model).values(name=name, version=number, created_at=context.now(), **values)
    )
    key: int = added.inserted_primary_key[0]  # type: ignore[index]
    return key
