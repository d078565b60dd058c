"""When a model follows its data sets: with each version, when it is told to, or not at all."""

from __future__ import annotations

from erasable.core.errors import InvalidParameterError
from erasable.workspace.models.catalogue import Model

AT_ONCE, REFRESH, NEVER = "at-once", "refresh", "never"
POLICIES = (AT_ONCE, REFRESH, NEVER)


def of(model: Model) -> str:
    """Return the policy of a model, which the ledger names where it is another than usual."""
    return model.policy or REFRESH


def stored(policy: str) -> str | None:
    """Return a policy as the ledger keeps it.

    >>> stored("refresh"), stored("never")
    (None, 'never')
    """
    if policy not in POLICIES:
        raise InvalidParameterError(
            f"the policy is {policy[:40]!r}; expected one of: {', '.join(POLICIES)}"
        )
    return None if policy == REFRESH else policy
