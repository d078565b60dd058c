"""People leave files of FAISS: no vector, code, id or row of theirs is left, and others' stay."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apart import answer_apart, erased_apart, in_files, killed_erasures
from corpus import N, leaving
from refusals import refused

from erasable.workspace.targets import kinds, steps
from erasable.workspace.targets.protocol import Plan, Settings, Subject
from erasable.workspace.targets.verdicts import PURGED
from people import Named, erased

faiss = pytest.importorskip("faiss", reason="targets that are files of FAISS")

WIDTH = 16
IDS = np.arange(N, dtype=np.int64) * 7 + 1_234_567_890_123
VECTORS = np.random.default_rng(42).normal(size=(N, WIDTH)).astype(np.float32)
FLAT = ["IDMap,Flat", "IDMap2,Flat", "IVF16,Flat", "IDMap,HNSW16"]
CODED = ["IVF16,PQ16x6", "IVF16,SQ8", "IDMap,PQ16x6", "IDMap,SQ8", "IDMap,HNSW16,SQ8"]
WRAPPED = ["PCA12,IVF16,Flat", "IDMap,PCA12,Flat"]

_READ = """
import faiss, json, sys, numpy as np
index = faiss.read_index(sys.argv[1])
inner = index
while type(inner).__name__ in ("IndexIDMap", "IndexIDMap2", "IndexPreTransform"):
    inner = faiss.downcast_index(inner.index)
probes = np.random.default_rng(7).normal(size=(20, index.d)).astype("float32")
if hasattr(inner, "nprobe"):
    inner.nprobe = inner.nlist
