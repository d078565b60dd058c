"""The flavour: a model in the folder that MLflow keeps, written by `Erasable.save`.

The law kept here: nothing is pickled, no record is in the folder unless it was asked for or the
model is made of records, and a model whose digest is not the one in ``MLmodel`` is not loaded.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import mlflow.artifacts
import mlflow.models
import mlflow.pyfunc
import numpy as np
import pandas as pd
from mlflow.types import ColSpec, Schema
from mlflow.types.schema import AnyType
from pandas.api.types import is_extension_array_dtype, is_numeric_dtype
from sklearn.utils import get_tags

import erasable
from erasable.core.artifact import read_header
from erasable.core.errors import ArtifactError, InvalidDataError, InvalidInputError
from erasable.core.estimator import Erasable, load
from erasable.core.records import Records

FLAVOR_NAME = "erasable"
"""The name of the flavour in ``MLmodel``."""

MODEL = "model"
"""The file of the model in the folder that a loader of `mlflow.pyfunc` is given."""

_MODULE = "erasable.mlflow"
_MLMODEL = "MLmodel"


def get_default_pip_requirements(*extras: str) -> list[str]:
    """List the packages that a saved model needs, in the installed versions.

    Parameters
    ----------
    *extras : str
        Extras of erasable.

    Returns
    -------
    list of str

    Examples
    --------
    >>> get_default_pip_requirements()
    ['erasable==...', 'numpy==...', 'scikit-learn==...']
    """
    named = f"erasable[{','.join(extras)}]" if extras else "erasable"
    own = f"{named}=={erasable.__version__}"
    return [own, *(f"{name}=={version(name)}" for name in ("numpy", "scikit-learn"))]


def save_model(
    model: Erasable,
    path: str | os.PathLike[str],
    conda_env: Any = None,
    code_paths: list[str] | None = None,
    mlflow_model: mlflow.models.Model | None = None,
    signature: mlflow.models.ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    extra_pip_requirements: Any = None,
    pyfunc_predict_fn: str | None = None,
    metadata: dict[str, Any] | None = None,
    with_records: bool = False,
) -> None:
    """Save a model to a folder, as a model of MLflow with the flavours erasable and pyfunc.

    Parameters
    ----------
    model : Erasable
        Fitted.
    path : path-like
        A folder, which must not exist yet.
    conda_env, code_paths, mlflow_model, input_example, metadata
        See `mlflow.pyfunc.save_model`. An input example is kept with the model: pass rows that
        describe nobody.
    signature : mlflow.models.ModelSignature, default=None
        By default that of the input example, if there is one.
    pip_requirements, extra_pip_requirements : list of str or str, default=None
        See `mlflow.pyfunc.save_model`; by default `get_default_pip_requirements`.
    pyfunc_predict_fn : str, default=None
        The method that `mlflow.pyfunc` calls, such as ``"predict_proba"``. By default ``"predict"``
        or, if the model has none, ``"transform"``. A model with neither, such as `DBSCAN`, has the
        flavour erasable alone.
    with_records : bool, default=False
        Keep the records, too, so that records can be deleted from the model after
        ``load_model(uri, records=True)``. They are personal data, which no later deletion reaches
        in MLflow. Without them the model is for serving: it predicts, and deletes only if it is
        loaded with the records. Models that are made of records, such as nearest neighbours, hold
        them in either case.

    Raises
    ------
    InvalidInputError
        `model` is no fitted estimator of erasable, or has no method `pyfunc_predict_fn`.
    ArtifactFileError
        The model cannot be written.
    mlflow.exceptions.MlflowException
        The folder exists, or MLflow does not take another argument.

    Examples
    --------
    >>> import tempfile
    >>> from erasable.linear_model import Ridge
    >>> model = Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/ridge")
    ...     load_model(f"{folder}/ridge").digest() == model.digest()
    True
    """
    predict_fn = _predict_fn(model, pyfunc_predict_fn)
    if input_example is not None and signature is None and predict_fn is not None:
        given, *params = input_example if isinstance(input_example, tuple) else (input_example,)
        if isinstance(given, list) and get_tags(model).input_tags.two_d_array:
            given = np.asarray(given)  # MLflow would take rows for columns of arrays
        input_example = (given, *params) if params else given
        signature = _signature(given, Served(model, predict_fn).predict(given))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "erasable")
        folder.mkdir()
        model.save(folder / MODEL, records=with_records)
        package(
            folder, path, _MODULE, with_records=with_records, predict_fn=predict_fn,
            conda_env=conda_env, code_paths=code_paths, mlflow_model=mlflow_model,
            signature=signature, input_example=input_example, metadata=metadata,
            pip_requirements=pip_requirements, extra_pip_requirements=extra_pip_requirements,
        )  # fmt: skip


def log_model(
    model: Erasable,
    artifact_path: str | None = None,
    conda_env: Any = None,
    code_paths: list[str] | None = None,
    registered_model_name: str | None = None,
    signature: mlflow.models.ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    extra_pip_requirements: Any = None,
    pyfunc_predict_fn: str | None = None,
    metadata: dict[str, Any] | None = None,
    with_records: bool = False,
    name: str | None = None,
    **kwargs: Any,
) -> Any:
    """Log a model to the current run of MLflow, and register it if a name is given.

    **It is a snapshot**: a deletion from `model` does not reach it. Log the model again after each
    deletion, and delete what was logged before.

    Parameters
    ----------
    model : Erasable
        Fitted.
    artifact_path : str, default=None
        Deprecated by MLflow; pass `name`.
    conda_env, code_paths, signature, input_example, pip_requirements, extra_pip_requirements
        See `save_model`.
    registered_model_name : str, default=None
        The registered model of which this becomes a version.
    pyfunc_predict_fn, metadata, with_records
        See `save_model`.
    name : str, default=None
        The name of the logged model.
    **kwargs : object
        Other arguments of `mlflow.models.Model.log`, such as `params`, `tags`, `model_type`,
        `step`, `model_id` and `await_registration_for`.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Raises
    ------
    InvalidInputError
        See `save_model`.
    mlflow.exceptions.MlflowException
        MLflow refuses an argument, or cannot be reached.

    Examples
    --------
    >>> import tempfile
    >>> from erasable.linear_model import Ridge
    >>> model = Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    ...     wards = mlflow.create_experiment("wards", f"file://{folder}/files")
    ...     with mlflow.start_run(experiment_id=wards):
    ...         info = log_model(model, name="ridge")
    ...     load_model(info.model_uri).digest() == model.digest()
    True
    >>> mlflow.set_tracking_uri(None)
    """
    return mlflow.models.Model.log(
        artifact_path=artifact_path, flavor=importlib.import_module(_MODULE),
        registered_model_name=registered_model_name, metadata=metadata, name=name, model=model,
        conda_env=conda_env, code_paths=code_paths, signature=signature,
        input_example=input_example, pip_requirements=pip_requirements,
        extra_pip_requirements=extra_pip_requirements, pyfunc_predict_fn=pyfunc_predict_fn,
        with_records=with_records, **kwargs,
    )  # fmt: skip


def load_model(
    model_uri: str,
    dst_path: str | None = None,
    records: Records | tuple[Any, ...] | Literal[True] | None = None,
    trusted: bool = False,
) -> Erasable:
    """Load an estimator of erasable from MLflow, and check its digest.

    Parameters
    ----------
    model_uri : str
        Such as ``"models:/risk@current"``, ``"runs:/<run>/<name>"`` or a folder.
    dst_path : str, default=None
        The folder to download the model to; by default a new one, or none if the model is in a
        local folder.
    records : Records, a tuple, or True, default=None
        The records of the model, so that it can delete; True: those that were saved with it. See
        `erasable.load`.
    trusted : bool, default=False
        Whether the model is your own, so that states of scikit-learn's estimators are taken as they
        are; see `erasable.load`. Otherwise no code of the model's folder is run, and `code_paths`
        that were saved with it are not imported from: a class of your own has to be importable.

    Returns
    -------
    Erasable

    Raises
    ------
    ArtifactError
        The file is damaged, or its digest is not the one that was logged; it does not match the
        records; it has none and `records` is True; or it has to be trusted.
    InvalidInputError
        MLflow has no model of the flavour erasable there.
    mlflow.exceptions.MlflowException
        There is no such model.

    Examples
    --------
    >>> import tempfile
    >>> from erasable.linear_model import Ridge
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(Ridge().fit(X, y), f"{folder}/ridge")
    ...     model = load_model(f"{folder}/ridge", records=(X, y))
    >>> model.delete([1]).action
    'updated'
    """
    root = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path))
    flavors = mlflow.models.Model.load(str(root / _MLMODEL)).flavors
    if FLAVOR_NAME not in flavors:
        raise InvalidInputError(
            f"{model_uri!r} has the flavours {', '.join(sorted(flavors))}; expected "
            f"{FLAVOR_NAME!r}; log it with erasable.mlflow.log_model"
        )
    return _load(root, flavors, records, trusted=trusted)[0]


def _load_pyfunc(path: str | os.PathLike[str]) -> Served:
    """Load a model for `mlflow.pyfunc`, which calls it."""
    return Served(*open_data(path))


def open_data(path: str | os.PathLike[str]) -> tuple[Erasable, str]:
    """Load the model of a folder of data for pyfunc, and the name of the function to serve it by.

    Serving from a registry means trusting it: MLflow runs the code that the folder names. A model
    that was published before there was a flavour has no other digest than that in its file.
    """
    file = Path(path).parents[1] / _MLMODEL
    flavors = mlflow.models.Model.load(str(file)).flavors if file.is_file() else {}
    if FLAVOR_NAME not in flavors:
        return load(Path(path, MODEL), trusted=True), "predict"
    return _load(file.parent, flavors, None, trusted=True)


class Served:
    """A model as `mlflow.pyfunc` calls it: with one function, on tables of any order of columns."""

    def __init__(self, model: Any, predict_fn: str) -> None:
        self._model = model
        self._predict_fn = predict_fn

    def get_raw_model(self) -> Any:
        """Return the estimator."""
        return self._model

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Predict for a table, an array, or a list of texts; `params` are ignored.

        A DataFrame may have more columns than a model of named columns needs, in any order. A model
        of texts takes the one column of a DataFrame.
        """
        given = model_input
        if isinstance(given, pd.DataFrame):
            given = self._columns(given)
        return getattr(self._model, self._predict_fn)(given)

    def _columns(self, frame: pd.DataFrame) -> Any:
        takes = get_tags(self._model).input_tags
        if takes.string and not takes.two_d_array:
            if frame.shape[1] != 1:
                raise InvalidDataError(
                    f"the table has {frame.shape[1]} columns; expected one, of texts"
                )
            return frame.iloc[:, 0].tolist()
        names = getattr(self._model, "feature_names_in_", None)
        if names is None:
            return frame.to_numpy()
        # Where one is missing, the model says which.
        return frame[list(names)] if np.isin(names, frame.columns).all() else frame


