"""`erasable compile` tells what was compiled; what compiles is tested beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.running import erasable
from erasable.utils import compiling, discovery


@pytest.mark.parametrize("n", [7, 0])
def test_it_tells_what_was_compiled(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_kernels(names: list[str], *, tell: Any) -> list[compiling.Compiled]:
        found = [compiling.Compiled(name, n if name == "KMeans" else 0, 0.5) for name in names]
        for each in found:
            tell(each)
        return found

    monkeypatch.setattr(compiling, "compile_kernels", compile_kernels)
    names = [name for name, _, _ in discovery.all_estimators()] + [*compiling.ELSE]
    lines = erasable("compile").stdout
    if n:
        assert lines.startswith(f"compiled {n} kernels in ")
    else:
        assert lines == "all kernels are compiled already\n"
    found = json.loads(erasable("compile", "--json").stdout)
    assert found["n_kernels"] == n
    assert [each["name"] for each in found["uses"]] == names
