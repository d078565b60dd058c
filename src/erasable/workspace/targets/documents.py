"""Records that are documents, with values in values, and what refuses a place of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from erasable.core.errors import SourceError
from erasable.workspace.targets.fields import field_of
from erasable.workspace.targets.marks import is_vector
from erasable.workspace.targets.protocol import Records, RecordTarget, Subject

_FIELDS_SHOWN = 8  # names of fields in a message


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


def records(
    keys: Sequence[Any], documents: Iterable[Mapping[str, Any]], subjects: Sequence[Subject]
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
        fields, key=lambda path: (not _is_any(path, wanted), not _has_text(fields[path]))
    )
    return Records(keys, {path: fields[path] for path in ordered})


def _has_text(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str) for value in values)


def _is_any(path: str, wanted: Collection[str]) -> bool:
    """Tell whether a path is a subject's, or a place in a list of theirs."""
    return path in wanted or field_of(path) in wanted


def refuse_unknown(target: RecordTarget) -> None:
    """Close a target, and raise SourceError, if it has records and none has a subject field."""
    try:
        _refuse_unknown(target)
    except SourceError:
        target.close()
        raise


def _refuse_unknown(target: RecordTarget) -> None:
    if target.settings.may_lack_subject:
        return
    wanted = {subject.field for subject in target.settings.subjects}
    known: set[str] = set()
    for batch in target.batches():
        known.update(batch.fields)
        if any(_is_any(field, wanted) for field in batch.fields):
            return
    if known:
        have = ", ".join(map(repr, sorted(known)[:_FIELDS_SHOWN]))
        raise SourceError(
            f"{target.shown!r}: no record of {target.name!r} has the field "
            f"{', '.join(map(repr, sorted(wanted)))}; expected a field that says whose a record "
            f"is; there are {have}"
        )
