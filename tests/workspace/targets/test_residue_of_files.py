"""The search of a file for bytes finds what `in` finds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.workspace.targets import decoding, residue
from erasable.workspace.targets.marks import Marks

LETTERS = st.binary(min_size=6, max_size=9).map(lambda some: bytes(65 + each % 2 for each in some))


@given(
    content=st.binary(max_size=300).map(lambda some: bytes(65 + each % 2 for each in some)),
    marks=st.lists(LETTERS, max_size=4),
    at_once=st.integers(1, 40),
)
@settings(max_examples=examples(150))
def test_marks_are_those_that_the_bytes_contain(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, marks: list[bytes], at_once: int
) -> None:
    path = tmp_path_factory.mktemp("file") / "data"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decoding, "AT_ONCE", at_once)
        assert residue.marks_in(path, marks) == {mark for mark in marks if mark in content}


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_digits_are_found_beside_other_digits(
    tmp_path: Path, compression: str, use_dictionary: bool
) -> None:
    path = tmp_path / "a.parquet"
    numbers = [f"{each:09}" for each in range(1_000_000, 1_000_100)]
    pq.write_table(
        pa.table({"who": numbers}), path, compression=compression, use_dictionary=use_dictionary
    )
    gone, stay = Marks(), Marks()
    gone.add(numbers[7])
    gone.add("999999999")
    for each in numbers[20:40]:
        stay.add(each)
    found = residue.search([path], gone, stay)
    assert (found.n_left, found.n_living, found.reasons) == (1, 20, [])


def test_a_short_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter than 6"):
        residue.marks_in(tmp_path / "any", [b"short"])
