"""A workspace at scale: one batch of requests against refits of scikit-learn's models.

    python benchmarks/workspace.py [--records 1000000] [--subjects 100000] [--requests 1000]

With the ledger in a file and in PostgreSQL, which is brought up for it. Every phase is a process of
its own (workspace_phases.py); the models are in workspace_mix.py. Writes
benchmarks/results/workspace.json, and the section "Measured" of docs/workspace.md; some half an
hour, one thread, 5 GB of disk. Runs of other numbers of records are kept beside each other: the
section is of the largest, with a line for each of the others. `--page` writes it anew from the
results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from workspace_page import section, verdict

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "workspace.json"
PAGE = ROOT / "docs" / "workspace.md"
PHASES = ROOT / "benchmarks" / "workspace_phases.py"
CLIENTS = 4
_SERVER = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on", "shared_buffers": "128MB"}


def phase(name: str, **given: Any) -> dict[str, Any]:
    """Run a phase in a process of its own."""
    print(f"{name} {Path(str(given.get('folder', ''))).name}".rstrip(), file=sys.stderr, flush=True)
    line = [sys.executable, str(PHASES), name, json.dumps(given)]
    done = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def postgres() -> Iterator[tuple[str, str]]:
    """Bring a server up as it is installed, durable; yield the URL of a database, and its version.

    The server of the tests is told not to sync.
    """
    sys.path.insert(0, str(ROOT / "tests" / "workspace"))
    from postgres_server import running

    with running() as server:
        for name, value in _SERVER.items():
            server.run(f"ALTER SYSTEM SET {name} = '{value}'")
        server.stop()
        server.start()
        assert server.run("SHOW fsync") == [("on",)]
        assert server.run("SHOW synchronous_commit") == [("on",)]
        ((version,),) = server.run("SHOW server_version")
        yield server.url(server.database()), str(version)


def measure(n: int, n_subjects: int, n_requests: int, backends: list[str]) -> dict[str, Any]:
    """Run all of it in a folder that is removed."""
    server = postgres() if "postgres" in backends else nullcontext(("", ""))
    with tempfile.TemporaryDirectory() as name, server as (url, version):
        where = Path(name)
        rehearse(where)
        source = str(where / "records.parquet")
        phase("draw", path=source, n=n, n_subjects=n_subjects)
        found: dict[str, Any] = {each: {} for each in backends}
        for each in backends:
            database = url if each == "postgres" else None
            folder = str(where / each)
            found[each]["add"] = phase("add", folder=folder, source=source, database=database)
            found[each]["fit"] = phase("fit", folder=folder)
        batch = {"n_subjects": n_subjects, "n_requests": n_requests}
        for place, each in enumerate(backends):
            mine, folder = found[each], str(where / each)
            mine["ask"] = phase("ask", folder=folder, **batch)
            mine["process"] = phase("process", folder=folder)
            if place == 0:  # between the two, so that what the machine does hits all alike
                out = str(where / "kept.parquet")
                found["refit"] = phase("refit", source=source, out=out, **batch)
        # The models of both come of the same code; to train all of them again takes long.
        found["verify"] = phase("verify", folder=str(where / backends[-1]))
        for each in backends:
            mine, folder = found[each], str(where / each)
            mine["start"] = phase("start", folder=folder)
            before = n_requests
            for clients in (1, CLIENTS):
                mine[f"acknowledge_{clients}"] = phase(
                    "acknowledge", folder=folder, n_subjects=n_subjects, n_before=before,
                    n_requests=2 * n_requests, clients=clients,
                )  # fmt: skip
                before += 2 * n_requests
        return {
            "records": n,
            "subjects": n_subjects,
            "requests": n_requests,
            "clients": CLIENTS,
            "machine": machine(),
            "server": version,
            **found,
        }


def rehearse(where: Path) -> None:
    """Compile all kernels, and do it once with few records, which do not come to each of them."""
    line = [sys.executable, "-m", "erasable", "compile"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    source, folder = str(where / "few.parquet"), str(where / "rehearsal")
    phase("draw", path=source, n=2000, n_subjects=200)
    phase("add", folder=folder, source=source)
    phase("fit", folder=folder)
    phase("ask", folder=folder, n_subjects=200, n_requests=3)
    phase("process", folder=folder)


def machine() -> str:
    """Say what this was measured on."""
    cores = os.cpu_count()
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = re.search(r"model name\s*: (.+)", info.read_text())
        name = named.group(1) if named else name
    return f"{name}, {cores} cores, Python {platform.python_version()}"


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--subjects", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--backends", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--shared", action="store_true", help="others use the machine; say so")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the results")
    asked = parser.parse_args()
    runs = json.loads(RESULTS.read_text())
    if not asked.page:
        found = measure(asked.records, asked.subjects, asked.requests, asked.backends)
        runs[str(asked.records)] = {**found, "shared": asked.shared}
    runs = {key: runs[key] for key in sorted(runs, key=int)}
    text = section(list(runs.values()))
    print(text)
    print("\n".join(verdict(found) for found in runs.values()))
    if asked.dry:
        print(json.dumps(runs, indent=1))
        return
    RESULTS.write_text(json.dumps(runs, indent=1) + "\n")
    page = re.sub(r"## Measured\n.*?(?=\n## |\Z)", "", PAGE.read_text(), flags=re.DOTALL)
    PAGE.write_text(page.rstrip() + "\n\n" + text)


if __name__ == "__main__":
    main()
