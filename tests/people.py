"""People to erase, and a way to erase them, for the tests of targets: no workspace is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from erasable.workspace.targets.protocol import Plan, Subject, Target
from erasable.workspace.targets.steps import Verdict, erase


class Named:
    """People by their identities, as they are spelled."""

    def __init__(self, *identities: Any) -> None:
        self._identities = set(identities)

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name one of them, each with itself as the name."""
        return {value: str(value) for value in values if value in self._identities}


def erased(target: Target, *identities: Any) -> tuple[Plan, Verdict]:
    """Erase people from a target; return what was found, and the verdict."""
    plan = Plan()
    verdict = erase(target, Named(*identities), plan)
    return plan, verdict
