"""Columns of text that hold one number or truth value in two spellings, as 01234 and 1234.

Earlier versions read each file with types of its own, and cast them: what a later file spelled
01234 came in as 1234. A sync from a source with all records brings the spelling back.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import pyarrow.compute as pc
from sqlalchemy import Connection

from erasable.workspace.context import Context
from erasable.workspace.data import fragments
from erasable.workspace.data.catalogue import DataSet, parts

_PATTERN = r"^([+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?|(?i:true|false))$"


def remarks(context: Context, connection: Connection, known: DataSet) -> list[str]:
    """Name the columns of text in which a number has two spellings, a line each.

    Ids and people are left out: they have always been read as text.
    """
    own = {known.id_column, *known.subject_columns}
    columns = [name for name, kind in known.columns if kind == "string" and name not in own]
    found: dict[str, set[str]] = {name: set() for name in columns}
    for part in parts(connection, known.id, known.version) if columns else ():
        read = fragments.read(context, part.key, part.sha256, columns)
        for name in columns:
            texts = pc.unique(read[name])
            found[name].update(
                texts.filter(pc.match_substring_regex(texts, _PATTERN)).drop_null().to_pylist()
            )
    return [
        f"column {name!r} holds {pair[0]!r} and {pair[1]!r}, which may be one value in two "
        f"spellings; where an earlier version read a later file otherwise, `erasable dataset sync "
        f"{known.name}` from a source with all records mends it"
        for name in columns
        if (pair := two_of_one(found[name])) is not None
    ]


def two_of_one(texts: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two texts, in their order, that are one number or truth value.

    >>> two_of_one(["1234", "01234", "7"]), two_of_one(["true", "TRUE"]), two_of_one(["7", "8"])
    (('01234', '1234'), ('TRUE', 'true'), None)
    """
    seen: dict[Decimal | str, str] = {}
    for text in sorted(texts):
        value = Decimal(text) if text[-1].isdigit() else text.lower()
        if value in seen:
            return seen[value], text
        seen[value] = text
    return None
