"""Paths and files are refused on one line: what was given, what was expected, what to do."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import erasable
from core.telling import FRAME, Act, Case, X, assert_refuses
from erasable.core.errors import (
    ArtifactError,
    ArtifactFileError,
    ArtifactNotFoundError,
    ErasableError,
    InvalidInputError,
)
from erasable.preprocessing import MinMaxScaler


def load(path: Any, records: Any = None) -> Act:
    def act(model: Any, folder: Path) -> Any:
        return erasable.load(folder / path if isinstance(path, str) else path, records)

    return act


def save(path: Any) -> Act:
    return lambda model, folder: model.save(folder / path if isinstance(path, str) else path)


WRITTEN = "expected a file written by save()"
FILES = {
    "no file": Case(load("absent"), ArtifactNotFoundError, "absent' is not", WRITTEN, "check the"),
    "a folder": Case(load("."), ArtifactFileError, "is a folder", WRITTEN, "add the name"),
    "a file for a folder": Case(
        load("m/m"), ArtifactFileError, "cannot be read (Not a directory)", WRITTEN, "check the"
    ),
    "a number": Case(load(99), InvalidInputError, "path is a int", "expected a string", "pass the"),
    "nothing": Case(load(None), InvalidInputError, "path is a NoneType", "expected", "pass the"),
    "bytes": Case(load(b"m"), InvalidInputError, "path is a bytes", "expected", "pass the name"),
    "a null": Case(load("\0"), InvalidInputError, "path holds a null", "expected", "pass the name"),
    "one thing with it": Case(
        load("m", (X,)),
        InvalidInputError,
        "records are a tuple of 1;",
        "expected Records, or a tuple (X, ids)",
        "pass Records(X, ids=...)",
    ),
    "five things with it": Case(
        load("m", (X, [0], [0], [0], 0)), InvalidInputError, "a tuple of 5;", "expected", "pass"
    ),
    "a list with it": Case(
        load("m", [X, [0]]), InvalidInputError, "records are a list;", "expected", "pass Records"
    ),
    "other names": Case(
        load("m", (FRAME.iloc[:3, ::-1], [0, 1, 2])),
        ArtifactError,
        "another order of them",
        "expected 'age', 'bmi'",
        "pass the records",
    ),
    "save to a folder": Case(
        save("."), ArtifactFileError, "is a folder", "expected the name of a file", "add one"
    ),
    "save to no folder": Case(
        save("absent/m"), ArtifactNotFoundError, "cannot be wri", "expected a folder", "make it"
    ),
    "save under a file": Case(
        save("m/m"),
        ArtifactFileError,
        "cannot be written (Not a directory)",
        "expected a place for a file",
        "check the path",
    ),
    "save nowhere": Case(
        save(None), InvalidInputError, "path is a NoneType", "expected a string", "pass the name"
    ),
}


@pytest.mark.parametrize("case", FILES.values(), ids=FILES.keys())
def test_files_are_refused_on_one_line_and_nothing_changes(case: Case, tmp_path: Path) -> None:
    model = MinMaxScaler().fit(FRAME)
    model.delete([3])
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    case = case._replace(act=_with_short_paths(case.act))
    assert_refuses(model, tmp_path, case)
    assert (tmp_path / "m").read_bytes() == before


def _with_short_paths(act: Act) -> Act:
    """Let the folder be the current one, so that the message is as long as its own words."""

    def inside(model: Any, folder: Path) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            return act(model, Path())

    return inside


def test_errors_of_files_are_also_those_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        erasable.load(tmp_path / "absent")
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(OSError, match="is a folder") as refused:
        erasable.load(tmp_path)
    assert refused.value.errno == errno.EISDIR
    for error in (caught.value, refused.value):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)


@pytest.mark.parametrize("change", [lambda b: b + b"x", lambda b: b"x" + b, lambda b: b + b])
def test_bytes_around_a_model_are_noticed(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "m"
    MinMaxScaler().fit(X).save(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ArtifactError, match=r"is damaged; expected .*; take it from a backup"):
        erasable.load(path)


def test_a_name_as_long_as_names_may_be_can_be_saved(tmp_path: Path) -> None:
    path = tmp_path / ("m" * 255)
    MinMaxScaler().fit(X).save(path)
    assert [other.name for other in tmp_path.iterdir()] == [path.name]
    erasable.load(path)


def _below(kind: type[Exception]) -> Iterator[type[Exception]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


@pytest.mark.parametrize("kind", sorted(set(_below(ErasableError)), key=lambda each: each.__name__))
def test_errors_are_made_as_copies_of_them_are(kind: type[Exception]) -> None:
    """What copies errors between processes, as a cluster does, calls `__new__` of the class."""
    assert isinstance(kind.__new__(kind, "a message"), kind)
