"""A workspace that has erased people, for the tests of targets where these are to be found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from erasable.workspace import Workspace


def erased_from(
    folder: Path,
    people: Mapping[str, Sequence[Any]],
    gone: Mapping[str, Sequence[Any]],
    subjects: Sequence[str] = ("mail:email",),
) -> Workspace:
    """Return a workspace with a data set of visits, which some people, by types, have left."""
    visits = pa.table({"visit": range(len(people["mail"])), **people})
    pyarrow.csv.write_csv(visits, folder / "visits.csv")
    workspace = Workspace.create(folder / "ws")
    workspace.add_dataset(
        "visits", folder / "visits.csv", id_column="visit", subjects=list(subjects)
    )
    for kind, identities in gone.items():
        workspace.request(list(identities), type=kind)
    workspace.process()
    return workspace
