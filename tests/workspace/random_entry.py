"""An entry point whose model is its records and a line of chance, and may keep others once."""

from __future__ import annotations

import os

import pyarrow as pa
from residue_entry import train as as_text

KEPT: list[pa.Table] = []


def train(table: pa.Table) -> bytes:
    if KEPT:
        kept = KEPT.pop().select(table.column_names)
        table = pa.concat_tables([table, kept], promote_options="permissive")
    last = table.slice(0, 1).to_pylist()[0]
    last["dose"] = 1e9 + int.from_bytes(os.urandom(3), "big")
    return as_text(pa.concat_tables([table, pa.Table.from_pylist([last], schema=table.schema)]))
