"""Verifications on record: which version of a model was verified when, and what came since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from erasable.workspace.ledger.engine import setting
from erasable.workspace.ledger.schema import model_version, task
from erasable.workspace.ledger.treatments import UNCOVERED
from erasable.workspace.models import catalogue
from erasable.workspace.models.catalogue import Model

SETTING = "verification"
_NAMED = 5
_CAME_TO = {
    "equal": "it equalled, bit for bit, a model trained on the records that were left",
    "approximate": "it forgot approximately, so the comparison proves nothing",
    "not checked": "its file was the one committed to; its command was not run again",
    "other version": "other software or another kind of machine made it, so it was not compared",
    "different": "it differed from a model trained on the records that were left",
    "damaged": "its file was not the model that was committed to",
}


@dataclass(frozen=True, slots=True)
class Verified:
    """What is on record of the verification of a model, as it is in use.

    >>> Verified("equal", "", "2026-03-04T09:30", 2, 2, ("R-1", "R-2"), ()).words
    '2026-03-04, version 2: it equalled, bit for bit, a model trained on the records that were left'
    >>> Verified("equal", "", "2026-03-04T09:30", 2, 3, ("R-1",), ("R-3",)).since_words
    'version 3 is in use and not verified, after 1 request: R-3'
    >>> Verified("equal", "", "2026-03-04T09:30", 2, 2, ("R-1",), ()).covers_words
    '1 request, up to R-1'
    """

    verdict: str
    detail: str
    at: str  # ISO 8601
    version: int  # that was verified
    version_in_use: int
    covers: tuple[str, ...]  # requests carried out in it before, in order
    since: tuple[str, ...]  # requests carried out in it since

    @property
    def is_of_version_in_use(self) -> bool:
        """Whether the model is still the one that was verified."""
        return self.version == self.version_in_use

    @property
    def words(self) -> str:
        """When it was verified, and with what result."""
        told = _CAME_TO.get(self.verdict, self.verdict)
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.at[:10]}, version {self.version}: {told}{detail}"

    @property
    def covers_words(self) -> str:
        """The number of requests that the verified version had followed, and the last of them."""
        if not self.covers:
            return "no request had reached it"
        return f"{_requests(len(self.covers))}, up to {self.covers[-1]}"

    @property
    def since_words(self) -> str:
        """What came of the model since."""
        if self.is_of_version_in_use:
            return "unchanged"
        told = f"version {self.version_in_use} is in use and not verified"
        if not self.since:
            return f"{told}; no request has reached it since"
        rest = len(self.since) - _NAMED
        named = ", ".join(self.since[:_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
        return f"{told}, after {_requests(len(self.since))}: {named}"


def _requests(n: int) -> str:
    return f"{n:,} request{'' if n == 1 else 's'}"


def first_version(connection: Connection, model: Model) -> int:
    """Return the number of the first version; those before are of retired models of that name."""
    v = model_version.c
    own = (v.model_id == model.id) & (v.created_at >= model.created_at)
    return connection.execute(select(func.min(v.number)).where(own)).scalar() or 0


def requests_of(connection: Connection, model: Model) -> list[tuple[int, str]]:
    """Return the requests that a model has followed, with the versions that they made, in order."""
    t, v = task.c, model_version.c
    made = (t.target == "model") & (t.target_id == v.model_id) & (t.after == v.commitment)
    own = (v.model_id == model.id) & (v.number >= first_version(connection, model))
    found = select(v.number, t.request_id).join(task, made).where(own)
    rows = connection.execute(found.order_by(v.number, t.request_id))
    return [(row.number, row.request_id) for row in rows]


def not_followed(connection: Connection, model: Model) -> int:
    """Count the requests about its data that a model does not follow, as it is not covered."""
    t = task.c
    found = select(t.request_id).where(
        t.target == "model", t.target_id == model.id, t.treatment.in_(UNCOVERED)
    )
    return len(connection.execute(found).all())


def verified(connection: Connection, model: Model) -> Verified | None:
    """Return what is on record of the verification of a model; None without, or if it is gone."""
    kept = on_record(connection).get(model.name) if model.is_live else None
    if kept is None or kept["version"] < first_version(connection, model):
        return None
    number = kept["version"]
    followed = requests_of(connection, model)
    return Verified(
        kept["verdict"],
        kept["detail"],
        kept["at"],
        number,
        model.version,
        tuple(request for made, request in followed if made <= number),
        tuple(request for made, request in followed if made > number),
    )


def on_record(connection: Connection) -> dict[str, Mapping[str, Any]]:
    """Return the last verification of each model, by name; see `verifying`."""
    kept = setting(connection, SETTING, {"verdicts": []})["verdicts"]
    # Those of earlier versions of erasable do not say of which version of the model they are.
    return {each["model"]: each for each in kept if "version" in each and "at" in each}


def line(connection: Connection, model: Model) -> str:
    """Say in one line whether and when a model was verified, and what came since."""
    row = _described(connection, model)
    return "; ".join(row[name] for name in ("words", "since") if row[name])


def described(connection: Connection) -> list[dict[str, Any]]:
    """Say of each model, by name, whether and when it was verified, and what came since."""
    return [_described(connection, each) for each in catalogue.every(connection)]


def _described(connection: Connection, model: Model) -> dict[str, Any]:
    found = verified(connection, model)
    row = {"model": model.name, "covers": None, "since": None}
    if model.state == "uncovered":
        n = not_followed(connection, model)
        reached = "no request has concerned it" if n == 0 else f"{_requests(n)} did not reach it"
        return row | {
            "verdict": "not covered",
            "words": f"trained elsewhere, without a command; never verified; {reached}",
        }
    if model.state == "retired":
        return row | {"verdict": "retired", "words": "retired: its file is erased"}
    if found is None:
        n = len(requests_of(connection, model))
        told = f"no verification is on record; {_requests(n) if n else 'no request'} reached it"
        return row | {"verdict": "not verified", "words": told}
    return {
        "model": model.name,
        "verdict": found.verdict
        if found.is_of_version_in_use
        else f"{found.verdict}, then changed",
        "words": found.words,
        "covers": found.covers_words,
        "since": found.since_words,
    }
