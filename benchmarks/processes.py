"""What only a process of its own can tell: peak memory, import times, compiling.

Run as a script, this is one such process.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MEBIBYTE = 1024  # in kibibytes, as Linux counts
IMPORTS = 7

_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

_FIRST_USE = """
import json, time
import numpy as np
from numba.core import event
with event.install_recorder("numba:compile") as seen:
    began = time.perf_counter()
    from erasable.cluster import KMeans
    X = np.random.default_rng(0).normal(size=(500, 5))
    model = KMeans(3, random_state=0).fit(X)
    model.delete([1])
    model.delete([2, 3, 4])
    took = time.perf_counter() - began
print(json.dumps({"seconds": took, "compiled": sum(e.is_start for _, e in seen.buffer)}))
"""


def _run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip().splitlines()[-1]


def memory(matrix: Any, k: int, names: list[str]) -> dict[str, dict[str, float]]:
    """Return, in MiB, what a process held before it fitted a model, and its peak.

    `names` are models of erasable, or "peer:kmeans" and "peer:pipeline" for scikit-learn's.
    """
    import contenders
    import numpy as np

    others = {name: text for name, (text, _) in contenders.OTHERS.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, matrix)
        return {
            name: json.loads(
                _run([sys.executable, __file__, str(path), str(k), others.get(name, name)])
            )
            for name in names
        }


def status(field: str) -> float:
    """Return what Linux says of this process, in megabytes: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields[field].split()[0]) * 1024 / 1e6


def _peak() -> float:
    # ru_maxrss also remembers the process that started this one; Linux knows better.
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) / MEBIBYTE
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTE


def _one_model(path: str, k: int, name: str) -> dict[str, float]:
    import numpy as np

    if name.startswith("peer:"):
        # Only what scikit-learn needs: the other imports would be counted against it.
        from sklearn.cluster import KMeans
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model = KMeans(k, n_init=1, max_iter=10, tol=0, random_state=0)
        if name == "peer:pipeline":
            model = make_pipeline(StandardScaler(), model)
        model.fit(np.random.default_rng(0).random((100, 3)))
        X = np.load(path)
        before = _peak()
        model.fit(X)
        return {"before": before, "peak": _peak()}

    import contenders

    name = contenders.chosen(name)
    contenders.warm_up([name], np.random.default_rng(0).random((1_000, 3)), k)
    X = np.load(path)
    before = _peak()
    fitted = contenders.make(name, k, 0).fit(X)
    for record in range(20):
        fitted.delete([record], digest=False)
    return {"before": before, "peak": _peak()}


def imports() -> dict[str, Any]:
    """Time imports, alternating, and see whether a second process compiles."""
    times: dict[str, list[float]] = {"sklearn.cluster": [], "erasable.cluster": [], "erasable": []}
    for _ in range(IMPORTS):
        for module, seconds in times.items():
            seconds.append(float(_run([sys.executable, "-c", _IMPORT.format(module)])))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _FIRST_USE]
        uses = [json.loads(_run(command, NUMBA_CACHE_DIR=folder)) for _ in range(2)]
    medians = {module: statistics.median(seconds) for module, seconds in times.items()}
    return {"import": medians, "first process": uses[0], "second process": uses[1]}


if __name__ == "__main__":
    print(json.dumps(_one_model(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
