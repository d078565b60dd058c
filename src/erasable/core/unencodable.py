"""Strings that UTF-8 cannot encode, which no digest and no file can hold.

They are refused where strings are read: a model that held one could not delete a record.
"""

from __future__ import annotations

from collections.abc import Sequence

from erasable.core.errors import InvalidDataError, InvalidInputError

_AT_ONCE = 4_096


def refuse_surrogates(
    texts: Sequence[str], what: str, error: type[InvalidInputError] = InvalidDataError
) -> None:
    """Raise an error if some texts hold lone surrogates; `what` holds them, in the message."""
    # Joined, they are encoded several times as fast as one by one.
    parts = [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]
    broken = sum(
        not _encodes(text) for part in parts if not _encodes("".join(part)) for text in part
    )
    if broken:
        raise error(
            f"{what} {broken} {'text' if broken == 1 else 'texts'} with lone surrogates (half of a "
            "UTF-16 pair); expected text that UTF-8 can encode; decode it again, or replace them: "
            "text.encode('utf-8', 'replace').decode()"
        )


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
