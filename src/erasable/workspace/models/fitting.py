"""Fits of models in a workspace, and registration of those that are trained elsewhere.

The law kept here: a fit that ends has a version in the ledger, a file in the store and an entry in
the log, together; one that does not end has changed nothing. The version before is dropped with the
salt of its commitment.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, update

import erasable.workspace.locking as locking
from erasable.core.errors import InvalidParameterError, NotInWorkspaceError, WorkspaceError
from erasable.workspace.context import Context
from erasable.workspace.data import catalogue as data
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.gone_subjects import drop_unused
from erasable.workspace.data.operation import Operation
from erasable.workspace.evidence import commitments, ledger_checks
from erasable.workspace.ledger import schema
from erasable.workspace.ledger.treatments import FITTED
from erasable.workspace.locking import Claim
from erasable.workspace.models import (
    catalogue,
    deleting,
    estimates,
    hooks,
    preparing,
    recipes,
    unused,
    written,
)
from erasable.workspace.models.catalogue import Model
from erasable.workspace.models.model_columns import ModelColumns, refuse_empty_targets
from erasable.workspace.models.names import check_name
from erasable.workspace.models.reading import Reader
from erasable.workspace.models.training import Made, train
from erasable.workspace.models.versions import log_model, new_version, next_number, retire_model

_PART = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|\s+|.""", re.DOTALL)
_SIGNS = {
    "|": "a pipe", ">": "a redirection", "<": "a redirection", "&": "'&'", ";": "';'",
    "(": "a bracket", ")": "a bracket", "`": "a backquote", "$": "a variable", "*": "a pattern",
    "?": "a pattern", "[": "a pattern",
}  # fmt: skip
_PLACES = {"hook": ("model",), "command": ("data", "out")}
"""Names in braces for each kind of command; the names of the other kind are mistakes."""
_UNQUOTED = re.compile(r"[\w@%+=:,./{}-]+", re.ASCII)
_BRACES = re.compile(r"\{(\w+)\}")
_FIRST_SIGNS = {"~": "'~'", "#": "a comment"}  # where a word begins with them
_EXPANDED = re.compile(r"(?:\\.|[^\\$`])*([$`])", re.DOTALL)  # in double quotes
_SHELLS = ("ash", "bash", "dash", "fish", "ksh", "sh", "zsh")


def check_command(command: str, what: str) -> None:
    """Refuse a command that needs a shell, or whose program is not there.

    `what` is "hook" or "command".

    >>> check_command("true {model}", "hook")
    >>> check_command("true {model} && true", "hook")
    Traceback (most recent call last):
    erasable.core.errors.WorkspaceError: the hook 'true {model} && true' has '&', and is run ...
    """
    try:
        words = shlex.split(command)
    except ValueError:
        raise WorkspaceError(
            f"the {what} {command!r} cannot be run: a quote in it does not end; expected a program "
            "and its arguments; mend the quotes"
        ) from None
    if not words:
        raise WorkspaceError(f"the {what} is empty; expected a program and its arguments")
    found = _shell_syntax(command, any(Path(word).name in _SHELLS for word in words))
    if found is not None:
        raise WorkspaceError(
            f"the {what} {command!r} has {found}, and is run without a shell; expected a program "
            "and its arguments; write a script, or sh -c '...'; what is meant as it stands goes "
            "into single quotes"
        )
    _refuse_mistaken_place(command, what)
    if shutil.which(words[0]) is None:
        raise WorkspaceError(
            f"the {what} {command!r} cannot be run: its program {words[0]!r} is not there, or "
            "may not be executed; expected the path of a program, or the name of one in PATH"
        )


def with_absolute_paths(command: str) -> str:
    """Name the files of a command so that it runs in any folder; the rest stays as it is.

    >>> with_absolute_paths("python no-such-file.py {data} {out}")
    'python no-such-file.py {data} {out}'
    """
    words = shlex.split(command)
    found = [str(Path(word).absolute()) if _names_file(word) else word for word in words]
    if found == words:
        return command
    return " ".join(word if _UNQUOTED.fullmatch(word) else shlex.quote(word) for word in found)


def _names_file(word: str) -> bool:
    """Tell whether a word has a suffix or a folder, and is the path of a file from here."""
    path = Path(word)
    return bool(path.suffix or os.sep in word) and not path.is_absolute() and path.is_file()


