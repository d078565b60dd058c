"""Keys of Redis as targets: hashes, JSON, texts, and vectors as the bytes of a field."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis.exceptions import RedisError, ResponseError

from erasable.core.errors import SourceError
from erasable.workspace.targets.addresses import Address, refused_as
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings
from erasable.workspace.targets.records import is_any, leaves

_KEY, _VALUE = "key", "value"  # the fields of a key, and of a text that is no JSON
_AT_ONCE = 500  # keys of a batch
_TIMEOUT = 60  # seconds that a server has for an answer
_ATTEMPTS = 5  # to read a key that becomes one of another type meanwhile
_PAUSE = 0.05  # seconds between questions whether a file is written
_MODULE = "ReJSON-RL"  # the type of JSON of a server that has the module


class RedisTarget(RecordTarget):
    """Keys of a Redis database that fit a pattern; ``redis://USER:PASSWORD@HOST:PORT/DB#PATTERN``.

    ``rediss://`` asks for encryption, ``redis+unix://USER:PASSWORD@localhost/SOCKET?db=0#PATTERN``
    for a socket. Without a pattern, all keys of the database are looked at.

    The subject is a field of a hash; or a path in an object of JSON, which may be a text or of the
    type of the JSON module; or ``key``: what the ``*`` of a pattern with one stands for. Other
    texts have the one field ``value``. Each member of a list, set or sorted set, and each entry of
    a stream, is a record of its own, with these fields: those of others stay in the key.

    The server deletes in a script (``EVAL``) what is still of the same type and names the same
    people. What another client has changed since it was read stays, and is found again.

    The server writes its files anew, as ``BGREWRITEAOF`` and ``BGSAVE`` do, and without compression
    this time, so that they can be searched. They are searched if this program sees the server's
    folder. What replicas keep, and memory that the server has not used again, is not.

    Raises SourceError if the server cannot be reached or refuses the password, or if no key has a
    subject field.
    """

    def __init__(self, place: str, settings: Settings) -> None:
        """Look at the keys; nothing is changed."""
        address = Address.parse(place)
        self.settings, self.shown, self.name = settings, address.shown, address.name or "*"
        url = address.url.replace("unix://localhost", "unix://", 1)
        with self._refused("could not be reached"):
            self._client: Any = redis.Redis.from_url(
                url, username=address.user, password=address.password,
                socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT,
            )  # fmt: skip
            self._client.ping()
        self._refuse_unknown()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def batches(self) -> Iterator[Records]:
        """Return the keys with what they hold."""
        given: list[bytes] = []
        seen: set[bytes] = set()  # a scan may come back to a key
        with self._refused("could not be read"):
            for key in self._client.scan_iter(match=self.name, count=_AT_ONCE):
                if key not in seen:
                    seen.add(key)
                    given.append(key)
                if len(given) == _AT_ONCE:
                    yield self._records(given)
                    given = []
            yield self._records(given)

    def delete(self, keys: Sequence[Any]) -> None:
        """Delete keys and members that name whom they named when they were found."""
        with self._refused("could not be changed"):
            for at in range(0, len(keys), _AT_ONCE):
                some = [_Member(*key) for key in keys[at : at + _AT_ONCE]]
                with self._client.pipeline(transaction=False) as pipe:
                    for each in self._as_they_are(some):
                        words = (each.kind, str(len(each.words)), *each.words, *each.names)
                        pipe.eval(_DELETE, 1, _as_bytes(each.key), *map(_as_bytes, words))
                    pipe.execute()

    def compact(self) -> list[str]:
        """Have the server write its files anew, without deleted keys."""
        reasons: list[str] = []
        is_compressed = self._compressed("no", reasons)
        for what, asked in (("append-only file", self._rewrite_log), ("snapshot", self._save)):
            try:
                asked()
            except RedisError as error:
                reasons.append(f"the server did not write its {what} anew ({type(error).__name__})")
        if is_compressed:
            self._compressed("yes", reasons)
        return reasons

    def files(self) -> Iterable[Path] | None:
        """Return the snapshot and the append-only files; None where they cannot be seen."""
        try:
            kept = self._client.config_get("*")
            folder = Path(kept["dir"])
            if not self._is_its_own(folder):
                return None
        except (RedisError, KeyError, OSError):
            return None
        names = [kept.get(each, "") for each in ("dbfilename", "appendfilename", "appenddirname")]
        return [
            path
            for name in names
            if name
            for each in sorted(folder.glob(f"{name}*"))  # also temporary ones
            for path in ([each] if each.is_file() else sorted(each.iterdir()))
        ]

    def unreached(self) -> list[str]:
        """Return what keeps values besides the files."""
        try:
            n = int(self._client.info("replication").get("connected_slaves", 0))
        except RedisError as error:
            return [f"the server does not tell of its replicas ({type(error).__name__})"]
        return [f"{n} replicas write files of their own"] if n else []

    def _refused(self, came: str) -> AbstractContextManager[None]:
        return refused_as(
            repr(self.shown),
            came,
            "a server of Redis that answers, and a user and password it accepts",
        )

    # -- records ------------------------------------------------------------------------------

    def _records(self, keys: Sequence[bytes]) -> Records:
        for _ in range(_ATTEMPTS):
            with self._client.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.type(key)
                kinds = [kind.decode() for kind in pipe.execute()]
            members = [_Member(kind, _as_key(key)) for key, kind in zip(keys, kinds, strict=True)]
            held = self._read(members)
            errors = [each for each in held if isinstance(each, Exception)]
            if not errors:
                break
        else:
            raise errors[0]
        numbered = [each.field for each in self.settings.subjects if _MEMBER.match(each.field)]
        if numbered and not _REMOVES.keys().isdisjoint(kinds):
            raise SourceError(
                f"{self.shown!r} has lists, sets or streams, whose members are records; "
                f"expected a field of a member, as {_VALUE!r} or 'user'; came {numbered[0]!r}"
            )
        found = [
            (by, {**document, _KEY: self._named(key)})
            for key, own, each in zip(keys, members, held, strict=True)
            for by, document in self._parts(own, each)
        ]
        documents = [document for _, document in found]
        return Records.of_documents([by for by, _ in found], documents, self.settings.subjects)

    def _read(self, members: Iterable[_Member]) -> list[Any]:
        """Return what keys hold; an error for one of another type."""
        with self._client.pipeline(transaction=False) as pipe:
            for each in members:
                read: Callable[[Any, bytes], Any] = _READERS.get(each.kind, _nothing)
                read(pipe, _as_bytes(each.key))
            found: list[Any] = pipe.execute(raise_on_error=False)
        return found

    def _as_they_are(self, members: Sequence[_Member]) -> Iterator[_Member]:
        """Return members, documents that name the same people with the hash of what they are."""
        documents = [each for each in members if each.kind in _DOCUMENTS and each.names]
        held = dict(zip(documents, self._read(documents), strict=True))
        for each in members:
            if each not in held:
                yield each
            elif self._named_in(_document(each.kind, held[each])) == each.names:
                names = (_DOCUMENTS[each.kind], hashlib.sha1(held[each]).hexdigest())
                yield each._replace(names=names)

    def _parts(self, key: _Member, held: Any) -> Iterator[tuple[_Member, Mapping[str, Any]]]:
        """Return the records of a key: by what they are deleted, and their fields."""
        if key.kind not in _REMOVES or not held:  # an empty stream
            document = _document(key.kind, held)
            names = self._pairs(held) if key.kind == "hash" else self._named_in(document)
            yield key._replace(names=names), document
            return
        for each in held:
            member, entry = each if key.kind == "stream" else (each, None)
            own = key._replace(words=(*_REMOVES[key.kind], _as_key(member)))
            if entry is None:
                yield own, _document("string", member)
            else:
                yield own._replace(names=self._pairs(entry)), _document("hash", entry)

    def _pairs(self, held: Mapping[bytes, bytes]) -> tuple[str, ...]:
        """Return the names and values of the fields that say whose a record is."""
        own = {name: value for name, value in held.items() if self._is_subject(_as_text(name))}
        return tuple(_as_key(each) for pair in own.items() for each in pair)

    def _named_in(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a document says of whose it is, as a hash."""
        own = [pair for pair in leaves(document) if self._is_subject(pair[0])]
        return (hashlib.sha256(repr(own).encode()).hexdigest(),) if own else ()

    def _is_subject(self, name: str) -> bool:
        return is_any(name, {each.field for each in self.settings.subjects})

    def _named(self, key: bytes) -> str:
        """Return what the star of the pattern stands for."""
        text = _as_text(key)
        before, star, after = self.name.partition("*")
        if not star or any(sign in before + after for sign in "*?[\\"):
            return text
        return text[len(before) : len(text) - len(after)]

    # -- files --------------------------------------------------------------------------------

    def _compressed(self, wanted: str, reasons: list[str]) -> bool:
        """Say whether the server compresses values; tell whether it was so before."""
        try:
            if self._client.config_get("rdbcompression").get("rdbcompression") == wanted:
                return False
            self._client.config_set("rdbcompression", wanted)
        except RedisError as error:
            reasons.append(
                f"the server does not write its files without compression ({type(error).__name__})"
            )
            return False
        return True

    def _rewrite_log(self) -> None:
        """Rewrite the append-only file, if there is one."""
        if self._client.info("persistence").get("aof_enabled"):
            self._wait()
            self._client.bgrewriteaof()
            if self._wait().get("aof_last_bgrewrite_status") != "ok":
                raise ResponseError

    def _save(self) -> None:
        """Write the snapshot."""
        self._wait()
        self._client.bgsave()
        if self._wait().get("rdb_last_bgsave_status") != "ok":
            raise ResponseError

    def _wait(self) -> dict[str, Any]:
        """Wait until the server writes no file; it answers others meanwhile."""
        while True:
            found: dict[str, Any] = self._client.info("persistence")
            if not any(found.get(each) for each in _WRITING):
                return found
            time.sleep(_PAUSE)

    def _is_its_own(self, folder: Path) -> bool:
        """Tell whether the folder is that of the server, and not one of the same name here."""
        process = int(self._client.info("server").get("process_id", 0))
        return folder.is_dir() and Path(f"/proc/{process}/cwd").resolve() == folder.resolve()


