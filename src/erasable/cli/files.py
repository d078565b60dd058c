"""Files that a user names outside of the workspace: receipts, heads, keys, lists, outputs."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from errno import EISDIR
from pathlib import Path
from typing import Any

from erasable.core.errors import EvidenceError, NotInWorkspaceError, WorkspaceError

_LARGEST = 64 * 2**20


def load(path: str, what: str, *, stdin: bool = False) -> bytes:
    """Read a file; if `stdin` is true, "-" is standard input."""
    reads_input = stdin and path == "-"
    if reads_input and sys.stdin is None:
        raise NotInWorkspaceError(f"standard input is closed; expected {what}")
    try:
        with nullcontext(sys.stdin.buffer) if reads_input else Path(path).open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except FileNotFoundError:
        raise NotInWorkspaceError(f"there is no file {path!r}; expected {what}") from None
    if len(data) > _LARGEST:
        named = "standard input" if reads_input else repr(path)
        raise EvidenceError(f"{named} has more than {_LARGEST // 2**20} MiB; expected {what}")
    return data


def as_text(data: bytes, named: str, what: str) -> str:
    r"""Return the text of a UTF-8 file that a user has written, without a byte order mark.

    `named` and `what` are for the error: the file, and what it should hold. Raise WorkspaceError
    for another encoding, with the one that it seems to be.

    >>> as_text(b"\xef\xbb\xbfpatient-7\n", "'who.txt'", "one identity a line")
    'patient-7\n'
    """
    from erasable.workspace.data.dialects import HEAD, kind_of_file, why_not_utf8

    found = kind_of_file(data[:HEAD])
    if found is not None:
        raise WorkspaceError(f"{named} is {found[0]}; expected text, {what}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return text
    why = why_not_utf8(data)
    if why is None:
        raise WorkspaceError(f"{named} holds a zero byte; expected text, {what}")
    raise WorkspaceError(f"{named} is not UTF-8 text, {why}")


def load_json(path: str, what: str) -> dict[str, Any]:
    """Read a JSON object from a file; see `load`."""
    data = load(path, what)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EvidenceError(f"{path!r} holds no JSON object; expected {what}")
    return found


def public_key(path: str) -> bytes:
    """Read a public key, PEM; see `load`."""
    data = load(path, "a public key, PEM")
    if b"-----BEGIN PUBLIC KEY-----" not in data:
        raise EvidenceError(
            f"{path!r} holds no public key; expected one in PEM, as `erasable key` prints it; "
            "ask for it whoever runs the workspace"
        )
    return data


def ids_text(path: str, ids: Sequence[str], columns: tuple[str, str], values: Any) -> str:
    r"""Return the contents of a file of ids; for .csv, with a number for each.

    >>> ids_text("chosen.csv", ["v7", "v2"], ("visit", "gain"), [3.0, 1.5])
    'visit,gain\nv7,3.0\nv2,1.5\n'
    """
    if not path.endswith(".csv"):
        return "".join(f"{each}\n" for each in ids)
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerows([columns, *zip(ids, map(repr, values), strict=True)])
    return written.getvalue()


@contextmanager
def replacing(path: str, workspace: str) -> Iterator[Path]:
    """Yield a temporary file that replaces another at the end of the block, unless the block fails.

    A place that cannot be written is refused before the block.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/out.txt", f"{folder}/ws") as place:
    ...         _ = place.write_text("done")
    ...     Path(folder, "out.txt").read_text()
    'done'
    """
    from erasable.workspace.store.own_files import refuse_own

    place = Path(path)
    if path:
        refuse_own(path, workspace)
    if not path or path.endswith("/") or place.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path)
    beside = place.with_name(f".{place.name[:40]}.{secrets.token_hex(4)}")
    try:
        beside.touch(mode=0o666)
        yield beside
        os.replace(beside, place)
    except OSError as error:
        ours = error.filename in (str(beside), beside)
        beside.unlink(missing_ok=True)
        raise (OSError(error.errno, error.strerror, path) if ours else error) from None
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def perhaps(path: str | None, workspace: str) -> Iterator[Path | None]:
    """Do what `replacing` does if there is a path; otherwise yield None."""
    if path is None:
        yield None
        return
    with replacing(path, workspace) as place:
        yield place
