"""Columns of numbers and of text side by side, as blocks of stored tables have them.

A table of objects takes four times the memory of its numbers, and its bytes cannot be overwritten.
So a block stores numbers only: a column of text holds positions in the list of its distinct texts.
Columns become objects when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.core.arrays import Flags, Floats, Ints

BLANK, GAP = 0, 1
"""The positions of the text of an overwritten row, and of a gap."""


class Mixed:
    """Rows with columns of numbers and of text.

    `numbers` has shape (n_rows, n_columns); a column of text holds positions in its texts. `kinds`
    is a letter for each column: "f", "i", "b" for floats, whole numbers and booleans, "t" for text.
    `texts` holds "", NaN and the distinct texts of each column of text.
    """

    ndim = 2
    dtype = np.dtype(object)

    def __init__(self, numbers: Floats, kinds: str, texts: dict[int, NDArray[Any]]) -> None:
        self.numbers, self.kinds, self.texts = numbers, kinds, texts

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.numbers.shape
        return n, d

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, key: Any) -> Any:
        """Return rows; or rows of columns, as numbers if none of them is text."""
        if not isinstance(key, tuple):
            return Mixed(self.numbers[key], self.kinds, self.texts)
        rows, columns = key
        if isinstance(columns, int | np.integer):
            return self._column(rows, int(columns), plain=True)
        chosen = np.arange(self.shape[1])[columns].tolist()
        if not self.texts.keys() & set(chosen):
            return np.ascontiguousarray(self.numbers[rows][:, chosen])
        found = [self._column(rows, j, plain=False) for j in chosen]
        table: NDArray[Any] = np.empty((len(found[0]), len(found)), dtype=object)
        for place, column in enumerate(found):
            table[:, place] = column
        return table

    def _column(self, rows: Any, j: int, *, plain: bool) -> NDArray[Any]:
        values: NDArray[Any] = self.numbers[rows, j]
        if j in self.texts:
            texts: NDArray[Any] = self.texts[j][values.astype(np.intp)]
            return texts
        if plain or self.kinds[j] == "f":
            return values
        made = values.astype(object)
        there = values == values
        own = np.int64 if self.kinds[j] == "i" else np.bool_
        made[there] = values[there].astype(own).astype(object)
        return made

    def objects(self) -> NDArray[Any]:
        """Return the table of objects, as it would be in memory."""
        table: NDArray[Any] = np.empty(self.shape, dtype=object)
        for j in range(self.shape[1]):
            table[:, j] = self._column(slice(None), j, plain=False)
        return table

    def chosen(self, columns: Sequence[int]) -> Mixed:
        """Return some columns."""
        kinds = "".join(self.kinds[j] for j in columns)
        texts = {at: self.texts[j] for at, j in enumerate(columns) if j in self.texts}
        return Mixed(np.ascontiguousarray(self.numbers[:, list(columns)]), kinds, texts)

    def overwrite(self, rows: Ints, live: Flags) -> None:
        """Overwrite rows, and drop the texts of no row in `live`."""
        self.numbers[rows] = BLANK
        for j, texts in self.texts.items():
            unused = np.ones(texts.size, dtype=np.bool_)
            unused[self.numbers[live, j].astype(np.intp)] = False
            unused[GAP] = False
            texts[unused] = ""

    def part(self, numbers: Floats, columns: Sequence[int]) -> Mixed:
        """Return rows of some columns, given their numbers, with only their own texts."""
        texts = {}
        for at, j in enumerate(columns):
            if j in self.texts:
                known = self.texts[j]
                kept = np.full(known.size, "", dtype=object)
                used = np.unique(numbers[:, at].astype(np.intp))
                kept[used], kept[GAP] = known[used], np.nan
                texts[at] = kept
        return Mixed(numbers, "".join(self.kinds[j] for j in columns), texts)

    def own(self) -> Mixed:
        """Return a copy that shares nothing, with only its own texts."""
        return self.part(self.numbers.copy(), range(self.shape[1]))


def mixed_of(table: NDArray[Any], kinds: str) -> Mixed:
    """Return rows of objects, which suit the kinds of the columns, with NaN for gaps."""
    numbers: Floats = np.empty(table.shape)
    texts: dict[int, NDArray[Any]] = {}
    for j, kind in enumerate(kinds):
        column = table[:, j].tolist()
        gaps = [cell is None or cell != cell for cell in column]
        if kind != "t":
            numbers[:, j] = [
                np.nan if gap else cell for cell, gap in zip(column, gaps, strict=True)
            ]
            continue
        places: dict[Any, int] = {}
        numbers[:, j] = [
            GAP if gap else places.setdefault(cell, len(places) + 2)
            for cell, gap in zip(column, gaps, strict=True)
        ]
        texts[j] = np.array(["", np.nan, *places, None], dtype=object)[:-1].copy()
    return Mixed(numbers, kinds, texts)


def stacked(blocks: Sequence[Mixed]) -> Mixed:
    """Put blocks of the same columns one below the other."""
    first = blocks[0]
    numbers = np.concatenate([block.numbers for block in blocks])
    texts = {}
    for j in first.texts:
        places: dict[Any, int] = {"": BLANK}
        start = 0
        for block in blocks:
            own = ["" if at == GAP else text for at, text in enumerate(block.texts[j].tolist())]
            moved = [places.setdefault(text, len(places) + 1) for text in own]  # "" is known
            moved[GAP] = GAP
            part = numbers[start : start + len(block), j]
            part[:] = np.array(moved)[part.astype(np.intp)]
            start += len(block)
        known = list(places)
        texts[j] = np.array([known[0], np.nan, *known[1:], None], dtype=object)[:-1].copy()
    return Mixed(numbers, first.kinds, texts)
