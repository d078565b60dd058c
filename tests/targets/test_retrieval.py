"""A person leaves a retrieval system: `examples/retrieval.py`, and its page."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from types import ModuleType
from typing import Any

import command_blocks
import numpy as np
import pytest

for client in ("chromadb", "mlflow"):
    pytest.importorskip(client, reason=f"{client} is not installed: make targets")
lancedb = pytest.importorskip("lancedb", reason="lancedb is not installed: make targets")

from erasable.workspace.targets.steps import NOT_PROVED, PURGED  # noqa: E402
from test_examples import example  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "retrieval.md"


@pytest.fixture
def module() -> ModuleType:
    return example("retrieval")


def values_of(module: ModuleType, mail: str) -> set[tuple[bytes, ...]]:
    """Return what a person has in documents: addresses, ids, texts and vectors, in their forms."""
    own = [row for row in module.documents().to_pylist() if row["mail"] == mail]
    assert len(own) == 4
    vectors = [np.array(row["vector"], dtype="<f4") for row in own]
    texts = {(row[name].encode(),) for row in own for name in ("id", "mail", "body")}
    return texts | {(each.tobytes(), each.astype("<f8").tobytes()) for each in vectors}


def count(values: set[tuple[bytes, ...]], files: list[Path]) -> int:
    """Count values that are in files in any form, in a way of our own."""
    read = [path.read_bytes() for path in files if path.is_file()]
    return sum(any(form in data for data in read for form in forms) for forms in values)


def verdicts(receipt: Path) -> dict[str, Any]:
    """Read the verdicts on targets as somebody without erasable does."""
    payload = json.loads(receipt.read_text())["envelope"]["payload"]
    statement = json.loads(b64decode(payload))["predicate"]
    return {each["name"]: each["verdict"] for each in statement["targets"]}


def leaves_nothing(module: ModuleType, places: dict[str, list[Path]]) -> None:
    """Find nothing of who has left in any place, and all of somebody else where there was some."""
    gone, stay = (values_of(module, who) for who in (module.WHO, module.PEOPLE[8]))
    for name, files in places.items():
        assert files, name
        assert count(gone, files) == 0, name
        # addresses are tokens in the workspace, packed in LanceDB; documents have no vectors
        n_hidden = {"workspace": 1, "lance": 1, "documents": 4, "mlflow": len(stay)}.get(name, 0)
        assert count(stay, files) == len(stay) - n_hidden, name


def is_out_of_lance(module: ModuleType, folder: Path) -> None:
    """Read the addresses, which LanceDB packs, by the client; of the one version that is left."""
    table = lancedb.connect(folder / "lance").open_table("tickets")
    assert set(table.to_arrow()["mail"].to_pylist()) == {*module.PEOPLE} - {module.WHO}
    assert len(table.list_versions()) == 1


def places_of(folder: Path) -> dict[str, list[Path]]:
    every = {name: [*(folder / name).rglob("*")] for name in ("chroma", "lance", "workspace")}
    return every | {"mlflow": [folder / "mlflow.db", *(folder / "mlruns").rglob("*")]}


def test_a_person_leaves_and_the_page_shows_it(
    module: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert module.main(tmp_path) == 0
    shown = capsys.readouterr().out.replace(str(tmp_path), "/home/ann")
    blocks = PAGE.read_text(encoding="utf-8").split("```\n")[1::2]
    for block in blocks:
        if "$ erasable" in block:
            assert command_blocks.masked(block) in command_blocks.masked(shown)
    assert sum(block.count("$ erasable") for block in blocks) == shown.count("$ erasable")
    assert set(verdicts(tmp_path / "stranger" / "receipt.json").values()) == {PURGED}
    leaves_nothing(module, places_of(tmp_path) | {"documents": [tmp_path / "documents.db"]})
    is_out_of_lance(module, tmp_path)


def test_documents_are_in_postgresql(
    module: ModuleType, tmp_path: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = server.database()
    url = server.url(name)
    monkeypatch.setenv("ERASABLE_TARGET_DOCUMENTS", url)  # with the user, who is not kept
    assert module.main(tmp_path, url) == 0
    said = verdicts(tmp_path / "stranger" / "receipt.json")
    assert said == {"documents": NOT_PROVED, "chroma": PURGED, "lance": PURGED}
    gone, stay = (values_of(module, who) for who in (module.WHO, module.PEOPLE[8]))
    files = server.files(name)
    assert count(gone, files) == 0
    assert count(stay, files) == len(stay) - 4  # without vectors
    leaves_nothing(module, places_of(tmp_path))
    is_out_of_lance(module, tmp_path)
