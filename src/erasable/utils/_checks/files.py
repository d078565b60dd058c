"""Checks of models that keep their records in files: deleted records are gone from the files."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from erasable.core.errors import ArtifactError
from erasable.utils._checks.compare import (
    assert_raises,
    assert_same,
    assert_same_outputs,
    demand,
    fit,
    law_check,
    model_check,
    outputs,
    trained,
)
from erasable.utils._checks.data_sets import MARKED, DataSet
from erasable.utils._checks.erasure import marks_of
from erasable.utils._checks.reach import shows, traces

_SHORT = 8  # characters of an id that may be found by chance


@model_check
def check_deletes_from_files(estimator: Any, data: DataSet, model: Any) -> None:
    """Save with the records, load, delete and save, again and again: the same as never seen."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path, records=True)
        saved = path.read_bytes()
        for count in range(len(data.doomed)):
            loaded = type(model).load(path, True)
            told = f"after loading a fit on {data.name!r} with its files, and {count} deletions"
            assert_same(loaded, model, told)
            assert_same_outputs(loaded, model, data, told)
            for each in (loaded, model):
                each.delete(data.doomed_ids[count : count + 1])
            assert_same(loaded, model, f"when deleting {told}")
            if count % 2:  # a model that is loaded twice, and saved from memory
                model.save(path, records=True)
            else:
                loaded.save(path, records=True)
        assert_same(type(model).load(path, True), fit(estimator, data.without(data.doomed_ids)), "")
        path.write_bytes(saved)
        call = "loading a file with the records of another version"
        assert_raises(ArtifactError, call, type(model).load, path, True)


@law_check
def check_nothing_left_in_files(estimator: Any, data_sets: Sequence[DataSet] = MARKED) -> None:
    """Delete from files: no trace of a record in them, or in the loaded objects."""
    for data, model in trained(estimator, data_sets):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            outputs(model, data)
            model.save(path, records=True)
            every = [marks_of(data, row) for row in data.doomed.tolist()]
            demand(
                any(files_showing(path, each) or not _is_unmistakable(each) for each in every),
                f"the search finds no record in files that hold it ({data.name})",
            )
            for count, row in enumerate(data.doomed.tolist()):
                loaded = type(model).load(path, True)
                loaded.delete(data.ids[row : row + 1])
                loaded.save(path, records=True)
                del loaded
                again = type(model).load(path, True)
                refit = fit(estimator, data.without(data.doomed_ids[: count + 1]))
                for gone in data.doomed[: count + 1].tolist():
                    marks = marks_of(data, gone)
                    found = files_showing(path, marks) | traces(again, marks)
                    if found:
                        outputs(refit, data)
                        refit.save(f"{path}-refit", records=True)
                        other = type(model).load(f"{path}-refit", True)
                        found -= files_showing(Path(f"{path}-refit"), marks) | traces(other, marks)
                    demand(
                        not found,
                        f"a deleted record of {data.name!r} is still to be found in: "
                        f"{', '.join(sorted(found)[:5])}",
                    )


def files_showing(path: Path, marks: Any) -> set[str]:
    """Name the files that show a record; small arrays are packed in one of them."""
    found: set[str] = set()
    if not _is_unmistakable(marks):
        return found
    for each in [path, *path.with_name(f"{path.name}.records").iterdir()]:
        data = each.read_bytes()
        parts = [data] if each.name != "now" else _parts(data)
        if any(shows(part, marks) for part in parts):
            found.add("the model's file" if each == path else f"the file {each.name!r} beside it")
    return found


def _is_unmistakable(marks: Any) -> bool:
    """Return whether an id is too long to occur by chance in a hash."""
    return len(str(marks.record)) > _SHORT


def _parts(described: bytes) -> Iterator[bytes]:
    """Yield a description and the arrays packed in it, without its own hash and file times.

    The digits of a time show a value by chance, in one of some thousands of files.
    """
    _, line, rest = described.split(b"\n", 2)
    head = json.loads(line)
    del head["signature"]
    yield json.dumps(head).encode() + rest
    yield from _packed(json.loads(rest[: head["packed"]]))


def _packed(told: Any) -> Iterator[bytes]:
    if isinstance(told, dict):
        told = list(told.values())
    if isinstance(told, list):
        if told[:1] in (["memory"], ["bytes"], ["scalar"]):
            yield base64.b64decode(told[-1])
        for each in told:
            yield from _packed(each)
