"""Random command lines and damaged files: no traceback, exit 0, 1 or 2, nothing half-changed.

`Bench` holds a small workspace; `Bench.check` runs one command line in a copy and says what is
wrong with how it ended. What a test runs a few hundred times, `tests/soak/fuzz.py` runs by the
ten thousand.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cli.running import ROOT, Result, erasable, make_tiny
from erasable.workspace.requests.regulations import REGULATIONS

__all__ = ["SECRET", "Bench", "command_lines", "commands", "damaged"]

SECRET = "zq-secret-person"
"""Begins identities that are made up; it must not be printed."""

TAMPERED = "error: the ledger was tampered with: "
"""Such an error ends with exit code 1, as `log verify` does, and all others with 2."""

POSTPONING = """
    delete from log_entry where kind in ('request-started', 'request-postponed');
    delete from meta where name in ('frontier', 'seal:frontier');
    update request set batch = null, changed_at = 0 where state = 'pending';
"""
"""Takes away what stays of requests that were taken up, failed, and wait again."""

HOSTILE = [
    "", " ", "-", "--", "---", "-1", "..", "*", "%s", "{data}", "[red]", ":smile:", "\x1b[31m",
    "\n", "a\nb", "\0", "a\0b", "\ud800", "é", "e\u0301", "\u202eabc", "NaN", "nan", "1e999",
    "-inf", "0", "17.0", "007", "9" * 400, "a" * 5000, "'", '"', "';--", "' OR 1=1 --", "visits",
    "risk", "R-0000000000", "=", "a=", "=1", "[1,", '{"a": NaN}', "true", "null", "None", ",",
    "a,b", "a,a", ":", "a:", ":id", "a:b:c", "id", "email", "integer", "exact", "staff/id",
]  # fmt: skip
NAMES = ["visits", "risk", "tree", "ranker", "new", "visits.2"]
PLACES = [
    "visits.csv", "more.csv", "withdrawn.txt", "receipt.json", "head.json", "workspace.pub",
    "erased.json", "missing.csv", "missing/file", ".", "", "ledger.db", "keys.json", "artifacts",
    "sqlite:///shop.db#visits", "sqlite:///missing.db#t", "sqlite:///ledger.db#request",
    "postgresql://nobody@127.0.0.1:1/none#t", "nonsense://x", "-", "out.csv", "out.parquet",
    "out.json",
]  # fmt: skip
COLUMNS = ["visit", "patient", "mail:email", "mail", "age", "dose", "sick", "gone", "age,dose"]
CONDITIONS = [
    "age < 30", "age < 30 and sick = 1", "patient = 'patient-3'", "age <", "sick", "age < 'x'",
    "gone = 1", "dose != 2.5 and", "age = null", "age < 30; drop table request", "visit = v1",
    "age in (30, 31) or patient like '%3'", "not (sick is null)", "age in (select 1)", "((age))",
]  # fmt: skip
POOLS: dict[str, Sequence[str]] = {
    "name": NAMES,
    "names": NAMES,
    "dataset": ["visits", "visits,visits", "gone"],
    "source": PLACES,
    "path": PLACES,
    "file": PLACES,
    "output": PLACES,
    "export": ["elsewhere", "missing/elsewhere", "visits.csv", "."],
    "key": PLACES,
    "where": [".", "missing", "visits.csv", "elsewhere"],
    "id_column": COLUMNS,
    "subject": COLUMNS,
    "features": COLUMNS,
    "target": COLUMNS,
    "query": ["select * from visits", "drop table visits", "select"],
    "condition": CONDITIONS,
    "estimator": [
        "naive_bayes.GaussianNB",
        "cluster.KMeans",
        "preprocessing.StandardScaler,cluster.KMeans",
        "linear_model.Ridge",
        "sklearn.tree.DecisionTreeClassifier",
        "cluster.KMaens",
        "sklearn",
        "sklearn.nothing.Here",
        "os:getcwd",
        "json:dumps",
        "gone:gone",
        "a:b:c",
        "->",
        ",",
    ],
    "params": ["n_clusters=2", "alpha=0.5", "max_depth=2", "max_depth=x", "gone=1", "alpha"],
    "policy": ["at-once", "refresh", "never", "sometimes", ""],
    "ids": ["v1", "v2", "v999", "7"],
    "values": ["age=33", "dose=2.25", "dose=", "sick=x", "patient=me", "visit=v3", "age", "=1"],
    "retrain": ["true", "false", "cp {data} {out}", "no-such-program {data} {out}", "'", ""],
    "backup": ["../backup.tar", *PLACES],
    "to": ["mlflow:risk", "mlflow:", "mlflow:a/b", "none", "risk", "restored", "missing/restored"],
    "suppressions": PLACES,
    "head": PLACES,
    "keys": PLACES,
    "retire": NAMES,
    "tracking_uri": [
        "http://127.0.0.1:1",
        "http://nobody:zq-secret-person@127.0.0.1:1",
        "sqlite:///mlflow.db",
        "nonsense",
    ],
    "hook": ["true", "false", "no-such-program {model}", "'", "", "true > copy", "true && true"],
    "regulation": [*REGULATIONS, "GDPR"],
    "received": ["2026-01-31", "2026-01-31T09:30", "2999-01-01", "0001-01-01", "31.1.2026"],
    "state": ["pending", "completed", "gone"],
    "since": ["0", "3", "-1", "99999999999999", "head.json", "receipt.json", "visits.csv"],
    "identities": ["patient-3", "patient-7", "P9@Example.org", "17"],
    "identity": ["patient-3", "patient-7", "P9@Example.org"],
    "other": ["patient-8", "P9@Example.org"],
    "type_": ["id", "email", "integer", "exact", "phone", "phone:DE", "gone", "staff/id"],
    "other_type": ["id", "email", "gone"],
    "k": ["3", "0", "1000", "2.5"],
    "staying": [
        "0.6",
        "1",
        "1.5",
        "0=0.5,1=1",
        "0=1",
        "column:dose",
        "column:gone",
        "uniform:1:3",
        "point:2",
        "beta-binomial:4:2",
        "history:visits",
        "history:visits:2026-01-01",
        "history:gone",
        "0=history:visits,1=point:1",
    ],
    "scale": ["standard", "none", "log"],
    "fill": ["mean", "median", "most_frequent", "zero", ""],
    "utility": ["nearest-neighbor", "naive-bayes", "mutual-information", "variance-reduction"],
    "metric": ["euclidean", "cosine", "precomputed"],
    "n_neighbors": ["2", "0", "100"],
    "objective": ["expected", "cvar:0.2", "cvar:2"],
    "samples": ["30", "1"],
    "held": PLACES,
    "cost": COLUMNS,
    "seed": ["0", "7", "-1"],
    "keywords": [*PLACES, "words.txt"],
    "column": ["patient", "mail", "age", "gone"],
    "budget": [
        "3",
        "20%",
        "0.5",
        "0",
        "500",
        "coverage:0.5",
        "min-removal:0.1",
        "min-removal:99",
        "max-shift:1",
        "cost:dose:3",
        "cost:age:60",
        "cost:gone:1",
    ],
    "score": ["mu2-distance", "lr-maha", "norm", "random", "density-ratio", "k-center", "best"],
    "retain_where": CONDITIONS,
    "retain_sample": ["5", "1", "1000"],
    "fresh": [*PLACES, "visits", "gone"],
    "records": PLACES,
    "html": PLACES,
    "attack": ["rmia", "lira", "best"],
    "references": ["1", "4", "2", "0", "x"],
    "level": ["0.05", "0.5", "1", "x"],
    "ask": ["false {model} {data} {out}", "cat {model} {data}", "x"],
    "dask": ["nowhere", "tcp://", "http://127.0.0.1:8786", "tcp://127.0.0.1:x"],
    "types": ["age=integer", "age=text,sick=boolean", "dose=date", "gone=text", "age=real", "age"],
    "delimiter": [";", ",", "tab", "ab", '"'],
    "decimal": [",", ".", ";"],
    "encoding": ["latin1", "utf-16", "hex", "nowhere"],
    "delta": ["0.1", "1", "x"],
    "plot": ["curve.svg", "curve.png", "curve", "missing/curve.svg", "ledger.db"],
    "reason": ["a legal duty", ""],
    "hold": ["identity in doubt", ""],
    "database": [
        "postgresql://nobody@127.0.0.1:1/none",
        "postgresql://nobody:zq-secret-person@127.0.0.1:1/none",
        "postgresql://",
        "sqlite:///ledger.db",
        "nonsense",
    ],
    "schema": ["clinic", "public", "a b"],
    "poll": ["0.1", "0"],
    "attempts": ["1", "0"],
    "backoff": ["0.1", "x"],
}
RUN = frozenset({"retrain", "hook", "ask"})
"""What is run as a program is never made up."""
PRIVATE = frozenset({"identities", "identity", "other"})


@cache
def commands() -> dict[tuple[str, ...], Any]:
    """Return every command by its path: ("dataset", "add")."""

    def walk(command: Any, path: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
        inner = getattr(command, "commands", None)
        if inner is None:
            return {path: command}
        found: dict[tuple[str, ...], Any] = {}
        for name, each in inner.items():
            found |= walk(each, (*path, name))
        return found

    return walk(ROOT, ())


@st.composite
def command_lines(draw: Any, requests: Sequence[str]) -> tuple[list[str], str | None]:
    """Draw a command line, and what comes by standard input."""
    # What compiles takes no workspace, and seconds.
    drawn = sorted((path, each) for path, each in commands().items() if path != ("compile",))
    path, command = draw(st.sampled_from(drawn))
    args: list[str] = []
    for param in command.params:
        if param.name == "help" or not draw(_wanted(param)):
            continue
        values = [draw(_values(param.name, requests)) for _ in range(_repeats(draw, param))]
        if param.param_type_name == "argument":
            args += values
        elif getattr(param, "is_flag", False):
            args.append(param.opts[0])
        else:
            for value in values:
                args += [draw(st.sampled_from(param.opts)), value]
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(args)))
        args.insert(at, draw(st.sampled_from([*HOSTILE, "--gone", "--json", "--help", "-p"])))
    if path == ("work",):  # which else has no end
        args += ["--drain", "--attempts", "1"]
    stdin = draw(st.none() | st.sampled_from([f"{SECRET}-1\npatient-9\n", "", "\0", "patient-3"]))
    return [*path, *args], stdin


def _wanted(param: Any) -> st.SearchStrategy[bool]:
    if param.name == "where":
        return st.integers(0, 19).map(lambda n: n == 0)
    often = param.required or param.param_type_name == "argument" or param.name == "as_json"
    return st.integers(0, 9).map(lambda n: n < (9 if often else 3))


def _repeats(draw: Any, param: Any) -> int:
    several = getattr(param, "multiple", False) or param.nargs != 1
    return draw(st.integers(1, 3)) if several else 1


def _values(name: str, requests: Sequence[str]) -> st.SearchStrategy[str]:
    known = st.sampled_from(
        list(requests) if name in ("id_", "deleted") else list(POOLS.get(name, HOSTILE))
    )
    if name in RUN:
        return known
    if name in PRIVATE:
        return known | st.integers(0, 99).map(lambda n: f"{SECRET}-{n}")
    text = st.text(max_size=20).filter(lambda t: not t.startswith("/") and ".." not in t)
    return known | known | known | st.sampled_from(HOSTILE) | text


@st.composite
def damaged(draw: Any, whole: bytes) -> bytes:
    """Draw what may become of a file: some of it is lost, doubled, changed, or all of it."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.sampled_from([1, 1, 2, 8, 64]))
        how = draw(st.integers(0, 4))
        if how == 0:
            data[at : at + length] = draw(st.binary(min_size=length, max_size=length))
        elif how == 1:
            del data[at : at + length]
        elif how == 2:
            data[at:at] = data[at : at + length]
        elif how == 3:
            data[at : at + 1] = draw(
                st.sampled_from([b'"', b",", b"\n", b"\0", b"{", b"9" * 30, b"\xff", b"nan", b""])
            )
        else:
            del data[at:]
    return bytes(data)


