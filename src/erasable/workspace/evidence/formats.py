"""Formats of evidence: one sequence of bytes for each value.

JSON with sorted keys and no spaces; times as RFC 3339 in UTC; hashes in lowercase hexadecimal.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from erasable.core.errors import EvidenceError

_SHA256 = re.compile("[0-9a-f]{64}")


def pack(value: Any) -> bytes:
    """Write JSON in its one form, UTF-8; raise EvidenceError for other values than JSON's."""
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError) as error:
        raise EvidenceError(
            f"an entry cannot be written as JSON ({error}); expected texts in Unicode, finite "
            "numbers, lists and dicts; rename what has such a name"
        ) from None


def unpack(data: bytes | str, what: str) -> dict[str, Any]:
    """Read a JSON object; raise EvidenceError, which names it `what`, for anything else."""
    try:
        text = data if isinstance(data, str) else data.decode()
        value = json.loads(text)
        if "\\u" in text:  # an escape may be half of a character
            pack(value)
    except (ValueError, RecursionError, EvidenceError):
        value = None
    if not isinstance(value, dict):
        raise EvidenceError(
            f"{what} cannot be read; expected a JSON object; pass the file as it was written"
        )
    return value


def stamp(at: datetime) -> str:
    """Write a time as RFC 3339 in UTC, such as "2026-11-02T09:30:00.000000Z"."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def hexadecimal(value: Any, what: str) -> bytes:
    """Read a SHA-256 hash in lowercase digits; raise EvidenceError for anything else."""
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise EvidenceError(
            f"{what} is no SHA-256 hash; expected 64 lowercase hexadecimal digits; "
            "pass the file as it was written"
        )
    return bytes.fromhex(value)
