"""What `make test` leaves out, `make soak` makes up for."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import effort
from effort import examples, few, skip

HERE = Path(__file__).resolve().parent
MODULES = ("effort", "law_cases")
SPARING = {"THOROUGH", "check_law", "check_law_of_variant", "few", "skip"}
"""Whoever uses one of these does less in `make test`."""


def forgotten_by_soak(source: str) -> list[str]:
    """Name the tests that do less and are not marked, so that nothing ever does more."""
    if not any(f"from {module} import" in source for module in MODULES):
        return []
    tree = ast.parse(source)
    imports = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in MODULES
    ]
    sparing = SPARING & {alias.name for node in imports for alias in node.names}
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and sparing & {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
        and "pytest.mark.thorough" not in map(ast.unparse, node.decorator_list)
    ]


def test_whatever_does_less_is_made_up_for() -> None:
    files = [file for file in HERE.rglob("test_*.py") if file != Path(__file__).resolve()]
    found = [(file.name, name) for file in files for name in forgotten_by_soak(file.read_text())]
    assert found == []
    assert sum("pytest.mark.thorough" in file.read_text() for file in files) > 10


def test_what_is_forgotten_is_found() -> None:
    taken, spare = "from effort import few\n", "def test_it():\n    for _ in range(few(5)): ...\n"
    assert forgotten_by_soak(taken + spare) == ["test_it"]
    assert forgotten_by_soak(spare) == []  # another thing of that name
    assert forgotten_by_soak(
        taken + "@pytest.mark.parametrize('n', range(few(5)))\ndef test_it(n): ..."
    )
    assert forgotten_by_soak(taken + "@pytest.mark.thorough\n" + spare) == []


@pytest.mark.parametrize("thorough", [True, False])
def test_how_much_is_tried(monkeypatch: pytest.MonkeyPatch, thorough: bool) -> None:
    monkeypatch.setattr(effort, "THOROUGH", thorough)
    whole = [examples(500), examples(3), few(5), few(1), skip(1), skip(5)]
    assert whole == ([500, 3, 5, 1, 1, 5] if thorough else [50, 3, 2, 1, 3, 11])


@pytest.mark.parametrize("thorough", [True, False])
def test_of_parameters_every_third_is_tried(
    monkeypatch: pytest.MonkeyPatch, thorough: bool
) -> None:
    class Item:
        def __init__(self, name: str, *marks: Any) -> None:
            self.nodeid, self.marks, self.added = name, marks, []

        def get_closest_marker(self, name: str) -> Any:
            return next((mark for mark in self.marks if mark.name == name), None)

        def add_marker(self, name: str) -> None:
            self.added.append(name)

    monkeypatch.setattr(effort, "THOROUGH", thorough)
    items: Any = [Item("a"), Item("a")]
    for name in "bc":
        items += [Item(f"{name}[{k}]", pytest.mark.sampled(3).mark) for k in range(5)]
    effort.sample(items)
    kept = [0, 1, 2, 3, 4] if thorough else [0, 4]
    assert [item.nodeid for item in items] == [
        "a", "a", *(f"{name}[{k}]" for name in "bc" for k in kept),
    ]  # fmt: skip
    assert all(item.added == ["thorough"] for item in items[2:])
