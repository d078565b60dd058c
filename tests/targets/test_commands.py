"""Programs of a user as targets, and classes that packages add."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from apart import killed
from corpus import MANY, ONE, SOME, N, data_of, email, text, there
from refusals import refused

from erasable.workspace.targets import commands
from erasable.workspace.targets.commands import CommandTarget
from erasable.workspace.targets.kinds import opened
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED
from people import Named, erased

SETTINGS = Settings((Subject("by.user", "email"),))

PROGRAM = """
import json, os, sys
from pathlib import Path
path, verb = Path(sys.argv[1]), sys.argv[-1]
log = path.with_name("log")
gone = set(map(json.loads, log.read_text().splitlines() if log.exists() else []))
def rows():
    return [json.loads(line) for line in path.read_text().splitlines()]
if verb == "list":
    for row in rows():
        if row["id"] not in gone:
            print(json.dumps({"key": row["id"], "fields": row}))
elif verb == "delete":
    with log.open("a") as file:
        file.writelines(line for line in sys.stdin)
elif verb == "compact":
    kept = [row for row in rows() if row["id"] not in gone]
    path.with_name("tmp").write_text("".join(json.dumps(row) + "\\n" for row in kept))
    os.replace(path.with_name("tmp"), path)
    log.write_text("")
    if "--elsewhere" in sys.argv:
        print("a copy is on a tape")
elif verb == "files":
    if "--unseen" in sys.argv:
        sys.exit(3)
    print(path, log, sep="\\n")
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Make a file of records, with a program that keeps them."""
    (tmp_path / "program.py").write_text(PROGRAM)
    rows = [{"id": f"k{at:06d}", "by": {"user": email(at)}, "text": text(at)} for at in range(N)]
    (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "log").write_text("")
    return tmp_path / "rows"


def place(store: Path, *options: str) -> str:
    """Return the place of the records."""
    return "command:" + shlex.join(
        [sys.executable, str(store.with_name("program.py")), str(store), *options]
    )


def left(store: Path, gone: list[int]) -> tuple[int, int]:
    """Count identities and texts that any file has."""
    parts = data_of([store, store.with_name("log")])
    return (
        there(parts, [email(at).encode() for at in gone]),
        there(parts, [text(at).encode() for at in gone]),
    )


@pytest.mark.parametrize("gone", [ONE, SOME, MANY], ids=["0.05%", "5%", "15%"])
def test_the_files_keep_nothing_of_those_who_left(store: Path, gone: list[int]) -> None:
    before = store.read_text().splitlines()
    assert left(store, gone) == (len(gone), len(gone))
    with opened(place(store), SETTINGS) as target:
        plan, verdict = erased(target, *map(email, gone))
    assert (verdict.word, verdict.reason) == (PURGED, None)
    assert sum(plan.changed.values()) == len(gone)
    assert left(store, gone) == (0, 0)
    stay = [at for at in range(N) if at not in set(gone)]
    assert store.read_text().splitlines() == [before[at] for at in stay]


@pytest.mark.parametrize(
    ("option", "reason"),
    [("--elsewhere", "a copy is on a tape"), ("--unseen", "its files cannot be seen from here")],
)
def test_the_program_says_what_it_does_not_reach(store: Path, option: str, reason: str) -> None:
    with CommandTarget(place(store, option), SETTINGS) as target:
        _, verdict = erased(target, email(7))
    assert (verdict.word, verdict.reason) == (NOT_PROVED, reason)


def test_a_program_that_does_not_compact_is_found_out(store: Path) -> None:
    program = store.with_name("program.py")
    program.write_text(program.read_text().replace('verb == "compact"', 'verb == "nothing"'))
    with CommandTarget(place(store), SETTINGS) as target:
        _, verdict = erased(target, email(7))
    assert verdict.word == NOT_PROVED
    assert "3 of 3 values of these records are still in" in str(verdict.reason)


KILLED = """
import subprocess
from test_commands import CommandTarget, Named, SETTINGS, SOME, email
subprocess.run = dying(subprocess.run)
target = CommandTarget(sys.argv[1], SETTINGS)
target.erase(target.find(Named(*map(email, SOME))))
target.compact()
"""


def test_a_killed_erasure_is_finished_by_the_next(store: Path) -> None:
    before = store.read_text().splitlines()
    assert all([killed(KILLED, place(store), n) for n in range(4)])
    with CommandTarget(place(store), SETTINGS) as target:
        target.erase(target.find(Named(*map(email, SOME))))
        assert target.compact() == []
    assert left(store, SOME) == (0, 0)
    assert store.read_text().splitlines() == [
        line for at, line in enumerate(before) if at not in set(SOME)
    ]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('geheim')", "list: a line is no record; expected JSON on each line"),
        ("print('{\"key\": 1}')", "list: a line is no record"),
        ("print('[1]')", "list: a line is no record"),
        ("import sys; sys.exit('geheim')", "list: the program ended with status 1; expected 0"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "list: the program printed what is no"),
        ("import time; time.sleep(60)", "list: the program did not end within 1 seconds"),
    ],
)
def test_programs_that_do_not_answer(
    program: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_TIMEOUT", 1 if "sleep" in program else 60)
    with refused(message):
        CommandTarget("command:" + shlex.join([sys.executable, "-c", program, "geheim"]), SETTINGS)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("command:", "names no program"),
        ("command:'a", "names no program, or has a quote that does not end"),
        ("command:/no/such/program --key=geheim", "could not be started .FileNotFoundError."),
        ("command:/tmp", "could not be started .PermissionError."),
    ],
)
def test_there_is_no_program(place: str, message: str) -> None:
    with refused(message):
        CommandTarget(place, SETTINGS)


def test_no_shell_reads_the_command(tmp_path: Path) -> None:
    with refused("expected"):
        CommandTarget(f"command:false; touch {tmp_path / 'made'}", SETTINGS)
    assert not list(tmp_path.iterdir())


def test_no_record_has_the_subject(store: Path) -> None:
    with refused(r"has the field 'owner'; .*'by.user'"):
        CommandTarget(place(store), Settings((Subject("owner", "email"),)))


def test_files_that_are_not_there(store: Path) -> None:
    with CommandTarget(place(store), SETTINGS) as target:
        store.with_name("log").unlink()
        with refused("there is no file 'log'; expected paths of files"):
            target.files()


# -- classes that packages add ---------------------------------------------------------------------

MODULE = """
from erasable.workspace.targets.protocol import Records, RecordTarget

