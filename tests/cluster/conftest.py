"""What the tests of this folder run under."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _files_need_not_survive_a_power_cut() -> Iterator[None]:
    """Thousands of models are saved to be compared; waiting for the disk would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
