"""People leave collections of Chroma: no vector and no text of theirs is left, and others' stay.

Vectors lie in the files as they are, those under the cosine with the length 1; texts lie in the
file of SQLite, where the index of texts has their pieces.
"""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apart import answer_apart, in_files, killed_erasures
from corpus import N, leaving
from refusals import refused

from erasable.workspace.targets import hnsw, kinds, steps
from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.verdicts import PURGED
from people import Named, erased

chromadb = pytest.importorskip("chromadb", reason="targets that are collections of Chroma")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

WIDTH = 16
_RANDOM = np.random.default_rng(42)
VECTORS = _RANDOM.normal(size=(N, WIDTH)).astype(np.float32)
TOKENS = [_RANDOM.bytes(9).hex() for _ in range(N)]
IDS = [f"record-{token[:9]}" for token in TOKENS]
TEXTS = [f"{token} said it" for token in TOKENS]
EMAILS = [f"{token[:6]}.{at:05}@example.org" for at, token in enumerate(TOKENS)]

_READ = """
import json, sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
found = client.get_collection(sys.argv[2], embedding_function=None)
rows = found.get(include=["embeddings", "documents", "metadatas"])
print(json.dumps([
    str(found.id), found.configuration_json, found.metadata, rows["ids"], rows["documents"],
    rows["metadatas"], rows["embeddings"].tolist() if rows["ids"] else [],
]))
"""

_TEXTS = """
import json, sqlite3, sys
file = sqlite3.connect(sys.argv[1])
file.execute(
    "create virtual table temp.words using "
    "fts5vocab('main', 'embedding_fulltext_search', 'row')"
)
print(json.dumps([term for (term,) in file.execute("select term from temp.words")]))
"""


def fill(client: Any, name: str = "docs", space: str = "l2", **hnsw: Any) -> Any:
    """Make a collection with records."""
    found = client.create_collection(
        name, embedding_function=None, metadata={"of": "tests"},
        configuration={"hnsw": {"space": space, "ef_search": 200, "ef_construction": 200, **hnsw}},
    )  # fmt: skip
    for at in range(0, N, 500):
        part = slice(at, at + 500)
        found.add(
            ids=IDS[part], embeddings=VECTORS[part], documents=TEXTS[part],
            metadatas=[{"email": email, "source": "letters"} for email in EMAILS[part]],
        )  # fmt: skip
    return found


def made(folder: Path, space: str = "l2", **hnsw: Any) -> None:
    """Make a folder with a collection, and close it."""
    client = chromadb.PersistentClient(str(folder))
    fill(client, "docs", space, **hnsw)
    client.close()


def erased_from(place: Path | str, *identities: str, field: str = "email") -> Any:
    """Erase people, and close the target; return what was found, and the verdict."""
    with opened(place, field) as target:
        return erased(target, *identities)


def opened(folder: Path | str, field: str = "email") -> Any:
    place = folder if isinstance(folder, str) else f"chroma:{folder}#docs"
    return kinds.opened(place, Settings((Subject(field, "email"),)))


def read(folder: Path, name: str = "docs") -> list[Any]:
    """Read a collection in a process of its own."""
    found: list[Any] = answer_apart(_READ, str(folder), name)
    return found


def others(gone: list[int]) -> list[int]:
    return sorted({*range(N)} - {*gone})


def vectors(which: list[int]) -> list[bytes]:
    return [VECTORS[at].tobytes() for at in which]


def texts(which: list[int]) -> list[bytes]:
    return [
        each.encode()
        for at in which
        for each in (IDS[at], TEXTS[at], EMAILS[at], TOKENS[at][3:])
    ]  # fmt: skip


def stays(before: list[Any], after: list[Any], gone: list[int]) -> None:
    """Check that a collection is as it was, without some records."""
    assert after[:3] == before[:3]
    kept = others(gone)
    for old, new in zip(before[3:], after[3:], strict=True):
        assert new == [old[at] for at in kept]


@pytest.mark.parametrize("share", [0.0005, 0.05, 0.15])
@pytest.mark.parametrize("sync", [150, 7_000])
def test_no_vector_and_no_text_is_left(tmp_path: Path, sync: int, share: float) -> None:
    made(tmp_path, sync_threshold=sync)
    before, gone = read(tmp_path), leaving(share)
    assert in_files(tmp_path, texts(gone)) == 4 * len(gone)
    plan, verdict = erased_from(tmp_path, *(EMAILS[at] for at in gone))
    assert verdict == steps.Verdict(PURGED)
    assert plan.changed == {"docs": len(gone)}
    assert in_files(tmp_path, vectors(gone) + texts(gone)) == 0
    some = others(gone)[::19]
    assert in_files(tmp_path, texts(some) + vectors(some)) == 5 * len(some)
    stays(before, read(tmp_path), gone)


