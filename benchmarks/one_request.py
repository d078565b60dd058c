"""One request in a process of its own, against fits of the same models with scikit-learn.

    python benchmarks/one_request.py [--records 200000] [--repeat 5] [--profile]

A workspace with five models holds numbers of people with three records each. A person asks to be
erased, `erasable process` runs in a new process, and scikit-learn fits the five models to the same
columns in another one; they take turns, with another person each time. One thread each. Seconds are
those on the wall and those of the processor (of the program and of the system for it), from the
start of a process to its end; scikit-learn's fits are also counted without its start, its imports
and the reading of the columns. Medians and ratios of pairs are printed and written to
benchmarks/results/one-request.json.

Another run counts the source files of `erasable` of which a line runs, in a workspace with one
model. `--profile` also prints the phases of one more request, its slowest functions and imports.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import cProfile
import json
import pstats
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "one-request.json"
MODELS = ("segments", "forest", "risk", "bayes", "value")
"""KMeans, RandomForestClassifier, scaled LogisticRegression, GaussianNB and Ridge."""
ONE = ("risk",)
VISITS = 3
AIMS = {200_000: 0.10, 1_000_000: 0.03}
FILES = 60
_LONGEST = 25  # lines of a profile
_TIME = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)")


def timed(command: list[str]) -> tuple[dict[str, float], str]:
    """Run a process; return its seconds, its peak memory, and what it printed."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        printed = running.stdout.read()
        _, status, used = os.wait4(running.pid, 0)
        took = time.perf_counter() - began
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return {"wall": took, "cpu": cpu, "mib": used.ru_maxrss / 1024}, printed


def apart(step: str, **given: Any) -> tuple[dict[str, float], Any]:
    """Run a function of this file in a process of its own; return its seconds and its result."""
    took, printed = timed([sys.executable, __file__, "--step", step, json.dumps(given)])
    return took, json.loads(printed.splitlines()[-1])


