"""Values of records that are lists of texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

_PLACE = re.compile(r"(?:\.\d+|\[\d+\])\Z")


def field_of(name: str) -> str:
    """Return the field that a place in a list is of.

    >>> field_of("words[1]"), field_of("user.words.1"), field_of("words")
    ('words', 'user.words', 'words')
    """
    return _PLACE.sub("", name)


def places_of(name: str, values: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Return the values of a field; lists of texts have a field for each place in them.

    >>> dict(places_of("words", [["one", "two"], "three"]))
    {'words[0]': ['one', None], 'words[1]': ['two', None], 'words': [None, 'three']}
    """
    lists = [value if _is_of_texts(value) else [] for value in values]
    for at in range(max(map(len, lists), default=0)):
        yield f"{name}[{at}]", [each[at] if at < len(each) else None for each in lists]
    yield name, [None if own else value for own, value in zip(lists, values, strict=True)]


def _is_of_texts(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, str) for each in value)