def test_pieces_of_texts_leave_their_index(tmp_path: Path) -> None:
    client = chromadb.PersistentClient(str(tmp_path))
    found = client.create_collection("docs", embedding_function=None)
    said = ["the quick brown fox", "a xylophone qwzx", "lazy dogs sleep"]
    found.add(
        ids=["first-record", "second-record", "third-record"], embeddings=VECTORS[:3],
        documents=said, metadatas=[{"email": email} for email in EMAILS[:3]],
    )  # fmt: skip
    client.close()
    file = str(tmp_path / "chroma.sqlite3")
    assert "qwz" in answer_apart(_TEXTS, file)
    raw = chromadb.PersistentClient(str(tmp_path))  # a negative control: the delete of Chroma
    raw.get_collection("docs", embedding_function=None).delete(ids=["third-record"])
    raw.close()
    _, verdict = erased_from(tmp_path, EMAILS[1])
    assert verdict.word == PURGED
    pieces = answer_apart(_TEXTS, file)
    assert not {"qwz", "wzx", "xyl"} & {*pieces}
    assert {"the", "fox"} <= {*pieces}


@pytest.mark.parametrize("space", ["cosine", "ip"])
def test_spaces(tmp_path: Path, space: str) -> None:
    made(tmp_path, space, sync_threshold=400)
    before, gone = read(tmp_path), leaving(0.05)
    assert stored(tmp_path, [*range(N)]) == N
    _, verdict = erased_from(tmp_path, *(EMAILS[at] for at in gone))
    assert verdict == steps.Verdict(PURGED)
    stays(before, read(tmp_path), gone)
    assert stored(tmp_path, gone) == 0
    assert stored(tmp_path, others(gone)) == N - len(gone)
    assert in_files(tmp_path, vectors(gone) + texts(gone)) == 0


def test_a_vector_of_length_1_that_is_left_is_told(tmp_path: Path) -> None:
    """A negative control: the deletion of Chroma leaves vectors that no byte of theirs tells."""
    made(tmp_path, "cosine", sync_threshold=400)
    with opened(tmp_path) as target:
        plan = target.find(Named(*EMAILS[:7]))
    client = chromadb.PersistentClient(str(tmp_path))
    client.get_collection("docs", embedding_function=None).delete(ids=IDS[:7])
    client.close()
    with opened(tmp_path) as target:
        assert target.compact() == []
        found = target.scan(plan.marks, plan.living)
    assert (found.n_left, found.where, found.reasons) == (7, ["data_level0.bin"], [])


def stored(folder: Path, which: list[int]) -> int:
    """Count the vectors that an index holds as they are or with the length 1, up to rounding.

    An element has links to at most 32 others and their number, the vector and its label.
    """
    (path,) = folder.rglob("data_level0.bin")
    (n,) = np.frombuffer(path.with_name("header.bin").read_bytes()[20:28], dtype=np.uint64)
    data = np.frombuffer(path.read_bytes(), dtype=np.uint8).reshape(-1, 132 + 4 * WIDTH + 8)
    there = data[: int(n), 132 : 132 + 4 * WIDTH].copy().view(np.float32)
    there = there / np.linalg.norm(there, axis=1, keepdims=True)
    units = VECTORS[which] / np.linalg.norm(VECTORS[which], axis=1, keepdims=True)
    return sum(bool((np.abs(there - unit).max(axis=1) < 1e-5).any()) for unit in units)


def test_neighbours_are_found(tmp_path: Path) -> None:
    made(tmp_path)
    gone = leaving(0.15)
    erased_from(tmp_path, *(EMAILS[at] for at in gone))
    client = chromadb.PersistentClient(str(tmp_path))
    found = client.get_collection("docs", embedding_function=None)
    probes = np.random.default_rng(7).normal(size=(50, WIDTH)).astype(np.float32)
    near = found.query(query_embeddings=probes, n_results=10, include=[])["ids"]
    client.close()
    kept = np.array(others(gone))
    distances = ((VECTORS[kept][None] - probes[:, None]) ** 2).sum(axis=2)
    exact = [{IDS[kept[at]] for at in row} for row in np.argsort(distances, axis=1)[:, :10]]
    assert sum(len(one & {*other}) for one, other in zip(exact, near, strict=True)) >= 495


