"""Every check passes what keeps the law and catches what breaks it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import types
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import SkipTestWarning

from effort import THOROUGH
from erasable.core.errors import InvalidInputError, TooFewRecordsError
from erasable.core.records import Records
from erasable.core.tape import Tape
from erasable.utils._checks.compare import differing
from erasable.utils._checks.data_sets import FAST, MARKED, suited
from erasable.utils._checks.reach import Marks, reachable, shows
from erasable.utils.estimator_checks import (
    LAW_CHECKS,
    LAW_DATA_SETS,
    check_erasable,
    parametrize_with_law_checks,
)
from law_cases import check_law
from utils import broken_arrivals, broken_life
from utils.broken import Drifting
from utils.controls import CONTROLS, Control
from utils.honest import ClassTotals, Totals

HONEST = [Totals(), Totals(random_state=7, scale=0.5), ClassTotals()]


@pytest.mark.thorough
@parametrize_with_law_checks(HONEST)
def test_the_honest_pass(estimator: Any, check: Any) -> None:
    check_law(estimator, check)


def _caught_by(estimator: Any, names: Iterable[str]) -> dict[str, str]:
    caught = {}
    for name in names:
        try:
            LAW_CHECKS[name](estimator, MARKED[:1] if name in ON_MARKED else FAST)
        except AssertionError as error:
            caught[name] = str(error)
    return caught


ON_MARKED = {"check_nothing_left", "check_erased_by_the_last", "check_nothing_left_in_files"}


@pytest.mark.thorough
@pytest.mark.parametrize("control", CONTROLS, ids=lambda c: f"{c.check}-{c.broken.__name__}")
def test_what_breaks_the_law_is_caught_by_its_check(control: Control) -> None:
    """And by no other, which takes all of them to tell: `make soak` does."""
    named = {control.check, *control.also}
    caught = _caught_by(control.broken(), LAW_CHECKS if THOROUGH else named)
    assert control.check in caught, f"only caught by {sorted(caught)}"
    assert control.anywhere or set(caught) == named
    assert caught[control.check].startswith(f"{control.check}: ")


def test_every_check_has_a_negative_control() -> None:
    assert {control.check for control in CONTROLS} == set(LAW_CHECKS)
    broken = [control.broken for control in CONTROLS]
    assert broken_life.Unroutable in broken
    assert broken_arrivals.Loner in broken


def test_every_check_is_listed_and_described() -> None:
    rooms = ("arrivals", "equality", "erasure", "files", "identity", "inputs", "lifetime")
    written = {
        name
        for room in rooms
        for name in vars(importlib.import_module(f"erasable.utils._checks.{room}"))
        if name.startswith("check_")
    }
    assert written == set(LAW_CHECKS)
    assert all(check.__doc__ for check in LAW_CHECKS.values())


# -- check_erasable and its parametrisation --------------------------------------------------------


def test_check_erasable_names_the_first_check_that_fails() -> None:
    with pytest.raises(AssertionError, match=r"^check_delete_equals_refit: state\(\)\['totals'\]"):
        check_erasable(Drifting(), fast=True)


@pytest.mark.parametrize("fast", [True, False])
def test_check_erasable_leaves_the_estimator_alone(fast: bool) -> None:
    estimator = Totals(scale=2.0)
    check_erasable(estimator, fast=fast)
    assert vars(estimator) == {"random_state": None, "scale": 2.0}


def test_check_erasable_refuses_another_promise() -> None:
    class Near(Totals):
        exactness = "approximate"

    with pytest.raises(InvalidInputError, match=r"Near declares exactness 'approximate'; .*;"):
        check_erasable(Near())


def test_a_missing_library_is_skipped_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without_polars(name: str, *rest: Any) -> Any:
        if name == "polars":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without_polars)
    with pytest.warns(SkipTestWarning, match="check_polars: polars is not installed"):
        check_erasable(Totals(), fast=True)


def test_the_parametrisation_has_readable_ids() -> None:
    cases = parametrize_with_law_checks([Totals(scale=0.5), ClassTotals()], fast=True).args[1]
    ids = [case.id for case in cases]
    assert len(set(ids)) == len(ids) == 2 * len(LAW_CHECKS)
    assert ids[0] == "Totals(scale=0.5)-check_delete_equals_refit"
    assert all(re.fullmatch(r"\S+-check_\w+", name) for name in ids)


def test_checks_do_not_vanish_when_python_optimises() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r});"
        "from utils.broken import Drifting;"
        "from erasable.utils.estimator_checks import check_erasable;"
        "check_erasable(Drifting(), fast=True)"
    )
    command = [sys.executable, "-O", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "AssertionError: check_delete_equals_refit" in done.stderr


def test_a_check_that_checked_nothing_fails() -> None:
    class Vast(Totals):
        def _minimum_records(self) -> int:
            return 10_000

    with pytest.raises(AssertionError, match="TooFewRecordsError on every data set"):
        LAW_CHECKS["check_batch_split"](Vast())
    with pytest.raises(TooFewRecordsError):
        Vast().fit(LAW_DATA_SETS[0].X)


# -- the data --------------------------------------------------------------------------------------


def test_the_data_sets_are_of_the_kinds_that_break_sums_and_ties() -> None:
    sets = {data.name: data for data in LAW_DATA_SETS}
    skewed = np.abs(sets["skewed"].X)
    assert skewed.max() / np.median(skewed) > 1e3
    assert np.ptp(sets["constant columns"].X[:, 0]) == 0
    assert len(np.unique(sets["duplicated rows"].X, axis=0)) < len(sets["duplicated rows"]) / 2
    assert sets["timestamps"].X.min() > 1e9
    assert sets["integers"].X.dtype == np.int64
    assert len(sets["tiny"]) < 10
    assert {data.ids.dtype.kind for data in LAW_DATA_SETS} == {"i", "O"}
    assert {data.groups is None for data in LAW_DATA_SETS} == {True, False}
    for data in LAW_DATA_SETS:
        assert len(set(data.ids.tolist())) == len(data)
        assert 0 < len(data.doomed) == len(set(data.doomed.tolist())) < len(data) / 2


def test_data_sets_suit_what_the_tags_ask_for() -> None:
    class Positive(ClassTotals):
        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.input_tags.positive_only = True
            return tags

    for plain, data in zip(LAW_DATA_SETS, suited(LAW_DATA_SETS, Positive()), strict=True):
        assert data.X.min() >= 0
        assert set(data.y.tolist()) == {0, 1, 2}
        assert plain.y.dtype == np.float64


# -- telling values apart --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([0.0]), np.array([-0.0])),
        (np.array([1.0]), np.array([1.0], dtype=np.float32)),
        (np.array([1]), np.array([1.0])),
        (np.array([[1.0]]), np.array([1.0])),
        (np.array([1.0, 2.0]), np.array([1.0, np.nextafter(2.0, 3.0)])),
        (np.array(["a", 1], dtype=object), np.array(["a", 1.0], dtype=object)),
        (np.array([1.0]), 1.0),
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (None, 0),
        ([1, 2], [1, 2, 3]),
        ([1, 2], (1, 2)),
        ([[0.0]], [[-0.0]]),
    ],
)
def test_bits_types_and_shapes_tell_values_apart(left: Any, right: Any) -> None:
    assert differing(left, right)
    assert differing(right, left)
    assert differing(left, left) is None


def test_nan_equals_itself() -> None:
    assert differing(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) is None
    assert differing(float("nan"), float("nan")) is None


# -- what is left of a record ----------------------------------------------------------------------

HIDING_PLACES = {
    "an array": lambda row, record, key: row,
    "a view": lambda row, record, key: np.stack([row, row])[0, :0],
    "float32": lambda row, record, key: row.astype(np.float32),
    "a grid": lambda row, record, key: (row * 2.0).astype(np.int64),
    "a scaled number": lambda row, record, key: float(row[0]) * 2.0**-20,
    "an object array": lambda row, record, key: np.array([[None, float(row[1])]], dtype=object),
    "a structured array": lambda row, record, key: np.array([(1, row[0])], dtype="i4,f8"),
    "a big-endian buffer": lambda row, record, key: row.astype(">f8").tobytes(),
    "a byte array": lambda row, record, key: np.frombuffer(row.tobytes(), dtype=np.uint8).copy(),
    "text": lambda row, record, key: f"largest so far: {int(row[0])}",
    "the id": lambda row, record, key: record,
    "a set of ids": lambda row, record, key: {1, record},
    "the key of a dict": lambda row, record, key: {record: None},
    "the id as text": lambda row, record, key: f"deleted {record}",
    "ids": lambda row, record, key: np.array([3, record]),
    "the record's key": lambda row, record, key: np.array([key], dtype=np.uint64),
    "a queue": lambda row, record, key: deque([None, row]),
    "a closure": lambda row, record, key: lambda: row,
    "a default": lambda row, record, key: eval("lambda x=row: x", {"row": row}),
    "a method": lambda row, record, key: deque([row]).pop,
    "a namespace": lambda row, record, key: types.SimpleNamespace(deep=[{"er": row}]),
    "records": lambda row, record, key: Records(row[None, :]),
    "an iterator": lambda row, record, key: iter([row]),
}


class Hiding(Totals):
    """Puts the record with the given id away when it is fitted."""

    def __init__(self, random_state: Any = None, scale: float = 1.0, place: str = "") -> None:
        super().__init__(random_state, scale)
        self.place = place

    def _fit_rows(self) -> None:
        super()._fit_rows()
        doomed = MARKED[0].ids[MARKED[0].doomed[0]]
        if "_hidden" not in self.__dict__ and doomed in self._held.ids:
            row = self._held.records.matrix[self._held.select([int(doomed)])[0]].copy()
            key = self._tape.record_keys(np.array([doomed]))[0]
            self._hidden = HIDING_PLACES[self.place](row, int(doomed), key)


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_a_record_is_found_wherever_it_is_hidden(place: str) -> None:
    with pytest.raises(AssertionError, match=r"a deleted record .* found in: .*_hidden"):
        LAW_CHECKS["check_nothing_left"](Hiding(place=place), MARKED[:1])


class InPickle(Totals):
    """Takes what it deleted along in a pickle."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"trail": getattr(self, "trail", None)}

    def _update(self, delta: Any) -> Any:
        rows = delta.leaving
        self.trail = self._held.records.ids[rows].tolist()
        return super()._update(delta)