def build(folder: str, source: str, records: int, models: list[str]) -> None:
    """Draw records, add them to a new workspace, and fit its models."""
    from workspace_mix import MODELS as MIX
    from workspace_mix import write_records

    from erasable.workspace import Workspace

    if not Path(source).exists():
        write_records(Path(source), records, records // VISITS, texts=False)
    workspace = Workspace.create(folder)
    workspace.add_dataset("records", source, id_column="record", subjects=["person"])
    for name in models:
        model = MIX[name]
        workspace.fit(
            name, model.recipe, datasets=["records"], target=model.target,
            features=model.features, params=model.params,
        )  # fmt: skip


def ask(folder: str, person: str) -> None:
    """File the request of a person."""
    from erasable.workspace import Workspace

    Workspace.open(folder).request([person])


def peer(source: str, models: list[str]) -> dict[str, Any]:
    """Fit the models with scikit-learn; return the seconds of each."""
    import numpy as np
    import pyarrow.parquet as pq
    from workspace_mix import FEATURES
    from workspace_mix import MODELS as MIX

    table = pq.read_table(source, columns=[*FEATURES, "value", "risk"])
    X = np.column_stack([table[name].to_numpy() for name in FEATURES])
    found = {}
    for name in models:
        target = MIX[name].target
        y = None if target is None else table[target].to_numpy()
        began, worked = time.perf_counter(), time.process_time()
        MIX[name].twin.fit(X, y)
        found[name] = {
            "wall": time.perf_counter() - began, "cpu": time.process_time() - worked
        }  # fmt: skip
    return found


def files(folder: str) -> list[str]:
    """Process requests; return the source files of `erasable` of which a line ran."""
    from importlib.util import find_spec

    home = str(Path(str(find_spec("erasable").origin)).parent) + os.sep  # type: ignore[union-attr]
    touched = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if frame.f_code.co_filename.startswith(home):
            touched.add(frame.f_code.co_filename[len(home) :])

    sys.setprofile(note)
    _command(folder)
    sys.setprofile(None)
    return sorted(touched)


def profiled(folder: str) -> dict[str, float]:
    """Process requests under a profiler; return the phases."""
    from erasable.workspace import Workspace

    profiler = cProfile.Profile()
    with profiler:
        done = Workspace.open(folder).process()
    pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(60)
    return {**done.phases, "all": done.seconds}


def _command(folder: str) -> None:
    """Run the command line in this process."""
    import contextlib
    import io

    from erasable.cli import run

    sys.argv = ["erasable", "process", "--workspace", folder]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        run()


def process(folder: str, *options: str) -> dict[str, float]:
    """Run `erasable process`; return its seconds."""
    line = [sys.executable, *options, "-m", "erasable", "process", "--workspace", folder]
    return timed(line)[0]


def measure(records: int, repeat: int, profile: bool) -> dict[str, Any]:
    """Measure all of it in a folder that is removed."""
    subprocess.run(
        [sys.executable, "-m", "erasable", "compile"], check=True, stdout=subprocess.DEVNULL
    )
    with tempfile.TemporaryDirectory() as name:
        source, folder = f"{name}/records.parquet", f"{name}/workspace"
        apart("build", folder=folder, source=source, records=records, models=MODELS)
        persons = iter(apart("people", source=source)[1])
        pairs = []
        for turn in range(repeat + 1):
            apart("ask", folder=folder, person=next(persons))
            one = process(folder)
            whole, fits = apart("peer", source=source, models=MODELS)
            pair = {
                "process": one, "whole": whole,
                "fits": {key: sum(each[key] for each in fits.values()) for key in ("wall", "cpu")},
                "models": fits,
            }  # fmt: skip
            if turn:  # the first one fills the caches of the disk
                pairs.append(pair)
                print(_line(pair), file=sys.stderr, flush=True)
        if profile:
            apart("ask", folder=folder, person=next(persons))
            print(json.dumps(apart("profiled", folder=folder)[1], indent=1), file=sys.stderr)
            apart("ask", folder=folder, person=next(persons))
            _print_imports(folder)
        few, one = f"{name}/few.parquet", f"{name}/one"
        apart("build", folder=one, source=few, records=3000, models=ONE)
        apart("ask", folder=one, person=apart("people", source=few)[1][0])
        _, touched = apart("files", folder=one)
    return {"records": records, "pairs": pairs, "files": touched}


def people(source: str) -> list[str]:
    """Return whoever has three records, in the order of the records."""
    import pyarrow.parquet as pq

    counts = pq.read_table(source, columns=["person"])["person"].value_counts()
    return [each["values"] for each in counts.to_pylist() if each["counts"] == VISITS]


def _print_imports(folder: str) -> None:
    """Print what the slowest imports of `erasable process` take, without what they import."""
    line = [
        sys.executable, "-X", "importtime", "-m", "erasable", "process", "--workspace", folder
    ]  # fmt: skip
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    own: dict[str, int] = {}
    for found in _TIME.finditer(done.stderr):
        package = found[4].partition(".")[0]
        own[package] = own.get(package, 0) + int(found[1])
    print("\nmilliseconds of imports, by package", file=sys.stderr)
    for package, took in sorted(own.items(), key=lambda each: -each[1])[:_LONGEST]:
        print(f"{took / 1000:8.1f}  {package}", file=sys.stderr)


def _line(pair: dict[str, Any]) -> str:
    one, fits = pair["process"], pair["fits"]
    return (
        f"process {one['wall']:.2f} s ({one['cpu']:.2f} of the processor), fits "
        f"{fits['wall']:.2f} s ({fits['cpu']:.2f})"
    )


def table(found: dict[str, Any]) -> str:
    """Show what was measured."""
    pairs = found["pairs"]
    lines = [
        f"{found['records']:,} records, {len(pairs)} requests, medians",
        f"{'seconds':44}{'wall':>8}{'processor':>11}",
    ]
    names = {
        "process": "erasable process, start to end",
        "fits": "scikit-learn's five fits",
        "whole": "the same, with start, imports and reading",
    }
    for key, name in names.items():
        wall, cpu = (statistics.median(p[key][kind] for p in pairs) for kind in ("wall", "cpu"))
        lines.append(f"{name:44}{wall:8.2f}{cpu:11.2f}")
    for key, name in (("fits", "ratio to the fits"), ("whole", "ratio to all that")):
        wall, cpu = (
            statistics.median(p["process"][kind] / p[key][kind] for p in pairs)
            for kind in ("wall", "cpu")
        )
        lines.append(f"{name:44}{wall:8.3f}{cpu:11.3f}")
    if found["records"] in AIMS:
        lines[-2] += f"   aim {AIMS[found['records']]:.2f}"
    lines.append(f"{'source files touched, one model':44}{len(found['files']):8}   aim {FILES}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print a table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        steps = {each.__name__: each for each in (build, people, ask, peer, files, profiled)}
        print(json.dumps(steps[asked.step[0]](**json.loads(asked.step[1]))))
        return
    found = measure(asked.records, asked.repeat, asked.profile)
    print(table(found))
    if not asked.dry:
        runs = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        runs[str(asked.records)] = found
        RESULTS.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
