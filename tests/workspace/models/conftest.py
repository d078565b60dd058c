from __future__ import annotations

import hashlib
import importlib.util
import secrets
import sys
import types

import pytest

from erasable.workspace.site import Site
from workspace_models import add_visits

if importlib.util.find_spec("erasable.workspace.evidence.commitments") is None:
    double = types.ModuleType("erasable.workspace.evidence.commitments")

    def commit(digest):
        salt = secrets.token_hex(32)
        return salt, hashlib.sha256(bytes.fromhex(salt) + digest.encode()).hexdigest()

    def matches(salt, commitment, digest):
        made = hashlib.sha256(bytes.fromhex(salt) + digest.encode()).hexdigest()
        return made == commitment

    double.commit, double.matches = commit, matches
    sys.modules[double.__name__] = double
    import erasable.workspace.evidence as evidence

    evidence.commitments = double


@pytest.fixture
def site(tmp_path) -> Site:
    return Site.create(tmp_path / "workspace")


@pytest.fixture
def visits(site, tmp_path):
    """A data set of 120 visits of 40 patients."""
    add_visits(site, tmp_path, "visits", range(120))
    return site
