"""The search of a file for bytes finds what `in` finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.workspace.targets import decoding, residue

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


def test_a_short_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter than 6"):
        residue.marks_in(tmp_path / "any", [b"short"])
