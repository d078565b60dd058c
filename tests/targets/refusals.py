"""What is refused is one error on one line, without a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from erasable.core.errors import SourceError

_SECRETS = ("geheim", "secret", "hunter2", "wrong-key", "wrong-one")
"""Passwords that tests give."""


@contextmanager
def refused(message: str) -> Iterator[pytest.ExceptionInfo[SourceError]]:
    """Expect a SourceError whose message has a part that fits a pattern."""
    with pytest.raises(SourceError, match=message) as error:
        yield error
    said = str(error.value)
    assert len(said.splitlines()) == 1
    assert not [each for each in _SECRETS if each in said]
