"""People to erase, and a way to erase them, for the tests of targets: no workspace is needed."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any
from unittest.mock import patch

from erasable.core.errors import SourceError
from erasable.workspace.targets.protocol import Plan, Subject, Target
from erasable.workspace.targets.steps import Verdict, erase


class Named:
    """People by their identities, as they are spelled."""

    def __init__(self, *identities: Any) -> None:
        self._identities = set(identities)

    def among(self, values: Collection[Any], subject: Subject) -> Mapping[Any, str]:
        """Return the values that name one of them, each with itself as the name."""
        return {value: str(value) for value in values if value in self._identities}


def erased_in_two_attempts(target: Target, *identities: Any) -> tuple[Plan, Verdict]:
    """Erase people by an attempt that ends before its search, and by another; see `erased`."""
    plan = Plan()
    with patch.object(type(target), "scan", side_effect=SourceError), suppress(SourceError):
        erase(target, Named(*identities), plan)
    assert plan.n_rounds == 1
    plan = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    verdict = erase(target, Named(*identities), plan)
    return plan, verdict


def erased(target: Target, *identities: Any) -> tuple[Plan, Verdict]:
    """Erase people from a target; return what was found, and the verdict."""
    plan = Plan()
    verdict = erase(target, Named(*identities), plan)
    return plan, verdict
