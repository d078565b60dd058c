"""Write `docs/cli.md` by running the commands: ``python docs/cli_page.py``.

The tests compare the page with the output of the same tour.
"""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("cli.md")

TOUR = """
init --export ../elsewhere
workspace migrate
dataset add visits january.csv --id visit --subject patient
dataset append visits february.csv
dataset sync visits spring.csv
dataset list
dataset show visits
model fit risk --dataset visits --estimator linear_model.LogisticRegression \
--target malignant -p C=0.5
model fit groups --dataset visits --estimator preprocessing.StandardScaler,cluster.KMeans \
-p kmeans__n_clusters=3
model fit shards --dataset visits --estimator ensemble.ShardedClassifier --target malignant \
-p n_shards=4 -p estimator=sklearn.tree.DecisionTreeClassifier -p estimator__max_depth=5
model register ranker --dataset visits
model list
model show risk
model policy groups at-once
dataset append visits june.csv
model refresh
model predict risk new.csv
model export risk risk.model
model publish risk --to mlflow:risk --tracking-uri http://mlflow.example:5000
model fit old --dataset visits --estimator naive_bayes.GaussianNB --target malignant
model retire old
select spring.csv --id visit --target malignant --k 20 --staying 0=1,1=0.5 --output chosen.txt
select spring.csv --id visit --subject patient --target malignant --k 3 --staying 0.8 \
--held chosen.txt --plot curve.svg
subject show patient-7
subject link patient-8 patient-9
backup ../monday.tar
request --dry-run patient-7
request patient-7
request --file withdrawn.txt --regulation ccpa
request --where "mean_radius > 27" --dataset visits
hold R2 --reason "identity in doubt"
extend R3 --reason "many requests at once"
deny R4 --reason "records that the law has us keep"
cancel R5
correct visits v12 --set mean_radius=13.5
requests
process
request patient-10 --regulation none
work --drain
tasks
retry
verify
audit risk --deleted R1
audit risk --fresh later.csv --attack lira --references 16 --html risk.html
receipt show R1
receipt show R1 --output receipt.json --html receipt.html
key
receipt check receipt.json --key workspace.pub
select spring.csv --id visit --target malignant --k 20 --staying history:visits \
--output chosen.csv
log show --since 10
log head --output head.json
log verify --since head.json
suppress list
suppress export --output erased.json
restore ../monday.tar --to ../restored --keys keys.json --suppressions erased.json --head head.json
suppress release patient-7
remove-domain visits --where "malignant == 1" --budget 20% --plot curve.svg
remove-domain visits --where "malignant == 1" --budget 20% --sweep random,lr-maha
remove-domain visits --where "malignant == 1" --budget 20% --fresh later.csv --yes
suppress import erased.json
target scan sqlite:///clinic.db
target add clinic sqlite:///clinic.db --subject patients.id
target list
target erase clinic --yes
target check
target remove clinic
status
report report.html
workspace copy ../team --database postgresql://ann@db.example/models
compile
"""

DATABASE = "postgresql://ann@db.example/models"
"""A placeholder for a database; see `tour`."""

MLFLOW, STORE = "http://mlflow.example:5000", "sqlite:///../mlflow.db"
"""A placeholder for a server of MLflow, and the registry without a server that replaces it."""

INTRODUCTION = """# The command line

```
erasable COMMAND --help
```

This page was made by running the commands on scikit-learn's breast cancer data, with three visits
per patient (`docs/cli_page.py`).

| | |
|---|---|
| `--workspace DIR` | the workspace; by default `ERASABLE_WORKSPACE`, or the current folder |
| `--json` | print one JSON object, and nothing else, on standard output; its names do not change |
| exit code 0 | done |
| exit code 1 | a check found a difference: `verify`, `log verify`, `receipt check` |
| exit code 2 | an error: one line on standard error; the failed operation has changed nothing |
| exit code 3 | done, but standard output was closed or full: some of the text is lost |
| exit code 130, 143, 129 | interrupted (Ctrl-C, SIGTERM, SIGHUP): a line says what was done |
| `ERASABLE_KEYS` | a key file outside of the workspace |
| `ERASABLE_DEBUG=1` | print errors with a traceback |

Identities on a command line are visible in the list of processes and the history of the shell.
`--file` reads them from a file, or with `-` from standard input, one per line; blank lines are
skipped. The identity is the whole line with surrounding spaces: `id`, `email` and `integer` ignore
these, `exact` does not. No command prints an identity. Put `--` before an identity that begins with
`-`.

Separate a list of columns with commas. Put a name with a comma, or with spaces at its ends, in
double quotes: `--features '"dose, mg"," age"'`.

Commands that take over a second report their progress on standard error: a bar on a terminal, plain
lines otherwise.

If a part fails, `process` and `model refresh` carry out the parts that do not depend on it, and end
with 2.

A command does its work even if it cannot print. Exit codes 1 and 2 are the same
if nothing can be printed, and errors of standard error change no exit code.
"""


