"""Options of several commands, and the parsing of their texts."""

from __future__ import annotations

import math
import re
from typing import Any

import typer

import erasable.cli.show as show
from erasable.cli.frame import fail
from erasable.workspace.identity.canonical import TYPES

_TEXTS = (".txt", ".csv")
_PLOTS = (".svg", ".png", ".pdf")
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([KMGT]?B?)")
_UNITS = {f"{unit.strip()}{b}": 1000**p for p, unit in enumerate(" KMGT") for b in ("", "B")}
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_LISTED = re.compile(rf"(?:(?<=,)|^)(?:\s*{_QUOTED.pattern}\s*(?=,|$)|[^,]*)")


def option(
    metavar: str, help: str, *names: str, default: Any = None, envvar: str | None = None
) -> Any:
    """Declare an option with a value; its name is that of the parameter, if none is given."""
    return typer.Option(default, *names, metavar=metavar, help=help, envvar=envvar)


def switch(name: str, help: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(False, name, help=help)


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """Declare an argument."""
    return typer.Argument(default, metavar=metavar, help=help)


IDENTITY_TYPES = "{} or {}".format(", ".join(list(TYPES)[:-1]), list(TYPES)[-1])
FOLDER = option(
    "DIR", "The folder of the workspace.", "--workspace", default=".", envvar="ERASABLE_WORKSPACE"
)
JSON = switch("--json", "Print one JSON object, for programs.")
FILL = option(
    "HOW",
    "Replace missing values of features, as an imputer does before a model: mean, median or "
    "most_frequent. By default missing values are an error.",
)
MEMORY = option(
    "SIZE",
    "Memory that the features of a model's records may take, such as 500MB or 4GB; above that "
    "they are read block by block, if the model can learn so. By default half of the "
    "machine's memory.",
)
DASK = option(
    "ADDRESS",
    "A Dask cluster, such as tcp://10.0.0.5:8786: models that can learn block by block learn "
    "there. Its workers read data sets from the store of the workspace.",
)
DELIMITER = option(
    "C",
    "The separator of columns in a text file, such as ';' or tab. By default as the file "
    "shows, or as the data set was read.",
)
DECIMAL = option("C", "The decimal sign in a text file: '.' or ','. By default as for --delimiter.")
ENCODING = option(
    "NAME",
    "The encoding of a text file, such as latin1. By default as its byte order mark or the "
    "data set says, or UTF-8.",
)
SEED = option("N", "Seed of random draws.", default="0")
DATABASE = option(
    "URL",
    "Keep the ledger in PostgreSQL 15 or newer: postgresql://USER@HOST:PORT/DATABASE. The "
    "password is read from PGPASSWORD or .pgpass, and is never kept.",
)
SCHEMA = option("NAME", "The schema of the database; by default erasable.")
STORE = option(
    "URL",
    "Keep data and models in an object store: s3://BUCKET/PREFIX, gs://... or abfs://... "
    "Credentials and endpoint are found by the store's own tools (AWS_PROFILE, "
    "AWS_ENDPOINT_URL), and are never kept.",
)


def check_files(output: str | None, plot: str | None) -> None:
    """Refuse names of output files with an ending that is no format of ids or plots."""
    for option, path, endings in (("--output", output, _TEXTS), ("--plot", plot, _PLOTS)):
        if path is not None and not path.endswith(endings):
            fail(
                f"{option} is {show.one_line(path)[:60]!r}; expected a file that ends in "
                f"{', '.join(endings)}"
            )


def whole(text: str, option: str, least: int = 1) -> int:
    """Return a whole number."""
    plain = text.isascii() and text.isdigit() and len(text) < 16
    if not plain or int(text) < least:
        fail(f"{option} is {show.one_line(text)[:60]!r}; expected a whole number, {least} or more")
    return int(text)


def size(text: str | None) -> int | None:
    """Return the bytes of a size of memory.

    >>> size("1.5 GB"), size("20kb"), size("512"), size(None)
    (1500000000, 20000, 512, None)
    """
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip().upper())
    if found is None or float(found[1]) <= 0:
        fail(f"--memory is {show.one_line(text)[:60]!r}; expected a size such as 500MB or 4GB")
    return int(float(found[1]) * _UNITS[found[2]])


def number(text: str, option: str) -> float:
    """Return a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        fail(f"{option} is {show.one_line(text)[:60]!r}; expected a number above 0")
    return value


def columns(text: str | None) -> list[str] | None:
    """Return the names of a list of columns.

    Spaces around a name do not belong to it. A name that has a comma or outer spaces, or is empty,
    is in double quotes, as in CSV.

    >>> columns('age, dose'), columns('"dose, mg", " age", ""')
    (['age', 'dose'], ['dose, mg', ' age', ''])
    """
    if text is None:
        return None
    if not text.strip():
        return []
    parts = [found[0].strip() for found in _LISTED.finditer(text)]
    return [part[1:-1].replace('""', '"') if _QUOTED.fullmatch(part) else part for part in parts]


def pairs(given: list[str] | None, name: str) -> dict[str, str]:
    """Parse texts of the form NAME=VALUE.

    >>> pairs(["C=0.5", "kind=a=b"], "-p")
    {'C': '0.5', 'kind': 'a=b'}
    """
    found: dict[str, str] = {}
    for each in given or ():
        key, equals, value = each.partition("=")
        if not equals or not key or key in found:
            fail(
                f"{name} is {show.one_line(each)[:60]!r}, with no '=', no name, or a name that "
                f"came before; expected NAME=VALUE, each name once; write {name} C=0.5, say"
            )
        found[key] = value
    return found
