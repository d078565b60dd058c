"""Versions of registered models in MLflow; no other module of a workspace calls MLflow.

The law kept here: a version that another made is neither changed nor deleted; errors of MLflow
become one line without a credential.
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from erasable.core._optional import needs
from erasable.core.errors import ErasableError, WorkspaceError, WorkspaceServerError

ALIAS = "current"
"""The alias that the newest version has."""

LOADER = "erasable.workspace.models.served"
EXPERIMENT = "erasable"
_MODEL, _OWNER, _NUMBER = "erasable.model", "erasable.workspace", "erasable.version"
_COMMITMENT = "erasable.commitment"
_SUPERSEDED, _HOLDS = "erasable.superseded_by", "erasable.trained_on_erased_records"
_PATIENCE = {  # for whom nothing was set: an erasure waits for us
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}

_CREDENTIALS = re.compile(r"//[^/@\s]+@")


class Registry:
    """A registered model; raise MissingPackageError if MLflow is not installed.

    `uri` is of the tracking server or store (`MLFLOW_REGISTRY_URI` names another registry).
    Versions with the tags of `workspace` and `model` are ours.
    """

    def __init__(self, name: str, uri: str, workspace: str, model: str) -> None:
        for variable, value in _PATIENCE.items():
            os.environ.setdefault(variable, value)
        self.name, self._uri = name, uri
        self._own = {_OWNER: workspace, _MODEL: model}
        with _explained():
            with needs("mlflow", "a model that is published to MLflow"):
                import mlflow
            for noisy in ("mlflow", "alembic"):
                logging.getLogger(noisy).setLevel(logging.ERROR)
            self._mlflow: Any = mlflow

    @cached_property
    def _client(self) -> Any:
        return self._mlflow.MlflowClient(  # which makes a database that is not there
            tracking_uri=self._uri, registry_uri=os.environ.get("MLFLOW_REGISTRY_URI") or self._uri
        )

    def claim(self, *, make: bool = True) -> None:
        """Make the registered model, unless it is ours already.

        With `make` false, refuse a missing one: it is in another registry, whose versions would
        stay in use.
        """
        with _explained():
            known = self._known() if make or self._is_there() else None
            if known is None and not make:
                raise WorkspaceServerError(
                    f"MLflow has no registered model {self.name!r}, in which versions were "
                    "registered; expected the registry that has them; bring it back, or, if they "
                    "were deleted there, publish the model anew: `erasable model publish "
                    f"{self._own[_MODEL]} --to mlflow:{self.name}`"
                )
            if known is None:
                self._client.create_registered_model(self.name, tags=self._own)
                return
        if not self._own.items() <= dict(known.tags).items():
            raise WorkspaceError(
                f"MLflow has a registered model {self.name!r} that this workspace did not make for "
                "this model; expected a new name"
            )

    def find(self, commitment: str) -> str | None:
        """Return the registered version of a commitment, None if there is none.

        A process that died may have registered a version without recording it. Version numbers do
        not identify it: after a restore they are given twice.
        """
        with _explained():
            for each in self._versions():
                if dict(each.tags).get(_COMMITMENT) == commitment:
                    return str(each.version)
        return None

    def push(
        self, data: Path, folder: Path, number: int, commitment: str, tags: Mapping[str, str]
    ) -> str:
        """Register a new version, and return its version in MLflow.

        `data` is the folder that the loader reads, with the file of the model; `folder`, which must
        not exist yet, takes MLflow's temporary files. `number` is that of the version in the
        workspace.
        """
        with _explained():
            from erasable.mlflow._flavor import get_default_pip_requirements, package

            needed = get_default_pip_requirements("workspace")
            package(data, folder, LOADER, pip_requirements=needed)
            run = self._client.create_run(
                self._experiment(), run_name=f"{self.name} {number}", tags=self._own
            )
            self._client.log_artifacts(run.info.run_id, str(folder), "model")
            made = self._client.create_model_version(
                self.name, source=f"{run.info.artifact_uri}/model", run_id=run.info.run_id,
                tags={**tags, **self._own, _NUMBER: str(number), _COMMITMENT: commitment},
            )  # fmt: skip
            self._client.set_terminated(run.info.run_id)
            return str(made.version)

    def supersede(self, newest: str | None, *, erased: bool, delete: bool) -> list[str]:
        """Move the alias to a version, and mark or delete those before; return those that are left.

        `newest` is None if there is no model any more. `erased` says that records were erased which
        earlier versions were trained on; `delete` removes these versions and their files, as far as
        MLflow allows. Files that a process left which died before it registered them are deleted.
        """
        with _explained():
            if newest is not None:
                self._client.set_registered_model_alias(self.name, ALIAS, newest)
            elif self._known() is not None:
                self._client.delete_registered_model_alias(self.name, ALIAS)
            left, versions = [], self._versions()
            self._delete_unregistered({each.run_id for each in versions})
            for each in versions:
                version = str(each.version)
                if version == newest:
                    continue
                if delete:
                    self._delete(each)
                    continue
                left.append(version)
                self._tag(version, _SUPERSEDED, newest or "none")
                if erased:
                    self._tag(version, _HOLDS, "true")
            return left

    # -- parts of these ----------------------------------------------------------------------------

    def _is_there(self) -> bool:
        """Tell whether there may be a registry: a file that is not there holds none."""
        path = self._uri.removeprefix("sqlite:///")
        return path == self._uri or Path(path).exists()

    def _known(self) -> Any:
        from mlflow.exceptions import MlflowException

        try:
            return self._client.get_registered_model(self.name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None

    def _versions(self) -> list[Any]:
        """Return the versions that are ours, the oldest first."""
        found, token = [], None
        quoted = self.name.replace("'", "''")
        while True:
            some = self._client.search_model_versions(f"name='{quoted}'", page_token=token)
            found += [each for each in some if self._own.items() <= dict(each.tags).items()]
            token = some.token
            if not token:
                return sorted(found, key=lambda each: int(each.version))

    def _experiment(self) -> str:
        known = self._client.get_experiment_by_name(EXPERIMENT)
        if known is not None:
            return str(known.experiment_id)
        place = None
        if self._uri.startswith("sqlite:///"):  # or it would be wherever we were started
            database = Path(self._uri.removeprefix("sqlite:///"))
            place = (database.parent / "mlflow-artifacts").as_uri()
        return str(self._client.create_experiment(EXPERIMENT, artifact_location=place))

    def _tag(self, version: str, name: str, value: str) -> None:
        self._client.set_model_version_tag(self.name, version, name, value)

    def _delete_unregistered(self, registered: set[str]) -> None:
        """Delete our runs that did not end, and have no version; no other process has one."""
        for run in self._client.search_runs(
            [self._experiment()], f"attributes.status = 'RUNNING' and tags.`{_MODEL}` != ''"
        ):
            if self._own.items() <= run.data.tags.items() and run.info.run_id not in registered:
                self._delete_files(run.info.artifact_uri, f"run {run.info.run_id}")
                self._client.delete_run(run.info.run_id)

    def _delete_files(self, place: str, owner: str) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        files: Any = get_artifact_repository(place, tracking_uri=self._uri)
        files.delete_artifacts()
        if files.list_artifacts():
            raise WorkspaceServerError(
                f"the files of {owner} of {self.name!r} are in MLflow still; expected none; delete "
                "them there"
            )

    def _delete(self, version: Any) -> None:
        """Delete files, version and run; the files first, so that it can be tried again."""
        from mlflow.exceptions import MlflowException

        self._delete_files(version.source, f"version {version.version}")
        self._client.delete_model_version(self.name, str(version.version))
        try:
            self._client.delete_run(version.run_id)
        except MlflowException:  # it was deleted already; there is nothing left in it
            return


@contextmanager
def _explained() -> Iterator[None]:
    """Make one of our errors of what MLflow raises; what it warns of is for its developers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ErasableError:
        raise
    except Exception as error:  # of many libraries; all of it means the same
        message = " ".join(_CREDENTIALS.sub("//", str(error)).split())[:200] or type(error).__name__
        raise WorkspaceServerError(
            f"MLflow cannot be reached, or refuses ({message}); expected a registry that takes a "
            "version; mend that, and run the command again"
        ) from None
