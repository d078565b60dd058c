"""People leave tables of LanceDB: no value of theirs is left in any file, and others' stay.

Vectors and short texts lie in the files as they are, longer texts are compressed. Files of LanceDB
are never changed: what all of them hold is told to be gone where none of them is left.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from apart import answer_apart, in_files, killed_erasures
from corpus import N, leaving
from refusals import refused

from erasable.workspace.targets import kinds, steps
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import PURGED
from people import Named, erased

lancedb = pytest.importorskip("lancedb", reason="targets that are tables of LanceDB")
index = pytest.importorskip("lancedb.index")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of readers of older versions

WIDTH = 16
_RANDOM = np.random.default_rng(42)
VECTORS = _RANDOM.normal(size=(N, WIDTH)).astype(np.float32)
TOKENS = [_RANDOM.bytes(16).hex() for _ in range(N)]
EMAILS = [f"person{at:05}.{TOKENS[at][:8]}@example.org" for at in range(N)]
IDS = [f"record-{TOKENS[at][:9]}" for at in range(N)]

_READ = """
import json, sys, lancedb
table = lancedb.connect(sys.argv[1]).open_table("docs")
print(json.dumps([len(table.list_versions()), table.search().to_list()]))
"""


def rows() -> pa.Table:
    return pa.table({
        "id": IDS,
        "text": [f"said {TOKENS[at]} and went" if at % 9 else None for at in range(N)],
        "metadata": [{"email": EMAILS[at], "words": [TOKENS[at][:9], "common"]} for at in range(N)],
        "email": EMAILS,
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), WIDTH),
    })  # fmt: skip


def made(folder: Path, *vectors: Any, n_parts: int = 1) -> Any:
    """Make a table, with an index of vectors and of texts if there is a config."""
    given = rows()
    table = lancedb.connect(folder).create_table("docs", given.slice(0, N // n_parts))
    for part in range(1, n_parts):
        table.add(given.slice(part * N // n_parts, N // n_parts))
    for config in vectors:
        table.create_index("vector", config=config)
        table.create_index("text", config=index.FTS(with_position=True, stem=False), name="words")
        table.create_index("email", config=index.BTree())
        table.create_index("id", config=index.Bitmap())
    return table


def opened(folder: Path, *fields: str) -> Any:
    subjects = tuple(Subject(field, "email") for field in fields or ("email",))
    return kinds.opened(f"lancedb:{folder}#docs", Settings(subjects))


def traces(which: Any) -> list[bytes]:
    """Return bytes of records that are not compressed."""
    return [
        each
        for at in which
        for each in (VECTORS[at].tobytes(), IDS[at].encode(), EMAILS[at].encode())
    ]


def names(folder: Path) -> set[str]:
    """Return the files that hold rows or values of an index."""
    return {
        str(path) for path in folder.rglob("*") if path.is_file() and "_versions" not in str(path)
    }


@pytest.mark.parametrize("share", [0.0005, 0.05, 0.15])
@pytest.mark.parametrize("n_parts", [1, 2])
def test_no_value_is_left(tmp_path: Path, n_parts: int, share: float) -> None:
    made(tmp_path, index.IvfFlat(num_partitions=4), n_parts=n_parts)
    gone = leaving(share)
    stay = sorted({*range(N)} - {*gone})
    before = names(tmp_path)
    assert in_files(tmp_path, traces(gone)) >= 2 * len(gone)
    plan, verdict = erased(opened(tmp_path), *(EMAILS[at] for at in gone))
    assert verdict == steps.Verdict(PURGED)
    assert (plan.changed, len(plan.n_records)) == ({"docs": len(gone)}, len(gone))
    assert in_files(tmp_path, traces(gone)) == 0
    assert in_files(tmp_path, traces(stay)) >= 2 * len(stay)
    assert not names(tmp_path) & before
    n_versions, found = answer_apart(_READ, str(tmp_path))
    assert n_versions == 1
    assert found == rows().take(stay).to_pylist()


@pytest.mark.parametrize(
    "kind", ["IvfFlat", "IvfPq", "IvfSq", "HnswFlat", "HnswPq", "HnswSq"]
)  # fmt: skip
def test_indexes_hold_nobody_who_is_gone(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, getattr(index, kind)(num_partitions=2))
    gone = leaving(0.02)
    config = [(each.name, each.index_type, each.index_details) for each in table.list_indices()]
    assert table.search(TOKENS[gone[0]], query_type="fts").limit(5).to_list() or not gone[0] % 9
    _, verdict = erased(opened(tmp_path), *(EMAILS[at] for at in gone))
    assert verdict.word == PURGED
    table = lancedb.connect(tmp_path).open_table("docs")
    after = table.list_indices()
    assert [(each.name, each.index_type, each.index_details) for each in after] == config
    assert {each.num_indexed_rows for each in after} == {N - len(gone)}
    assert in_files(tmp_path, traces(gone)) == 0
    for at in gone:
        near = table.search(VECTORS[at]).nprobes(2).limit(3).to_list()
        assert {each["id"] for each in near}.isdisjoint(IDS[each] for each in gone)
        assert not table.search(TOKENS[at], query_type="fts").to_list()
    alive = next(at for at in range(1, N) if at % 9 and at not in gone)
    found = table.search(TOKENS[alive], query_type="fts").to_list()
    assert [each["id"] for each in found] == [IDS[alive]]


@pytest.mark.parametrize("kind", ["IvfPq", "HnswPq", "IvfSq", "HnswSq"])
def test_indexes_of_codes_shrink_with_their_rows(tmp_path: Path, kind: str) -> None:
    """A code cannot be told from another: it is gone where there is no room for it."""
    table = made(tmp_path)
    of_a_code = {"num_sub_vectors": WIDTH} if kind.endswith("Pq") else {}  # a byte per number
    table.create_index("vector", config=getattr(index, kind)(num_partitions=2, **of_a_code))

    def size() -> int:
        return sum(path.stat().st_size for path in tmp_path.rglob("auxiliary.idx"))

    before, n_gone = size(), N * 3 // 4
    _, verdict = erased(opened(tmp_path), *EMAILS[:n_gone])
    assert verdict.word == PURGED
    assert before - size() > 0.9 * n_gone * WIDTH


def test_neighbours_are_found_as_before(tmp_path: Path) -> None:
    table = made(tmp_path)
    probes = _RANDOM.normal(size=(10, WIDTH)).astype(np.float32)

    def near(table: Any) -> list[list[tuple[str, float]]]:
        return [
            [(each["id"], each["_distance"]) for each in table.search(probe).limit(30).to_list()]
            for probe in probes
        ]

    before = near(table)
    gone = {found[0][0] for found in before}
    erased(opened(tmp_path), *(EMAILS[IDS.index(each)] for each in gone))
    after = near(lancedb.connect(tmp_path).open_table("docs"))
    for old, new in zip(before, after, strict=True):
        kept = [each for each in old if each[0] not in gone]
        assert new[: len(kept)] == kept


def test_subjects_in_structs_and_several_rows_of_a_person(tmp_path: Path) -> None:
    given = rows()
    who = ["o'neil@example.org" if at % 5 == 0 else EMAILS[at] for at in range(N)]
    given = given.set_column(2, "metadata", pa.array([{"email": each} for each in who]))
    lancedb.connect(tmp_path).create_table("docs", given)
    with opened(tmp_path, "metadata.email", "email") as target:
        found = target.find(Named("o'neil@example.org"))
        assert found.changed == {"docs": N // 5}
    plan, verdict = erased(
        opened(tmp_path, "metadata.email", "email"), "o'neil@example.org", EMAILS[1], EMAILS[5]
    )
    assert (plan.changed, verdict.word) == ({"docs": N // 5 + 1}, PURGED)
    _, left = answer_apart(_READ, str(tmp_path))
    assert [each["id"] for each in left] == [IDS[at] for at in range(N) if at % 5 and at != 1]


def test_tags_and_branches_are_a_reason(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.tags.create("release", 1)
    _, verdict = erased(opened(tmp_path), EMAILS[3])
    assert verdict.word == steps.NOT_PROVED
    assert "tags or branches ('release') hold old versions" in str(verdict.reason)
    assert "values of these records are still in" in str(verdict.reason)
    assert in_files(tmp_path, [VECTORS[3].tobytes()]) == 1


def test_a_file_that_nobody_has_committed_is_a_reason(tmp_path: Path) -> None:
    made(tmp_path)
    (part,) = (tmp_path / "docs.lance" / "data").iterdir()
    loose = part.with_name(f"1{part.name}")
    loose.write_bytes(part.read_bytes())
    _, verdict = erased(opened(tmp_path), EMAILS[3])
    assert verdict.word == steps.NOT_PROVED
    assert f"no version names {loose.name}, of a writer" in str(verdict.reason)
    assert loose.exists()  # a writer may still commit it


_HOLD = "import sys; file = open(sys.argv[1]); print(flush=True); input()"


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("folder", ["data", "_transactions"])
def test_files_that_a_killed_writer_has_begun(tmp_path: Path, folder: str, is_open: bool) -> None:
    """One that is open stays: its writer is at work."""
    made(tmp_path)
    begun = tmp_path / "docs.lance" / folder / ".tmpa1B2c3"
    begun.write_bytes(EMAILS[3].encode())
    command = [sys.executable, "-c", _HOLD, str(begun if is_open else os.devnull)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        _, verdict = erased(opened(tmp_path), EMAILS[3])
        holder.communicate(b"\n")
    assert begun.exists() == is_open
    assert (verdict.word == PURGED) == (not is_open)
    assert (f"no version names {begun.name}" in str(verdict.reason)) == is_open


def test_a_reader_of_an_older_version_gets_an_error(tmp_path: Path) -> None:
    table = made(tmp_path)
    erased(opened(tmp_path), EMAILS[3])
    with pytest.raises(RuntimeError):
        table.search().to_list()
    table.checkout_latest()
    assert table.count_rows() == N - 1


def test_rows_that_come_meanwhile_stay(tmp_path: Path) -> None:
    table = made(tmp_path)
    with opened(tmp_path) as target:
        plan = target.find(Named(EMAILS[3]))
        table.add(rows().slice(7, 1))
        target.erase(plan)
        table.add(rows().slice(8, 1))
        assert target.compact() == []
    _, left = answer_apart(_READ, str(tmp_path))
    assert [each["id"] for each in left] == [*IDS[:3], *IDS[4:], IDS[7], IDS[8]]


def test_a_killed_erasure_is_finished_by_the_next(tmp_path: Path) -> None:
    gone = leaving(0.05)
    stay = sorted({*range(N)} - {*gone})
    identities = [EMAILS[at] for at in gone]

    def fresh(name: str) -> tuple[Path, str]:
        made(tmp_path / name, index.IvfFlat(num_partitions=2))
        return tmp_path / name, f"lancedb:{tmp_path / name}#docs"

    for folder, _ in killed_erasures(fresh, identities, "delete", "files"):
        left = lancedb.connect(folder).open_table("docs").search().to_list()
        assert {IDS[each] for each in stay} <= {each["id"] for each in left}
        with opened(folder) as target:  # as steps do that know an earlier plan
            plan = target.find(Named(*identities))
            target.erase(plan)
            assert target.compact() == []
        assert in_files(folder, traces(gone)) == 0
        left = lancedb.connect(folder).open_table("docs").search().to_list()
        assert left == rows().take(stay).to_pylist()


def test_everybody_may_leave(tmp_path: Path) -> None:
    made(tmp_path, index.IvfFlat(num_partitions=2))
    _, verdict = erased(opened(tmp_path), *EMAILS)
    assert verdict.word == PURGED
    assert in_files(tmp_path, traces(range(N))) == 0


def test_bad_input_is_one_error_and_changes_nothing(tmp_path: Path) -> None:
    given = rows().append_column("weight", pa.array(np.linspace(0, 1, N)))
    lancedb.connect(tmp_path / "store").create_table("docs", given)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    places = {
        f"lancedb:{tmp_path / 'none'}#docs": "there is no such table",
        f"lancedb:{tmp_path / 'store'}#nobody": "there is no such table",
        f"lancedb:{tmp_path / 'store'}": "does not name a table",
        "lancedb:db://cloud#docs": "does not name a table",
    }
    for place, said in places.items():
        with refused(said):
            kinds.opened(place, Settings((Subject("email", "email"),)))
    with refused("without a subject field"):
        opened(tmp_path / "store", "owner")
    with refused("is of type double; expected texts or integers"):
        opened(tmp_path / "store", "weight")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    for path in before:
        if path.suffix == ".manifest":
            path.write_bytes(b"of another version")
    with refused(r"could not be (opened|read)"):
        opened(tmp_path / "store")