def package(
    folder: Path,
    path: str | os.PathLike[str],
    loader: str,
    *,
    mlflow_model: mlflow.models.Model | None = None,
    with_records: bool = False,
    predict_fn: str | None = "predict",
    conda_env: Any = None,
    pip_requirements: Any = None,
    extra_pip_requirements: Any = None,
    **options: Any,
) -> None:
    """Make a model of MLflow of a folder with the file of a model; `loader` is that for pyfunc."""
    model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    if conda_env is None and pip_requirements is None:
        more = extra_pip_requirements or []
        more = [f"-r {more}"] if isinstance(more, str) else more
        pip_requirements = [*get_default_pip_requirements(), *more]
        extra_pip_requirements = None
    mlflow.pyfunc.save_model(
        os.fspath(path), loader_module=loader, data_path=str(folder), mlflow_model=model,
        conda_env=conda_env, pip_requirements=pip_requirements,
        extra_pip_requirements=extra_pip_requirements, **options,
    )  # fmt: skip
    header = read_header(folder / MODEL)
    data = model.flavors[mlflow.pyfunc.FLAVOR_NAME][mlflow.pyfunc.DATA]
    model.add_flavor(
        FLAVOR_NAME, erasable_version=erasable.__version__, model_class=header["class"],
        digest=header["digest"], data=f"{data}/{MODEL}", with_records=with_records,
        predict_fn=predict_fn,
    )  # fmt: skip
    if predict_fn is None:
        del model.flavors[mlflow.pyfunc.FLAVOR_NAME]
    model.save(os.path.join(path, _MLMODEL))