def lay_out(folder: Path) -> None:
    """Write the data of the tour into a folder."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names[:5]]
    head = ",".join(["visit", "patient", *names, "malignant"])
    rows = [
        ",".join([f"v{i}", f"patient-{i // 3}", *map(str, values[:5]), str(1 - target)])
        for i, (values, target) in enumerate(zip(data.data, data.target, strict=True))
    ]
    parts = {
        "january.csv": rows[:400], "february.csv": rows[400:500], "spring.csv": rows[:530],
        "june.csv": rows[530:540],
        "new.csv": rows[540:545], "later.csv": rows[540:],
    }  # fmt: skip
    for name, part in parts.items():
        (folder / name).write_text("\n".join([head, *part]) + "\n")
    with closing(sqlite3.connect(folder / "clinic.db")) as base:
        base.execute("create table patients (id text primary key, name text)")
        people = [(f"patient-{i}", f"Patient {i}") for i in range(20)]
        base.executemany("insert into patients values (?, ?)", people)
        base.commit()
    (folder / "withdrawn.txt").write_text("patient-11\npatient-12\npatient-13\n")


def tour(
    run: Callable[[list[str]], str], database: Callable[[], str]
) -> Iterator[tuple[str, list[str]]]:
    """Run the tour; `run` runs a command line and returns its output.

    `database` returns the URL of an empty database of PostgreSQL.

    Yields the line as shown, and its arguments, with the ids of requests.
    """
    for line in TOUR.strip().splitlines():
        if re.search(r"\bR\d\b", line):
            taken = json.loads(run(["requests", "--json"]))["requests"]
            taken.sort(key=lambda each: each["received_at"])
            for number, each in enumerate(taken, 1):
                line = re.sub(rf"\bR{number}\b", each["id"], line)
        args = [database() if each == DATABASE else each for each in shlex.split(line)]
        yield line, [STORE if each == MLFLOW else each for each in args]


def keys(found: dict[str, Any]) -> str:
    """Return the names in a JSON object, and in each entry of its lists."""
    parts = []
    for name, value in found.items():
        within = value[0] if isinstance(value, list) and value else value
        if isinstance(within, dict) and (isinstance(value, list) or name in ("request", "says")):
            parts.append(f"`{name}` ({', '.join(f'`{each}`' for each in within)})")
        else:
            parts.append(f"`{name}`")
    return ", ".join(parts)


def path_of(args: list[str]) -> tuple[str, ...]:
    """Return the command of a command line: ("dataset", "add")."""
    groups = ("workspace", "dataset", "model", "receipt", "log", "subject", "suppress", "target")
    return tuple(args[: 2 if args[0] in groups else 1])


def sections(
    commands: dict[tuple[str, ...], Any], erasable: Any, database: Callable[[], str]
) -> Iterator[str]:
    """Run the tour twice, without and with ``--json``, and write a section on each command."""
    shown: dict[tuple[str, ...], list[str]] = {}
    named: dict[tuple[str, ...], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for programs in (False, True):
            here = Path(folder, "json" if programs else "text", "work")
            here.mkdir(parents=True)
            lay_out(here)

            def run(args: list[str], here: Path = here) -> str:
                done = erasable(*args, folder=here)
                if done.exit_code:
                    raise SystemExit(f"{args} ended with {done.exit_code}: {done.stderr}")
                return str(done.stdout).replace(str(here), "/clinic").replace(str(here.parent), "")

            for line, args in tour(run, database):
                path = path_of(args)
                printed = run([*args, "--json"] if programs else args)
                if path == ("key",) and not programs:
                    (here / "workspace.pub").write_text(printed)
                    line += " > workspace.pub"
                elif path == ("key",):
                    (here / "workspace.pub").write_text(json.loads(printed)["public_key"])
                if programs:
                    named.setdefault(path, keys(json.loads(printed)))
                else:
                    text = "\n".join(each.rstrip() for each in printed.splitlines())
                    shown.setdefault(path, []).append(f"$ erasable {line}\n{text}".rstrip())
    for path, command in commands.items():
        yield _section(path, command, shown[path], named[path])


def _section(path: tuple[str, ...], command: Any, shown: list[str], named: str) -> str:
    lines = [f"## erasable {' '.join(path)}", "", command.help, ""]
    for each in shown:
        lines += ["```console", each, "```", ""]
    lines += ["| | |", "|---|---|"]
    for param in command.params:
        if param.name in ("help", "folder", "as_json"):
            continue
        name = ", ".join(param.opts) if param.param_type_name == "option" else ""
        name = f"{name} {param.metavar or ''}".strip()
        lines.append(f"| `{name}` | {param.help.replace('|', chr(92) + '|')} |")
    if lines[-1] == "|---|---|":
        del lines[-2:]
    else:
        lines.append("")
    return "\n".join([*lines, f"`--json`: {named}", ""])


def main() -> None:
    """Write the page."""
    tests = PAGE.parent.parent / "tests"
    sys.path[:0] = [str(tests), str(tests / "workspace")]
    from postgres_server import running

    from cli.fuzzing import commands
    from cli.running import erasable

    with running() as server:
        made = sections(commands(), erasable, lambda: str(server.url(server.database())))
        written = [INTRODUCTION, *made]
    PAGE.write_text("\n".join(written), encoding="utf-8")


if __name__ == "__main__":
    main()