@dataclass
class Bench:
    """A tiny workspace, and a copy of it that command lines run in.

    Attributes
    ----------
    root : Path
        Where both are.
    """

    root: Path
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.template, self.copy = self.root / "template", self.root / "copy"
        self.template.mkdir(parents=True)
        self.requests = list(make_tiny(self.template).values())
        with closing(sqlite3.connect(self.template / "shop.db")) as shop:
            shop.execute("create table visits (visit text, patient text, age integer)")
            shop.executemany("insert into visits values (?, ?, ?)", [("x1", "p1", 3)])
            shop.commit()
        self.restore()
        self.ledger, self.apart = self.dump(), self.dump(POSTPONING)
        self.stored = self.artifacts()
        self.keys = (self.copy / "keys.json").read_bytes()

    def restore(self) -> None:
        """Make the copy what the template is."""
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.template, self.copy)

    def dump(self, without: str = "") -> str:
        """Hash everything that the ledger holds, once a few statements have run on a copy of it."""
        try:
            with (
                closing(sqlite3.connect(self.copy / "ledger.db")) as ledger,
                closing(sqlite3.connect(":memory:")) as copy,
            ):
                ledger.backup(copy)
                copy.executescript(without)
                lines = "\n".join(copy.iterdump())
        except sqlite3.DatabaseError:
            return "no ledger"
        return sha256(lines.encode()).hexdigest()

    def artifacts(self) -> list[str]:
        """List the files of data and models."""
        folder = self.copy / "artifacts"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def run(self, args: Sequence[str], stdin: str | bytes | None = None) -> Result:
        """Run a command line in the copy."""
        return erasable(*args, folder=self.copy, stdin=stdin)

    def check(self, args: Sequence[str], stdin: str | bytes | None = None) -> list[str]:
        """Run a command line; return what is wrong with how it ended."""
        result = self.run(args, stdin)
        wrong = [] if result.exit_code in (0, 1, 2) else [f"exit code {result.exit_code}"]
        if result.fault is not None:
            wrong.append(f"it raised {result.fault!r}")
        if "Traceback" in result.output or "has a fault" in result.stderr:
            wrong.append("a traceback, or a fault")
        if SECRET in result.output:
            wrong.append("it printed an identity")
        wrong += _wrong_output(args, result)
        after = self.dump()
        same = after == self.ledger
        if after == "no ledger" or (self.copy / "keys.json").read_bytes() != self.keys:
            wrong.append("the ledger or the keys are gone")
        failed = result.exit_code == 2 or (result.exit_code == 1 and TAMPERED in result.stderr)
        if failed and not same and self.dump(POSTPONING) != self.apart:
            wrong.append("it failed, and the ledger changed")
        if failed and self.artifacts() != self.stored:
            wrong.append("it failed, and left files of data or models")
        if result.exit_code == 0 or not same or wrong:
            self.restore()
        return [f"{each}: {list(args)!r} with {stdin!r} said {result.output!r}" for each in wrong]

    def check_file(self, name: str, data: bytes, args: Sequence[str]) -> list[str]:
        """Put a damaged file into the copy, and run a command line that reads it."""
        place = self.copy / name
        whole, keys = place.read_bytes(), self.keys
        place.write_bytes(data)
        if name == "keys.json":
            self.keys = data
        try:
            return self.check(args)
        finally:
            place.write_bytes(whole)
            self.keys = keys


def _wrong_output(args: Sequence[str], result: Result) -> list[str]:
    wrong = []
    errors = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    told = any(line.startswith("error: ") for line in errors)
    tampered = result.exit_code == 1 and any(line.startswith(TAMPERED) for line in errors)
    failed = result.exit_code == 2 or tampered
    if failed and (len(errors) != 1 or not told):
        wrong.append("an error that is not one line")
    if told and not failed:
        wrong.append("an error, and another exit code")
    options = args[: args.index("--")] if "--" in args else args
    if "--json" in options and "--help" not in options and not failed:
        try:
            whole = isinstance(json.loads(result.stdout), dict)
        except ValueError:
            whole = False
        if not whole:
            wrong.append("no JSON object")
    if "--json" in options and failed and result.stdout:
        wrong.append("output of a command that failed")
    return wrong