class InFile(Totals):
    """Writes what it deleted to a file."""

    def _update(self, delta: Any) -> Any:
        rows = delta.leaving
        self._trail = f"{int(self._held.records.matrix[rows[0], 0])} is gone"[::-1]
        return super()._update(delta)

    def save(self, path: Any) -> None:
        super().save(path)
        with open(path, "ab") as file:
            file.write(getattr(self, "_trail", "")[::-1].encode())


class InState(Totals):
    """Tells in its state what it deleted."""

    def _update(self, delta: Any) -> Any:
        rows = delta.leaving
        outcome = super()._update(delta)
        self.drawn_ = self._held.records.matrix[rows[0]].copy()
        return outcome


class AsRestored(Totals):
    """Keeps the state that it came back with."""

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._first = self._held.records.matrix.copy()


@pytest.mark.parametrize(
    ("estimator", "place"),
    [
        (AsRestored(), "model._first"),
        (InPickle(), "unpickled"),
        (InFile(), r"the bytes of save\(\)"),
        (InState(), r"state\(\)"),
    ],
)
def test_a_record_is_found_in_every_form_of_a_model(estimator: Any, place: str) -> None:
    with pytest.raises(AssertionError, match=f"found in: .*{place}"):
        LAW_CHECKS["check_nothing_left"](estimator, MARKED[:1])