distances, ids = index.search(probes, 30)
print(json.dumps([index.ntotal, ids.tolist(), distances.tolist()]))
"""


def made(folder: Path, description: str = "IVF16,Flat", ids: np.ndarray = IDS) -> tuple[Path, Any]:
    """Write an index; return its file and itself."""
    index = faiss.index_factory(WIDTH, description)
    index.train(VECTORS[:1000])
    index.add_with_ids(VECTORS, ids)
    path = folder / "people.faiss"
    faiss.write_index(index, str(path))
    return path, index


def opened(path: Path, field: str = "id", kind: str = "customer") -> Any:
    return kinds.opened(f"faiss:{path}", Settings((Subject(field, kind),)))


def words(ids: np.ndarray) -> list[bytes]:
    return [int(each).to_bytes(8, "little") for each in ids]


@pytest.mark.parametrize("share", [0.0005, 0.05, 0.15])
@pytest.mark.parametrize("description", FLAT)
def test_no_vector_and_no_id_is_left(tmp_path: Path, description: str, share: float) -> None:
    path, _ = made(tmp_path, description)
    gone = leaving(share)
    stay = np.setdiff1d(np.arange(N), gone)
    raw = [vector.tobytes() for vector in VECTORS]
    assert in_files(tmp_path, raw) == N
    plan, verdict = erased(opened(path), *IDS[gone].tolist())
    assert verdict == steps.Verdict(PURGED)
    assert sum(plan.n_records.values()) == len(gone)
    assert in_files(tmp_path, [raw[at] for at in gone] + words(IDS[gone])) == 0
    assert in_files(tmp_path, [raw[at] for at in stay] + words(IDS[stay])) == 2 * stay.size


@pytest.mark.parametrize("description", ["IDMap,Flat", "IVF16,Flat", "IDMap,PCA12,Flat"])
def test_neighbours_are_found_as_before(tmp_path: Path, description: str) -> None:
    path, _ = made(tmp_path, description)
    n, ids, distances = answer_apart(_READ, str(path))
    nearest = [
        [(i, d) for i, d in zip(*each, strict=True)] for each in zip(ids, distances, strict=True)
    ]
    gone = {row[0] for row in ids}  # the nearest of each probe: what a search would miss
    _, verdict = erased(opened(path), *gone)
    assert verdict.word == PURGED
    n_after, ids, distances = answer_apart(_READ, str(path))
    assert n_after == n - len(gone)
    for before, *after in zip(nearest, ids, distances, strict=True):
        kept = [(i, d) for i, d in before if i not in gone]
        assert list(zip(*after, strict=True))[: len(kept)] == kept


@pytest.mark.parametrize("description", CODED + WRAPPED)
def test_codes_leave_as_vectors_do(tmp_path: Path, description: str) -> None:
    path, index = made(tmp_path, description)
    codes = {int(i): code for i, code in _codes_of(index)}
    gone = leaving(0.05)
    left = {codes[int(i)] for i in IDS[gone]} - {codes[int(i)] for i in np.delete(IDS, gone)}
    assert left
    assert in_files(tmp_path, left) == len(left)
    _, verdict = erased(opened(path), *IDS[gone].tolist())
    assert verdict.word == PURGED
    assert in_files(tmp_path, [*left, *words(IDS[gone])]) == 0
    after = {int(i): code for i, code in _codes_of(faiss.read_index(str(path)))}
    assert after == {int(i): codes[int(i)] for i in np.delete(IDS, gone)}


def _codes_of(index: Any) -> Any:
    """Return ids with codes, by the encoder of FAISS rather than by its storage."""
    inner, ids = index, None
    chain = [index]
    while hasattr(inner, "index"):
        inner = faiss.downcast_index(inner.index)
        chain.append(inner)
    if isinstance(inner, faiss.IndexIVF):
        for at in range(inner.nlist):
            n, size = inner.invlists.list_size(at), inner.invlists.code_size
            own = faiss.rev_swig_ptr(inner.invlists.get_ids(at), n) if n else []
            for k in range(n):
                yield own[k], bytes(faiss.rev_swig_ptr(inner.invlists.get_single_code(at, k), size))
        return
    ids = faiss.vector_to_array(index.id_map)
    storage = faiss.downcast_index(inner.storage) if hasattr(inner, "storage") else inner
    vectors = storage.reconstruct_n(0, storage.ntotal)
    yield from zip(ids, map(bytes, storage.sa_encode(vectors)), strict=True)


def test_codes_between_those_of_others_are_not_told_to_be_gone(tmp_path: Path) -> None:
    path, _ = made(tmp_path, "IVF16,PQ8x4fs")
    _, verdict = erased(opened(path), *IDS[:5].tolist())
    assert (verdict.word, faiss.read_index(str(path)).ntotal) == (steps.NOT_PROVED, N - 5)
    assert "lie between those of others" in str(verdict.reason)


def test_small_ids_need_no_search(tmp_path: Path) -> None:
    path, _ = made(tmp_path, ids=np.arange(N, dtype=np.int64))
    _, verdict = erased(opened(path), 3, 7)
    assert verdict.word == PURGED


def test_every_vector_under_an_id_leaves(tmp_path: Path) -> None:
    ids = np.arange(N, dtype=np.int64) // 4
    path, _ = made(tmp_path, "IDMap,Flat", ids)
    plan, verdict = erased(opened(path), 5)
    assert (plan.n_records, verdict.word) == ({"5": 4}, PURGED)
    assert faiss.read_index(str(path)).ntotal == N - 4
    assert in_files(tmp_path, [vector.tobytes() for vector in VECTORS[20:24]]) == 0


def test_a_copied_code_that_is_left_is_told(tmp_path: Path) -> None:
    """A negative control of the verdict: a centroid that is a person's vector stays."""
    index = faiss.index_factory(WIDTH, "IVF1,Flat")
    index.train(VECTORS[:1])
    index.add_with_ids(VECTORS, IDS)
    path = tmp_path / "people.faiss"
    faiss.write_index(index, str(path))
    _, verdict = erased(opened(path), int(IDS[0]))
    assert verdict.word == steps.NOT_PROVED
    assert "1 of 1 values of these records are still in people.faiss" in str(verdict.reason)