def _refuse_mistaken_place(command: str, what: str) -> None:
    """Refuse {modle}; other words in braces, as in awk '{print}', are the program's own."""
    names = _PLACES[what]
    others = {name for places in _PLACES.values() for name in places} - set(names)
    for word in _BRACES.findall(command):
        if word in others or (word not in names and difflib.get_close_matches(word, names)):
            known = " and ".join(f"{{{name}}}" for name in names)
            raise WorkspaceError(
                f"the {what} {command!r} has {{{word}}}; expected no other path than {known}"
            )


def _shell_syntax(command: str, for_shell: bool) -> str | None:
    """Name the first sign that a shell gives a meaning; in double quotes, a shell may be meant."""
    begins = True
    parts = _PART.findall(command)
    for at, part in enumerate(parts):
        if part == "\\\n" or (part.isspace() and "\n" in part and 0 < at < len(parts) - 1):
            return "a line break"
        if part.isspace():
            begins = True
            continue
        if begins and part in _FIRST_SIGNS:
            return _FIRST_SIGNS[part]
        if part in _SIGNS:
            return _SIGNS[part]
        if part[0] == '"' and not for_shell and (sign := _EXPANDED.match(part)):
            return _SIGNS[sign[1]]
        begins = False
    return None


@dataclass(frozen=True, slots=True)
class FittedVersion:
    """The result of a fit."""

    name: str
    version: int
    n_records: int
    seconds: float
    features: list[str] | None
    target: str | None
    commitment: str | None  # to the digest of the model
    # columns that are no features, except those that name records and people
    left_out: list[str] = field(default_factory=list)
    # decisions about columns if no features were named, a line each
    warnings: list[str] = field(default_factory=list)
    # steps before the model, in one line; empty without any, or if the recipe existed
    prepared: str = ""


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
    left: list[DataSet] = field(default_factory=list)  # that it learned from until now
    prepares: bool = False  # whether it is to be decided how the table is prepared
    is_another: bool = False  # a model with the name of one that is retired

    @property
    def concerned(self) -> list[DataSet]:
        """Data sets of which versions may be needed no longer."""
        return [*self.datasets, *self.left]


