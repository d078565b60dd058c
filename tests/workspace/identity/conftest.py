from __future__ import annotations

import pytest

from erasable.workspace.context import Context


@pytest.fixture
def context(tmp_path, monkeypatch):
    monkeypatch.delenv("ERASABLE_KEYS", raising=False)
    monkeypatch.delenv("ERASABLE_EXPORT", raising=False)
    return Context.create(tmp_path / "workspace")
