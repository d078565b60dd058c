"""Requests with drawn targets, people, actions and failures, against an account kept in Python."""

from __future__ import annotations

import csv
import json
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lakes import texts_in

from erasable.core.errors import SourceError
from erasable.workspace import Workspace
from erasable.workspace.evidence import receipts
from erasable.workspace.targets import kinds
from erasable.workspace.targets.protocol import Target
from erasable.workspace.targets.verdicts import NOT_PROVED, NOTHING, PURGED

N_PEOPLE, N_SEEDS = 12, 24
Row = dict[str, Any]


def person(i: int) -> str:
    return f"person-{i:04}@example.org"


def said(name: str, i: int, at: int) -> str:
    """Return a text that one row alone has."""
    return f"{random.Random(f'{name} {i} {at}').getrandbits(120):030x}"


# -- kinds of targets, each with a reader that is not the library's --------------------------------


def _write_sqlite(path: Path, rows: list[Row]) -> str:
    with closing(sqlite3.connect(path / "shop.db")) as base, base:
        base.execute("create table notes (id integer primary key, mail text, text text)")
        base.executemany("insert into notes values (:id, :mail, :text)", rows)
    return f"sqlite:///{path}/shop.db"


def _read_sqlite(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path / "shop.db")) as base:
        base.row_factory = sqlite3.Row
        return [dict(row) for row in base.execute("select * from notes")]


