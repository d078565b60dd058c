"""Words of receipts and previews, for people: one wording in text and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_NAMED = 10  # columns
_NONE = "-"


def types(tried: Sequence[str]) -> str:
    """Return the types that an identity was looked for under.

    >>> types(["email"]), types(["email", "id"])
    ('type email', 'types email, id')
    """
    return f"{'type' if len(tried) == 1 else 'types'} {', '.join(tried)}"


def columns(searched: Sequence[Mapping[str, str]]) -> str:
    """Return the columns that an identity was looked for in.

    >>> columns([{"dataset": "visits", "column": "mail", "type": "email"}]), columns([])
    ('visits.mail (email)', 'no column')
    """
    named = [f"{each['dataset']}.{each['column']} ({each['type']})" for each in searched]
    return ", ".join(named) or "no column"


def steps(path: Sequence[Mapping[str, Any]]) -> str:
    """Say how one identity of a person led to another.

    >>> mail = {"dataset": "customers", "from": "mail", "to": "who"}
    >>> link = {"dataset": None, "from_type": "id", "to_type": "email"}
    >>> steps([link, mail])
    'link: id > email, customers: mail > who'
    """
    return ", ".join(
        f"link: {each['from_type']} > {each['to_type']}"
        if each["dataset"] is None
        else f"{each['dataset']}: {each['from']} > {each['to']}"
        for each in path
    )


def facts(says: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a receipt says of its request, as names and texts; see `receipts.show`.

    >>> facts({"request": "R-1", "regulation": "gdpr", "received": "2026-03-01T09:30:00Z",
    ...        "due": None, "completed": "2026-03-04T09:30:00Z", "in_time": None, "matched": True,
    ...        "records": 1200, "log": {"position": 8, "size": 9}})[2:6]
    [('received', '2026-03-01'), ('due', '-'), ('completed', '2026-03-04'), ('records', '1,200')]
    """
    late = "" if says["in_time"] is None else ", in time" if says["in_time"] else ", LATE"
    found = [
        ("request", says["request"]),
        ("regulation", says["regulation"]),
        ("received", _day(says["received"])),
        ("due", _day(says["due"])),
        ("completed", _day(says["completed"]) + late),
        ("records", f"{says['records']:,}" if says["matched"] else says["outcome"]),
        _asked(says),
    ]
    if says.get("searched") is not None:  # older receipts do not say
        found.append(("searched", columns(says["searched"])))
    if says.get("followed"):
        found.append(("followed", _followed(says["followed"])))
    found.append(("log", f"entry {says['log']['position']} of {says['log']['size']}"))
    if "restored" in says:
        found.append(("restored", _branch(says["restored"])))
    return found


def touched(says: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return what a receipt says of data sets and models: kind, name, treatment, ..."""
    every = [("data set", each) for each in says["datasets"]]
    every += [("model", each) for each in says["models"]]
    inside = [
        (
            kind,
            each["name"],
            each["treatment"],
            each.get("exactness") or _NONE,
            _count(each["records"]),
        )
        for kind, each in every
    ]
    return inside + [
        ("target", each["name"], each["verdict"], _NONE, _count(each["records"]))
        for each in says.get("targets", ())  # older receipts have none
    ]


def doubts(says: Mapping[str, Any]) -> list[str]:
    """Say why people are not proved gone from targets, a line for each.

    >>> doubts({"targets": [{"name": "index", "verdict": "deleted, not proved gone",
    ...                      "reason": "a snapshot is left", "records": 2}]})
    ['index: deleted, not proved gone: a snapshot is left']
    """
    return [
        f"{each['name']}: {each['verdict']}: {each['reason']}"
        for each in says.get("targets", ())
        if each["reason"]
    ]


def _count(n: int | None) -> str:
    return _NONE if n is None else f"{n:,}"


def _day(at: str | None) -> str:
    return _NONE if at is None else at[:10]


def _branch(restored: Mapping[str, Any]) -> str:
    return f"from a backup, at entry {restored['position']}; this log goes its own way from there"


def _asked(says: Mapping[str, Any]) -> tuple[str, str]:
    """Say what was asked for."""
    if "corrected" in says:
        of = says["corrected"]
        return "corrected", f"{', '.join(of['columns'])} in {of['dataset']}"
    return "looked for", types(says["types"]) if says.get("types") else "by a condition"


def _followed(steps_: Sequence[Mapping[str, Any]]) -> str:
    """Say by what other identities of the person were found."""
    return "; ".join(f"{each['identities']:,} by {steps([each])}" for each in steps_)
