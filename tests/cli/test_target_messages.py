"""What the command line says of targets: what waits, what could not be seen, and what was done."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import pytest

from cli.running import erasable
from erasable.workspace.targets import adding


def mail(i: int) -> str:
    return f"person{i}@example.org"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a workspace of twelve people, who are in a folder of CSV and in a database as well."""
    lines = [f"{i},{mail(i)},{20 + i}" for i in range(12)]
    text = "\n".join(["visit,mail,age", *lines, ""])
    (tmp_path / "visits.csv").write_text(text)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "more.csv").write_text(text)
    with sqlite3.connect(tmp_path / "shop.db") as base:
        base.execute("create table customers (id integer primary key, mail text)")
        base.execute(
            "create table orders (id integer primary key, customer integer not null "
            "references customers (id) on delete cascade)"
        )
        base.executemany("insert into customers values (?, ?)", [(i, mail(i)) for i in range(12)])
        base.executemany("insert into orders values (?, ?)", [(i, i // 2) for i in range(24)])
    base.close()
    run(tmp_path, "init", "ws")
    run(tmp_path, "dataset", "add", "visits", "visits.csv", "--id", "visit", "--subject", EMAIL)
    run(tmp_path, "target", "add", "exports", "files", "--subject", EMAIL)
    run(tmp_path, "target", "add", "shop", "sqlite:///shop.db", "--subject", "customers.mail:email")
    return tmp_path


EMAIL = "mail:email"


def run(place: Path, *args: str, code: int = 0) -> str:
    more = () if args[0] == "init" else ("--workspace", "ws")
    done = erasable(*args, *more, folder=place)
    assert done.fault is None, done.fault
    assert done.exit_code == code, done.output
    return done.output


def test_what_is_kept_of_a_person_says_which_targets_were_not_seen(place: Path) -> None:
    (place / "files").rename(place / "moved")
    shown = run(place, "subject", "show", mail(3))
    assert "not looked at exports: " in " ".join(shown.split())
    assert "exports (0)" not in shown
    shown = run(place, "subject", "show", "nobody@example.org")
    assert "in visits.mail (email), and the target shop" in shown
    assert "not looked at: exports: " in shown
    (line,) = json.loads(run(place, "subject", "show", mail(3), "--json"))["unseen"]
    assert "is not there" in line
    (place / "moved").rename(place / "files")
    shown = run(place, "subject", "show", "nobody@example.org")
    assert "and the targets exports, shop" in shown
    assert "not looked at" not in shown


def test_status_and_report_show_targets_and_what_waits_for_them(place: Path) -> None:
    run(place, "request", mail(3), mail(4))
    assert "\ntargets       2\n" in run(place, "status")
    (place / "files").rename(place / "moved")
    run(place, "process")
    shown = run(place, "status")
    assert "requests      2 waits for targets\n" in shown
    assert "2; exports has 2 requests waiting: see `erasable target list`" in shown
    status = json.loads(run(place, "status", "--json"))
    assert status["targets"] == {"exports": 2, "shop": 0}
    assert sum(status["waits_for_targets"].values()) == 2
    listed = json.loads(run(place, "requests", "--state", "waits_for_targets", "--json"))
    assert len(listed["requests"]) == 2
    run(place, "report", "report.html")
    page = (place / "report.html").read_text()
    assert "<h2>Targets</h2>" in page
    assert 'data-of="waiting"><span class="tag warn">2</span>' in page
    assert "purged: 2" in page
    (place / "moved").rename(place / "files")
    run(place, "process")
    assert "requests      2 completed\n" in run(place, "status")
    assert not json.loads(run(place, "requests", "--state", "waits_for_targets", "--json"))[
        "requests"
    ]


def test_process_says_of_each_target_what_was_done_and_what_waits(place: Path) -> None:
    run(place, "request", mail(3), mail(4))
    (place / "files").rename(place / "moved")
    shown = run(place, "process")
    assert "2 requests are not carried out in the target 'exports', and stay open: " in shown
    assert "target shop: 2 records and 4 that refer to them, purged\n" in shown
    assert "2 requests carried out here, and not in all targets" in shown
    shown = run(place, "process")  # nothing new, but they still wait
    assert "2 requests carried out here, and not in all targets" in shown
    assert "nothing to do" not in shown
    told, _ = json.JSONDecoder().raw_decode(run(place, "process", "--json"))
    assert len(told["waiting"]) == 2
    error = run(place, "target", "remove", "exports", code=2)
    assert "2 requests are still to be carried out in 'exports'" in error
    (place / "moved").rename(place / "files")
    shown = run(place, "process")
    assert "completed 2 requests: 0 records erased here, 2 in targets in " in shown
    assert run(place, "process") == "nothing to do\n"


def test_one_request_is_not_told_as_several(place: Path) -> None:
    run(place, "request", mail(3))
    (place / "files").rename(place / "moved")
    assert "1 request is not carried out in the target 'exports', and stays open: " in run(
        place, "process"
    )
    error = run(place, "target", "remove", "exports", code=2)
    assert "1 request is still to be carried out in 'exports'" in error


def test_a_wrong_name_is_one_of_a_target(place: Path) -> None:
    error = run(place, "target", "add", "c 7", "files", "--subject", EMAIL, code=2)
    assert "'c 7' cannot be the name of a target; expected letters" in error


def test_a_database_that_does_not_answer_is_named_with_its_port(place: Path) -> None:
    pytest.importorskip("psycopg", reason="takes a driver of PostgreSQL")
    url = "postgresql+psycopg://ann:hidden@localhost:1/shop"
    error = run(place, "target", "add", "far", url, "--subject", "customers.mail:email", code=2)
    assert "'postgresql+psycopg://localhost:1/shop' could not be read or changed" in error
    assert "hidden" not in error


def test_a_program_is_found_from_every_folder(place: Path) -> None:
    (place / "store.py").write_text(
        "import json, sys\n"
        "if sys.argv[2] == 'list':\n"
        "    for i, line in enumerate(open(sys.argv[1])):\n"
        "        print(json.dumps({'key': i, 'fields': {'mail': line.strip()}}))\n"
    )
    (place / "mails.txt").write_text(f"{mail(1)}\n{mail(2)}\n")
    command = f"command:{sys.executable} store.py mails.txt"
    shown = run(place, "target", "add", "memory", command, "--subject", EMAIL)
    full = f"{place / 'store.py'} {place / 'mails.txt'}"
    assert full in shown
    (place / "else").mkdir()
    done = erasable("target", "check", "memory", "--workspace", "../ws", folder=place / "else")
    assert done.exit_code == 0, done.output


def test_words_of_a_program_that_name_no_file_stay(place: Path) -> None:
    assert adding.absolute("command:store --at a.b 'x y'") == "command:store --at a.b 'x y'"
