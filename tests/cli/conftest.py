"""What the tests of the command line share."""

from __future__ import annotations

from collections.abc import Iterator

import ledger_template
import pytest


@pytest.fixture(scope="session", autouse=True)
def _template() -> Iterator[None]:
    with ledger_template.repeated():
        yield
