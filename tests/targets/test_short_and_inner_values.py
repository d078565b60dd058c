"""Short values are found next to the names of their fields; texts not as part of others' words."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.workspace.targets import residue
from erasable.workspace.targets.inner_texts import InnerSearch, Longer
from erasable.workspace.targets.marks import Marks

# -- short values ----------------------------------------------------------------------------------


def named(*values: int | str, field: str = "metadata.user") -> Marks:
    marks = Marks()
    assert all([marks.add(value, field=field) for value in values])
    assert marks.n_short == 0
    return marks


def n_left(path: Path, *values: int | str) -> int:
    return residue.search([path], named(*values), Marks()).n_left


Sizes = tuple[tuple[int, bytes, str], ...]
"""Of numbers: the first that is too large, what is written before it, and its form."""


def packed(
    record: dict[str, int | str],
    of_map: int,
    of_text: int,
    longest: int,
    of_byte: int,
    sizes: Sizes,
) -> bytes:
    """Write a record with sizes and types before its values."""

    def text(value: str) -> bytes:
        data = value.encode()
        short = len(data) <= longest
        return bytes([of_text + len(data)] if short else [of_byte, len(data)]) + data

    def number(value: int) -> bytes:
        _, head, form = next(each for each in sizes if value < each[0])
        return head + struct.pack(form, value)

    found = bytes([of_map + len(record)])
    for name, value in record.items():
        found += text(name) + (text(value) if isinstance(value, str) else number(value))
    return found


def cbor(record: dict[str, int | str]) -> bytes:
    """Write a record as RFC 8949 says."""
    sizes = (
        (24, b"", ">B"), (256, b"\x18", ">B"), (65_536, b"\x19", ">H"), (1 << 32, b"\x1a", ">I")
    )  # fmt: skip
    return packed(record, 0xA0, 0x60, 23, 0x78, sizes)


def message_pack(record: dict[str, int | str]) -> bytes:
    """Write a record as the specification of MessagePack says."""
    sizes = (
        (128, b"", ">B"), (256, b"\xcc", ">B"), (65_536, b"\xcd", ">H"), (1 << 32, b"\xce", ">I")
    )  # fmt: skip
    return packed(record, 0x80, 0xA0, 31, 0xD9, sizes)


@pytest.mark.parametrize(
    "write",
    [
        lambda each: json.dumps(each).encode(),
        lambda each: json.dumps(each, separators=(",", ":"), indent=1).encode(),
        cbor,
        message_pack,
        pickle.dumps,
    ],
    ids=["json", "indented", "cbor", "message pack", "pickle"],
)
def test_short_values_are_found_next_to_their_field(
    tmp_path: Path, write: Callable[[dict[str, int | str]], bytes]
) -> None:
    there: list[int | str] = [0, 7, 30, 127, 200, 300, 65_000, 70_000, "ab", "ann"]
    others: list[int | str] = [1, 8, 31, 128, 201, 301, 65_001, 70_001, "abc", "a"]
    path = tmp_path / "data"
    records = [write({"n": 8, "user": value, "page": 31}) for value in there]
    path.write_bytes(b"\0\1\2" + b"\xff\xfe".join(records))
    assert n_left(path, *there) == len(there)
    assert n_left(path, *others) == 0


def test_short_values_in_rows_that_name_the_field(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with closing(sqlite3.connect(path)) as store, store:
        store.execute("create table said (id integer, key text, value int, primary key (id, key))")
        store.execute("create table people (no integer primary key, user int, page int)")
        store.executemany(
            "insert into said values (?, ?, ?)", [(5, "user", 9), (6, "page", 7), (7, "user", 8)]
        )
        store.execute("insert into people values (3, 4, 2)")
    there, others = (4, 8, 9), (2, 3, 5, 6, 7)
    assert n_left(path, *there) == len(there)
    assert n_left(path, *others) == 0  # numbers of rows, and of other fields


def test_a_number_in_json_without_the_field_is_another(tmp_path: Path) -> None:
    path = tmp_path / "version.json"
    path.write_text('{"version": 5}')
    assert n_left(path, 5) == 0
    path.write_text('{"user": {"of": 5}}')
    assert n_left(path, 5) == 1


def test_the_control_of_short_values_is_their_own(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"\0" + struct.pack("<200q", *range(200)))  # a form that is not looked for
    found = residue.search([path], named(3), named(*range(10, 30)))
    assert found.reasons == ["the search finds 0 of 20 short values of others"]


@pytest.mark.parametrize("field", ["", "u", "id", "ü", "a" * 40])
def test_names_of_any_length_make_forms_that_can_be_looked_for(tmp_path: Path, field: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"\0" + json.dumps({field: 5}, ensure_ascii=False).encode() + b"\0")
    found = residue.search([path], named(5, field=field), named(6, field=field))
    assert (found.n_left, found.n_living) == (1, 0)


@pytest.mark.parametrize("text", ["日本", "éèà", "\udcff\udcfe", "日本 "])
def test_few_letters_of_many_bytes_are_looked_for(tmp_path: Path, text: str) -> None:
    marks = Marks()
    assert marks.add(text)
    assert min(map(len, marks.every())) >= 6
    path = tmp_path / "data"
    path.write_bytes(b"\0" + text.encode(errors="surrogatepass") + b"\0")
    assert residue.search([path], marks, Marks()).n_left == 1


def test_short_values_are_kept_with_a_plan() -> None:
    marks = named(7, "ab")
    assert Marks.from_json(json.loads(json.dumps(marks.to_json()))) == marks


# -- texts in others' words ------------------------------------------------------------------------

LETTERS = st.text("ab", min_size=6, max_size=8)


@given(
    inner=LETTERS,
    words=st.lists(st.tuples(st.text("ab.", max_size=3), st.text("ab.", max_size=3)), max_size=4),
    content=st.text("ab. ", max_size=80),
    where=st.integers(0, 80),
)
@settings(max_examples=examples(300))
def test_a_text_is_found_where_no_longer_one_is(
    inner: str, words: list[tuple[str, str]], content: str, where: int
) -> None:
    longer = [before + inner + after for before, after in words if before + after]
    content = content[:where] + " ".join([*longer, inner][: where % 6]) + content[where:]
    covered: set[int] = set()
    for word in longer:
        for match in re.finditer(f"(?={re.escape(word)})", content):
            for own in re.finditer(f"(?={inner})", word):
                covered.add(match.start() + own.start())
    alone = {match.start() for match in re.finditer(f"(?={inner})", content)} - covered
    search = InnerSearch({inner.encode(): [word.encode() for word in longer]})
    assert search.among(content.encode()) == ({inner.encode()} if alone else set())


@pytest.mark.parametrize(
    ("word", "is_longer"),
    [
        ("joann@x.org", True),
        ("jo.ann@x.org", True),
        ("mary-ANN@x.org", True),
        ("ann@x.org.uk", True),
        ("ann@x.organic", True),
        ("ann@x.org", False),
        ("ann@x.org;bob@x.org", False),
        ("bob@x.org, ann@x.org", False),
        ("<ann@x.org>", False),
        ("joann@x.org and ann@x.org", False),
        ("I write to ann@x.org.", False),
    ],
)
def test_a_mention_is_no_longer_word(word: str, is_longer: bool) -> None:
    longer = Longer(["ann@x.org", "someone@else.org"])
    longer.look_at([word, 17, "nobody"])
    assert longer.found == ({"ann@x.org": {word}} if is_longer else {})


def test_who_is_part_of_another_can_be_looked_for(tmp_path: Path) -> None:
    marks, living = Marks(), Marks()
    marks.add("ann@x.org")
    for i in range(20):
        living.add(f"joann@x.org.{i:02d}")
    path = tmp_path / "data"
    path.write_bytes(b"\0".join(f"joann@x.org.{i:02d}".encode() for i in range(20)))
    assert residue.search([path], marks, living).n_left == 1
    longer = Longer(marks.texts())
    longer.look_at([f"joann@x.org.{i:02d}" for i in range(20)])
    marks.longer = longer.found
    assert residue.search([path], marks, living).n_left == 0
    for left in (b"ann@x.org", b"jo ANN@x.org", "ann@x.org".encode("utf-16-le")):
        path.write_bytes(path.read_bytes() + b"\0" + left)
        assert residue.search([path], marks, living).n_left == 1
        path.write_bytes(path.read_bytes().removesuffix(b"\0" + left))