def _write_csv(path: Path, rows: list[Row]) -> str:
    for number in range(2):
        with (path / f"{number}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "mail", "text"])
            writer.writeheader()
            writer.writerows(rows[number::2])
    return str(path)


def _read_csv(path: Path) -> list[Row]:
    found = []
    for each in path.glob("*.csv"):
        with each.open(newline="") as file:
            found += [
                {"id": int(row["id"]), **{k: row[k] or None for k in ("mail", "text")}}
                for row in csv.DictReader(file)
            ]
    return found


def _write_json(path: Path, rows: list[Row]) -> str:
    (path / "notes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def _read_json(path: Path) -> list[Row]:
    return [json.loads(line) for line in (path / "notes.jsonl").read_text().splitlines()]


def _write_parquet(path: Path, rows: list[Row]) -> str:
    pq.write_table(pa.Table.from_pylist(rows), path / "notes.parquet", row_group_size=7)
    return str(path)


def _read_parquet(path: Path) -> list[Row]:
    found: list[Row] = pq.read_table(path / "notes.parquet").to_pylist()
    return found


def _write_delta(path: Path, rows: list[Row]) -> str:
    deltalake = pytest.importorskip("deltalake")
    for number in range(2):
        part = pa.Table.from_pylist(rows[number::2])
        deltalake.write_deltalake(str(path), part, mode="append")
    return f"delta:{path}"


def _read_delta(path: Path) -> list[Row]:
    deltalake = pytest.importorskip("deltalake")
    found: list[Row] = deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return found


@contextmanager
def _catalog(path: Path) -> Iterator[Any]:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    uri = f"sqlite:///{path}/cat.db"
    with closing(sql.SqlCatalog("mine", uri=uri, warehouse=f"file://{path}/house")) as found:
        yield found


def _write_iceberg(path: Path, rows: list[Row]) -> str:
    with _catalog(path) as catalog:
        catalog.create_namespace("shop")
        table = pa.Table.from_pylist(rows)
        made = catalog.create_table("shop.notes", schema=table.schema)
        made.append(table.slice(0, 10))
        made.append(table.slice(10))
    return f"iceberg:sqlite:///{path}/cat.db#shop.notes"


def _read_iceberg(path: Path) -> list[Row]:
    with _catalog(path) as catalog:
        found: list[Row] = catalog.load_table("shop.notes").scan().to_arrow().to_pylist()
    return found


KINDS: dict[str, tuple[Callable[[Path, list[Row]], str], Callable[[Path], list[Row]]]] = {
    "sqlite": (_write_sqlite, _read_sqlite), "csv": (_write_csv, _read_csv),
    "json": (_write_json, _read_json), "parquet": (_write_parquet, _read_parquet),
    "delta": (_write_delta, _read_delta), "iceberg": (_write_iceberg, _read_iceberg),
}  # fmt: skip
CLIENTS = {"delta": "deltalake", "iceberg": "pyiceberg"}
THERE = sorted(each for each in KINDS if each not in CLIENTS or find_spec(CLIENTS[each]))


@dataclass
class Place:
    """A target, and the rows that it ought to have."""

    name: str
    kind: str
    action: str
    path: Path
    rows: list[Row]
    gone: list[Row] = field(default_factory=list)

    @classmethod
    def drawn(cls, draw: random.Random, folder: Path, number: int) -> Place:
        kind, action = draw.choice(THERE), draw.choice(["delete", "delete", "null", "mask"])
        return cls.made(draw, folder, kind, action, number)

    @classmethod
    def made(
        cls, draw: random.Random, folder: Path, kind: str, action: str, number: int = 0
    ) -> Place:
        name = f"t{number}-{kind}-{action}"
        path = folder / name
        path.mkdir()
        of = [each for i in range(N_PEOPLE) for each in [i] * draw.choice([0, 1, 1, 2, 3])]
        of += [N_PEOPLE] * 12  # somebody who stays
        rows = [{"id": at, "mail": person(i), "text": said(name, i, at)} for at, i in enumerate(of)]
        return cls(name, kind, action, path, rows)

    def add_to(self, workspace: Workspace) -> None:
        mail = "notes.mail:email" if self.kind == "sqlite" else "mail:email"
        place = KINDS[self.kind][0](self.path, self.rows)
        keep = () if self.action == "delete" or self.kind == "sqlite" else ("id",)
        workspace.add_target(self.name, place, [mail], action=self.action, keep=keep)

    def erase(self, who: str) -> int:
        """Erase a person from the account; return how many rows that were."""
        own = [row for row in self.rows if row["mail"] == who]
        self.gone += own
        word = "erased" if self.action == "mask" else None
        changed = [{"id": row["id"], "mail": word, "text": word} for row in own]
        stay = [row for row in self.rows if row["mail"] != who]
        self.rows = stay + (changed if self.action != "delete" else [])
        return len(own)

    def check(self, is_purged: bool) -> None:
        read = KINDS[self.kind][1](self.path)
        assert sorted(read, key=lambda row: row["id"]) == sorted(
            self.rows, key=lambda row: row["id"]
        )
        values = {row[name] for row in self.gone for name in ("mail", "text")}
        files = " ".join(texts_in(self.path).values())
        left = {value for value in values if value in files}
        assert not (is_purged and left)
        assert any(row["text"] in files for row in self.rows if row["mail"] == person(N_PEOPLE))


# -- failures --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process, but for its open files."""


@contextmanager
def failing(plans: dict[str, tuple[str, BaseException]]) -> Iterator[None]:
    """Have targets, by parts of their places, raise an error at a step: before it or after it."""
    true = kinds.opened

    def opened(place: str, settings: Any) -> Target:
        found = true(place, settings)
        for name, (step, error) in plans.items():
            if name in place:
                method, when = step.split()
                call = getattr(found, method)

                def failed(*args: Any, call: Any = call, when: str = when, error: Any = error):  # type: ignore[no-untyped-def]
                    if when == "after":
                        call(*args)
                    raise error

                setattr(found, method, failed)
        return found

    kinds.opened = opened
    try:
        yield
    finally:
        kinds.opened = true


STEPS = [f"{name} {when}" for name in ("find", "erase", "compact") for when in ("before", "after")]


def attempt(workspace: Workspace, plans: dict[str, tuple[str, BaseException]]) -> None:
    """Process requests while some targets fail."""
    with failing(plans), suppress(Killed):
        workspace.process()


def created(folder: Path, **database: str) -> Workspace:
    """Make a workspace with visits of every other person."""
    visits = folder / "visits.csv"
    lines = [f"{i},{person(i)},{i}.5" for i in range(0, N_PEOPLE, 2)]
    visits.write_text("\n".join(["id,mail,dose", *lines]) + "\n")
    workspace = Workspace.create(folder / "workspace", **database)
    workspace.add_dataset("visits", visits, id_column="id", subjects=["mail:email"])
    return workspace


# -- the drawn lives -------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_requests_end_with_what_was_done(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    workspace = created(tmp_path)
    places = [Place.drawn(draw, tmp_path, n) for n in range(draw.choice([1, 2, 3]))]
    for each in places:
        each.add_to(workspace)
    who = draw.sample(range(N_PEOPLE), draw.choice([1, 2, 4]))
    asked = {request.id: person(i) for i in who for request in workspace.request([person(i)])}
    if draw.random() < 0.3:  # the same person once more, as they may be written
        (again,) = workspace.request([person(who[0]).upper()])
        asked[again.id] = person(who[0])
    fails = draw.sample(places, draw.randrange(len(places) + 1))
    attempt(workspace, {each.name: (draw.choice(STEPS), SourceError("full")) for each in fails})
    if fails:
        assert {each["name"] for each in workspace.targets() if each["waiting"]} == {
            each.name for each in fails
        }
    if draw.random() < 0.5:
        stays = [i for i in range(0, N_PEOPLE, 2) if i not in who]
        workspace.correct("visits", ids=[stays[0]], values={"dose": 77.5})
    for _ in range(draw.choice([1, 2])):
        killed = draw.choice(places)
        others = {
            each.name: (draw.choice(STEPS), SourceError("full"))
            for each in draw.sample(places, draw.randrange(len(places)))
        }
        attempt(workspace, others | {killed.name: (draw.choice(STEPS), Killed())})
    if draw.random() < 0.5:
        workspace = restored(workspace, tmp_path)
    workspace.process()
    ends(workspace, places, asked)


@pytest.mark.parametrize("action", ["null", "mask"])
@pytest.mark.parametrize("kind", sorted(CLIENTS))
def test_rows_of_lakes_are_overwritten(tmp_path: Path, kind: str, action: str) -> None:
    if kind not in THERE:
        pytest.skip(f"no client of {kind} to read with (extra: {kind})")
    workspace = created(tmp_path)
    place = Place.made(random.Random(1), tmp_path, kind, action)
    place.add_to(workspace)
    asked = {each.id: person(i) for i in (2, 3) for each in workspace.request([person(i)])}
    workspace.process()
    ends(workspace, [place], asked)
    word = "erased" if action == "mask" else None
    assert sum(row["text"] == word for row in place.rows) == len(place.gone) > 0
    assert [each.n_records for each in workspace.check_target()] == [0]


@pytest.mark.parametrize("step", ["erase after", "compact after"])
@pytest.mark.parametrize("way", ["restore", "copy"])
def test_an_open_erasure_goes_on_in_a_copy(
    tmp_path: Path, request: pytest.FixtureRequest, step: str, way: str
) -> None:
    """What was found before the copy is what the search looks for after it."""
    workspace = created(tmp_path)
    place = Place.made(random.Random(1), tmp_path, "parquet", "delete")
    place.add_to(workspace)
    asked = {each.id: person(i) for i in (1, 2, 4) for each in workspace.request([person(i)])}
    attempt(workspace, {place.name: (step, Killed())})
    lost = next(row for row in place.rows if row["mail"] in asked.values())
    left = place.path / "left.bin"
    left.write_bytes(lost["text"].encode())  # which only the first attempt knows
    if way == "restore":
        workspace = restored(workspace, tmp_path)
    else:
        server = request.getfixturevalue("server")
        url = server.url(request.getfixturevalue("database"))
        workspace.copy(tmp_path / "copy", database=url)
        workspace.context.ledger.close()
        workspace = Workspace.open(tmp_path / "copy")
    workspace.process()
    for number, who in asked.items():
        (says,) = receipts.show(workspace.receipt(number))["targets"]
        there = any(row["mail"] == who for row in place.rows)
        assert says["verdict"] == (NOT_PROVED if there else NOTHING)
        assert not there or "left.bin" in says["reason"]
    left.unlink()
    ends(workspace, [place], asked)
    workspace.context.ledger.close()


def test_workers_erase_from_each_target_once(tmp_path: Path, server: Any, database: str) -> None:
    workspace = created(tmp_path, database=server.url(database))
    draw = random.Random(5)
    kinds_ = ["sqlite", "csv", "parquet"]
    places = [Place.made(draw, tmp_path, kind, "delete", n) for n, kind in enumerate(kinds_)]
    for each in places:
        each.add_to(workspace)
    who = range(0, N_PEOPLE, 2)
    asked = {each.id: person(i) for i in who for each in workspace.request([person(i)])}
    workspace.context.ledger.close()
    line = [sys.executable, "-c", _WORK, str(tmp_path / "workspace")]
    workers = [subprocess.Popen(line) for _ in range(2)]
    assert [each.wait() for each in workers] == [0, 0]
    workspace = Workspace.open(tmp_path / "workspace")
    ends(workspace, places, asked)
    n_changed = Counter[str]()
    for entry in workspace.log_entries():
        if entry["kind"] == "target-erased":
            n_changed[entry["subject"]] += sum(entry["changed"].values())
    assert n_changed == {each.name: len(each.gone) for each in places}
    workspace.context.ledger.close()


_WORK = """
import sys
from erasable.workspace import Workspace
Workspace.open(sys.argv[1]).work(drain=True, poll=0.2)
"""


def restored(workspace: Workspace, folder: Path) -> Workspace:
    """Return the workspace as a backup has it; that which was backed up is no more."""
    made = workspace.back_up(folder / "backup.erasable", with_keys=True)
    listed = workspace.suppression_list()
    workspace.context.ledger.close()
    shutil.rmtree(folder / "workspace")
    Workspace.restore(made.path, folder / "restored", suppressions=listed)
    return Workspace.open(folder / "restored")


def ends(workspace: Workspace, places: list[Place], asked: dict[str, str]) -> None:
    """Check targets and receipts against the account."""
    found: dict[tuple[str, str], int] = {
        (each.name, who): each.erase(who)
        for each in places
        for who in dict.fromkeys(asked.values())
    }
    assert not any(each["waiting"] for each in workspace.targets())
    told = {}
    for request, who in asked.items():
        body = workspace.receipt(request)
        receipts.check(body, workspace.context.keys.public_pem)
        said_of = {each["name"]: each for each in receipts.show(body)["targets"]}
        assert said_of.keys() == {each.name for each in places}
        for each in places:
            n = found[each.name, who]
            says = said_of[each.name]
            told[each.name] = says
            assert (says["verdict"] == NOTHING) == (n == 0), (says, n)
            assert (says["records"] or 0) == n
    for each in places:
        own = told[each.name]
        each.check(is_purged=own["verdict"] in (PURGED, NOTHING))
    assert workspace.verify_log() == []
    assert workspace.tasks()["failed"] == []
    assert not list((workspace.context.root / "artifacts").rglob("targets/*"))
