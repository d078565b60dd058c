"""One content in any files, in any order: one set of types, one model, one digest."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from drawn_files import (
    FORMS,
    KINDS,
    NOT_FIRST,
    Form,
    Row,
    Written,
    drawn_names,
    drawn_row,
    kind_of,
    write,
)

from effort import SEED
from erasable.core.errors import DialectWarning, ErasableError, SourceError
from erasable.workspace import Workspace
from erasable.workspace.data import column_types, delimited, json_lines, pulling
from erasable.workspace.data.catalogue import find, read_version
from erasable.workspace.data.dialects import UNSAID, Dialect
from erasable.workspace.models.training import from_bytes
from erasable.workspace.models.using import open_model

N = 300
MANY = 2000  # in a soak
TEXTS = "preprocessing.OneHotEncoder,naive_bayes.BernoulliNB"


class Life:
    """A data set, what it should hold, and how it came to that."""

    def __init__(self, workspace: Workspace, folder: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.workspace, self.folder, self.name = workspace, folder, f"d{seed}"
        self.first = self.rng.choice(sorted(FORMS))
        kinds = set(KINDS) - set(NOT_FIRST.get(self.first.replace("packed", "lines"), ()))
        self.names = drawn_names(self.rng, kinds)
        self.rows: dict[int, Row] = {}
        self.kept = Form("")
        self.done: list[str] = []

    def more(self, *, first: bool = False) -> list[Row]:
        """Draw records that are not there yet."""
        start = len(self.rows)
        rows = [
            drawn_row(self.rng, start + n, self.names, first=first and n == 0)
            for n in range(self.rng.randint(2, 5))
        ]
        self.rows |= {row["id"]: row for row in rows}
        return rows

    def dialect(self, form: str, written: Written) -> dict[str, str]:
        """Return what has to be said of a file, or may be."""
        said, kept, kind = {}, self.kept, FORMS[form]
        if not kind.delimiter:
            return {}
        if kind.encoding != "utf-16" and kind.encoding != (kept.encoding or "utf-8"):
            said["encoding"] = kind.encoding
        if kind.decimal != (kept.decimal or ".") and not written.shows_decimal:
            said["decimal"] = kind.decimal
        for name in ("delimiter", "decimal"):  # it shows, or is as it was
            if self.rng.random() < 0.3:
                said[name] = getattr(kind, name)
        return said

    def put(self, form: str, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
        """Write records; return the source, and what is to be said of it."""
        self.done.append(f"{form} of {len(rows)}")
        written = write(self.folder, self.rng, form, rows)
        return written.source, self.dialect(form, written)

    def begin(self) -> None:
        """Add the data set, and know what it keeps of its dialect."""
        source, said = self.put(self.first, self.more(first=True))
        self.workspace.add_dataset(self.name, source, id_column="id", subjects=["who"], **said)
        form = FORMS[self.first]
        if form.delimiter:
            shown = "decimal" in said or any(name.startswith("number") for name in self.names)
            encoding = "utf-8" if form.encoding == "utf-16" else form.encoding
            self.kept = Form("", form.delimiter, form.decimal if shown else ".", encoding)

    def form(self) -> str:
        """Draw how a later file is written: often as the first one was."""
        return self.first if self.rng.random() < 0.3 else self.rng.choice(sorted(FORMS))

    def step(self) -> None:
        """Append new records, or sync with all, of which some have changed."""
        form = self.form()
        if self.rng.random() < 0.7:
            source, said = self.put(form, self.more())
            self.workspace.append(self.name, source, **said)
            return
        for number in self.rng.sample(sorted(self.rows), 2):
            new = drawn_row(self.rng, number, self.names)
            self.rows[number] |= {name: new[name] for name in self.names if name != "y"}
        self.more()
        source, said = self.put(form, list(self.rows.values()))
        self.workspace.sync(self.name, source, **said)

    def correct(self) -> None:
        """Correct some columns of two records; `process` is still to be run."""
        name = self.rng.choice([each for each in self.names if each != "y"])
        rows = []
        for number in self.rng.sample(sorted(self.rows), 2):
            old = self.rows[number][name]
            drawn = (kind_of(name).draw(self.rng) for _ in range(99))
            self.rows[number][name] = next((each for each in drawn if each != old), old)
            rows.append({"id": number, name: self.rows[number][name]})
        source, said = self.put(self.form(), rows)
        self.workspace.correct(self.name, source, **said)

    @property
    def text_ids(self) -> bool:
        """Whether the first file gave ids as text."""
        return bool(FORMS[self.first].delimiter)

    def check(self) -> None:
        """Hold the data set against what was drawn."""
        with self.workspace.context.ledger.reading() as connection:
            known = find(connection, self.name)
            found = read_version(self.workspace.context, connection, known.id)
        types = {name: str(kind_of(name).type) for name in self.names}
        own = {"id": "string" if self.text_ids else "int64", "who": "string"}
        assert dict(known.columns) == types | own, self.done
        rows = {int(row.pop("id")): row for row in found.drop_columns(["who"]).to_pylist()}
        expected = {n: {name: row[name] for name in self.names} for n, row in self.rows.items()}
        assert rows == expected, self.done

    def fitted(self, dataset: str) -> str:
        """Fit a model to a data set, and return its name."""
        texts = [name for name in sorted(self.names) if kind_of(name).type == pa.string()]
        name = f"m{len(self.workspace.models())}"
        self.workspace.fit(
            name, TEXTS, datasets=[dataset], features=texts, target="y",
            params={"onehotencoder__handle_unknown": "ignore"},
        )  # fmt: skip
        return name

    def check_model(self) -> None:
        """Hold a model against that of the same records in one file, and their predictions."""
        as_first = str if self.text_ids else int
        rows = [{**row, "id": as_first(row["id"])} for row in self.rows.values()]
        whole = write(self.folder, self.rng, "parquet", rows).source
        self.workspace.add_dataset(f"{self.name}w", whole, id_column="id", subjects=["who"])
        names = [self.fitted(self.name), self.fitted(f"{self.name}w")]
        made = [open_model(self.workspace.context, name)[2] for name in names]
        one, other = (from_bytes(data).digest() for data in made)
        assert one == other, self.done
        rows = [drawn_row(self.rng, 10_000 + n, self.names) for n in range(4)]
        given = [self.put(form, rows) for form in ("parquet", self.rng.choice(sorted(FORMS)))]
        found = [
            self.workspace.predict(name, source, **said)
            for name, (source, said) in zip(names[::-1], given, strict=True)
        ]
        answers = [
            dict(zip(map(str, each["id"].to_pylist()), each["prediction"].to_pylist(), strict=True))
            for each in found
        ]
        assert answers[0] == answers[1], self.done


def live(
    workspace: Workspace, folder: Path, seeds: Sequence[int], steps: Sequence[int] = (0, 0, 1)
) -> None:
    """Draw a data set for each seed, lead it through its life, and check it."""
    lives = [Life(workspace, folder, seed) for seed in seeds]
    for each in lives:
        each.begin()
        for _ in range(each.rng.choice(steps)):
            each.step()
    corrected = lives[::10]
    for each in corrected:
        each.correct()
    if corrected:
        workspace.process()
    for each in lives:
        each.check()
    for each in lives[::20]:
        each.check_model()


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DialectWarning)
        yield


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("start", range(0, N, 20))
def test_a_data_set_does_not_depend_on_its_files(
    workspace: Workspace, tmp_path: Path, start: int
) -> None:
    with quiet():
        live(workspace, tmp_path, range(start, start + 20))


@pytest.mark.soak
@pytest.mark.parametrize("start", range(0, MANY, 20))
def test_many_data_sets_do_not_depend_on_their_files(
    workspace: Workspace, tmp_path: Path, start: int
) -> None:
    with quiet():
        live(workspace, tmp_path, range(SEED * MANY + start, SEED * MANY + start + 20), (1, 2, 3))


# -- what does not parse ---------------------------------------------------------------------------


def spoiled(life: Life, form: str) -> tuple[str, dict[str, str], str]:
    """Write records with one value that its column cannot hold; return what is to be told."""
    names = [name for name in life.names if kind_of(name).wrong and name != "y"]
    name, rows = life.rng.choice(sorted(names)), life.more()
    kind = kind_of(name)
    at = life.rng.randrange(len(rows))
    fits = kind.texts(kind.first)[0]
    for row in rows:
        row[name] = fits.replace(".", FORMS[form].decimal)
    rows[at][name] = kind.wrong
    written = write(life.folder, life.rng, form, rows, as_text=name)
    row = at + (2 if FORMS[form].delimiter else 1)
    told = f"column {name!r} holds {kind.wrong!r} in row {row}; expected {kind.told}"
    said = life.dialect(form, written)
    if FORMS[form].delimiter:
        said["decimal"] = FORMS[form].decimal  # the column that would show it is text
    return written.source, said, told


@pytest.mark.parametrize("form", FORMS)
def test_a_value_that_does_not_parse_is_refused(
    workspace: Workspace, tmp_path: Path, form: str
) -> None:
    with quiet():
        lives = [Life(workspace, tmp_path, seed) for seed in range(500, 508)]
        for each in lives:
            each.names = [*each.names, "whole9"]
            each.begin()
            before = dict(each.rows)
            source, said, told = spoiled(each, form)
            with pytest.raises(SourceError) as refused:
                workspace.append(each.name, source, **said)
            assert told in str(refused.value)
            each.rows = before
            each.check()


# -- controls --------------------------------------------------------------------------------------


def typed_by_itself(patch: pytest.MonkeyPatch) -> None:
    """Each file has types of its own, as in earlier versions."""
    patch.setattr(pulling, "ColumnTypes", SimpleNamespace(of=lambda known: None))


def without_what_is_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dialect, "kept", classmethod(lambda cls, source: UNSAID))


def points_alone(patch: pytest.MonkeyPatch) -> None:
    """Whatever the decimal mark is, it is read as a point."""
    parse = column_types.parse_cells
    patch.setattr(delimited, "parse_cells", lambda texts, kind, decimal: parse(texts, kind))


def commas_anywhere(patch: pytest.MonkeyPatch) -> None:
    """A number may have either mark, and both are taken out."""
    parse = column_types.parse_cells

    def either(texts: Any, kind: Any, decimal: str = ".", **rest: Any) -> Any:
        return parse(pa.array([t and t.replace(",", "") for t in texts.to_pylist()]), kind, **rest)

    patch.setattr(column_types, "parse_cells", either)


def rounded(patch: pytest.MonkeyPatch) -> None:
    """Whole numbers of JSON pass through floats."""
    lossy = json.JSONDecoder(parse_int=lambda text: int(float(text)))
    patch.setattr(json_lines, "_DECODER", lossy)


def first_batch_alone(patch: pytest.MonkeyPatch) -> None:
    """The types of a text file are those of its beginning."""
    fitting = delimited.fitting
    patch.setattr(
        delimited, "fitting", lambda rules, cells, decimal: fitting(rules, cells[:1], decimal)
    )


@pytest.mark.parametrize(
    "fault",
    [
        typed_by_itself, without_what_is_kept, points_alone, commas_anywhere, rounded,
        first_batch_alone,
    ],
)  # fmt: skip
def test_a_reader_with_a_fault_is_found(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[..., None],
) -> None:
    def life() -> None:
        for seed in range(700, 740):
            each = Life(workspace, tmp_path, seed)
            each.begin()
            each.step()
            each.check()

    fault(monkeypatch)
    with quiet(), pytest.raises((AssertionError, ErasableError, pa.ArrowException)):
        life()