def test_other_collections_of_the_folder_stay(tmp_path: Path) -> None:
    client = chromadb.PersistentClient(str(tmp_path))
    fill(client, "docs")
    other = client.create_collection("other", embedding_function=None, metadata={"kept": True})
    other.add(ids=IDS[:150], embeddings=-VECTORS[:150], documents=[t[::-1] for t in TEXTS[:150]])
    client.close()
    before = read(tmp_path, "other")
    _, verdict = erased_from(tmp_path, *EMAILS[:100])
    assert "still in chroma.sqlite3" in str(verdict.reason)  # the ids, which both collections have
    assert in_files(tmp_path, vectors([*range(100)])) == 0
    assert read(tmp_path, "other") == before
    again = chromadb.PersistentClient(str(tmp_path))
    near = again.get_collection("other", embedding_function=None).query(
        query_embeddings=-VECTORS[:5], n_results=1, include=[]
    )
    again.close()
    assert near["ids"] == [[each] for each in IDS[:5]]


def test_records_that_come_later_are_found(tmp_path: Path) -> None:
    made(tmp_path)
    gone = leaving(0.05)
    erased_from(tmp_path, *(EMAILS[at] for at in gone))
    client = chromadb.PersistentClient(str(tmp_path))
    found = client.get_collection("docs", embedding_function=None)
    found.add(ids=["later"], embeddings=VECTORS[gone[:1]], documents=["afterwards"])
    assert found.query(query_embeddings=VECTORS[gone[:1]], n_results=1)["ids"] == [["later"]]
    assert found.get(where_document={"$contains": "afterw"})["ids"] == ["later"]
    client.close()
    assert read(tmp_path)[3] == [IDS[at] for at in others(gone)] + ["later"]


@pytest.mark.parametrize("field", ["id", "metadata.id", "owners[1]"])
def test_subjects_are_ids_or_keys_of_the_metadata(tmp_path: Path, field: str) -> None:
    client = chromadb.PersistentClient(str(tmp_path))
    found = client.create_collection("docs", embedding_function=None)
    found.add(
        ids=IDS[:50], embeddings=VECTORS[:50],
        metadatas=[
            {"id": EMAILS[at], "owners": ["nobody", f"{at:03}@x.org"]} for at in range(50)
        ],
    )  # fmt: skip
    client.close()
    named = {"id": IDS[7], "metadata.id": EMAILS[7], "owners[1]": "007@x.org"}[field]
    _, verdict = erased_from(tmp_path, named, field=field)
    assert verdict == steps.Verdict(PURGED)
    assert read(tmp_path)[3] == IDS[:7] + IDS[8:50]


@pytest.mark.parametrize("n", [1, 2, 40])
def test_everybody_may_leave(tmp_path: Path, n: int) -> None:
    client = chromadb.PersistentClient(str(tmp_path))
    found = client.create_collection("docs", embedding_function=None)
    found.add(
        ids=IDS[:n], embeddings=VECTORS[:n], documents=TEXTS[:n],
        metadatas=[{"email": email} for email in EMAILS[:n]],
    )  # fmt: skip
    client.close()
    _, verdict = erased_from(tmp_path, *EMAILS[:n])
    assert verdict.word == PURGED
    assert in_files(tmp_path, vectors([*range(n)]) + texts([*range(n)])) == 0
    assert read(tmp_path)[3] == []


def test_a_deletion_of_chroma_alone_leaves_everything(tmp_path: Path) -> None:
    """A negative control of the search: it finds what Chroma's own deletion leaves."""
    made(tmp_path)
    gone = leaving(0.05)
    with opened(tmp_path) as target:
        plan = target.find(Named(*(EMAILS[at] for at in gone)))
    client = chromadb.PersistentClient(str(tmp_path))
    client.get_collection("docs", embedding_function=None).delete(ids=[IDS[at] for at in gone])
    client.close()
    with opened(tmp_path) as target:
        found = target.scan(plan.marks, plan.living)
    assert found.n_left > 3 * len(gone)
    assert in_files(tmp_path, vectors(gone)) == len(gone)


