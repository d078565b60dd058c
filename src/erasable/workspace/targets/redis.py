"""Keys of Redis as targets: hashes, JSON, texts, and vectors as the bytes of a field."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import redis
from redis.exceptions import RedisError, ResponseError

from erasable.core.errors import SourceError
from erasable.workspace.targets.addresses import Address, refused_as
from erasable.workspace.targets.protocol import Records, RecordTarget, Settings

_KEY, _VALUE = "key", "value"  # the fields of a key, and of a text that is no JSON
_AT_ONCE = 500  # keys of a batch
_TIMEOUT = 60  # seconds that a server has for an answer
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
        """Delete keys."""
        with self._refused("could not be changed"):
            for at in range(0, len(keys), _AT_ONCE):
                some = keys[at : at + _AT_ONCE]
                if whole := [_as_bytes(key) for key in some if isinstance(key, str)]:
                    self._client.delete(*whole)
                with self._client.pipeline(transaction=False) as pipe:
                    for command, *words in (key for key in some if not isinstance(key, str)):
                        pipe.execute_command(command, *map(_as_bytes, words))
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
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.type(key)
            kinds = [kind.decode() for kind in pipe.execute()]
            for key, kind in zip(keys, kinds, strict=True):
                read: Callable[[Any, bytes], Any] = _READERS.get(kind, _nothing)
                read(pipe, key)
            held = pipe.execute(raise_on_error=False)
        numbered = [each.field for each in self.settings.subjects if _MEMBER.match(each.field)]
        if numbered and not _REMOVES.keys().isdisjoint(kinds):
            raise SourceError(
                f"{self.shown!r} has lists, sets or streams, whose members are records; "
                f"expected a field of a member, as {_VALUE!r} or 'user'; came {numbered[0]!r}"
            )
        of_key = zip(keys, kinds, held, strict=True)
        found = [
            (by, {**document, _KEY: self._named(key)})
            for key, kind, each in of_key
            for by, document in _parts(kind, _as_key(key), each)
        ]
        documents = [document for _, document in found]
        return Records.of_documents([by for by, _ in found], documents, self.settings.subjects)

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
    if isinstance(held, Exception) or held is None:
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


def _parts(kind: str, key: str, held: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Return the records of a key: by what they are deleted, and their fields."""
    if kind not in _REMOVES or isinstance(held, Exception) or not held:  # an empty stream
        yield key, _document(kind, held)
        return
    command, *between = _REMOVES[kind]
    for each in held:
        member, document = each if kind == "stream" else (each, None)
        fields = _document("string", member) if document is None else _document("hash", document)
        yield (command, key, *between, _as_key(member)), fields


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
