"""What is done with a model from a stranger's file: it is loaded, asked, saved, and deletes."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

import erasable
from erasable.core import _untrusted_models as reader
from erasable.core.artifact import read_artifact, write_artifact
from erasable.core.errors import ErasableError
from strangers.cases import Case
from strangers.mutations import mutate

__all__ = ["OUTPUTS", "hold", "mutated", "rewritten", "use", "without_digest"]

OUTPUTS = (
    "predict",
    "transform",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "apply",
    "kneighbors",
    "score_samples",
)
EXPECTED = (ErasableError, NotFittedError)


class _AnyDigest(str):
    """Equal to every digest: that of whatever the file holds."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


@contextlib.contextmanager
def without_digest() -> Any:
    """Let the digest of a file be that of its content."""
    plain = reader.read_artifact

    def read(path: Any) -> Any:
        header, state = plain(path)
        return {**header, "digest": _AnyDigest()}, state

    reader.read_artifact = read
    try:
        yield
    finally:
        reader.read_artifact = plain


def mutated(case: Case, seed: int, number: int) -> tuple[bytes, str]:
    """Return a changed file of a case, and what was changed."""
    rng = np.random.default_rng([seed, number])
    while True:
        header, state, told = mutate(rng, *read_artifact(io.BytesIO(case.file)))
        file = io.BytesIO()
        try:
            write_artifact(file, header, state)
        except (TypeError, ValueError):  # such a file cannot be written
            continue
        return file.getvalue(), told


def rewritten(file: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a file with its state changed; its digest is left, and so it is refused at last."""
    header, state = read_artifact(io.BytesIO(file))
    change(state)
    out = io.BytesIO()
    write_artifact(out, header, state)
    return out.getvalue()


def hold(case: Case, file: bytes) -> str | None:
    """Use a file in every way; return what was raised that is not ours, None if nothing was.

    Parameters
    ----------
    case : Case
        Of which the file was made.
    file : bytes
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"), without_digest():
        warnings.simplefilter("ignore")
        for records in (None, case.records):
            try:
                model = erasable.load(io.BytesIO(file), None if records is None else records())
            except EXPECTED:
                continue
            except Exception as error:
                return _told("load", error)
            wrong = use(model, case, holds=records is not None)
            if wrong is not None:
                return wrong
    return None


def use(model: Any, case: Case, *, holds: bool) -> str | None:
    """Ask a model everything; return what was raised that is not ours, None if nothing was."""
    steps: list[tuple[str, Any]] = [
        ("state", model.state),
        ("digest", model.digest),
        ("save", lambda: model.save(io.BytesIO())),
        ("copy", lambda: copy.deepcopy(model).digest()),
        *((name, lambda name=name: _ask(model, name, case)) for name in OUTPUTS),
        ("attributes", lambda: _read_attributes(model)),
        ("inverse_transform", lambda: _ask_back(model, case)),
        ("get_feature_names_out", lambda: _names_out(model)),
        ("delete", lambda: model.delete(list(case.ids[:2]))),
    ]
    if holds:
        steps += [(f"{name} later", lambda name=name: _ask(model, name, case)) for name in OUTPUTS]
        steps += [("digest later", model.digest)]
    for name, step in steps:
        try:
            step()
        except EXPECTED:
            continue
        except Exception as error:
            return _told(name, error)
    return None


def _ask(model: Any, name: str, case: Case) -> None:
    if hasattr(model, name):
        getattr(model, name)(case.queries())


def _ask_back(model: Any, case: Case) -> None:
    if hasattr(model, "inverse_transform") and hasattr(model, "transform"):
        model.inverse_transform(model.transform(case.queries()))


def _names_out(model: Any) -> None:
    if hasattr(model, "get_feature_names_out"):
        with contextlib.suppress(AttributeError):  # of a last step that names nothing
            model.get_feature_names_out()


def _read_attributes(model: Any) -> None:
    for name in dir(type(model)):
        if name.endswith("_") and not name.startswith("_"):
            getattr(model, name, None)  # where there is no such attribute, it says so


def _told(step: str, error: Exception) -> str:
    place = ""
    trace = error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{step} raised {type(error).__name__}: {str(error)[:120]!r} at {place}"
