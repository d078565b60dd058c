"""The rival of the benchmark of targets, tombstone-erase, on a collection of Chroma.

A step runs in a process of its own: ``python benchmarks/target_rival.py STEP FOLDER N``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from target_stores import MAILS, OURS, STORES, TEXTS, VECTORS, N, erase, leaving

CONFIG = """version: 1
scope: default
lineage: {{ backend: sqlite, path: ./.tombstone/lineage.db }}
stores:
  - {{ name: "chroma:docs", kind: chroma, path: {chroma}, collection: docs, embedding: given }}
out_of_scope: ["database backups and snapshots"]
"""
_AT_ONCE = 500


def _vectors() -> Any:
    """Return the given vectors as embeddings of the texts."""
    of = {text: VECTORS[at].tolist() for at, text in enumerate(TEXTS)}

    class Given(import_module("langchain_core.embeddings").Embeddings):  # type: ignore[misc]
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            found: list[float] = of.get(text, VECTORS[0].tolist())
            return found

    return Given()


def _wrapped(folder: Path) -> Any:
    of = import_module("tombstone.integrations.langchain").TombstoneVectorStore
    return of.from_config("chroma:docs", _vectors(), folder / "tombstone.yaml")


def make(folder: Path) -> None:
    """Write the corpus through the wrapper, every record stamped with its person."""
    command = [str(Path(sys.executable).with_name("tombstone")), "init"]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    config = folder / "tombstone.yaml"
    config.write_text(CONFIG.format(chroma=folder / "chroma"), encoding="utf-8")
    runtime = import_module("tombstone.registry").Runtime.shared(config)
    stamp = import_module("tombstone.lineage.stamp").stamp
    document = import_module("langchain_core.documents").Document
    stamped = [
        stamp(
            document(page_content=TEXTS[at], metadata={"mail": MAILS[at]}), MAILS[at],
            f"source-{at}", "default", pepper=runtime.pepper(),
        )
        for at in range(N)
    ]  # fmt: skip
    store = _wrapped(folder)
    for at in range(0, N, _AT_ONCE):
        store.add_documents(stamped[at : at + _AT_ONCE])


def forget(folder: Path, rows: list[int]) -> dict[str, int]:
    """Erase people with tombstone-erase, one after the other, as it does."""
    _wrapped(folder)
    forget_one = import_module("tombstone").forget
    done = [
        forget_one(MAILS[at], reason="benchmark", config=folder / "tombstone.yaml") for at in rows
    ]
    return {"verified": sum(bool(each.ok) for each in done)}


def compact(folder: Path, rows: list[int]) -> None:
    """Read all records that stay, and write them to a new collection."""
    client = import_module("chromadb").PersistentClient(str(folder / "chroma"))
    old = client.get_collection("docs", embedding_function=None)
    old.delete(where={"mail": {"$in": [MAILS[at] for at in rows]}})
    kept = old.get(include=["embeddings", "documents", "metadatas"])
    metadata = old.metadata
    client.delete_collection("docs")
    new = client.create_collection("docs", metadata=metadata, embedding_function=None)
    for at in range(0, len(kept["ids"]), _AT_ONCE):
        new.add(**{
            name: kept[name][at : at + _AT_ONCE]
            for name in ("ids", "embeddings", "documents", "metadatas")
        })  # fmt: skip


def main() -> None:
    """Run a step, and print its seconds and what it returned."""
    step, folder, n = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    for name in ("chromadb", "tombstone.integrations.langchain", *OURS):
        import_module(name)
    steps = {
        "make": lambda: make(folder),
        "forget": lambda: forget(folder, leaving(n)),
        "compact": lambda: compact(folder, leaving(n)),
        "erase": lambda: erase(STORES["chroma"], folder, leaving(n)),
    }
    begun = time.perf_counter()
    told = steps[step]()
    print(json.dumps({"seconds": time.perf_counter() - begun, "told": told}))


if __name__ == "__main__":
    main()