_WRITING = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")


class _Member(NamedTuple):
    """A key, or a member of one, by which it is deleted."""

    kind: str  # type of the key
    key: str
    words: tuple[str, ...] = ("DEL",)  # the command, and what comes after the key
    names: tuple[str, ...] = ()  # whose it is: fields and their values, or a hash of a document


_DELETE = """
local kind, n = ARGV[1], tonumber(ARGV[2])
local function holds(name, value)
    if kind == 'hash' then
        return redis.call('HGET', KEYS[1], name) == value
    elseif kind ~= 'stream' then
        return redis.sha1hex(redis.call(name, KEYS[1])) == value
    end
    local entry = redis.call('XRANGE', KEYS[1], ARGV[4], ARGV[4])[1]
    for at = 1, entry and #entry[2] or 0, 2 do
        if entry[2][at] == name and entry[2][at + 1] == value then return true end
    end
    return false
end
if redis.call('TYPE', KEYS[1]).ok ~= kind then return 0 end
for at = 3 + n, #ARGV, 2 do
    if not holds(ARGV[at], ARGV[at + 1]) then return 0 end
end
return redis.call(ARGV[3], KEYS[1], unpack(ARGV, 4, 2 + n))
"""
"""Carry out a command on a key if it has a type, and holds what it held."""

