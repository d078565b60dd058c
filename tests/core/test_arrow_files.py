"""No thread of Arrow's is left with an object of Python's, and one module alone reads its files.

Such a thread may abort a process that ends, after its command has succeeded. That depends on how
busy the machine is; what is tested is what it takes: that there is a thread, or what it was given.
"""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from erasable.core import _arrow_files as arrow_files

SOURCE = Path(arrow_files.__file__).parents[1]

PROGRAM = """
import io, json, os, sys, tempfile
from pathlib import Path
import fsspec
import pyarrow as pa, pyarrow.compute as pc, pyarrow.fs, pyarrow.parquet as pq
from erasable.core import _arrow_files as arrow_files
from erasable.workspace.data import fragments
from erasable.workspace.data.sources import Source
from erasable.workspace.context import Context

n = 20_000
table = pa.table({name: list(range(n)) for name in "abc"} | {"id": [str(i) for i in range(n)]})
folder = Path(tempfile.mkdtemp())
path = folder / "0.parquet"
arrow_files.write_parquet(table, path)
data = path.read_bytes()
fsspec.filesystem("memory").pipe("/visits/0.parquet", data)
context = Context.create(folder / "ws")
kept = fragments.write(context, "visits", table)

def stored():
    store = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(fsspec.filesystem("memory")))
    return store.open_input_file("/visits/0.parquet")

def filled():
    with open(folder / "0.arrow", "wb") as file:
        with arrow_files.ipc_writer(file, table.schema) as writer:
            writer.write_table(table)

CALLS = {
    "parquet_table": lambda: arrow_files.parquet_table(data),
    "parquet_table, columns": lambda: arrow_files.parquet_table(data, ["id", "a"]),
    "parquet_schema": lambda: arrow_files.parquet_schema(stored()),
    "parquet_batches": lambda: list(arrow_files.parquet_batches(stored())),
    "parquet_bytes": lambda: arrow_files.parquet_bytes(table, use_dictionary=True),
    "parquet_bytes, plain": lambda: arrow_files.parquet_bytes(table, use_dictionary=False),
    "write_parquet": lambda: arrow_files.write_parquet(table, folder / "out.parquet"),
    "write_csv": lambda: arrow_files.write_csv(table, folder / "out.csv"),
    "ipc_writer": filled,
    "fragment": lambda: fragments.read(context, kept.key, kept.sha256, ["id"]),
    "source, file": lambda: Source.parse(str(path)).read(["id"]),
    "source, store": lambda: Source.parse("memory://visits").read(["id"]),
    # what else is done with tables
    "sort_by": lambda: table.sort_by("id"),
    "filter": lambda: table.filter(pc.equal(table["a"], 3)),
    "take": lambda: table.take(pa.array([3, 1])),
    "index_in": lambda: pc.index_in(table["id"], pa.array(["3"])),
    # these begin threads
    "! read_table": lambda: pq.read_table(io.BytesIO(data)),
    "! read_table, told not to": lambda: pq.read_table(
        io.BytesIO(data), use_threads=False, pre_buffer=False
    ),
    "! ParquetFile": lambda: pq.ParquetFile(io.BytesIO(data)).read(use_threads=False),
    "! ParquetFile.read": lambda: pq.ParquetFile(io.BytesIO(data), pre_buffer=False).read(),
    "! to_pandas": table.to_pandas,
}

def new_threads(call):
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        before = len(os.listdir("/proc/self/task"))
        held = call()
        os.write(here, str(len(os.listdir("/proc/self/task")) - before).encode())
        os._exit(0)
    os.close(here)
    said = os.read(there, 9)
    os.waitpid(child, 0)
    return int(said)

print(json.dumps({name: new_threads(call) for name, call in CALLS.items()}))
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux has them")
def test_no_thread_begins() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    begun = json.loads(done.stdout)
    assert [name for name, n in begun.items() if n > 0] == [n for n in begun if n[0] == "!"]


def test_the_reader_of_text_is_given_a_copy() -> None:
    data = b"id,age\n" + b"1,40\n" * 1000
    before = sys.getrefcount(data)
    reader = arrow_files.csv_reader(data, ",", {}, 1 << 10)
    assert sys.getrefcount(data) == before
    assert sum(len(batch) for batch in reader) == 1000
    given = pa.BufferReader(data)  # the control: this holds it
    assert sys.getrefcount(data) > before
    del given


def test_the_readers_of_files_open_them_without_python(tmp_path: Path) -> None:
    opened: list[str] = []

    def watch(event: str, given: tuple[object, ...]) -> None:
        if event == "open" and watching and str(given[0]).startswith(str(tmp_path)):
            opened.append(str(given[0]))

    table = pa.table({"id": [1, 2]})
    watching = False
    sys.addaudithook(watch)
    arrow_files.write_csv(table, tmp_path / "x.csv")
    with (
        open(tmp_path / "x.arrow", "wb") as file,
        arrow_files.ipc_writer(file, table.schema) as writer,
    ):
        writer.write_table(table)
    watching = True
    try:
        found = arrow_files.csv_reader(tmp_path / "x.csv", ",", {}, 100).read_all()
        assert found.equals(table)
        assert arrow_files.ipc_batches(tmp_path / "x.arrow", [0])[0].num_rows == 2
        assert opened == []
        (tmp_path / "x.csv").read_bytes()  # the control: Python opens it
        assert len(opened) == 1
    finally:
        watching = False


NAMES = ["b", "a", "a.b", ".a", "ä"]


@pytest.mark.parametrize(
    "wanted", [None, [], ["a"], ["a.b"], [".a"], NAMES, NAMES[::-1], ["ä", "b"]]
)
def test_columns_come_as_they_were_asked_for(wanted: list[str] | None) -> None:
    table = pa.table({name: [at, None, at + 10] for at, name in enumerate(NAMES)})
    for use_dictionary in (False, True):
        data = bytes(arrow_files.parquet_bytes(table, use_dictionary=use_dictionary))
        found = arrow_files.parquet_table(data, wanted)
        assert found.equals(table if wanted is None else table.select(wanted))


@pytest.mark.parametrize("wanted", [["c"], ["a", "c"], ["a.b.c"], ["A"]])
def test_a_column_that_is_not_there_is_refused(wanted: list[str]) -> None:
    data = bytes(arrow_files.parquet_bytes(pa.table({"a": [1], "a.b": [2]}), use_dictionary=False))
    with pytest.raises(ValueError, match="has no column"):
        arrow_files.parquet_table(data, wanted)


# -- no other module reads them --------------------------------------------------------------------

HARMLESS = {"compute", "fs", "types"}
FORMATS = {each.name for each in pkgutil.iter_modules(pa.__path__)} - HARMLESS
READ = {f"{verb}_{kind}" for verb in ("read", "scan") for kind in (*FORMATS, "ipc", "table")}
THREADED = {"aggregate", "join_asof", "to_pandas"}
"""Methods of tables that divide their work among threads."""


IN_TARGETS = {
    f"workspace/targets/{name}.py"
    for name in ("decoded_tables", "delta", "milvus_files", "parquet_files")
}
"""Modules that read and write files of others, by readers that begin no thread."""


def elsewhere(text: str) -> Iterator[str]:
    """Yield what a module does with files of Arrow's, or with its threads."""
    tree = ast.parse(text)
    named = {
        each.asname or each.name.split(".")[0]: each.name if each.asname else "pyarrow"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for each in node.names
        if each.name.split(".")[0] == "pyarrow"
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (each.name for each in names if _is_format(each.name))
            case ast.ImportFrom(str(module), names):
                found = [module, *(f"{module}.{each.name}" for each in names)]
                yield from (name for name in found if _is_format(name))
            case ast.Attribute(ast.Name(name), attribute) if name in named:
                whole = f"{named[name]}.{attribute}"
                if _is_format(whole) or whole == "pyarrow.compute.field":
                    yield whole
            case ast.Attribute(_, attribute) if attribute in READ | THREADED:
                yield attribute


def _is_format(name: str) -> bool:
    first, _, rest = name.partition(".")
    return first == "pyarrow" and rest.split(".")[0] in FORMATS


def test_files_of_arrows_are_read_in_one_place() -> None:
    found = {
        str(path.relative_to(SOURCE)): list(elsewhere(path.read_text(encoding="utf-8")))
        for path in SOURCE.rglob("*.py")
    }
    uses = {name for name, each in found.items() if each}
    assert uses == {"core/_arrow_files.py", *IN_TARGETS}


@pytest.mark.parametrize("name", sorted(IN_TARGETS))
def test_files_of_targets_are_read_in_the_calling_thread(name: str) -> None:
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(each, {word.arg for word in each.keywords}) for each in calls]
    for call, words in named:
        match call.func:
            case ast.Attribute(_, "ParquetFile"):
                assert "pre_buffer" in words
            case ast.Attribute(_, "iter_batches" | "read_row_group"):
                assert "use_threads" in words
            case ast.Attribute(_, method):
                assert method != "read_table"


