from __future__ import annotations

import pytest

from erasable.workspace.site import Site


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.delenv("ERASABLE_KEYS", raising=False)
    monkeypatch.delenv("ERASABLE_EXPORT", raising=False)
    return Site.create(tmp_path / "workspace")
