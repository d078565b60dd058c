"""Methods of `Workspace`: audits of models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from erasable.audit import AuditReport
    from erasable.workspace.context import Context


class AuditMethods:
    """Audits of a workspace's models; see `erasable.workspace.Workspace`.

    Parameters
    ----------
    context : Context
    """

    context: Context

    def audit(
        self,
        name: str,
        *,
        fresh: str | os.PathLike[str] | None = None,
        deleted: str | None = None,
        records: str | os.PathLike[str] | None = None,
        attack: str | None = None,
        references: int | None = None,
        level: float = 0.05,
        seed: int = 0,
        ask: str | None = None,
        target: str | None = None,
    ) -> AuditReport:
        """Test whether a model reveals its records, or has forgotten those of a request.

        A model that a program of the user's made is asked by the command `ask`, for
        probabilities of the classes of the column `target`.

        See `erasable.workspace.audits.auditing.audit`.
        """
        from erasable.core.errors import InvalidParameterError
        from erasable.workspace.audits import auditing, subjects

        asked = None
        if ask is not None and target is not None:
            asked = subjects.AskCommand(ask, target)
        elif ask is not None or target is not None:
            raise InvalidParameterError(
                "one of ask and target was given; expected both, or neither"
            )

        return auditing.audit(
            self.context, name, fresh=None if fresh is None else os.fspath(fresh),
            deleted=deleted, records=None if records is None else os.fspath(records),
            attack=attack, references=references, level=level, seed=seed, ask=asked,
        )  # fmt: skip
