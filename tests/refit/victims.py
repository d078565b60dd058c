"""A process that loads files of strangers, and says on a line each what came of it.

It is ended by a signal where a file crashes it, or keeps it for too long.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["outcomes"]

_MEMORY = 6 * 2**30
_METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def outcomes(
    files: list[tuple[bytes, Any]],
    folder: Path,
    *,
    trusted: bool,
    records: Any = None,
    limit: float = 5.0,
) -> list[str]:
    """Load files in other processes and use what they hold; say what became of each.

    Parameters
    ----------
    files : list of (bytes, ndarray)
        With rows to be asked about.
    folder : Path
        For what the processes are given.
    trusted : bool
    records : Records, default=None
        That the files are loaded with.
    limit : float
        Seconds of the processor that each file may take.

    Returns
    -------
    list of str
        ``"refused"``; ``"loaded"``; ``"raised ..."``, something that is not our error; ``"signal
        ..."``, SIGPROF for what takes too long.
    """
    job = folder / "files"
    job.write_bytes(pickle.dumps((files, trusted, records, limit)))
    told: list[str] = []
    while len(told) < len(files):
        done = subprocess.run(
            [sys.executable, "-m", "refit.victims", str(job), str(len(told))],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
            check=False,
        )
        told += done.stdout.split("\n")[:-1]
        if done.returncode < 0:
            told.append(f"signal {signal.Signals(-done.returncode).name}")
        elif done.returncode:
            raise AssertionError(done.stderr)
    return told


def _main(job: str, first: str) -> None:
    from erasable import load
    from erasable.core.errors import ArtifactError

    import_module("erasable.refit._families")  # so that the first file is not charged for it
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    files, trusted, records, limit = pickle.loads(Path(job).read_bytes())
    load_with: dict[str, Any] = {"records": records} if records is not None else {}
    for file, X in files[int(first) :]:
        signal.setitimer(signal.ITIMER_PROF, limit)  # by default it ends the process
        try:
            model = load(io.BytesIO(file), trusted=trusted, **load_with)
        except ArtifactError as error:
            told = "refused" if "\n" not in str(error) else f"raised two lines: {error!r}"
        except BaseException as error:
            told = _raised(error, "load")
        else:
            told = _used(model, X)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(told, flush=True)


def _used(model: Any, X: Any) -> str:
    for name in _METHODS:
        try:
            if hasattr(model, name):
                getattr(model, name)(X)
        except BaseException as error:
            return (
                f"raised {type(error).__name__} from {name}: {' '.join(str(error).split())[:150]}"
            )
    return "loaded"


def _raised(error: BaseException, method: str) -> str:
    return f"raised {type(error).__name__} from {method}: {' '.join(str(error).split())[:150]}"


if __name__ == "__main__":
    _main(*sys.argv[1:])
