"""Containers that somebody crafted: each is one ArtifactError of one line, and costs little."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import erasable
from erasable import Records
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.errors import ArtifactError
from erasable.preprocessing import MinMaxScaler

STATE = {"sums": np.arange(4.0), "table": np.zeros((2, 3), dtype=np.int64)}
Members = list[tuple[str, bytes]]


def _file(members: Members, kind: int = zipfile.ZIP_STORED) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", kind) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return held.getvalue()


def _members(state: dict[str, Any] | None = None) -> Members:
    held = io.BytesIO()
    write_artifact(held, {"class": "a.B"}, STATE if state is None else state)
    with zipfile.ZipFile(held) as archive:
        return [(part.filename, archive.read(part)) for part in archive.infolist()]


def _with_tree(tree: Any) -> bytes:
    (name, header), *arrays = _members()
    whole = json.loads(header)
    whole["state"] = tree
    return _file([(name, json.dumps(whole).encode()), *arrays])


def _with_array(data: bytes) -> bytes:
    header, _, *rest = _members()
    return _file([header, ("arrays/000000.npy", data), *rest])


def _npy(header: str, body: bytes = b"") -> bytes:
    padded = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + body


def _said(shape: str, dtype: str = "<f8", turned: bool = False) -> str:
    return f"{{'descr': {dtype!r}, 'fortran_order': {turned}, 'shape': {shape}, }}"


def _nested(depth: int) -> bytes:
    (name, header), *arrays = _members()
    text = header.decode().replace('"state": {', f'"deep": {"[" * depth}{"]" * depth}, "state": {{')
    return _file([(name, text.encode()), *arrays])


def _overlapping() -> bytes:
    """Two names in the directory for one place in the file."""
    whole = bytearray(_file(_members()))
    first = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 4)
    second = whole.index(b"PK\x01\x02", first + 4)
    whole[second + 42 : second + 46] = whole[first + 42 : first + 46]
    return bytes(whole)


def _twice() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return _file([*_members(), _members()[1]])


ARRAY = {"__array__": 0}
CRAFTED: dict[str, Callable[[], bytes]] = {
    "compressed members": lambda: _file(_members(), zipfile.ZIP_DEFLATED),
    "a compressed bomb": lambda: _file(
        _members({"sums": np.zeros(2**25)}), zipfile.ZIP_DEFLATED
    ),
    "an array named again and again": lambda: _with_tree(
        {"sums": [ARRAY] * 300_000, "table": {"__array__": 1}}
    ),
    "an array that nobody names": lambda: _with_tree({"sums": ARRAY}),
    "an array that is not there": lambda: _with_tree({"sums": {"__array__": 7}}),
    "an array by a name": lambda: _with_tree({"sums": {"__array__": "0"}}),
    "an array by a list": lambda: _with_tree({"sums": {"__array__": [0]}}),
    "an array before the first": lambda: _with_tree({"sums": {"__array__": -1}}),
    "a huge shape": lambda: _with_array(_npy(_said("(1000000000000,)"))),
    "a shape that turns over": lambda: _with_array(_npy(_said(f"({2**32}, {2**32})"))),
    "a negative shape": lambda: _with_array(_npy(_said("(-2, -2)"), bytes(32))),
    "a wide type": lambda: _with_array(_npy(_said("(1,)", "<U1000000000"))),
    "a type of objects": lambda: _with_array(_npy(_said("(1,)", "|O"), bytes(8))),
    "fields": lambda: _with_array(_npy("{'descr': [('a', '<f8')], 'fortran_order': False, "
                                       "'shape': (1,), }", bytes(8))),
    "columns first": lambda: _with_array(_npy(_said("(2, 2)", turned=True), bytes(32))),
    "more than the shape": lambda: _with_array(_npy(_said("(1,)"), bytes(16))),
    "no array": lambda: _with_array(b"text"),
    "a huge shape of objects": lambda: _with_tree(
        {"sums": {"__objects__": [], "shape": [10**12]}}
    ),
    "a number beyond all": lambda: _nested(1).replace(b"[[]]", b"[9]").replace(
        b'"deep": []', b'"deep": 1e'),
    "deep nesting": lambda: _nested(200_000),
    "a member in another": _overlapping,
    "a member twice": _twice,
    "a state that is a list": lambda: _with_tree([1]),
    "a header that is a list": lambda: _file([("header.json", b"[]")]),
    "a header that is no text": lambda: _file([("header.json", b"\xff\xfe")]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CRAFTED)
def test_a_crafted_container_is_refused_in_one_line(kind: str) -> None:
    crafted = CRAFTED[kind]()
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError) as caught:
            read_artifact(io.BytesIO(crafted))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert most < 40 * len(crafted) + 2**22  # not what the file says, but what it is


def test_the_same_hands_make_a_file_that_is_read() -> None:
    """A control: what is refused above is refused for what was changed."""
    for file in (_file(_members()), _with_tree({"sums": ARRAY, "table": {"__array__": 1}})):
        header, state = read_artifact(io.BytesIO(file))
        assert header["class"] == "a.B"
        assert {name: value.tolist() for name, value in state.items()} == {
            name: value.tolist() for name, value in STATE.items()
        }
    body = np.arange(4.0).tobytes()
    _, state = read_artifact(io.BytesIO(_with_array(_npy(_said("(4,)"), body))))
    assert state["sums"].tolist() == [0.0, 1.0, 2.0, 3.0]
    state["sums"][0] = 7.0  # an array of its own, which can be written


@pytest.mark.parametrize(
    "given",
    [None, 3, "a", [], {}, [[]], {"a": 1}, 10**400, float("inf"), {"__array__": 0}],
    ids=lambda given: str(given)[:9],
)
def test_whatever_a_header_says_is_one_error(given: Any) -> None:
    held = io.BytesIO()
    records = Records(X := np.array([[1.0], [2.0]]))
    MinMaxScaler().fit(X).save(held)
    header, state = read_artifact(io.BytesIO(held.getvalue()))
    places = [(home, name) for home in (header, state, header["records"]) for name in home]
    for home, name in places:
        before, home[name] = home[name], given
        out = io.BytesIO()
        if repr(given) != repr(before):
            write_artifact(out, header, state)
            with pytest.raises(ArtifactError) as caught:
                erasable.load(io.BytesIO(out.getvalue()), records)
            assert "\n" not in str(caught.value)
        home[name] = before