def _signature(given: Any, predicted: Any) -> mlflow.models.ModelSignature:
    """Infer a signature; columns of types that MLflow does not have are of any type.

    Categories may come as texts, too, and nullable numbers with gaps.
    """
    if not isinstance(given, pd.DataFrame):
        return mlflow.models.infer_signature(given, predicted)
    free = [
        name
        for name, kind in given.dtypes.items()
        if isinstance(kind, pd.CategoricalDtype)
        or (is_extension_array_dtype(kind) and is_numeric_dtype(kind))
    ]
    found = mlflow.models.infer_signature(given.astype(dict.fromkeys(free, str)), predicted)
    found.inputs = Schema(
        [ColSpec(AnyType(), each.name) if each.name in free else each for each in found.inputs]
    )
    return found


def _predict_fn(model: Any, name: str | None) -> str | None:
    """Return the name of the function to serve a model by, if it has one; check both."""
    if not isinstance(model, Erasable):
        raise InvalidInputError(
            f"model is a {type(model).__name__}; expected a fitted estimator of erasable; see "
            "mlflow.sklearn for those of scikit-learn"
        )
    model.digest()  # raises NotFittedError
    if name is None:
        return next((each for each in ("predict", "transform") if hasattr(model, each)), None)
    if not callable(getattr(model, name, None)):
        raise InvalidInputError(
            f"pyfunc_predict_fn is {name!r}; expected the name of a method of "
            f"{type(model).__name__}, such as 'predict_proba' of a classifier"
        )
    return name


def _load(
    root: Path, flavors: dict[str, Any], records: Any, *, trusted: bool
) -> tuple[Erasable, str]:
    """Load the model of a folder, and return the name of the function to serve it by, too."""
    match flavors[FLAVOR_NAME]:
        case {
            "data": str(data), "digest": str(digest), "with_records": bool(kept),
            "predict_fn": str() | None as predict_fn,
        }:  # fmt: skip
            file = root / data
        case _:
            raise ArtifactError(
                f"{str(root / _MLMODEL)!r} is damaged; expected data, digest, with_records and "
                f"predict_fn of the flavour {FLAVOR_NAME!r}; log the model again"
            )
    if records is True and not kept:
        raise ArtifactError(
            "the model was saved for serving, without its records; expected with_records=True; "
            "pass the records themselves"
        )
    model = load(file, records, trusted=trusted)
    if model.digest() != digest:
        raise ArtifactError(
            f"the digest of {str(file)!r} is {model.digest()}; expected {digest}, with which it "
            "was saved; log the model again"
        )
    return model, predict_fn or "predict"
