"""Predicates of domains: a record meets a condition, contains one of some keywords, or both."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from erasable.core.errors import WorkspaceError
from erasable.workspace.data.conditions import Condition

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test that tells the records of a domain from the others.

    >>> import pyarrow as pa
    >>> table = pa.table({"text": ["Win a PRIZE", "prizes!", None, "lunch?"], "n": [1, 2, 3, 4]})
    >>> Predicate.of(None, ["prize"], "text").mask(table).tolist()
    [True, False, False, False]
    >>> Predicate.of("n > 1", ["prize*"], "text").mask(table).tolist()
    [False, True, False, False]
    """

    where: str | None  # see `erasable.workspace.data.conditions`
    # lowercase words or phrases; ``*`` at the end: the beginning of a word
    keywords: tuple[str, ...]
    column: str | None  # of text, with the keywords

    @classmethod
    def of(cls, where: str | None, keywords: Sequence[str] | None, column: str | None) -> Predicate:
        """Check the condition and the keywords of a domain: one of them, or both, is needed."""
        if where is None and keywords is None:
            raise WorkspaceError(
                "nothing says which records are of the domain; expected a condition, keywords, or "
                "both; pass --where CONDITION, or --keywords FILE with --column COL"
            )
        if keywords is None:
            return cls(where, (), column)
        if isinstance(keywords, str):
            raise WorkspaceError("keywords is one text; expected several")
        if column is None:
            raise WorkspaceError(
                "keywords came without a column to look for them in; expected one of text; name it "
                "with --column"
            )
        words = tuple(dict.fromkeys(" ".join(each.split()).lower() for each in keywords))
        bare = [each for each in words if not each.rstrip("*").strip()]
        if not words or bare or len(words) > _MOST:
            message = f"{len(words)} keywords" + (", one of them empty" if bare else "")
            raise WorkspaceError(
                f"there are {message}; expected from 1 to {_MOST} words or phrases, a line each"
            )
        return cls(where, words, column)

    def columns(self, schema: pa.Schema, tokens: Collection[str] = ()) -> list[str]:
        """Return the columns that it looks at, each once; refuse missing ones and other types."""
        found = []
        if self.where is not None:
            found += Condition.parse(self.where, schema, tokens).columns
        if self.keywords:
            if self.column not in schema.names:
                raise WorkspaceError(
                    f"there is no column {str(self.column)[:60]!r}; expected one of text among "
                    f"{', '.join(map(repr, schema.names[:20]))}; correct --column"
                )
            kind = schema.field(self.column).type
            if self.column in tokens or not pa.types.is_string(kind):
                held = "tokens" if self.column in tokens else str(kind)
                raise WorkspaceError(
                    f"column {self.column!r} holds {held}; expected text to look for keywords in; "
                    "name another with --column"
                )
            found.append(str(self.column))
        return list(dict.fromkeys(found))

    def mask(self, table: pa.Table) -> Any:
        """Return a boolean array: for each record, whether it is of the domain."""
        met = np.ones(table.num_rows, dtype=bool)
        if self.where is not None:
            met &= Condition.parse(self.where, table.schema).mask(table).to_numpy(False)
        if self.keywords:
            holds = _pattern(self.keywords).search
            texts = table[self.column].to_pylist()
            met &= np.fromiter(
                (text is not None and holds(" ".join(text.lower().split())) is not None
                 for text in texts),
                dtype=bool, count=len(texts),
            )  # fmt: skip
        return met


def _pattern(keywords: Sequence[str]) -> re.Pattern[str]:
    """Match any keyword as a whole: no letter or digit before it, nor, without ``*``, after it."""
    each = (
        re.escape(word.rstrip("*")) + ("" if word.endswith("*") else r"(?!\w)") for word in keywords
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(each)})")