class Fit(Operation[FittedVersion]):
    """Train a model; see `Workspace.fit`. For `estimator` see also `recipes.parse`."""

    def __init__(
        self,
        context: Context,
        name: str,
        estimator: Any = None,
        *,
        datasets: Sequence[str] = (),
        target: str | None = None,
        features: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        prepare: str = "auto",
        hook: str | None = None,
        policy: str | None = None,
    ) -> None:
        super().__init__(context)
        check_name(name)
        preparing.check_choice(prepare)
        if hook is not None:
            check_command(hook, "hook")
            hook = with_absolute_paths(hook)
        if estimator is None and params:
            raise InvalidParameterError(
                "parameters were given without an estimator; expected both; name the estimator, too"
            )
        if features is not None and not features:
            raise WorkspaceError("features name no column; expected one or more")
        self._name, self._datasets, self._target, self._hook = name, datasets, target, hook
        self._recipe = None if estimator is None else _recipe(estimator, params)
        self._features = None if features is None else list(features)
        self._policy = None if policy is None else catalogue.stored_policy(policy)
        self._keeps_policy = policy is None
        self._auto = prepare == "auto"

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        read = [each.name for each in self._look_up(connection).concerned]
        return Claim.of(locking.models([self._name]), reads=locking.datasets(read))

    def plan(self, connection: Connection) -> None:
        """See `Operation`."""
        ledger_checks.check(self.context, connection)
        self._plan = self._look_up(connection)

    def _look_up(self, connection: Connection) -> _Plan:
        """Put together what is in the ledger, and what the user says now."""
        before = catalogue.find_or_none(connection, self._name)
        recipe, chosen, target = self._recipe, self._features, self._target
        if before is None and recipe is None:
            catalogue.find(connection, self._name)  # says which models there are
        is_another = before is not None and before.state == "retired" and recipe is not None
        if before is not None and before.kind == "uncovered" and not is_another:
            raise WorkspaceError(
                f"{self._name!r} is registered as trained elsewhere; expected another name"
            )
        found = [data.find(connection, each) for each in dict.fromkeys(self._datasets)]
        if not found and before is not None and not is_another:
            found = [data.get(connection, each) for each in before.datasets]
        if not found:
            raise NotInWorkspaceError(
                f"no data set was named for {self._name!r}; expected one or more; name them with "
                "--dataset"
            )
        if before is None or is_another:
            assert recipe is not None
            return _Plan(
                before, recipe, found, chosen, target, self._hook, self._policy,
                prepares=self._auto, is_another=is_another,
            )  # fmt: skip
        asked, was_prepared = before.recipe.get(preparing.OF), preparing.OF in before.recipe
        decides_anew = was_prepared and (
            not self._auto
            or chosen not in (None, before.features)
            or target not in (None, before.target)
        )  # fmt: skip
        if recipe is None and decides_anew:
            recipe = asked
        new = recipe is not None and (
            decides_anew or recipe != (asked if was_prepared else _unseeded(before.recipe))
        )
        known = before.features if not (new and chosen is None) else None
        own = {each.id for each in found}
        return _Plan(
            before,
            recipe if new and recipe is not None else before.recipe,
            found,
            chosen or known,
            target or before.target,
            self._hook or before.hook,
            before.policy if self._keeps_policy else self._policy,
            [data.get(connection, each) for each in before.datasets if each not in own],
            prepares=self._auto and recipe is not None and (new or not was_prepared),
        )

    def prepare(self) -> None:
        """See `Operation`."""
        context, name = self.context, self._name
        reader = Reader(context)
        plan = _with_asked(self._plan)
        self._is_named = plan.features is not None
        plan, self._prepared = _prepared(plan, reader)
        self._plan = plan
        self._design = design = _design(plan)
        tables = reader.to_learn_from([each.id for each in plan.datasets], design=design)
        if design is not None:
            refuse_empty_targets(tables, design.target)
        with context.progress(f"fitting {name}", 1) as advance:
            trusted = _trusted(context, name, plan)
            self._made = train(context, trusted, tables, design, reader.records)
            advance()
        self._stored = context.store.put(f"models/{name}", self._made.data)

    def commit(self, connection: Connection) -> FittedVersion:
        """See `Operation`."""
        context, name, plan, made = self.context, self._name, self._plan, self._made
        salt, commitment = commitments.commit(made.digest)
        number = 1 if plan.before is None else next_number(connection, plan.before.id)
        model_id = _put_model(context, connection, name, plan, "ready", made, number)
        new_version(
            context, connection, model_id, number, "fit", self._stored,
            dataset_versions=[each.version for each in plan.datasets], salt=salt,
            commitment=commitment, algorithm=made.algorithm, n_records=made.n_records,
            seconds=made.seconds,
        )  # fmt: skip
        estimates.note(
            connection, model_id, FITTED.measured_as, made.n_records, 0, made.seconds, context.now()
        )
        log_model(context, connection, "model-fitted", name, context.now())
        self.vacated = [each.id for each in plan.concerned]
        for each in self.vacated:
            drop_unused(context, connection, each)
        messages = []
        if made.features is not None and not self._is_named:
            messages = unused.remarks(
                connection, name, plan.datasets, made.features, plan.target,
                self._prepared.left_out,
            )  # fmt: skip
        chosen = None if made.features is None else list(made.features)
        return FittedVersion(
            name, number, made.n_records, made.seconds, chosen, plan.target, commitment,
            list(unused.left_out(plan.datasets, chosen, plan.target)), messages,
            self._prepared.told,
        )  # fmt: skip

    def settle(self) -> None:
        """See `Operation`."""
        if self._made.fitted is not None and self._design is not None:
            deleting.keep_accelerator(self.context, self._stored.key, self._made.fitted)