_DOCUMENTS = {"string": "GET", _MODULE: "JSON.GET"}  # which a script cannot look into


def _nothing(pipe: Any, key: bytes) -> None:
    pipe.type(key)


_READERS: dict[str, Callable[[Any, bytes], Any]] = {
    "hash": lambda pipe, key: pipe.hgetall(key),
    "string": lambda pipe, key: pipe.get(key),
    "list": lambda pipe, key: pipe.lrange(key, 0, -1),
    "set": lambda pipe, key: pipe.smembers(key),
    "zset": lambda pipe, key: pipe.zrange(key, 0, -1),
    "stream": lambda pipe, key: pipe.xrange(key),
    _MODULE: lambda pipe, key: pipe.execute_command("JSON.GET", key),
}


def _document(kind: str, held: Any) -> Mapping[str, Any]:
    """Return what a key holds as a document."""
    if isinstance(held, Exception) or held is None:  # it was changed or deleted meanwhile
        return {}
    if kind == "hash":
        return {_as_text(name): _as_value(value) for name, value in held.items()}
    if kind in ("string", _MODULE):
        value = _as_value(held)
        found = _as_json(value)
        return found if isinstance(found, dict) else {_VALUE: found if found is not None else value}
    return {}


_MEMBER = re.compile(rf"{_VALUE}\.\d+(\.|$)")  # as earlier versions named the fields of a member
_REMOVES = {"list": ("LREM", "0"), "set": ("SREM",), "zset": ("ZREM",), "stream": ("XDEL",)}
"""Commands that take a member out of a key, with what stands between the two."""


def _as_json(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return None
    return None


def _as_value(value: bytes) -> str | bytes:
    """Return bytes as text, or as they are if they are not UTF-8, such as a vector."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _as_text(value: bytes) -> str:
    return value.decode(errors="replace")


def _as_key(key: bytes) -> str:
    """Return a key as JSON has it, also one that is no text."""
    return key.decode(errors="surrogateescape")


def _as_bytes(key: str) -> bytes:
    return key.encode(errors="surrogateescape")