@pytest.mark.parametrize(
    "line",
    [
        "import pyarrow.parquet",
        "import pyarrow.parquet as pq",
        "import pyarrow.dataset as ds",
        "import pyarrow._parquet",
        "from pyarrow import csv",
        "from pyarrow import feather as f",
        "from pyarrow.parquet import read_table",
        "from pyarrow.ipc import open_file",
        "import pyarrow as pa\nreader = pa.ipc.open_stream(x)",
        "import pyarrow\ntable = pyarrow.csv.read_csv(x)",
        "import pyarrow as arrow\ndef f() -> arrow.json.ReadOptions: ...",
        "import pyarrow.compute as pc\nx = table.filter(pc.field('a') == 3)",
        "import pandas as pd\nx = pd.read_parquet(y)",
        "import polars\nx = polars.scan_parquet(y)",
        "import pandas as pd\nx = pd.read_csv(y)",
        "x = table.to_pandas()",
        "x = table.group_by('a').aggregate([])",
    ],
)
def test_what_is_read_elsewhere_is_found(line: str) -> None:
    assert list(elsewhere(line))


@pytest.mark.parametrize(
    "line",
    [
        "import pyarrow as pa\nimport pyarrow.compute as pc\nimport pyarrow.fs",
        "import pyarrow as pa\nx = pa.field('a', pa.types.is_null(y))",
        "import csv, json\nfrom csv import reader\nx = csv.reader(json.loads(y))",
        "x = given.read(); y = select(column).group_by(column); z = ', '.join(x)",
    ],
)
def test_what_is_harmless_is_not(line: str) -> None:
    assert not list(elsewhere(line))