_HOLD = """
import sys, chromadb
client = chromadb.PersistentClient(sys.argv[1])
found = client.get_collection("docs", embedding_function=None)
found.query(query_embeddings=[[0.0] * 16], n_results=3)
print("open", flush=True)
input()
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are told on Linux")
def test_a_program_that_has_the_folder_open_is_a_reason(tmp_path: Path) -> None:
    made(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as held:  # fmt: skip
        assert held.stdout is not None
        assert held.stdout.readline() == "open\n"
        _, verdict = erased_from(tmp_path, EMAILS[3])
        held.communicate("\n")
    assert "another program has the folder open" in str(verdict.reason)
    _, verdict = erased_from(tmp_path, EMAILS[4])
    assert verdict.word == PURGED


_HALTS = """
import json, sys
from pathlib import Path
from erasable.workspace.targets.chroma import ChromaTarget
from test_chroma import EMAILS, erased, opened
which, at = json.loads(sys.argv[2]), sys.argv[3]

def halting(method):
    def call(*arguments, **named):
        print("halted", flush=True)
        input()
        return method(*arguments, **named)
    return call

setattr(ChromaTarget, at, halting(getattr(ChromaTarget, at)))
with opened(Path(sys.argv[1])) as target:
    _, verdict = erased(target, *(EMAILS[each] for each in which))
