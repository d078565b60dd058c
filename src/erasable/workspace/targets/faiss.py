"""Files of FAISS as targets: vectors whose ids name people, and a file beside them that has more.

The law kept here: an index is written anew beside the old one, synced, and renamed over it. If
the process dies, the file is the old index or the new one.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from erasable.core.artifact import sync_folder
from erasable.core.errors import SourceError
from erasable.workspace.targets.addresses import refused_as
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings
from erasable.workspace.targets.records import places_of

_ID, _VECTOR = "id", "vector"
_AT_ONCE = 10_000  # records of a batch
_BESIDE = ".erasable-tmp"  # ends the name of a file that is being written


class FaissTarget(RecordTarget):
    """Vectors of an index in a file, with ids that name people; ``faiss:FILE``.

    The index is one that has ids: an ``IndexIDMap``, or one with inverted lists (IVF). Without
    ids, FAISS numbers vectors by their position, which changes with every removal.

    The subject is the field ``id``, an integer. If ids are numbers of records and not of people, a
    file beside the index says whose they are: ``FILE.jsonl`` (an object per line) or ``FILE.csv``
    (with a header), each with ``id``, once, and further fields, one of which is the subject. Rows
    of people leave that file, too; other rows keep their bytes.

    Codes of compressed vectors (PQ, SQ) are erased as vectors are. Graphs (HNSW, NSG) do not let
    go of vectors: they are built anew from the vectors that stay, with the same parameters.
    What an index has learned in training stays: centroids and codebooks.

    The whole index is read into memory. A program that has read it holds what it has read, and a
    program that writes it while people are erased loses what it has added, or brings them back.

    Raises SourceError if there is no such file, if it is not an index of this kind, or if no
    record has a subject field.
    """

    read_back = frozenset({_ID})  # integers of eight bytes, which a search would find by chance

    def __init__(self, place: str, settings: Settings) -> None:
        """Look at the index; nothing is changed."""
        self.settings = settings
        self.shown = place
        self._file = Path(place.partition(":")[2])
        self.name = self._file.name
        self._side = self._beside_index()
        _parts(self._index())
        known = {_ID} | {name for row in self._people().values() for name in row}
        subjects = {subject.field for subject in settings.subjects}
        if not (known & subjects or settings.may_lack_subject):
            wanted = ", ".join(repr(subject.field) for subject in settings.subjects)
            raise SourceError(
                f"{self.shown!r} has no field {wanted}: an index without a subject field; "
                f"expected one of {', '.join(sorted(known))}"
            )

    def batches(self) -> Iterator[Records]:
        """Return ids with the codes of their vectors, and what the file beside says of them."""
        people = self._people()
        names = sorted({name for row in people.values() for name in row} - {_ID})
        rest = dict(people)
        for ids, codes in _codes(self._index()):
            for at in range(0, len(ids), _AT_ONCE):
                some = ids[at : at + _AT_ONCE].tolist()
                vectors = [code.tobytes() for code in codes[at : at + _AT_ONCE]]
                rows = [people.get(each, {}) for each in some]
                yield _records(some, rows, names, vectors or [None] * len(some))
                for each in some:
                    rest.pop(each, None)
        if rest:  # a killed attempt has erased their vectors
            yield _records(list(rest), list(rest.values()), names, [None] * len(rest))

    def delete(self, keys: Sequence[Any]) -> None:
        """Write the index and the file beside it anew, without some ids.

        The index comes first: a vector whose row is gone could not be told to be anybody's.
        """
        gone = set(keys)
        index = self._index()
        if _remove(index, np.array(sorted(gone), dtype=np.int64), self.shown):
            _replace(self._file, lambda beside: faiss.write_index(index, str(beside)))
        if self._side is not None:
            rows = list(_rows(self._side))
            kept = [line for line, row in rows if row is None or row[_ID] not in gone]
            if len(kept) < len(rows):
                data = "".join(kept).encode()
                _replace(self._side, lambda beside: beside.write_bytes(data))

    def compact(self) -> list[str]:
        """Remove what a killed attempt has left; the files are without gaps already."""
        for each in self._own():
            _beside(each).unlink(missing_ok=True)
        return []

    def files(self) -> Iterable[Path]:
        """Return the index and the files beside it."""
        own = self._own()
        return [each for each in [*own, *map(_beside, own)] if each.exists()]

    def unreached(self) -> list[str]:
        """Return why codes are not looked for, if so."""
        if any(len(ids) > len(codes) for ids, codes in _codes(self._index())):
            return ["codes of its vectors lie between those of others and cannot be looked for"]
        return []

    def _own(self) -> list[Path]:
        return [self._file] if self._side is None else [self._file, self._side]

    def _beside_index(self) -> Path | None:
        """Return the file that says whose ids are, if there is one."""
        sides = [self._file.with_name(self.name + end) for end in (".jsonl", ".csv")]
        found = [side for side in sides if side.exists()]
        if len(found) > 1:
            raise SourceError(
                f"{self.shown!r} has two files beside it, {found[0].name!r} and "
                f"{found[1].name!r}; expected one at most"
            )
        return found[0] if found else None

    def _people(self) -> dict[int, dict[str, Any]]:
        """Read what the file beside says, by ids."""
        found: dict[int, dict[str, Any]] = {}
        if self._side is None:
            return found
        expected = f"rows of UTF-8, each with an integer {_ID!r} of its own"
        with refused_as(repr(self._side.name), "could not be read", expected):
            for _, row in _rows(self._side):
                if row is not None:
                    if row[_ID] in found:
                        raise ValueError("an id is there twice")
                    found[row[_ID]] = row
        return found

    def _index(self) -> Any:
        """Read the index."""
        if not self._file.is_file():
            raise SourceError(f"{self.shown!r}: there is no such file; expected an index of FAISS")
        came = f"is not an index that FAISS {faiss.__version__} reads"
        expected = "one that write_index has written, of vectors of numbers"
        with refused_as(repr(self.shown), came, expected):
            return faiss.read_index(str(self._file))


# -- the index -------------------------------------------------------------------------------------


def _parts(index: Any) -> tuple[Any, Any]:
    """Return the map of ids, None for inverted lists, and what holds the vectors."""
    kind = type(index).__name__
    ids, inner = None, index
    while True:
        if isinstance(inner, faiss.IndexIDMap) and ids is None:
            ids = inner
        elif not isinstance(inner, faiss.IndexPreTransform):
            break
        inner = faiss.downcast_index(inner.index)
    lists = isinstance(inner, faiss.IndexIVF)
    if lists == (ids is not None):
        raise SourceError(
            f"an index of kind {kind} over {type(inner).__name__} has no ids of its own; expected "
            "an IndexIDMap over vectors, or inverted lists (IVF) alone"
        )
    if lists and type(faiss.downcast_InvertedLists(inner.invlists)).__name__ == _ON_DISK:
        raise SourceError(
            f"the lists of this {kind} are in another file; expected an index that is one file"
        )
    return ids, inner


_ON_DISK = "OnDiskInvertedLists"  # a class that not every build has
_GRAPHS: tuple[Any, ...] = (faiss.IndexHNSW, faiss.IndexNSG)


_MAPS = vars(faiss)["DirectMap"]  # of ids to places in lists; stubs of faiss lack it


def _codes(index: Any) -> Iterator[tuple[np.ndarray, Sequence[np.ndarray]]]:
    """Return ids and the bytes of their vectors, none where these lie between those of others."""
    ids, inner = _parts(index)
    if ids is None:
        lists = inner.invlists
        mixed = not isinstance(faiss.downcast_InvertedLists(lists), faiss.ArrayInvertedLists)
        for at in range(lists.nlist):
            if n := lists.list_size(at):
                own = faiss.rev_swig_ptr(lists.get_ids(at), n).copy()
                if mixed:
                    yield own, []
                    continue
                raw = faiss.rev_swig_ptr(lists.get_codes(at), n * lists.code_size)
                yield own, list(raw.reshape(n, -1).copy())
        return
    storage = faiss.downcast_index(inner.storage) if isinstance(inner, _GRAPHS) else inner
    own = faiss.vector_to_array(ids.id_map)
    if not isinstance(storage, faiss.IndexFlatCodes):
        yield own, []
    elif own.size:
        yield own, list(faiss.vector_to_array(storage.codes).reshape(own.size, -1))


def _remove(index: Any, gone: np.ndarray, shown: str) -> int:
    """Remove ids from an index in memory; return how many there were."""
    ids, inner = _parts(index)
    if ids is not None and isinstance(inner, _GRAPHS):
        return _rebuild(ids, inner, gone, shown)
    if ids is None and inner.direct_map.type == _MAPS.Array:
        inner.set_direct_map_type(_MAPS.Hashtable)  # an array has no gaps
    try:
        n_removed: int = index.remove_ids(gone)
    except RuntimeError:
        raise SourceError(
            f"{shown!r}: an index of kind {type(inner).__name__} cannot remove vectors; expected "
            "one that can, or a graph (HNSW, NSG), which is built anew"
        ) from None
    return n_removed


def _rebuild(ids: Any, graph: Any, gone: np.ndarray, shown: str) -> int:
    """Build a graph anew from the vectors that stay, and check that these are as they were."""
    own = faiss.vector_to_array(ids.id_map)
    stay = np.flatnonzero(~np.isin(own, gone))
    if stay.size == own.size:
        return 0
    vectors = graph.reconstruct_n(0, int(graph.ntotal))[stay]
    before = [code for _, codes in _codes(ids) for code in codes]
    ids.reset()
    if stay.size:
        ids.add_with_ids(vectors, own[stay])
    after = [code for _, codes in _codes(ids) for code in codes]
    kept = [before[at] for at in stay] if before else []
    if len(kept) != len(after) or any(map(_differ, kept, after)):
        raise SourceError(
            f"{shown!r}: the {type(graph).__name__} could not be built anew without a change of "
            "other vectors; expected a graph over vectors that are not compressed"
        )
    return int(own.size - stay.size)


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    return not np.array_equal(one, other)


# -- the files beside it ---------------------------------------------------------------------------


def _rows(side: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Return the rows of a file as they are written, and as fields; None for a header or gap."""
    with side.open(encoding="utf-8", newline="") as file:
        yield from (_json_rows if side.suffix == ".jsonl" else _csv_rows)(file)


