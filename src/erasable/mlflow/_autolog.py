"""Automatic logging of fits and of changes of records to MLflow.

The law kept here: what is logged are parameters, scores, counts and digests; no id and no value of
a record. A failure to log fails no call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import mlflow
import narwhals as nw
from mlflow.utils.autologging_utils import (
    autologging_integration,
    get_autologging_config,
    safe_patch,
)
from sklearn.base import BaseEstimator

from erasable.core.attachment import HeldRecords
from erasable.core.deletion import Report
from erasable.core.estimator import Erasable
from erasable.core.params import class_path
from erasable.mlflow._flavor import FLAVOR_NAME, log_model
from erasable.utils.discovery import all_estimators

_CHANGES = {"delete": "deleted", "add": "added", "correct": "corrected", "replace": "replaced"}
_BATCH = 100  # parameters that MLflow takes at once
_NOT_ALONE = ("erasable.compose", "erasable.feature_extraction", "erasable.preprocessing")
_LIBRARIES = ("erasable", "sklearn")
_BETWEEN = ("erasable.mlflow.", "mlflow.")


@autologging_integration(FLAVOR_NAME)  # type: ignore[untyped-decorator]
def autolog(
    log_training_score: bool = True,
    log_models: bool = False,
    registered_model_name: str | None = None,
    disable: bool = False,
    exclusive: bool = False,
    silent: bool = False,
    extra_tags: dict[str, str] | None = None,
) -> None:
    """Log every fit, deletion, addition, correction and replacement to MLflow from now on.

    Each call is a run of its own, or goes to the active run. It logs

    - parameters (fits): numbers, strings and the like as they are, estimators by the names of their
      classes, and others, which could hold values of records, by their type alone;
    - metrics: ``n_records``, the records that the model has now; ``n_records_deleted``
      (``_added``, ``_corrected``, ``_replaced``), ``rows_touched`` and ``seconds``; and
      ``training_score`` (fits);
    - tags: ``erasable.operation``, ``erasable.estimator``, ``erasable.digest_after``, and of
      changes ``erasable.digest_before``, ``erasable.action`` and ``erasable.exactness``. The
      digest before a change is the digest after the call before it, so that runs can be followed.
      Calls with ``digest=False`` have none.

    No id and no value of a record is logged. With the digest before a deletion, though, those who
    know the parameters and all other records can test a guess of the deleted one.

    Calls that erasable and scikit-learn make themselves, such as the fits of an audit, of a search
    or of a member, are not logged; nor are those of transformers of columns and of text outside of
    a pipeline, as in `mlflow.sklearn.autolog`.

    Parameters
    ----------
    log_training_score : bool, default=True
        Log ``model.score`` of the records that `fit` was given. This takes as long as predicting
        them, which for nearest neighbours and kernels is longer than the fit. Records that were
        passed as `Records`, which may be on a disk, are not scored.
    log_models : bool, default=False
        Log the model, too, after each call. Not by default, unlike in MLflow's own integrations:
        models that were logged before a deletion stay in MLflow, trained on what has left.
    registered_model_name : str, default=None
        The registered model of which logged models become versions.
    disable : bool, default=False
        Log nothing any more.
    exclusive : bool, default=False
        Log nothing to runs that you have started.
    silent : bool, default=False
        Show no messages of MLflow.
    extra_tags : dict of str to str, default=None
        Tags of every run.

    Examples
    --------
    >>> autolog(log_training_score=False)
    >>> autolog(disable=True)
    """
    patched = {Erasable}.union(*(cls.__mro__ for _, cls, _ in all_estimators()))
    for cls in patched:
        if not cls.__module__.startswith("erasable."):
            continue
        for name in {"fit", *_CHANGES} & vars(cls).keys():
            log = _log_fit if name == "fit" else functools.partial(_log_change, name)
            safe_patch(FLAVOR_NAME, cls, name, _patch(log))


def _patch(log: Callable[..., None]) -> Callable[..., Any]:
    def patched(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_called_by_user(self):
            return original(self, *args, **kwargs)
        with _run():
            result = original(self, *args, **kwargs)
            mlflow.set_tags(_config("extra_tags") or {})
            log(self, result, *args, **kwargs)
            if _config("log_models"):
                registered = _config("registered_model_name")
                log_model(self, name="model", registered_model_name=registered)
            return result

    return patched


def _log_fit(
    model: Any, fitted: Any, X: Any, y: Any = None, sample_weight: Any = None, **given: Any
) -> None:
    _log_tags(model, "fit", {"digest_after": model.digest()})
    metrics = {"n_records": float(model.ids_.size)}
    if _config("log_training_score") and hasattr(model, "score"):
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        names = [each for each in (given.get("ids"), given.get("groups")) if isinstance(each, str)]
        if not isinstance(X, HeldRecords):
            scored = nw.to_native(nw.from_native(X).drop(names)) if names else X
            metrics["training_score"] = float(model.score(scored, y, **weights))
    mlflow.log_metrics(metrics)
    params = list(model.get_params(deep=True).items())
    for begin in range(0, len(params), _BATCH):
        mlflow.log_params({name: _told(value) for name, value in params[begin : begin + _BATCH]})


def _log_change(name: str, model: Any, report: Report, *_: Any, **__: Any) -> None:
    tags = {
        "digest_before": report.digest_before,
        "digest_after": report.digest_after,
        "action": report.action,
        "exactness": report.exactness,
    }
    _log_tags(model, name, tags)
    mlflow.log_metrics(
        {
            "n_records": float(model.ids_.size),
            f"n_records_{_CHANGES[name]}": float(report.ids.size),
            "rows_touched": float(report.rows_touched),
            "seconds": report.seconds,
        }
    )


def _log_tags(model: Any, operation: str, told: dict[str, str | None]) -> None:
    found = {"operation": operation, "estimator": class_path(type(model)), **told}
    mlflow.set_tags({f"erasable.{name}": each for name, each in found.items() if each is not None})


def _told(value: Any) -> str:
    """Write a parameter; one that may hold values of records becomes the name of its type."""
    if value is None or isinstance(value, bool | int | float | str):
        return str(value)
    if isinstance(value, BaseEstimator) or not isinstance(value, type):
        value = type(value)
    return class_path(value).removeprefix("builtins.")


def _config(name: str) -> Any:
    return get_autologging_config(FLAVOR_NAME, name)


@contextmanager
def _run() -> Iterator[None]:
    """Have an active run: that of the user, or a new one."""
    if mlflow.active_run() is not None:
        yield
        return
    with mlflow.start_run(tags={"mlflow.autologging": FLAVOR_NAME}):
        yield


def _is_called_by_user(model: Any) -> bool:
    """Tell whether a method of a model was called by code of the user, who wants to see it."""
    if class_path(type(model)).startswith(_NOT_ALONE):
        return False
    frame = inspect.currentframe()
    while frame is not None and _is_between(frame, model):
        frame = frame.f_back
    caller = "" if frame is None else frame.f_globals.get("__name__", "")
    return caller.partition(".")[0] not in _LIBRARIES


def _is_between(frame: FrameType, model: Any) -> bool:
    """Tell whether a frame is MLflow's, or one of a method of the model that calls another."""
    name = f"{frame.f_globals.get('__name__', '')}."
    return name.startswith(_BETWEEN) or frame.f_locals.get("self") is model
