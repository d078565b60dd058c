"""A workspace with two domains, and a copy of it for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from domain_scene import make


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("domains")
    make(folder)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "here")
    return tmp_path / "here"
