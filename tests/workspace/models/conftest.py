from __future__ import annotations

import pytest


@pytest.fixture
def site(tmp_path):
    from erasable.workspace.site import Site

    return Site.create(tmp_path / "workspace")


@pytest.fixture
def visits(site, tmp_path):
    """A data set of 120 visits of 40 patients."""
    from workspace_models import add_visits

    add_visits(site, tmp_path, "visits", range(120))
    return site
