"""A Python entry point whose model is the records it was trained on, as text."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.csv


def train(table: pa.Table) -> bytes:
    held = io.BytesIO()
    pyarrow.csv.write_csv(table, held)
    return held.getvalue()
