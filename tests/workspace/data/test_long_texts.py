"""Texts that are more than Arrow holds together are told as such; nothing of 2 GB is made here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from contexts import make_context

from erasable.core.errors import SourceError
from erasable.workspace.data import pulling
from erasable.workspace.data.catalogue import DataSet
from erasable.workspace.data.pulling import Spool, overflow_errors

KNOWN = DataSet(1, "v", {}, "id", (), (("id", "int64"), ("note", "string")), 1, 1, None)


def long_table() -> pa.Table:
    """2,200 records of 1 MB each, which share their one text in memory."""
    each = pa.table({"id": [1], "note": ["x" * 1_000_000]})
    return pa.concat_tables([each] * 2200)


def test_arrow_cannot_sort_them() -> None:
    """The negative control: what it raises is no error of ours."""
    with pytest.raises(pa.ArrowInvalid):
        long_table().sort_by("id")


def test_a_bucket_of_too_much_text_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, _ = make_context(tmp_path / "ws")
    with Spool(context, "visits.parquet") as spool:
        monkeypatch.setattr(Spool, "read", lambda *_: long_table())
        found = pulling.Pulled(KNOWN, spool, pulling.Looks({}))
        with pytest.raises(SourceError, match=r"'visits.parquet' has a column with more than 2 GB"):
            found.bucket(0)


@pytest.mark.parametrize("kind", [pa.ArrowInvalid, pa.ArrowCapacityError])
def test_both_errors_of_arrow_are_told(kind: type[Exception]) -> None:
    with pytest.raises(SourceError, match="expected less"), overflow_errors("x"):
        raise kind("offset overflow")


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), overflow_errors("x"):
        raise KeyError("x")
    assert np.iinfo(np.int32).max < 2200 * 1_000_000