print(json.dumps([verdict.word, verdict.reason]))
"""


@pytest.mark.parametrize("at", ["delete", "_sync", "scan"])
def test_another_process_of_erasable_is_refused_meanwhile(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them damaged the file of SQLite, and one removed the labels that another kept.

    The control: without the lock, the other one goes on.
    """
    made(tmp_path, sync_threshold=150)
    before, first = read(tmp_path), leaving(0.05)
    second = [each for each in range(5, N, 40) if each not in first]
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _HALTS, str(tmp_path), json.dumps(first), at],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "halted\n"
        there = files_of(tmp_path)
        assert any(path.endswith(".kept") for path in there) == (at == "_sync")
        for _ in range(2):
            with refused("is opened by another process of erasable; expected one at a time"):
                opened(tmp_path)
        assert files_of(tmp_path) == there
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", lambda *_: None)
            opened(tmp_path).close()
        told, _ = other.communicate("\n" * 3)
    assert json.loads(told.splitlines()[-1]) == [PURGED, None]
    _, verdict = erased_from(tmp_path, *(EMAILS[each] for each in second))
    assert verdict == steps.Verdict(PURGED)
    gone = sorted({*first, *second})
    stays(before, read(tmp_path), gone)
    assert in_files(tmp_path, vectors(gone) + texts(gone)) == 0
    with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as file:
        assert file.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_python_reads_the_file_of_sqlite_while_no_client_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it ends the locks of Chroma, which has a SQLite of its own, in this process."""
    made(tmp_path, "cosine", sync_threshold=150)
    connect, client, n_open = sqlite3.connect, chromadb.PersistentClient, list[int]()
    clients: list[Any] = []

    def counted(*arguments: Any, **named: Any) -> Any:
        n_open.append(sum(each.closed == 0 for each in clients))
        return connect(*arguments, **named)

    class Counted:
        closed = 0

        def __init__(self, *arguments: Any, **named: Any) -> None:
            self._client = client(*arguments, **named)
            clients.append(self)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._client, name)

        def close(self) -> None:
            self._client.close()
            self.closed += 1

    monkeypatch.setattr(sqlite3, "connect", counted)
    monkeypatch.setattr(chromadb, "PersistentClient", Counted)
    _, verdict = erased_from(tmp_path, EMAILS[3])
    assert verdict.word == PURGED
    assert (len(n_open) > 2, any(n_open)) == (True, False)
    assert [each.closed for each in clients] == [1] * len(clients)


def test_a_killed_erasure_is_finished_by_the_next(tmp_path: Path) -> None:
    gone = leaving(0.05)
    identities = [EMAILS[at] for at in gone]
    made(tmp_path / "first", sync_threshold=300)
    before = read(tmp_path / "first")

    def fresh(name: str) -> tuple[Path, str]:
        folder = shutil.copytree(tmp_path / "first", tmp_path / name)
        return folder, f"chroma:{folder}#docs"

    for folder, _ in killed_erasures(fresh, identities, "delete", "scan"):
        with opened(folder) as target:  # as steps do that know an earlier plan
            target.erase(target.find(Named(*identities)))
            assert target.compact() == []
        assert in_files(folder, vectors(gone) + texts(gone)) == 0
        assert stored(folder, others(gone)) == N - len(gone)
        stays(before, read_here(folder), gone)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sync", [150, 7_000])
def test_a_kill_while_chroma_writes_which_vectors_records_have(
    tmp_path: Path, sync: int, share: float
) -> None:
    """Chroma alone does not read the collection any more, also if it was the first time."""
    made(tmp_path, sync_threshold=sync)
    before = read(tmp_path)
    (segment,) = (path.parent for path in tmp_path.glob("*/header.bin"))
    labels = segment / "index_metadata.pickle"
    hnsw.keep_labels(segment)
    assert labels.exists() == (sync < N)
    if not labels.exists():
        labels.write_bytes(pickle.dumps({"of": "an index"}))
    os.truncate(labels, int(share * labels.stat().st_size))
    if share < 1:
        with pytest.raises(AssertionError):
            read(tmp_path)
    elif sync > N:
        labels.unlink()
    _, verdict = erased_from(tmp_path, EMAILS[3])
    assert verdict.reason is None
    stays(before, read(tmp_path), [3])
    assert [path.name for path in segment.glob("index_metadata*")] == [labels.name]


def read_here(folder: Path) -> list[Any]:
    """Read a collection as `read` does, in this process."""
    client = chromadb.PersistentClient(str(folder))
    found = client.get_collection("docs", embedding_function=None)
    rows = found.get(include=["embeddings", "documents", "metadatas"])
    client.close()
    return [
        str(found.id), found.configuration_json, found.metadata, rows["ids"], rows["documents"],
        rows["metadatas"], np.asarray(rows["embeddings"]).tolist(),
    ]  # fmt: skip


def test_bad_input_is_one_error_and_changes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    client = chromadb.PersistentClient(str(store))
    client.create_collection(  # its index is written: Chroma writes one anew that is not
        "docs", embedding_function=None, configuration={"hnsw": {"sync_threshold": 3}}
    ).add(ids=IDS[:5], embeddings=VECTORS[:5], metadatas=[{"email": each} for each in EMAILS[:5]])
    client.get_collection("docs", embedding_function=None).query(query_embeddings=VECTORS[:1])
    client.close()
    before = files_of(store)
    places = {
        f"chroma:{tmp_path / 'none'}#docs": "there is no chroma.sqlite3",
        f"chroma:{store}#nobody": "there is no such collection",
        f"chroma:{store}": "does not name a collection",
        "chroma+ftp://host#docs": "not one of a server",
        "chroma+http://host:port#docs": "not one of a server",
        f"chroma+http://ann:secret@127.0.0.1:{free_port()}#docs": "could not be opened",
    }
    for place, said in places.items():
        with refused(said):
            opened(place)
    with refused("without a subject field"), opened(store, "owner") as one:
        one.find(Named(EMAILS[1]))
    assert not (tmp_path / "none").exists()
    assert files_of(store) == before
    with closing(sqlite3.connect(store / "chroma.sqlite3")) as file, file:
        file.execute("delete from migrations where dir = 'sysdb' and version > 6")
    before = files_of(store)
    with refused("could not be opened"):
        opened(store)
    assert files_of(store) == before


def files_of(folder: Path) -> dict[str, Any]:
    """Return the files of a folder, that of SQLite by its rows: readers write a lock there."""
    found: dict[str, Any] = {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "chroma.sqlite3"
    }
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as file:
        found["rows"] = [line for line in file.iterdump() if "acquire_write" not in line]
    return found


# -- servers ---------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Start a server of Chroma; return its folder and port."""
    folder, port = tmp_path / "served", free_port()
    command = Path(sys.executable).with_name("chroma")
    with (tmp_path / "log").open("w") as log, subprocess.Popen(
        [str(command), "run", "--path", str(folder), "--port", str(port)], stdout=log, stderr=log
    ) as run:  # fmt: skip
        try:
            while run.poll() is None:
                try:
                    ask(port, "/api/v2/heartbeat")
                    break
                except OSError:
                    continue
            assert run.poll() is None, (tmp_path / "log").read_text()
            yield folder, port
        finally:
            run.terminate()


