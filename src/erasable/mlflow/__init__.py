"""Models of erasable in MLflow: save, log, load and serve them, and log fits and deletions.

It needs MLflow: ``pip install 'erasable[mlflow]'``. Nothing is registered with MLflow: the file
``MLmodel`` of a saved model names this module, and `mlflow.pyfunc` imports it.
"""

from erasable.core._optional import needs as _needs

with _needs("mlflow", "erasable.mlflow"):
    from erasable.mlflow._autolog import autolog
    from erasable.mlflow._flavor import (
        FLAVOR_NAME,
        get_default_pip_requirements,
        load_model,
        log_model,
        save_model,
    )
    from erasable.mlflow._flavor import _load_pyfunc as _load_pyfunc  # MLflow asks for it

__all__ = [
    "FLAVOR_NAME",
    "autolog",
    "get_default_pip_requirements",
    "load_model",
    "log_model",
    "save_model",
]
