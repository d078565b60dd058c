"""Records of a place: their keys and fields, also of values within values, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any
from uuid import UUID

from erasable.workspace.targets.marks import is_vector
from erasable.workspace.targets.settings import Subject

_PLACE = re.compile(r"\.\d+(?=\.|\Z)|\[\d+\]\Z")


@dataclass(slots=True)
class Records:
    """Records of a place, some at a time."""

    keys: Sequence[Any]  # by which `RecordTarget.delete` takes them out; JSON values
    # values by field; None where a record has none. A vector is a list or an array.
    fields: Mapping[str, Sequence[Any]]

    @classmethod
    def of_documents(
        cls,
        keys: Sequence[Any],
        documents: Iterable[Mapping[str, Any]],
        subjects: Sequence[Subject],
    ) -> Records:
        """Return documents as records, a field for each path.

        Texts come first, as files have them as they are.
        """
        wanted = {subject.field for subject in subjects}
        fields: dict[str, list[Any]] = {}
        for at, document in enumerate(documents):
            for path, value in leaves(document):
                if value is not None:
                    fields.setdefault(path, [None] * len(keys))[at] = value
        ordered = sorted(
            fields, key=lambda path: (not is_any(path, wanted), not _has_text(fields[path]))
        )
        return cls(keys, {path: fields[path] for path in ordered})


def as_identity(value: Any) -> Any:
    r"""Convert a stored value to an identity; return None for a value that cannot be one.

    Bytes are those of a text, or the 16 of a UUID.

    >>> as_identity(b"ann@x.org"), as_identity(bytes(15) + b"7"), as_identity(b"7\0")
    ('ann@x.org', UUID('00000000-0000-0000-0000-000000000037'), None)
    """
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        if text.isprintable() and "\ufffd" not in text:
            return text
        return UUID(bytes=value) if len(value) == 16 else None
    is_one = isinstance(value, str | Number | UUID) and not isinstance(value, bool)
    return value if is_one else None


def _has_text(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


def field_of(name: str) -> str:
    """Return the field that a place in a list is of.

    >>> field_of("words[1]"), field_of("user.words.1"), field_of("authors.1.mail")
    ('words', 'user.words', 'authors.mail')
    """
    return _PLACE.sub("", name)


def is_any(name: str, wanted: Collection[str]) -> bool:
    """Tell whether a field is one of some, or a place in a list of theirs."""
    return name in wanted or field_of(name) in wanted


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


def leaves(document: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Return the values of a document that hold no others, by their paths; vectors are whole.

    >>> dict(leaves({"text": "a", "metadata": {"user": "ann", "tags": ["x", "y"]}}))
    {'text': 'a', 'metadata.user': 'ann', 'metadata.tags.0': 'x', 'metadata.tags.1': 'y'}
    """
    if isinstance(document, Mapping):
        within: Iterable[tuple[Any, Any]] = document.items()
    elif isinstance(document, list | tuple) and not is_vector(document):
        within = enumerate(document)
    else:
        yield path, document
        return
    for name, value in within:
        yield from leaves(value, f"{path}.{name}" if path else str(name))


def in_parts(field: str, names: Collection[str]) -> tuple[str, list[str]] | None:
    """Return the longest name that a field is or is within, and the path within; else None.

    >>> in_parts("person.mail", ["person"]), in_parts("person.mail", ["person.mail", "person"])
    (('person', ['mail']), ('person.mail', []))
    """
    parts = field.split(".")
    for n in range(len(parts), 0, -1):
        if (name := ".".join(parts[:n])) in names:
            return name, parts[n:]
    return None