def ask(port: int, path: str, body: Any = None) -> Any:
    """Ask a server by HTTP alone."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def ids_at(port: int) -> list[str]:
    """Return the ids of the collection, by HTTP alone."""
    root = "/api/v2/tenants/default_tenant/databases/default_database/collections"
    found = ask(port, f"{root}/docs")
    ids: list[str] = ask(port, f"{root}/{found['id']}/get", {"include": []})["ids"]
    return ids


def test_a_server_whose_folder_is_known(server: tuple[Path, int]) -> None:
    folder, port = server
    client = chromadb.HttpClient("127.0.0.1", port)
    found = fill(client, space="cosine")
    gone = leaving(0.05)
    place = f"chroma+http://127.0.0.1:{port}?path={folder}#docs"
    _, verdict = erased_from(place, *(EMAILS[at] for at in gone))
    assert verdict == steps.Verdict(PURGED)
    assert in_files(folder, vectors(gone) + texts(gone)) == 0
    assert (stored(folder, gone), stored(folder, others(gone))) == (0, N - len(gone))
    assert ids_at(port) == [IDS[at] for at in others(gone)]
    found.add(ids=[f"later-{at}" for at in range(1_200)], embeddings=VECTORS[:1_200] + 1)
    assert found.count() == N - len(gone) + 1_200  # a client that was there goes on
    assert in_files(folder, vectors(gone) + texts(gone)) == 0
    client.close()


def test_a_server_elsewhere_is_not_proved(server: tuple[Path, int]) -> None:
    folder, port = server
    client = chromadb.HttpClient("127.0.0.1", port)
    fill(client)
    client.close()
    gone = leaving(0.0005)
    target = opened(f"chroma+http://ann:secret@127.0.0.1:{port}#docs")
    assert "secret" not in target.shown
    _, verdict = erased(target, *(EMAILS[at] for at in gone))
    target.close()
    assert verdict == steps.Verdict(steps.NOT_PROVED, "its files cannot be seen from here")
    assert ids_at(port) == [IDS[at] for at in others(gone)]
    index = next(folder.rglob("data_level0.bin")).parent
    assert in_files(index, vectors(gone)) == 0


_NPM = """
const {ChromaClient} = require("chromadb");
(async () => {
  const client = new ChromaClient({host: "127.0.0.1", port: Number(process.argv[2])});
  const found = (await client.listCollections()).find((each) => each.name === "docs");
  const rows = await found.get({include: []});
  console.log(JSON.stringify([await found.count(), rows.ids]));
})();
"""


def test_a_server_is_recounted_by_the_client_of_npm(
    server: tuple[Path, int], tmp_path: Path
) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm is not installed")
    there = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "chromadb@3"], cwd=_folder(tmp_path / "npm"),
        capture_output=True, check=False,
    )  # fmt: skip
    if there.returncode:
        pytest.skip("npm could not install chromadb")
    folder, port = server
    client = chromadb.HttpClient("127.0.0.1", port)
    fill(client, space="cosine")
    client.close()
    gone = leaving(0.05)
    place = f"chroma+http://127.0.0.1:{port}?path={folder}#docs"
    _, verdict = erased_from(place, *(EMAILS[at] for at in gone))
    assert verdict.word == PURGED
    (tmp_path / "npm" / "count.js").write_text(_NPM)
    done = subprocess.run(
        [node, "count.js", str(port)], cwd=tmp_path / "npm", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    kept = [IDS[at] for at in others(gone)]
    assert json.loads(done.stdout.splitlines()[-1]) == [len(kept), kept]


def _folder(path: Path) -> Path:
    path.mkdir()
    (path / "package.json").write_text("{}")
    return path


# -- short and similar identities ------------------------------------------------------------------


@pytest.mark.parametrize("spelled", ["{}", "{}@example.org"], ids=["number", "address"])
def test_who_has_a_short_or_similar_identity_is_proved_gone(tmp_path: Path, spelled: str) -> None:
    """As numbers of users, which are numbers of rows, too; and "7@..." is in "17@..."."""
    n, gone = 300, (3, 17, 250)
    names = [spelled.format(at) for at in range(n)]
    values = [int(name) if name.isdigit() else name for name in names]
    client = chromadb.PersistentClient(str(tmp_path))
    docs = client.create_collection("docs", embedding_function=None)
    docs.add(
        ids=[f"doc-{at}" for at in range(n)], embeddings=VECTORS[:n], documents=TEXTS[:n],
        metadatas=[{"user": value} for value in values],
    )  # fmt: skip
    client.close()
    with opened(tmp_path, "user") as target:
        plan, verdict = erased(target, *(values[at] for at in gone))
    assert (verdict.word, plan.n_rows()) == (PURGED, (3, 0))
    with closing(sqlite3.connect(tmp_path / "chroma.sqlite3")) as file, file:
        file.execute(  # what an orphan would be
            "insert into embedding_metadata (id, key, int_value, string_value) "
            "values (9999, ?, ?, ?)",
            ("user", *((3, None) if spelled == "{}" else (None, names[3]))),
        )
    with opened(tmp_path, "user") as target:
        assert target.scan(plan.marks, plan.living).n_left == 1
