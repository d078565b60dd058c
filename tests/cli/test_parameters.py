"""The commands and the methods of `Workspace` take the same parameters, with the same defaults.

A parameter that is added to one of them alone fails here, until it is added to the other or named
as one that belongs to a terminal, or to Python.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from cli.fuzzing import commands
from erasable.workspace import Workspace

METHODS = {
    "init": "create",
    "model refresh": "refresh",
    "model policy": "set_policy",
    "remove-domain": "plan_removal",
    "dataset add": "add_dataset",
    "dataset append": "append",
    "dataset sync": "sync",
    "dataset list": "datasets",
    "dataset show": "dataset",
    "model fit": "fit",
    "model list": "models",
    "model show": "model",
    "model predict": "predict",
    "model register": "register",
    "model export": "export",
    "model retire": "retire",
    "model publish": "publish",
    "receipt show": "receipt",
    "log show": "log_entries",
    "log verify": "verify_log",
    "log head": "head",
    "subject show": "subject",
    "subject link": "link",
    "suppress list": "suppressed",
    "suppress release": "release",
    "suppress export": "suppression_list",
    "suppress import": "import_suppression_list",
    "target scan": "scan_target",
    "target add": "add_target",
    "target list": "targets",
    "target check": "check_target",
    "target remove": "remove_target",
    "target erase": "erase_target",
    "workspace migrate": "migrate",
    "workspace copy": "copy",
    "backup": "back_up",
}
"""The method of each command whose name is another."""

NO_METHOD = {"compile", "key", "receipt check"}
"""Commands that need no workspace, or print a property."""

RENAMED = {
    "dataset": "datasets",
    "subject": "subjects",
    "state": "states",
    "id_": "request",
    "name": "model",
    "seed": "random_state",
    "jobs": "n_jobs",
    "received": "received_at",
    "condition": "where",
    "type_": "type",
    "all": "may_empty",
}
"""Names of options, and what methods call it."""

OF_A_TERMINAL = {
    "folder", "as_json", "help",  # of every command
    "memory", "dask", "profile",  # how the process computes
    "output", "html", "plot",  # where the answer goes
    "file", "identity", "identities", "column",  # how identities and lists are read
    "yes", "dry_run",  # whether anything is done
    "decimal", "delimiter", "encoding",  # how another file is written, where no method reads it
    "allow_other_version", "no_suppressions", "to", "lift", "recipe", "check",
    "sweep",  # a method of the plan
}  # fmt: skip

OF_PYTHON = {
    "path", "progress",  # of class methods: --workspace, and what is printed
    "values", "value", "exported", "source",  # what a file or arguments hold
    "cost",  # a function
    "dry_run",  # without --yes
    "limit", "stopped", "tell",
}  # fmt: skip

ANOTHER = {("request", "only"): "reach"}
"""Options that are another way to give a parameter."""

OTHER_DEFAULTS = {("remove-domain", "budget")}


def _parameters(command: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of a command and of its method, with their defaults."""
    name = METHODS.get(command, command)
    method = inspect.signature(getattr(Workspace, name)).parameters
    takes = {key: each.default for key, each in method.items() if key != "self"}
    options = {param.name: param.default for param in commands()[tuple(command.split())].params}
    named = {
        key if key in takes else RENAMED.get(key, key): default
        for key, default in options.items()
        if ANOTHER.get((command, key)) not in options
    }
    return named, takes


COMMANDS = sorted(name for each in commands() if (name := " ".join(each)) not in NO_METHOD)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_what_its_method_takes(command: str) -> None:
    options, takes = _parameters(command)
    assert options.keys() - takes.keys() <= OF_A_TERMINAL
    assert takes.keys() - options.keys() <= OF_PYTHON


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_the_same(command: str) -> None:
    options, takes = _parameters(command)
    empty = inspect.Parameter.empty
    for name in options.keys() & takes.keys():
        if takes[name] is empty or (command, name) in OTHER_DEFAULTS:
            continue
        given, expected = options[name], takes[name]
        if isinstance(given, str) and isinstance(expected, float | int):
            given = type(expected)(given)  # an option is text
        assert (given or None) == (expected or None), name
