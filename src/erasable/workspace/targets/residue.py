"""Search of files for values that ought to be gone."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from erasable.core._byte_search import ByteSearch
from erasable.workspace.targets import decoding, manifests
from erasable.workspace.targets.inspection import Inspection, Summary, Undecodable, n_of_kinds
from erasable.workspace.targets.marks import Marks, is_vector
from erasable.workspace.targets.nested_values import compare_pairs

_ENOUGH = 0.9  # of the values of others, of a kind
_NAMED = 3  # files that a reason names, at most
_WORDS = re.compile(r"\W+")


@dataclass(slots=True)
class Found:
    """The result of a search for marks."""

    n_left: int = 0  # values of people who are gone, still there
    n_living: int = 0  # values of records that stay, which a search has to find
    where: list[str] = field(default_factory=list)  # names of files with values of the former
    # why the search says less than that they are gone: a log elsewhere, a file that was not read
    reasons: list[str] = field(default_factory=list)
    # whether all values of all files were compared one by one, so that short ones are found as well
    compared: bool = False


def search(
    files: Iterable[Path], marks: Marks, living: Marks, roots: Mapping[Path, Path] | None = None
) -> Found:
    """Look for values in files and in their names, decoded where they are compressed.

    `roots` has the folders below which paths are names, if that is not the one of all files.

    A kind of values, such as vectors, of which one in ten is not found of the records that stay, is
    a reason: the search may not have found those of the others either. So is a file that is not
    decoded.
    """
    paths = sorted(set(files))
    base = Path(os.path.commonpath([path.parent for path in paths])) if paths else Path()
    inspection, found = Inspection(marks, living), Found()
    names = set()
    summaries: list[tuple[str, list[Summary]]] = []
    undecoded: dict[str, list[str]] = {}
    n_read = 0
    for path in paths:
        root = roots[path] if roots else None
        inspection.begin(root)
        _look_at_name(str(path.relative_to(root or base)), inspection)
        try:
            decoding.inspect(path, inspection)
        except FileNotFoundError:  # it was removed meanwhile
            continue
        except Undecodable as error:
            undecoded.setdefault(str(error), []).append(shown(path.name, marks))
        except OSError as error:
            undecoded.setdefault(f"not read: {type(error).__name__}", []).append(
                shown(path.name, marks)
            )
        n_read += 1
        inspection.end()
        if not all(stays for stays, _ in inspection.found):
            found.where.append(shown(path.name, marks))
        names |= inspection.found
        summaries.append((path.name, inspection.summaries))
    for name, of in summaries:
        inspection.begin()
        manifests.compare_summaries(of, inspection)
        if not all(stays for stays, _ in inspection.found):
            found.where.append(shown(name, marks))
        names |= inspection.found
    found.n_left = sum(not stays for stays, _ in names)
    found.n_living = sum(stays for stays, _ in names)
    found.reasons = _reasons(inspection, names, undecoded)
    can_be = all(value.exact is not None for value in marks.short.values())
    found.compared = bool(n_read and can_be and inspection.is_compared and not undecoded)
    return found


def _look_at_name(own: str, inspection: Inspection) -> None:
    """Look at the name, and at those of folders, such as those of a lake's partitions."""
    for name in {own, unquote(own)}:
        inspection.look_through([os.fsencode(name)])
        compare_pairs(name, inspection)


def _reasons(
    inspection: Inspection, names: Collection[tuple[bool, str]], undecoded: dict[str, list[str]]
) -> list[str]:
    reasons = [
        f"{', '.join(sorted(set(of))[:_NAMED])} could not be decoded ({why})"
        for why, of in undecoded.items()
    ]
    if inspection.n_cut and all(stays for stays, _ in names):
        reasons.append(f"{inspection.n_cut} beginnings of their values are in metadata")
    given = n_of_kinds(inspection.searched, inspection.kinds)
    gone = n_of_kinds((each for each in inspection.searched if not each[0]), inspection.kinds)
    there = n_of_kinds((each for each in names if each[0]), inspection.kinds)
    for kind, n in gone.items():
        n_stay = given[kind] - n
        if n and there[kind] < _ENOUGH * n_stay:
            reasons.append(f"the search finds {there[kind]} of {n_stay} {kind}s of others")
    return reasons


def shown(name: str, marks: Marks) -> str:
    """Return the name of a file as logs and receipts have it: "*" for a part that names somebody.

    >>> shown("exports/ann@example.org/notes.csv", Marks())
    'exports/*/notes.csv'
    """
    wanted = frozenset(marks.every())
    words = {value.exact for of in (marks.values, marks.short) for value in of.values()}
    parts = []
    for part in name.split("/"):
        plain = unquote(part)
        is_named = "@" in plain or words & {plain, *_WORDS.split(plain)}
        there = marks_among([os.fsencode(plain)], wanted)
        parts.append("*" if is_named or there else os.fsencode(part).decode(errors="replace"))
    return "/".join(parts)


def marks_in(path: Path, marks: Collection[bytes]) -> set[bytes]:
    """Return which marks, of six bytes or more, a file holds as it is, in any case of letters.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data")
    ...     _ = path.write_bytes(b"one: Ann@x.org, two")
    ...     marks_in(path, [b"ann@x.org", b"bob@x.org"])
    {b'ann@x.org'}
    """
    matcher = _matcher(frozenset(marks))
    matcher.forget()
    with path.open("rb") as file:
        matcher.look_through(iter(partial(file.read, decoding.AT_ONCE), b""))
    return matcher.found()


def marks_among(parts: Iterable[bytes], marks: Collection[bytes]) -> set[bytes]:
    """Return which marks there are in parts of a text, also across the borders of parts."""
    matcher = _matcher(frozenset(marks))
    matcher.forget()
    matcher.look_through(parts)
    return matcher.found()


def bytes_of(value: Any) -> list[bytes]:
    """Return a value that was read as bytes in which `marks_among` finds its marks."""
    if isinstance(value, bytes | bytearray):
        return [bytes(value)]
    if is_vector(value):
        return [np.asarray(value, dtype=form).tobytes() for form in ("<f4", "<f2")]
    return [str(value).encode(errors="replace")]


@lru_cache(maxsize=4)
def _matcher(marks: frozenset[bytes]) -> ByteSearch:
    return ByteSearch(marks)  # for many files with the same marks
