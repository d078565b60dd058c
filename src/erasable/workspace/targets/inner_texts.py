"""Texts of people who left that are inside of words of others, as "ann@x.org" in "joann@x.org".

They are looked for where they are not a part of such a word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from erasable.core._byte_search import ByteSearch

_ALONE = r"(?<!\w)(?<!\w[.+-]){}(?![.+-]?\w)"


class Longer:
    """Identities of others that hold a text as a part of a longer word, gathered as they are read.

    >>> longer = Longer(["ann@x.org"])
    >>> longer.look_at(["joann@x.org", "ann@x.org, bob@x.org"])
    >>> longer.found
    {'ann@x.org': {'joann@x.org'}}
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Prepare a search for texts of people who left."""
        self._texts = {text.lower().encode(errors="replace"): text for text in texts}
        self._search = ByteSearch(self._texts)
        self.found: dict[str, set[str]] = {}  # by the text that they hold

    def look_at(self, values: Iterable[object]) -> None:
        """Look at values of others."""
        words = [value for value in values if isinstance(value, str)]
        if not words or not self._texts:
            return
        self._search.forget()
        self._search.look_at("\0".join(words).encode(errors="replace"))
        for form in self._search.found():
            text = self._texts[form]
            alone = re.compile(_ALONE.format(re.escape(text)), re.IGNORECASE)
            if longer := {w for w in words if text.lower() in w.lower() and not alone.search(w)}:
                self.found.setdefault(text, set()).update(longer)


class InnerSearch:
    """Byte strings, found where they are in none of the longer ones.

    >>> search = InnerSearch({b"ann@x.org": [b"joann@x.org"]})
    >>> [search.among(each) for each in (b"to joann@x.org", b"to Ann@x.org")]
    [set(), {b'ann@x.org'}]
    """

    def __init__(self, longer: Mapping[bytes, Collection[bytes]]) -> None:
        """Prepare a search; all in small letters."""
        self._around: dict[bytes, dict[tuple[int, int], set[bytes]]] = {}
        for inner, words in longer.items():
            around = self._around.setdefault(inner, {})
            for word in words:
                at = word.find(inner)
                while at >= 0:
                    around.setdefault((at, len(word)), set()).add(word)
                    at = word.find(inner, at + 1)
        self.overlap = max((len(word) for of in longer.values() for word in of), default=1) - 1
        self._search = ByteSearch(self._around)

    def among(self, data: bytes | np.ndarray) -> set[bytes]:
        """Return those that are in some bytes, and not only as a part of longer ones."""
        if not self._around:
            return set()
        self._search.forget()
        self._search.look_at(data)
        if not (found := self._search.found()):
            return found
        lower = bytes(data).lower()
        return {inner for inner in found if self._is_alone(inner, lower)}

    def _is_alone(self, inner: bytes, data: bytes) -> bool:
        around = self._around[inner]
        at = data.find(inner)
        while at >= 0:
            if not any(
                before <= at and data[at - before : at - before + n] in words
                for (before, n), words in around.items()
            ):
                return True
            at = data.find(inner, at + 1)
        return False
