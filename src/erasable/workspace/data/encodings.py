"""Name the kind or the encoding of a file that is not text in UTF-8."""

from __future__ import annotations

HEAD = 1 << 16
"""So many bytes of the beginning of a file tell what it is."""

_FILES = (
    (b"\x1f\x8b", "a gzip file", "add .gz to its name"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook (.xls)", "save it as CSV UTF-8"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it"),
    (b"BZh", "a bzip2 file", "unpack it"),
    (b"PAR1", "a Parquet file", "name it .parquet"),
    (b"ARROW1\0", "an Arrow file", "write it as Parquet or CSV"),
    (b"SQLite format 3\0", "an SQLite database", "name a table of it, as sqlite:///shop.db#visits"),
)
_BZIP2 = b"1AY&SY"  # behind its level; text may begin with BZh, and with PAR1

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))


def kind_of_file(head: bytes) -> tuple[str, str] | None:
    r"""Name a file that is known by its first bytes and is no text, and say what to do with it.

    >>> kind_of_file(b"\x1f\x8b\x08")
    ('a gzip file', 'add .gz to its name')
    >>> kind_of_file(b"PAR1,PAR2\n1,2\n") is None
    True
    """
    if head[:4] == b"PK\3\4":
        if b"xl/" in head or b"[Content_Types].xml" in head:
            return "an Excel workbook (.xlsx)", "save it as CSV UTF-8"
        return "a ZIP archive", "unpack it"
    for mark, name, remedy in _FILES:
        if head.startswith(mark):
            if mark == b"BZh" and head[4:10] != _BZIP2:
                return None
            if mark == b"PAR1" and b"\0" not in head:
                return None
            return name, remedy
    return None


def mark_of(head: bytes) -> str | None:
    r"""Name the encoding whose mark a file begins with.

    >>> mark_of("id".encode("utf-16")), mark_of(b"\xef\xbb\xbfid"), mark_of(b"id")
    ('utf-16', 'utf-8', None)
    """
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return "utf-8" if head.startswith(b"\xef\xbb\xbf") else None


def why_not_utf8(head: bytes, *, option: bool = False) -> str | None:
    r"""Say in which encoding text seems to be instead; None where it may be UTF-8.

    Where `option` is true, `--encoding` is advised.

    >>> why_not_utf8("visit,name\n".encode("utf-16"))
    'but in UTF-16; expected UTF-8; convert it, as with `iconv -f utf-16 -t utf-8`'
    >>> why_not_utf8(b"\xfc", option=True)
    'but in ...; expected UTF-8; say `--encoding latin1`, or convert it, as with `iconv ...'
    >>> why_not_utf8(b"visit,name\n") is None
    True
    """
    wide = _wide(head)
    if wide is not None:
        return f"but in {wide.upper()}; expected UTF-8; {conversion(wide, option=option)}"
    if _is_utf8(head):
        return None
    if _has(head, _CONTROLS):
        return "nor in another encoding of text; expected UTF-8; check what file it is"
    old = "windows-1252" if _has(head, bytes(range(0x80, 0xA0))) else "latin1"
    named = "an older encoding, such as Windows-1252 or Latin-1 (ISO 8859-1)"
    return f"but in {named}; expected UTF-8; {conversion(old, option=option)}"


def _wide(head: bytes) -> str | None:
    if mark_of(head) in ("utf-16", "utf-32"):
        return mark_of(head)
    # Without a mark: of most characters all bytes but the lowest are zero.
    some = head[: min(len(head), 4096) // 4 * 4]
    if len(some) < 8:
        return None
    zeros = [some[at::4].count(0) * 4 / len(some) for at in range(4)]
    for name, lowest in (("utf-32le", [0]), ("utf-32be", [3]), ("utf-16le", [0, 2]),
                         ("utf-16be", [1, 3])):  # fmt: skip
        if all(zeros[at] < 0.1 if at in lowest else zeros[at] > 0.6 for at in range(4)):
            return name
    return None


def _has(head: bytes, some: bytes) -> bool:
    return len(head.translate(None, some)) < len(head)


def conversion(encoding: str, *, option: bool) -> str:
    """Say how text in an encoding is read; see `why_not_utf8`."""
    said = f"say `--encoding {encoding}`, or " if option else ""
    return f"{said}convert it, as with `iconv -f {encoding} -t utf-8`"


def _is_utf8(head: bytes) -> bool:
    """Tell whether it is UTF-8 up to a character that the end may cut."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.end == len(head) and len(head) == HEAD
    return True
