"""The worked examples run on the real data, find equal digests, and fail where they differ."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from erasable.core.errors import InvalidDataError
from erasable.core.estimator import Erasable
from erasable.selection import Exchangeable, SubsetSelector

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NAMES = (
    "acquire_data",
    "departures_that_break_greedy",
    "digits_leave",
    "greedy_falls_short",
    "heart_disease",
    "patients_withdraw",
    "raters_leave",
    "retrieval",
    "spam_filter",
    "sqlite_storage",
    "users_with_many_records",
    "walkers_leave",
)

OWN_DATA = {
    "acquire_data",
    "departures_that_break_greedy",
    "digits_leave",
    "greedy_falls_short",
    "patients_withdraw",
    "retrieval",
    "sqlite_storage",
}


def example(name: str) -> ModuleType:
    """Import an example, set to measure times once."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.REPEATS = 1
    return module


@pytest.fixture
def real_data(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERASABLE_DATA", str(data_dir))


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*NAMES, "demo"}


def test_patients_withdraw(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("patients_withdraw")
    assert module.main() == 0
    shown = capsys.readouterr().out
    for patient in module.WITHDRAWN:
        assert f"{patient}  equal" in shown
    assert "DIFFERENT" not in shown


def test_records_are_learned_from_sqlite(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module = example("sqlite_storage")
    assert module.main() == 0
    shown = capsys.readouterr().out
    assert shown.count("as in memory: True") == 3
    assert "2497 patients are left" in shown
    path, rng = tmp_path / "clinic.db", np.random.default_rng(1)
    X, y = rng.normal(size=(1200, 2)), rng.integers(0, 2, 1200)
    module.fill(path, X, y)
    fitted = module.GaussianNB().fit(module.records_of(path, "patient", ids="id", target="ill"))
    before = fitted.digest()
    names = {"age": [1.5], "pressure": [2.5]}  # a storage engine takes additions as it is
    fitted.add(pd.DataFrame(names), [1], ids=[5000], digest=False)
    fitted.delete([5000], digest=False)
    assert fitted.digest() == before
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM patient WHERE id = 7")
        database.commit()
    with pytest.raises(InvalidDataError, match="has 999 of 1000 rows"):
        fitted.delete([7])
    assert fitted.digest() == before
    read = module.SQLiteRows.read  # a negative control: features that come in another order
    module.SQLiteRows.read = lambda self, columns: read(self, columns)[
        :: -1 if "age" in columns else 1
    ]
    assert module.main() == 1


def test_data_are_acquired(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("acquire_data")
    module.N_SIMULATIONS = 20
    assert module.main() == 0
    shown = capsys.readouterr().out
    rows = re.findall(r"^  (\w+) +(\d+) +(\d+) +(0\.\d+) +(0\.\d+)$", shown, re.MULTILINE)
    assert [row[0] for row in rows] == ["anticipating", "conventional", "random"]
    (now, after, _, ours), (whole, lost, _, theirs), _ = [list(map(float, r[1:])) for r in rows]
    assert after > lost
    assert now < whole
    assert ours > theirs
    assert "yes, by digest, every time" in shown
    module.SubsetSelector = lambda k, staying=0.5: SubsetSelector(k=k)  # anticipates nothing
    module.N_SIMULATIONS = 1
    assert module.main() == 1


def test_departures_break_greedy(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("departures_that_break_greedy")
    assert module.main() == 0
    shown = capsys.readouterr().out
    rows = re.findall(r"  (.*?) +(yes|NO) +(yes|NO) +(yes|NO)$", shown, re.MULTILINE)
    assert [row[1:] for row in rows[:2]] == [("NO", "NO", "yes"), ("NO", "yes", "NO")]
    assert [row[1:] for row in rows[2:]] == [("yes",) * 3] * len(module.MODELS)
    assert "two records are worth 2.2, all three 1.4." in shown
    assert "adds 0.1 to none, 1.0 to record 1." in shown
    crowd = module.crowd
    module.crowd = lambda chosen, stay: float(chosen == stay)  # nobody leaves: nothing breaks
    assert module.main() == 1
    module.crowd, module.law_of = crowd, lambda model: crowd
    assert module.main() == 1


def test_a_departure_is_not_expected_as_it_should_be() -> None:
    module = example("departures_that_break_greedy")
    expected_utility = module.expected_utility
    module.expected_utility = lambda *given, staying, utility: expected_utility(
        *given, staying=0.31, utility=utility
    )
    assert module.main() == 1


def test_greedy_falls_short(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("greedy_falls_short")
    assert module.main() == 0
    shown = capsys.readouterr().out
    assert "for s from 0.586 to 0.667," in shown
    assert "for r from 0.250 to 0.333." in shown
    short = re.findall(r"^  (\w = [\d.]+) .*falls short$", shown, re.MULTILINE)
    assert short == ["s = 0.6", "s = 0.65", "r = 0.26", "r = 0.32"]  # not 0.575, as printed
    module.SubsetSelector = lambda utility, k, staying: SubsetSelector(utility, k=k)
    assert module.main() == 1


def test_other_thresholds_and_choices_are_noticed() -> None:
    module = example("greedy_falls_short")
    module.V = 0.4  # in the formulas; the similarities stay as they are
    assert module.main() == 1
    module = example("greedy_falls_short")
    module.Exchangeable = lambda sizes: Exchangeable(sizes[::-1])
    assert module.main() == 1


@pytest.mark.usefixtures("real_data")
def test_a_patient_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("heart_disease").main() == 0
    shown = capsys.readouterr().out
    assert "1025 rows, of which 302 are distinct" in shown
    rows, patients = map(float, re.findall(r"at a time +(\d\.\d+)", shown))
    assert rows > patients + 0.01  # what copies teach of each other
    before, one, left, never = map(float, re.findall(r"^  (0\.\d+)  ", shown, re.MULTILINE))
    assert left == never
    assert abs(before - one) < abs(before - never) / 4
    assert "after one row is deleted  no" in shown
    assert re.search(r"after \d more are deleted yes, by digest", shown)


@pytest.mark.usefixtures("real_data")
def test_a_sender_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("spam_filter").main() == 0
    shown = capsys.readouterr().out
    assert "The collection names no senders" in shown
    assert re.search(r"words that nobody else used +[1-9]", shown)
    assert re.search(r"no other word [1-9]\d*, still in the model: 0\n", shown)
    assert min(map(float, re.findall(r"(0\.\d+) (?:before|after)", shown))) > 0.9
    assert "yes, by digest" in shown


@pytest.mark.usefixtures("real_data")
def test_users_leave(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("users_with_many_records").main() == 0
    shown = capsys.readouterr().out
    assert shown.count("yes, by digest") == 2
    for after, never in re.findall(r"([\d.]+) after, ([\d.]+) by a refit", shown):
        assert after == never


@pytest.mark.usefixtures("real_data")
def test_raters_leave(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("raters_leave").main() == 0
    shown = capsys.readouterr().out
    (ours, mean, after) = map(float, re.findall(r"(?:in stars|rating) +(0\.\d+)", shown))
    assert max(ours, after) < mean
    leaving = re.findall(r"leaves with (\d+) ratings, all in 1 shard", shown)
    assert leaving == ["2698", "20"]
    for read, left in re.findall(r"read again +(\d+) of (\d+)", shown):
        assert int(read) < int(left) / 4
    assert "predictions of a refit     equal" in shown
    assert "yes, by digest" in shown


@pytest.mark.usefixtures("real_data")
def test_a_walker_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("walkers_leave").main() == 0
    shown = capsys.readouterr().out
    assert min(map(float, re.findall(r"right, .* (0\.\d+)\n", shown))) > 0.6
    assert "shards that hold them      1; without groups it would be 8" in shown
    assert "shards that learned again  1" in shown
    assert "yes, by digest" in shown


def test_a_writer_of_digits_leaves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    monkeypatch.syspath_prepend(EXAMPLES)
    module = example("digits_leave")
    assert module.main() == 0
    shown = capsys.readouterr().out
    assert min(map(float, re.findall(r"right.* (\d\.\d+)\n", shown))) > 0.95
    assert "yes, by digest" in shown
    monkeypatch.setattr(Erasable, "digest", lambda self: f"fake:{id(self)}")
    assert module.main() == 1


def test_the_example_of_a_network_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match="needs torch, which is not installed; run `pip install"):
        example("digits_leave")


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    "name", ["acquire_data", "spam_filter", "users_with_many_records", "walkers_leave"]
)
def test_an_example_fails_when_digests_differ(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = example(name)
    monkeypatch.setattr(Erasable, "digest", lambda self: f"fake:{id(self)}")
    assert module.main() == 1


@pytest.mark.parametrize("name", sorted({*NAMES} - OWN_DATA))
def test_an_example_says_where_it_looks_for_data(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ERASABLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit, match=r"no data at .*nowhere; set ERASABLE_DATA"):
        example(name).main()
