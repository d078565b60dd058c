"""Names of test cases that are the same in every process."""

from __future__ import annotations

import re
from typing import Any


def named(case: Any) -> str:
    """Show a case on one line, without addresses in memory."""
    if isinstance(case, set | frozenset):
        case = sorted(case, key=repr)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(case).split()))
