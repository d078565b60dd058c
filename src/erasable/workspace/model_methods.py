"""Methods of `Workspace`: models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from erasable.core.errors import WorkspaceBusyError
from erasable.workspace.context import Context

if TYPE_CHECKING:
    import pyarrow as pa

    from erasable.workspace.models.fitting import Fitted
    from erasable.workspace.models.verifying import Verdict


class ModelMethods:
    """Models; see `erasable.workspace.Workspace`.

    Parameters
    ----------
    context : Context
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def fit(
        self,
        name: str,
        estimator: Any = None,
        *,
        datasets: Sequence[str] = (),
        target: str | None = None,
        features: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        prepare: str = "auto",
        hook: str | None = None,
        policy: str | None = None,
    ) -> Fitted:
        """Train a model, or, under a name that is known, train it again on the newest data.

        `estimator` is a name, or an estimator or pipeline of erasable or scikit-learn itself, of
        which the recipe keeps classes and parameters as plain JSON; it stays unfitted. See
        `erasable.workspace.models.fitting.fit`.
        """
        from erasable.workspace.models import fitting

        fitted = fitting.fit(
            self.context, name, estimator, datasets=datasets, target=target, features=features,
            params=params, prepare=prepare, hook=hook, policy=policy,
        )  # fmt: skip
        self._publish_due()
        return fitted

    def register(
        self,
        name: str,
        *,
        datasets: Sequence[str],
        retrain: str | None = None,
        hook: str | None = None,
        policy: str | None = None,
    ) -> Any:
        """Register a model that is trained elsewhere.

        With `retrain`, a command with {data} and {out}, it is trained again at every erasure;
        without, it is not covered, and every receipt says so.
        """
        from erasable.workspace.models import fitting

        return fitting.register(
            self.context, name, datasets=datasets, retrain=retrain, hook=hook, policy=policy
        )

    def refresh(self, names: Sequence[str] | None = None) -> tuple[list[dict[str, Any]], list[str]]:
        """Have models follow to the newest versions of their data sets; return what, and warnings.

        See `erasable.workspace.models.updating.refresh`.
        """
        from erasable.workspace.models import updating

        done = updating.refresh(self.context, names)
        return done, self._deliver_due() if done else []

    def set_policy(self, name: str, policy: str) -> None:
        """Say when a model follows its data sets: "at-once", by "refresh", or "never"."""
        from erasable.workspace.models import updating

        updating.set_policy(self.context, name, policy)

    def retire(self, name: str) -> None:
        """Give a model up; see `erasable.workspace.models.fitting.retire`."""
        from erasable.workspace.models import fitting

        fitting.retire(self.context, name)
        self._publish_due()

    def models(self) -> list[dict[str, Any]]:
        """Describe every model."""
        from erasable.workspace.models import overview

        with self.context.ledger.reading() as connection:
            return overview.models(connection)

    def model(self, name: str) -> dict[str, Any]:
        """Describe a model: its recipe, data, versions and what deletions cost."""
        from erasable.workspace.models import overview

        with self.context.ledger.reading() as connection:
            return overview.model(connection, name)

    def predict(
        self,
        name: str,
        source: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ) -> pa.Table:
        """Predict with a model for the records of a file; see `Workspace.add_dataset`."""
        from erasable.workspace.data.dialects import Dialect
        from erasable.workspace.models import using

        dialect = Dialect.of(delimiter, decimal, encoding)
        return using.predict(self.context, name, os.fspath(source), dialect)

    def export(self, name: str, path: str | os.PathLike[str]) -> list[str]:
        """Write a model, without records, for prediction elsewhere; return warnings.

        See `erasable.workspace.models.using.export`.
        """
        from erasable.workspace.models import using

        return using.export(self.context, name, path)

    def verify(self, names: Sequence[str] | None = None, *, retrain: bool = False) -> list[Verdict]:
        """Fit models again on what is left, and compare bit for bit."""
        from erasable.workspace.models import verifying

        return verifying.verify(self.context, names, retrain=retrain)

    def _deliver_due(self) -> list[str]:
        """Run hooks and register models that have changed; return what failed."""
        from erasable.workspace.requests import process

        try:
            return process.deliver_due(self.context).warnings
        except WorkspaceBusyError:  # who carries out requests does it
            return []

    def _publish_due(self) -> None:
        """Register what a registry lacks; warn where that fails."""
        from erasable.workspace.models import published

        if published.is_any_due(self.context):
            from erasable.workspace.models import publishing

            for message in publishing.publish_due(self.context):
                warnings.warn(message, UserWarning, stacklevel=3)
