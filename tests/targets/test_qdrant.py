"""Collections of Qdrant as targets: shards, the local mode, and servers."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("qdrant_edge", reason="Qdrant is optional")
pytest.importorskip("qdrant_client", reason="Qdrant is optional")

from apart import killed, run
from corpus import (
    MANY,
    ONE,
    SOME,
    VECTORS,
    WIDTH,
    N,
    data_of,
    email,
    text,
    there,
)
from qdrant_client import QdrantClient, models
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeVectorParams,
    PayloadSchemaType,
    Point,
    ScrollRequest,
    UpdateOperation,
)
from refusals import refused

from erasable.workspace.targets.protocol import Plan, Settings, Subject
from erasable.workspace.targets.qdrant import QdrantTarget
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED
from people import Named, erased

FEW = range(3, 200, 10)
SETTINGS = Settings((Subject("metadata.user", "email"),))
BY_ID = Settings((Subject("id", "number"),))


def payload(at: int) -> dict[str, Any]:
    """Return the payload of a point, as LangChain has it."""
    return {"page_content": text(at), "metadata": {"user": email(at), "page": at % 3}}


# -- shards ----------------------------------------------------------------------------------------


def shard(folder: Path, *, n: int = N, indexed: bool = False) -> Path:
    """Make a shard."""
    folder.mkdir(parents=True)
    kept = EdgeShard.create(
        str(folder),
        EdgeConfig(
            vectors=EdgeVectorParams(size=WIDTH, distance=Distance.Cosine),
            optimizers=EdgeOptimizersConfig(indexing_threshold=10 if indexed else None),
        ),
    )
    kept.update(UpdateOperation.create_field_index("metadata.user", PayloadSchemaType.Keyword))
    for at in range(0, n, 500):
        points = [
            Point(id=i, vector=VECTORS[i].tolist(), payload=payload(i))
            for i in range(at, min(at + 500, n))
        ]
        kept.update(UpdateOperation.upsert_points(points))
    if indexed:
        kept.optimize()
    kept.flush()
    kept.close()
    return folder


def read(folder: Path) -> dict[Any, tuple[Any, list[float]]]:
    """Read a shard with its own client."""
    kept = EdgeShard.load(str(folder))
    found, offset = {}, None
    while True:
        some, offset = kept.scroll(
            ScrollRequest(limit=900, offset=offset, with_payload=True, with_vector=True)
        )
        found |= {each.id: (each.payload, each.vector) for each in some}
        if offset is None:
            kept.close()
            return found


def left(folder: Path, before: dict[Any, Any], gone: list[int]) -> tuple[int, int, int]:
    """Count vectors, texts and identities that any file has."""
    parts = data_of([folder])
    vectors = [struct.pack("<6f", *before[at][1][:6]) for at in gone]
    return (
        there(parts, vectors),
        sum(there(parts, text(at).encode().split()) > 0 for at in gone),  # a word, if compressed
        there(parts, [email(at).encode() for at in gone]),
    )


@pytest.mark.parametrize(
    ("gone", "indexed"),
    [(ONE, False), (SOME, True), (MANY, False)],
    ids=["0.05%", "5%, with a graph", "15%"],
)
def test_a_shard_keeps_nothing_of_those_who_left(
    tmp_path: Path, gone: list[int], indexed: bool
) -> None:
    folder = shard(tmp_path / "store" / "docs", indexed=indexed)
    before = read(folder)
    settings = (folder / "edge_config.json").read_bytes()
    stay = [at for at in range(N) if at not in set(gone)]
    assert left(folder, before, gone) == (len(gone),) * 3  # the control: what is there is found
    with QdrantTarget(f"qdrant:{tmp_path / 'store'}#docs", SETTINGS) as target:
        plan, verdict = erased(target, *map(email, gone))
    assert (verdict.word, verdict.reason) == (PURGED, None)
    assert plan.changed == {"docs": len(gone)}
    assert left(folder, before, gone) == (0, 0, 0)
    assert left(folder, before, stay[:50]) == (50, 50, 50)  # and others still are
    after = read(folder)
    assert after == {at: before[at] for at in stay}
    assert (folder / "edge_config.json").read_bytes() == settings


def test_the_clean_up_that_is_documented_leaves_them(tmp_path: Path) -> None:
    """It is the control of the test above."""
    folder = shard(tmp_path / "docs")
    before = read(folder)
    kept = EdgeShard.load(str(folder))
    kept.update(UpdateOperation.delete_points(SOME))
    kept.optimize()
    kept.flush()
    kept.close()
    assert left(folder, before, SOME)[:2] == (len(SOME), len(SOME))


UPDATES_THEN_DIES = """
import os, signal, sys
from qdrant_edge import EdgeShard, Point, UpdateOperation
kept = EdgeShard.load(sys.argv[1])
kept.update(UpdateOperation.set_payload([3], {"late": "yes"}))
kept.update(UpdateOperation.delete_points([4]))
kept.update(UpdateOperation.upsert_points([Point(id=9_999, vector=[1.0] * 32, payload={})]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_updates_after_an_erasure_survive_a_crash(tmp_path: Path) -> None:
    """They would be ignored if the numbers of the log began anew."""
    folder = shard(tmp_path / "docs", n=300)
    kept = EdgeShard.load(str(folder))
    for at in range(200):  # numbers that are higher than a new log's
        kept.update(UpdateOperation.set_payload([at], {"seen": at}))
    kept.close()
    with QdrantTarget(f"qdrant:{folder}", SETTINGS) as target:
        target.erase(target.find(Named(email(7))))
        assert target.compact() == []
    assert run(UPDATES_THEN_DIES, folder) is None
    after = read(folder)
    assert after[3][0]["late"] == "yes"
    assert sorted(after) == [*(at for at in range(300) if at not in (4, 7)), 9_999]


KILLED = """
from qdrant_edge import EdgeShard
from erasable.workspace.targets import qdrant_edge
from erasable.workspace.targets.qdrant import QdrantTarget
from test_qdrant import Named, FEW, SETTINGS, email

class Shard:
    def __init__(self, kept):
        self.kept = kept
    def __getattr__(self, name):
        return dying(getattr(self.kept, name))
    @staticmethod
    def load(path):
        return Shard(EdgeShard.load(path))

target = QdrantTarget(f"qdrant:{sys.argv[1]}", SETTINGS)
target.close()
qdrant_edge.EdgeShard = Shard
qdrant_edge.os.replace = dying(os.replace)
qdrant_edge.sync_folder = dying(qdrant_edge.sync_folder)
target.erase(target.find(Named(*map(email, FEW))))
target.compact()
"""


@pytest.mark.soak
def test_a_killed_erasure_of_a_shard_is_finished_by_the_next(tmp_path: Path) -> None:
    folder = shard(tmp_path / "docs", n=200)
    before = read(folder)
    settings = (folder / "edge_config.json").read_bytes()
    stay = {at: before[at] for at in before if at not in set(FEW)}
    n_killed = 0
    for n in [2, 4, *range(5, 13), 15]:
        n_killed += killed(KILLED, folder, n)
        found = read(folder)
        assert {at: found[at] for at in stay} == stay
    assert n_killed >= 10
    with QdrantTarget(f"qdrant:{folder}", SETTINGS) as target:
        target.erase(target.find(Named(*map(email, FEW))))
        assert target.compact() == []
    assert left(folder, before, FEW) == (0, 0, 0)
    assert read(folder) == stay
    assert (folder / "edge_config.json").read_bytes() == settings


def test_what_a_killed_optimizer_was_building_is_removed(tmp_path: Path) -> None:
    folder = shard(tmp_path / "docs", n=100)
    before = read(folder)
    for name in (
        "temp_segments/segment_builder_x/page_0.dat",
        "segments/.atomicwritex/tmpfile.tmp",
    ):
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(f"{text(3)} {email(3)}")
    with QdrantTarget(f"qdrant:{folder}", SETTINGS) as target:
        _, verdict = erased(target, email(3))
    assert (verdict.word, verdict.reason) == (PURGED, None)
    assert left(folder, before, [3]) == (0, 0, 0)
    assert not [*folder.rglob("segment_builder*"), *folder.rglob(".atomicwrite*")]
    assert read(folder) == {at: before[at] for at in before if at != 3}


def test_a_shard_that_another_program_has_open_is_refused(tmp_path: Path) -> None:
    folder = shard(tmp_path / "docs", n=50)
    kept = EdgeShard.load(str(folder))
    with refused("which no other program has open"):
        QdrantTarget(f"qdrant:{folder}", SETTINGS)
    assert kept.count(CountRequest(exact=True)) == 50
    kept.close()


def test_a_shard_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = shard(tmp_path / "docs", n=50)
    for each in folder.glob("segments/*/version.info"):
        each.write_text("9.0.0")
    with refused(r"could not be opened .*major version"):
        QdrantTarget(f"qdrant:{folder}", SETTINGS)


def test_there_is_no_shard(tmp_path: Path) -> None:
    with refused("there is no collection; expected the folder"):
        QdrantTarget(f"qdrant:{tmp_path}#docs", SETTINGS)
    assert not list(tmp_path.iterdir())


def test_no_point_has_the_subject(tmp_path: Path) -> None:
    folder = shard(tmp_path / "docs", n=50)
    with refused(r"no record of 'docs' has the field 'user'"):
        QdrantTarget(f"qdrant:{folder}", Settings((Subject("user", "email"),)))


def test_points_by_their_ids(tmp_path: Path) -> None:
    folder = shard(tmp_path / "docs", n=50)
    with QdrantTarget(f"qdrant:{folder}", BY_ID) as target:
        plan = target.find(Named(3))
        assert plan.keys == {"docs": [3]}
        target.erase(plan)
        target.erase(plan)  # those that are gone already are no error
    assert len(read(folder)) == 49


# -- the local mode --------------------------------------------------------------------------------


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """Make a collection of the local mode."""
    folder = tmp_path / "local"
    client = QdrantClient(path=str(folder))
    client.create_collection(
        "docs", vectors_config=models.VectorParams(size=WIDTH, distance=models.Distance.COSINE)
    )
    client.upsert(
        "docs",
        [
            models.PointStruct(id=at, vector=VECTORS[at].tolist(), payload=payload(at))
            for at in range(N)
        ],
    )
    client.close()
    return folder


def read_local(folder: Path) -> dict[Any, Any]:
    """Read a collection with its own client."""
    client = QdrantClient(path=str(folder))
    found, _ = client.scroll("docs", limit=2 * N, with_payload=True, with_vectors=True)
    client.close()
    return {each.id: (each.payload, each.vector) for each in found}


def left_local(folder: Path, gone: list[int]) -> tuple[int, int]:
    """Count vectors, as pickled doubles, and identities that any file has."""
    parts = data_of([folder])
    pickled = [b"G".join(struct.pack(">d", each) for each in VECTORS[at][:4]) for at in gone]
    return there(parts, pickled), there(parts, [email(at).encode() for at in gone])


@pytest.mark.parametrize("gone", [ONE, SOME, MANY], ids=["0.05%", "5%", "15%"])
def test_the_local_mode_keeps_nothing_of_those_who_left(local: Path, gone: list[int]) -> None:
    before = read_local(local)
    client = QdrantClient(path=str(local))
    client.delete("docs", points_selector=gone[:1])  # what the client itself leaves
    client.close()
    assert left_local(local, gone)[1] >= len(gone) - 1
    with QdrantTarget(f"qdrant:{local}#docs", SETTINGS) as target:
        plan, verdict = erased(target, *map(email, gone))
        if gone == ONE:  # it was deleted already: nobody was found
            assert not plan.changed
            assert target.compact() == []
    if gone != ONE:
        assert (verdict.word, verdict.reason) == (PURGED, None)
    assert left_local(local, gone) == (0, 0)
    stay = [at for at in range(N) if at not in set(gone)]
    assert left_local(local, stay[:50]) == (50, 50)
    assert read_local(local) == {at: before[at] for at in stay}


KILLED_LOCAL = """
from qdrant_client.local.persistence import CollectionPersistence
from test_qdrant import Named, QdrantTarget, SETTINGS, SOME, email
CollectionPersistence.delete = dying(CollectionPersistence.delete)
target = QdrantTarget(f"qdrant:{sys.argv[1]}#docs", SETTINGS)
target.erase(target.find(Named(*map(email, SOME))))
"""


def test_a_killed_erasure_of_the_local_mode_is_finished_by_the_next(local: Path) -> None:
    before = read_local(local)
    assert all([killed(KILLED_LOCAL, local, n) for n in (0, 4, 8, 8)])
    with QdrantTarget(f"qdrant:{local}#docs", SETTINGS) as target:
        _, verdict = erased(target, *map(email, SOME))
    assert verdict.word == PURGED
    assert left_local(local, SOME) == (0, 0)
    assert read_local(local) == {at: before[at] for at in before if at not in set(SOME)}


def test_there_is_no_collection(local: Path) -> None:
    with refused(r"no collection 'notes'; expected one of: 'docs'"):
        QdrantTarget(f"qdrant:{local}#notes", SETTINGS)


def test_people_in_objects_of_a_list(local: Path) -> None:
    client = QdrantClient(path=str(local))
    for at in range(2):
        by = [{"mail": f"{who}{at}@example.org"} for who in ("first", "second")]
        client.set_payload("docs", {"meta": {"by": by}}, points=[at])
    client.close()
    before = read_local(local)
    settings = Settings((Subject("meta.by.mail", "email"),))
    with QdrantTarget(f"qdrant:{local}#docs", settings) as target:
        erased(target, "second1@example.org")
    assert set(before) - set(read_local(local)) == {1}


@pytest.mark.filterwarnings(  # the client does not close the lock that it could not get
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed file:ResourceWarning"
)
def test_a_local_mode_that_is_open_is_refused(local: Path) -> None:
    script = "from qdrant_client import QdrantClient as C; c = C(path=__import__('sys').argv[1]);"
    script += "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(local)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with refused("which no other program has open"):
            QdrantTarget(f"qdrant:{local}#docs", SETTINGS)
        other.communicate(b"\n")


# -- servers ---------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """A server that answers as Qdrant does, to the few questions of a target."""

    points: ClassVar[dict[int, Any]] = {}

    def do_GET(self) -> None:
        """Name the collections, or the snapshots of one."""
        if self.path == "/collections":
            self._answer({"collections": [{"name": "docs"}]})
        else:
            self._answer([{"name": "one", "size": 1, "creation_time": None, "checksum": None}])

    def do_POST(self) -> None:
        """Scroll, or delete."""
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/collections/docs/points/scroll"):
            points = [
                {"id": at, "payload": payload(at), "vector": VECTORS[at].tolist()}
                for at in sorted(self.points)
            ]
            self._answer({"points": points, "next_page_offset": None})
        else:
            for at in given["points"]:
                self.points.pop(at, None)
            self._answer({"operation_id": 1, "status": "completed"})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""

    def _answer(self, result: Any) -> None:
        good = self.headers.get("api-key") == "geheim"
        self.send_response(200 if good else 401)
        data = json.dumps({"result": result, "status": "ok", "time": 0.0} if good else "geheim")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data.encode())


@pytest.fixture
def server() -> Iterator[str]:
    """Start a server, and return its host and port."""
    Server.points = {at: at for at in range(20)}
    found = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield f"127.0.0.1:{found.server_port}"
    found.shutdown()
    found.server_close()
    thread.join()


def test_a_server_proves_nothing(server: str) -> None:
    with QdrantTarget(f"qdrant+http://:geheim@{server}#docs", SETTINGS) as target:
        plan, verdict = erased(target, email(3), email(4))
    assert sorted(Server.points) == [at for at in range(20) if at not in (3, 4)]
    assert plan.changed == {"docs": 2}
    assert verdict.word == NOT_PROVED
    assert verdict.reason is not None
    for each in ("until its optimizer acts", "1 snapshots", "its files cannot be seen from here"):
        assert each in verdict.reason


@pytest.mark.parametrize("place", ["qdrant+http://:wrong-key@{}#docs", "qdrant+http://{}#docs"])
def test_a_wrong_key_is_refused_and_not_shown(server: str, place: str) -> None:
    with refused(r"could not be reached .* a key that it accepts"):
        QdrantTarget(place.format(server), SETTINGS)


def test_a_key_comes_from_the_environment(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_API_KEY", "geheim")
    with QdrantTarget(f"qdrant+http://{server}#docs", SETTINGS) as target:
        assert target.find(Named(email(3))).keys == {"docs": [3]}


@pytest.mark.parametrize(
    "place", ["qdrant+http://:geheim@127.0.0.1:1#docs", "qdrant+http://:geheim@127.0.0.1:x#docs"]
)
def test_a_server_that_is_not_there(place: str) -> None:
    with refused("expected"):
        QdrantTarget(place, SETTINGS)


def test_a_server_without_the_collection(server: str) -> None:
    with refused(r"no collection 'notes'; expected one of: 'docs'"):
        QdrantTarget(f"qdrant+http://:geheim@{server}#notes", SETTINGS)


def test_a_plan_is_found_again(tmp_path: Path) -> None:
    """What was found before a kill is searched for after it."""
    folder = shard(tmp_path / "docs", n=100)
    with QdrantTarget(f"qdrant:{folder}", SETTINGS) as target:
        plan = target.find(Named(email(3)))
        target.erase(plan)
    kept = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    with QdrantTarget(f"qdrant:{folder}", SETTINGS) as target:
        assert target.scan(kept.marks, kept.living).n_left
        assert target.compact() == []
        found = target.scan(kept.marks, kept.living)
    assert (found.n_left, found.reasons) == (0, [])
    assert found.n_living
