"""States of requests, one row each, in the order in which a request passes through them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """A state of a request."""

    name: str  # for programs; people read it with spaces
    phase: str  # "waiting"; "in place", all but its receipt; "answered"; "refused"


STATES = (
    State("pending", "waiting"),
    State("in_progress", "waiting"),
    State("swapped", "in place"),
    State("purged", "in place"),
    State("completed", "answered"),
    State("no_match", "answered"),  # "completed" in the ledger, without a record
    State("denied", "refused"),
    State("cancelled", "refused"),
)


def in_phases(*phases: str) -> tuple[str, ...]:
    """Return the names of the states in some phases."""
    return tuple(each.name for each in STATES if each.phase in phases)


WAITING = in_phases("waiting")
IN_PLACE = in_phases("in place")
OPEN = WAITING + IN_PLACE
WITHIN_OPEN = ("on_hold", "waits_for_targets", "late")  # names of parts of the open ones
COMPLETED, NO_MATCH = ANSWERED = in_phases("answered")
REFUSED = in_phases("refused")