def test_values_in_values_are_told_apart_by_name() -> None:
    one = {"steps": [{"missing": float("nan"), "n": 1}]}
    assert differing(one, {"steps": [{"missing": float("nan"), "n": 1}]}) is None
    other = {"steps": [{"missing": float("nan"), "n": 2}]}
    assert differing(one, other) == "at 'steps': at 0: at 'n': 1 against 2"
    assert "'n'" in str(differing(one["steps"], [{"missing": float("nan")}]))


def test_what_is_not_the_record_is_not_found() -> None:
    marks = Marks(2**61 + 12345, (33_554_393.0,), keys=(2**63 + 99,))
    others = [33_554_391.0, 2**61 + 12344, 1, 0.0, np.nan, np.inf, "text", b"bytes", None, True]
    arrays = [np.array(others[:2]), np.array([], dtype=np.float32), np.array([2**63 + 98])]
    assert [thing for thing in [*others, *arrays] if shows(thing, marks)] == []
    strings = Marks("a" * 30, ())
    assert shows(np.array(["x", "a" * 30]), strings)
    assert not shows(np.array(["x", "a" * 29]), strings)


def test_the_walk_ends_and_tells_the_way() -> None:
    root: dict[str, Any] = {"a": [1.5, {"b": Tape}]}
    root["round"] = root
    paths = {path: thing for path, thing in reachable(root)}
    assert paths["['a'][0]"] == 1.5
    assert paths["['a'][1]['b']"] is Tape
    assert len(paths) < 20
