"""A model that is asked by a command."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from erasable.audit._data import is_text
from erasable.core.arrays import Floats
from erasable.core.errors import InvalidInputError
from erasable.core.frames import as_frame
from erasable.core.ids import shorten
from erasable.core.matrices import to_dense

__all__ = ["BlackBox"]


class BlackBox:
    r"""Audit a model of any program: a command that reads records and writes probabilities.

    Parameters
    ----------
    command : str
        With ``{data}``, a CSV file of records with a header (``x0``, ``x1``, ... for an array,
        ``text`` for texts), and ``{out}``, the CSV file to write: a header, and then for each
        record the probability of each class. It is run without a shell.
    classes : sequence
        The class of each column that is written, as targets name it.
    timeout : float, default=600.0
        Seconds that the command may take.
    model : path-like, default=None
        What ``{model}`` in the command stands for.

    Attributes
    ----------
    classes_ : ndarray

    Raises
    ------
    InvalidInputError
        From `predict_proba`: the command fails, or writes something else.

    Examples
    --------
    >>> import sys
    >>> halves = "import sys; t = open(sys.argv[1]).read().split()[1:]; " \
    ...     "open(sys.argv[2], 'w').write('no,yes\\n' + '0.5,0.5\\n' * len(t))"
    >>> box = BlackBox(f'{sys.executable} -c "{halves}" {{data}} {{out}}', ["no", "yes"])
    >>> box.predict_proba([[0.0], [1.0]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    def __init__(
        self,
        command: str,
        classes: Sequence[Any],
        *,
        timeout: float = 600.0,
        model: str | os.PathLike[str] | None = None,
    ) -> None:
        for name in ("{data}", "{out}", *(() if model is None else ("{model}",))):
            if not isinstance(command, str) or name not in command:
                raise InvalidInputError(f"the command is {shorten(command)}; expected {name} in it")
        self.command, self.timeout, self.model = command, timeout, model
        self.classes_: NDArray[Any] = np.asarray(classes)
        names = self.classes_.tolist()
        if self.classes_.ndim != 1 or not names or len(set(names)) < len(names):
            raise InvalidInputError(
                f"classes is {shorten(classes)}; expected one or more, each of them once"
            )
        if not isinstance(timeout, Real) or not timeout > 0.0:
            raise InvalidInputError(f"timeout is {shorten(timeout)}; expected seconds, above 0")

    def predict_proba(self, X: Any) -> Floats:
        """Run the command, and return the probability of each class for each record."""
        with tempfile.TemporaryDirectory() as folder:
            data, out = Path(folder) / "data.csv", Path(folder) / "out.csv"
            places = {"{data}": str(data), "{out}": str(out)}
            if self.model is not None:
                places["{model}"] = os.fspath(self.model)
            n = _write(X, data)
            try:
                words = shlex.split(self.command)
                for name, place in places.items():
                    words = [word.replace(name, place) for word in words]
                subprocess.run(words, check=True, capture_output=True, timeout=self.timeout)
                found = np.loadtxt(out, delimiter=",", skiprows=1, ndmin=2, dtype=np.float64)
            except subprocess.CalledProcessError as error:
                said = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
                raise InvalidInputError(
                    f"the command ended with {error.returncode}{': ' if said else ''}"
                    f"{' '.join(said)[:200]}; expected 0"
                ) from None
            except subprocess.TimeoutExpired:
                raise InvalidInputError(
                    f"the command took more than {self.timeout:g} seconds; expected less; give a "
                    "longer timeout="
                ) from None
            except (OSError, ValueError) as error:
                raise InvalidInputError(f"the command cannot be run or read: {error}") from None
        expected = (n, self.classes_.size)
        if found.shape != expected or not np.isfinite(found).all():
            raise InvalidInputError(
                f"the command wrote {found.shape[0]} rows of {found.shape[1]} numbers; expected "
                f"{expected[0]} rows with the probabilities of {expected[1]} classes"
            )
        return found


def _write(X: Any, path: Path) -> int:
    """Write records to a CSV file; return their number."""
    frame = as_frame(X)
    if frame is not None:
        frame.write_csv(str(path))
        return len(frame)
    if is_text(X):
        names, rows = ["text"], [[text] for text in X]
    else:
        table = np.asarray(to_dense(X))
        table = table.reshape(len(table), -1)
        names, rows = [f"x{j}" for j in range(table.shape[1])], table.tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])
    return len(rows)
