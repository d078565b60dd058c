"""Places with credentials, and errors of clients: what messages show of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from erasable.core.errors import ErasableError, SourceError


class Address(NamedTuple):
    """A URL in parts."""

    url: str  # without the kind of target, credentials and the fragment
    user: str | None
    password: str | None
    name: str  # the fragment
    shown: str  # the whole, without credentials

    @classmethod
    def parse(cls, place: str) -> Address:
        """Read ``KIND+SCHEME://USER:PASSWORD@HOST:PORT/PATH#NAME``.

        >>> Address.parse("qdrant+http://:secret@db:6333#docs")
        Address(url='http://db:6333', user=None, password='secret', name='docs',
        shown='qdrant+http://db:6333#docs')
        """
        try:
            parts = urlsplit(place)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host:
            kind = place.partition(":")[0][:40]
            raise SourceError(
                f"a URL that begins with {kind!r} has no host or no valid port; expected "
                f"{kind}://HOST:PORT#NAME"
            )
        at = f"[{host}]" if ":" in host else host
        at = at if port is None else f"{at}:{port}"
        scheme = parts.scheme.rpartition("+")[2]
        return cls(
            urlunsplit((scheme, at, parts.path, parts.query, "")),
            unquote(parts.username) if parts.username else None,
            unquote(parts.password) if parts.password else None,
            unquote(parts.fragment),
            urlunsplit((parts.scheme, at, parts.path, "", parts.fragment)),
        )


def folder_and_name(place: str) -> tuple[str, str]:
    """Read ``KIND:PATH#NAME``; the name is empty where there is none.

    >>> folder_and_name("qdrant:store/v2#docs"), folder_and_name("qdrant:shard")
    (('store/v2', 'docs'), ('shard', ''))
    """
    path, _, name = place.partition(":")[2].partition("#")
    return path, name


@contextmanager
def refused_as(
    place: str, came: str, expected: str, *passing: type[BaseException]
) -> Iterator[None]:
    """Raise SourceError for errors of a client, whose messages may hold values and passwords.

    Errors of `passing` are raised as they are.
    """
    others = (ErasableError, KeyboardInterrupt, SystemExit, GeneratorExit)
    try:
        yield
    except others + passing:
        raise
    except BaseException as error:  # a panic of a client in Rust is no Exception
        raise SourceError(f"{place} {came} ({type(error).__name__}); expected {expected}") from None


def no_collection(shown: str, name: str, known: Sequence[str]) -> SourceError:
    """Return the error for a collection that is not there."""
    have = ", ".join(map(repr, known[:8])) or "none"
    return SourceError(f"{shown!r}: there is no collection {name!r}; expected one of: {have}")