def _json_rows(file: Iterable[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    for line in file:
        row = json.loads(line) if line.strip() else None
        yield line, row if row is None else row | {_ID: int(str(row[_ID]))}


def _csv_rows(file: Iterable[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in file:
            taken.append(line)
            yield line

    header: list[str] | None = None
    for row in csv.reader(lines(), strict=True):
        text = "".join(taken)
        taken.clear()
        if header is None or not row:
            header = row if header is None else header
            yield text, None
        else:
            fields = dict(zip(header, row, strict=True))
            yield text, fields | {_ID: int(fields[_ID])}


def _records(
    ids: list[int], rows: list[dict[str, Any]], names: list[str], vectors: Sequence[Any]
) -> Records:
    fields = {
        place: values
        for name in names
        for place, values in places_of(name, [row.get(name) for row in rows])
    }
    return Records(ids, {**fields, _ID: ids, _VECTOR: vectors})


# -- files -----------------------------------------------------------------------------------------


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}{_BESIDE}")


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file anew: beside it, synced, and renamed over it."""
    beside = _beside(path)
    try:
        write(beside)
        with beside.open("rb+") as file:
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.parent)
    except (OSError, RuntimeError) as error:
        beside.unlink(missing_ok=True)
        raise SourceError(
            f"{path.name!r} could not be written ({type(error).__name__}); expected a folder with "
            "room that may be written"
        ) from None
