from __future__ import annotations

import pytest


@pytest.fixture
def context(tmp_path):
    from erasable.workspace.context import Context

    return Context.create(tmp_path / "workspace")


@pytest.fixture
def visits(context, tmp_path):
    """A data set of 120 visits of 40 patients."""
    from workspace_models import add_visits

    add_visits(context, tmp_path, "visits", range(120))
    return context