class Register(Fit):
    """Register a model that is trained elsewhere; see `Workspace.register`."""

    def __init__(
        self,
        context: Context,
        name: str,
        *,
        datasets: Sequence[str],
        retrain: str | None = None,
        hook: str | None = None,
        policy: str | None = None,
    ) -> None:
        super().__init__(context, name, datasets=datasets, hook=hook, policy=policy, prepare="none")
        self._is_covered = retrain is not None
        self._recipe = {"kind": "uncovered"}
        if retrain is not None:
            check_command(retrain, "command")
            self._recipe = recipes.parse_command(with_absolute_paths(retrain))

    def _look_up(self, connection: Connection) -> _Plan:
        before = catalogue.find_or_none(connection, self._name)
        if before is not None and before.state != "retired":
            raise WorkspaceError(f"there is a model {self._name!r} already; expected a new name")
        return super()._look_up(connection)

    def prepare(self) -> None:
        """See `Operation`; nothing is trained without a command."""
        if self._is_covered:
            super().prepare()

    def commit(self, connection: Connection) -> FittedVersion:
        """See `Operation`."""
        if self._is_covered:
            return super().commit(connection)
        plan = replace(self._plan, policy=None)
        _put_model(self.context, connection, self._name, plan, "uncovered", None, 0)
        log_model(self.context, connection, "model-registered", self._name, self.context.now())
        return FittedVersion(self._name, 0, 0, 0.0, None, None, None)

    def settle(self) -> None:
        """See `Operation`; programs of the user's have no accelerator."""


class Retire(Operation[None]):
    """Retire a model: its file is erased, and later requests do not concern it."""

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context)
        self._name = name

    def claim(self, connection: Connection) -> Claim:
        """See `Operation`."""
        known = catalogue.find(connection, self._name).datasets
        read = [data.get(connection, each).name for each in known]
        return Claim.of(locking.models([self._name]), reads=locking.datasets(read))

    def commit(self, connection: Connection) -> None:
        """See `Operation`."""
        context, name = self.context, self._name
        model = catalogue.find(connection, name)
        if model.state == "retired":
            raise WorkspaceError(
                f"the model {name!r} is retired already; expected one that is in use; "
                "list them with `erasable model list`"
            )
        ledger_checks.check_one(context, connection, "model", name)
        hooks.discard(context, connection, name)  # another of that name owes nothing
        retire_model(context, connection, model.id, name, context.now())
        self.vacated = model.datasets


def _recipe(estimator: Any, params: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(estimator, str) or ":" not in estimator or estimator.endswith(".json"):
        return recipes.parse(estimator, params)
    if params:
        raise InvalidParameterError(
            "parameters were given with a Python function; expected none; let the function set them"
        )
    recipe = recipes.parse_entry(estimator)
    recipes.find_entry(recipe["entry"])
    return recipe


def _with_asked(plan: _Plan) -> _Plan:
    """Have features be the columns that a pipeline asks for by name, where none were named."""
    if plan.features is not None or plan.recipe["kind"] != "estimator":
        return plan
    asked, there = written.asked_columns(plan.recipe), list(dict(plan.datasets[0].columns))
    if not asked:
        return plan
    place = {name: at for at, name in enumerate(there)}
    return replace(plan, features=sorted(asked, key=lambda name: place.get(name, len(there))))


def _prepared(plan: _Plan, reader: Reader) -> tuple[_Plan, preparing.Preparation]:
    """Have the recipe of a plan prepare the table, where it has to be decided how."""
    found = None
    if plan.prepares and plan.recipe["kind"] == "estimator":
        recipe = _unseeded(plan.recipe)
        found = preparing.prepare(reader, plan.datasets, recipe, plan.features, plan.target)
    if found is None:
        return plan, preparing.Preparation(None, ())
    return replace(plan, recipe=found.recipe or plan.recipe, features=[*found.features]), found


def _trusted(context: Context, name: str, plan: _Plan) -> ledger_checks.Trusted[dict[str, Any]]:
    """Trust a recipe that was passed now; one of before is held against the log."""
    if plan.before is None or plan.recipe is not plan.before.recipe:
        return ledger_checks.given(plan.recipe)
    return ledger_checks.recorded(context, name, plan.recipe, "recipe")


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
        if plan.is_another:
            values["created_at"] = context.now()
        at = schema.model.c.id == plan.before.id
        connection.execute(update(schema.model).where(at).values(version=number, **values))
        return plan.before.id
    added = connection.execute(
        insert(schema.model).values(name=name, version=number, created_at=context.now(), **values)
    )
    key: int = added.inserted_primary_key[0]  # type: ignore[index]
    return key
