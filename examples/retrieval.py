"""A person leaves a retrieval system: documents, vectors in two stores, a model, and MLflow.

    python examples/retrieval.py [URL]

Needs `pip install 'erasable[chroma,lancedb,mlflow]'`. `URL` is that of an empty database.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from zlib import crc32

import chromadb
import lancedb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa
from chromadb.config import Settings

TOPICS = ("the invoice was charged twice", "the train was late")
PEOPLE = [f"person{i}@example.org" for i in range(40)]
WHO = PEOPLE[7]
MAKE = sa.text("create table documents (id text primary key, mail text, body text)")
ADD = sa.text("insert into documents values (:id, :mail, :body)")
COMMANDS = """
init workspace
dataset add tickets export.parquet --id id --subject mail:email
model fit router --dataset tickets --target topic --features vector \
--estimator linear_model.LogisticRegression
model publish router --to mlflow:router --tracking-uri sqlite:///mlflow.db --delete-superseded
target add documents {url} --subject documents.mail:email
target add chroma chroma:chroma#tickets --subject mail:email
target add lance lancedb:lance#tickets --subject mail:email
"""


def documents() -> pa.Table:
    """Return four documents of each, with embeddings; long ids, as short numbers are anywhere."""
    numbers = range(4 * len(PEOPLE))
    mails, topics = [PEOPLE[i // 4] for i in numbers], [i % 2 for i in numbers]
    ids = [f"case-{crc32(b'%d' % i):010}" for i in numbers]
    bodies = [f"{TOPICS[topic]}: {id}" for id, topic in zip(ids, topics, strict=True)]
    seeds = [[crc32(word.encode()) for word in body.split()] for body in bodies]
    added = [sum(np.random.default_rng(word).normal(size=32) for word in body) for body in seeds]
    vectors = pa.FixedSizeListArray.from_arrays(np.concatenate(added).astype(np.float32), 32)
    columns = [ids, mails, topics, bodies, vectors]
    return pa.table(columns, ["id", "mail", "topic", "body", "vector"])


def fill(folder: Path, url: str) -> None:
    """Write documents to the database, their embeddings to both stores, and both to a file."""
    table = documents()
    ids, mails, _, bodies, vectors = (column.to_pylist() for column in table.columns)
    engine = sa.create_engine(url.replace("sqlite:///", f"sqlite:///{folder}/"))
    with engine.begin() as connection:
        connection.execute(MAKE)
        connection.execute(ADD, table.select(["id", "mail", "body"]).to_pylist())
    engine.dispose()
    client = chromadb.PersistentClient(folder / "chroma", Settings(anonymized_telemetry=False))
    collection = client.create_collection("tickets", embedding_function=None)
    collection.add(ids, vectors, [{"mail": mail} for mail in mails], bodies)
    client.close()
    lancedb.connect(folder / "lance").create_table("tickets", table)
    pq.write_table(table, folder / "export.parquet")


def run(folder: Path, line: str) -> str:
    """Run a command of erasable in a folder, and print it with its output."""
    given = {"ERASABLE_WORKSPACE": "workspace", "MLFLOW_DISABLE_TELEMETRY": "1", "COLUMNS": "100"}
    words = [sys.executable, "-m", "erasable", *line.split()]
    out = subprocess.check_output(words, cwd=folder, env=os.environ | given).decode()
    print(f"$ erasable {line}\n{out}")
    return out


def main(folder: Path, url: str = "sqlite:///documents.db") -> int:
    """Fill all places, erase a person from them, and check the receipt; return 0."""
    fill(folder, url)
    (folder / "stranger").mkdir()
    for line in COMMANDS.format(url=url).strip().splitlines():
        run(folder, line)
    (folder / "export.parquet").unlink()  # nobody is erased from the source of a data set
    request = re.findall(r"R-[0-9A-Z]{10}", run(folder, f"request {WHO}"))[0]
    run(folder, "process")
    run(folder, f"receipt show {request} --output stranger/receipt.json")
    (folder / "stranger" / "company.pub").write_text(run(folder, "key"), encoding="utf-8")
    run(folder / "stranger", "receipt check receipt.json --key company.pub")
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        raise SystemExit(main(Path(made), *sys.argv[1:]))