class Shelf(RecordTarget):
    name = "shelf"
    books = {1: "ann@example.org", 2: "bob@example.org"}
    def __init__(self, place, settings):
        self.settings, self.shown = settings, place
    def batches(self):
        yield Records(list(self.books), {"user": list(self.books.values())})
    def delete(self, keys):
        for key in keys:
            self.books.pop(key, None)
    def compact(self):
        return []
    def files(self):
        return None

class Half(RecordTarget):
    def __init__(self, place, settings):
        pass

def shelf(place, settings):
    return Shelf(place, settings)
"""
BY_USER = Settings((Subject("user", "email"),))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution whose entry points name what is in its module."""
    info = tmp_path / "shelves-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelves\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[erasable.targets]\nshelf = shelves_of_test:Shelf\nhalf = shelves_of_test:Half\n"
        "function = shelves_of_test:shelf\nnothing = shelves_of_test:Nothing\n"
        "gone = no_such_module_of_test:Shelf\n"
    )
    (tmp_path / "shelves_of_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("installed")
def test_a_package_adds_a_target() -> None:
    with opened("shelf:hall", BY_USER) as target:
        plan, verdict = erased(target, "ann@example.org")
        assert plan.keys == {"shelf": [1]}
        assert verdict.reason == "its files cannot be seen from here"
        assert not target.find(Named("ann@example.org"))
        assert target.find(Named("bob@example.org")).keys == {"shelf": [2]}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            "half:x",
            "'half', is without batches, compact, delete, files; expected a subclass",
        ),
        ("function:x", "is a function; expected a subclass of Target that has all"),
        ("nothing:x", r"could not be imported \(AttributeError\); expected a subclass of Target"),
        ("gone:x", r"could not be imported \(ModuleNotFoundError\); expected a subclass"),
        ("shelves:x", "nothing opens 'shelves': places"),
    ],
)
def test_a_package_adds_what_is_no_target(place: str, message: str) -> None:
    with refused(message):
        opened(place, BY_USER)


def test_two_packages_add_the_same(installed: Path) -> None:
    info = installed / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[erasable.targets]\nshelf = others:Shelf\n")
    with refused("2 packages open 'shelf': 'others:Shelf', 'shelves_of"):
        opened("shelf:x", BY_USER)