@pytest.mark.parametrize("end", [".jsonl", ".csv"])
def test_a_file_beside_the_index_says_whose_ids_are(tmp_path: Path, end: str) -> None:
    path, _ = made(tmp_path, "IDMap,Flat", np.arange(N, dtype=np.int64))
    rows = [(at, f"person{at // 2}@example.org", f"said, on\n{at} times") for at in range(N)]
    side = tmp_path / f"people.faiss{end}"
    side.write_text(_lines(rows) if end == ".jsonl" else _table(rows), newline="")
    plan, verdict = erased(opened(path, "email", "email"), "person9@example.org")
    assert (plan.n_records, verdict.word) == ({"person9@example.org": 2}, PURGED)
    kept = [row for row in rows if row[0] // 2 != 9]
    assert side.read_bytes().decode() == (_lines(kept) if end == ".jsonl" else _table(kept))
    assert in_files(tmp_path, [VECTORS[at].tobytes() for at in (18, 19)]) == 0
    assert faiss.read_index(str(path)).ntotal == N - 2


def _lines(rows: list[tuple[int, str, str]]) -> str:
    return "".join(
        json.dumps({"text": text, "id": at, "email": email}) + "\n" for at, email, text in rows
    )


def _table(rows: list[tuple[int, str, str]]) -> str:
    file = io.StringIO()
    csv.writer(file).writerows([("id", "email", "text"), *rows])
    return file.getvalue()


@pytest.mark.parametrize("description", ["IVF16,Flat"])
def test_a_killed_erasure_is_finished_by_the_next(tmp_path: Path, description: str) -> None:
    rows = [(int(i), f"person{i}@example.org", "said") for i in IDS]
    gone = leaving(0.05)
    stay = np.setdiff1d(np.arange(N), gone)
    identities = [rows[at][1] for at in gone]

    def fresh(name: str) -> tuple[Path, str]:
        folder = tmp_path / name
        folder.mkdir()
        path, _ = made(folder, description)
        (folder / "people.faiss.jsonl").write_text(_lines(rows))
        return folder, f"faiss:{path}"

    for folder, place in killed_erasures(fresh, identities):
        assert in_files(folder, [VECTORS[k].tobytes() for k in stay]) == stay.size
        assert erased_apart(place, identities) is not None
        traces = [VECTORS[k].tobytes() for k in gone] + [text.encode() for text in identities]
        assert in_files(folder, traces) == 0
        assert in_files(folder, [VECTORS[k].tobytes() for k in stay]) == stay.size
        assert len((folder / "people.faiss.jsonl").read_text().splitlines()) == stay.size
        assert {path.name for path in folder.iterdir()} == {"people.faiss", "people.faiss.jsonl"}


def test_bad_input_is_one_error_and_changes_nothing(tmp_path: Path) -> None:
    path, _ = made(tmp_path)
    before = path.read_bytes()
    (tmp_path / "text").write_text("no index")
    (tmp_path / "cut").write_bytes(before[:5_000])
    flat = faiss.IndexFlatL2(WIDTH)
    flat.add(VECTORS)
    faiss.write_index(flat, str(tmp_path / "flat"))
    binary = faiss.IndexBinaryFlat(WIDTH)
    faiss.write_index_binary(binary, str(tmp_path / "binary"))
    both = faiss.index_factory(WIDTH, "IDMap,IVF4,Flat")
    both.train(VECTORS)
    faiss.write_index(both, str(tmp_path / "both"))
    cases = {
        "none": "there is no such file", "text": "not an index", "cut": "not an index",
        "binary": "not an index", "flat": "has no ids of its own", "both": "has no ids of its own",
    }  # fmt: skip
    for name, said in cases.items():
        with refused(said):
            opened(tmp_path / name)
    with refused("without a subject field"):
        opened(path, "email")
    side = tmp_path / "people.faiss.jsonl"
    for text in ('{"id": 1}\n{"id": 1}\n', '{"id": "x"}\n', '{"id": 1.5}', "[]\n", "{"):
        side.write_text(text)
        with refused("could not be read"):
            opened(path)
    (tmp_path / "people.faiss.csv").write_text("id\n")
    with refused("two files beside it"):
        opened(path)
    assert path.read_bytes() == before


def test_an_index_that_cannot_remove_is_an_error_and_stays(tmp_path: Path) -> None:
    path, _ = made(tmp_path, "IVF16,PQ8+16")
    before = path.read_bytes()
    with refused("cannot remove vectors"):
        erased(opened(path), int(IDS[0]))
    assert path.read_bytes() == before


def test_ids_that_can_be_read_by_place_leave(tmp_path: Path) -> None:
    path, index = made(tmp_path, ids=np.arange(N, dtype=np.int64))
    index.make_direct_map()
    faiss.write_index(index, str(path))
    _, verdict = erased(opened(path), 11)
    after = faiss.read_index(str(path))
    assert (verdict.word, after.ntotal) == (PURGED, N - 1)
    assert np.array_equal(after.reconstruct(12), VECTORS[12])


def test_everybody_may_leave(tmp_path: Path) -> None:
    path, _ = made(tmp_path, "IDMap,HNSW16")
    _, verdict = erased(opened(path), *IDS.tolist())
    assert (verdict.word, faiss.read_index(str(path)).ntotal) == (PURGED, 0)


def test_finding_changes_nothing(tmp_path: Path) -> None:
    path, _ = made(tmp_path)
    before = path.read_bytes()
    with opened(path) as target:
        plan = target.find(Named(int(IDS[1])))
        assert isinstance(plan, Plan)
        assert plan.changed == {"people.faiss": 1}
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["people.faiss"]
