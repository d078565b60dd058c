"""What a request and a status pay for on starting: no arrays, no tables, no estimators."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "cryptography",
    "securesystemslib",
    "sqlglot",
    "phonenumbers",
)
PROGRAM = """
import sys, types
stub = types.ModuleType("sklearn.utils._param_validation")
stub.InvalidParameterError = type("InvalidParameterError", (ValueError, TypeError), {})
outer = types.ModuleType("sklearn.utils")
outer._param_validation = stub
sys.modules["sklearn"] = types.ModuleType("sklearn")
sys.modules["sklearn.utils"] = outer
sys.modules["sklearn.utils._param_validation"] = stub  # the one thing the errors take of it
import MODULE
print(*sorted(sys.modules))
"""


def loaded(module: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("MODULE", module)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "erasable.workspace.identity.canonical",
        "erasable.workspace.identity.keys",
        "erasable.workspace.identity.external_files",
        "erasable.workspace.identity.subjects",
        "erasable.workspace.identity.suppression",
        "erasable.workspace.requests.regulations",
    ],
)
def test_nothing_heavy_is_imported(module):
    assert module in loaded(module)
    assert loaded(module).isdisjoint(HEAVY)


def test_what_is_heavy_is_seen():
    assert "pyarrow" in loaded("erasable.workspace.data.conditions")
