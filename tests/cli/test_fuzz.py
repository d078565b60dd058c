"""A few hundred random command lines and damaged files; `tests/soak/fuzz.py` runs more."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.fuzzing import SECRET, Bench, command_lines
from cli.fuzzing_files import CASES, file_cases
from cli.running import Result
from effort import examples

CASES_EACH = 250


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("fuzz"))


@settings(max_examples=examples(CASES_EACH))
@given(data=st.data())
def test_command_lines(bench: Bench, data: st.DataObject) -> None:
    args, stdin = data.draw(command_lines(bench.requests))
    assert not bench.check(args, stdin)


@settings(max_examples=examples(CASES_EACH))
@given(data=st.data())
def test_files(bench: Bench, data: st.DataObject) -> None:
    assert not bench.check_file(*data.draw(file_cases(bench.template)))


def test_the_files_are_read_when_they_are_whole(bench: Bench) -> None:
    for name, lines in CASES.items():
        whole = (bench.template / name).read_bytes()
        for args in lines:
            assert not bench.check_file(name, whole, args)


def test_a_damaged_receipt_never_holds(bench: Bench) -> None:
    line = CASES["receipt.json"][0]
    whole = (bench.template / "receipt.json").read_bytes()
    for at in range(0, len(whole), 97):
        data = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        assert not bench.check_file("receipt.json", data, line)
        (bench.copy / "receipt.json").write_bytes(data)
        assert bench.run(line).exit_code == 1, at
    bench.restore()


# -- the checks find what they are for -------------------------------------------------------------


def test_it_sees_a_ledger_that_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, folder: Path, **__: object) -> Result:
        with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
            ledger.execute("update request set state = 'completed'")
            ledger.commit()
        return Result(2, "", "error: no\n")

    monkeypatch.setattr("cli.fuzzing.erasable", run)
    assert ["ledger changed" in each for each in bench.check(["status"])] == [True]


def test_requests_that_were_taken_up_and_wait_again_are_no_change(bench: Bench) -> None:
    before = bench.dump()
    result = bench.run(["process", "--memory", "3"])
    assert result.exit_code == 2
    assert "expected at most --memory 3" in result.stderr
    assert bench.dump() != before  # the log says that it was tried
    bench.restore()
    assert bench.check(["process", "--memory", "3"]) == []


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (Result(3, "", ""), "exit code 3"),
        (Result(99, "", "", ValueError("x")), "it raised"),
        (Result(2, "", "error: erasable has a fault (KeyError); a\n"), "a fault"),
        (Result(2, "", "Traceback (most recent call last):\nerror: x\n"), "a traceback"),
        (Result(2, "", "error: one\ntwo\n"), "not one line"),
        (Result(0, f"done for {SECRET}-1\n", ""), "printed an identity"),
        (Result(0, "done\n", ""), "no JSON object"),
        (Result(2, "{}\n", "error: x\n"), "output of a command that failed"),
        (Result(0, "{}\n", "error: x\n"), "another exit code"),
    ],
    ids=["code", "raised", "fault", "traceback", "lines", "identity", "json", "output", "error"],
)
def test_it_sees_what_is_wrong(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, result: Result, told: str
) -> None:
    monkeypatch.setattr("cli.fuzzing.erasable", lambda *_, **__: result)
    assert any(told in each for each in bench.check(["status", "--json"]))
