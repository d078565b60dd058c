"""What is kept of one person."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from erasable.workspace.identity import subjects
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.requests.intake import OPEN, asked
from erasable.workspace.requests.preview import preview
from erasable.workspace.site import Site

__all__ = ["describe"]


def describe(site: Site, value: Any, type: str | None = None) -> dict[str, Any]:
    """Say what is kept of a person, without repeating who it is.

    Parameters
    ----------
    site : Site
    value : str or int
    type : str, default=None
        By default every type that is in use is tried.

    Returns
    -------
    dict
        known, types (under which it was looked for), n_identities, datasets (name: records),
        models (name: records), requests (ids of open ones).
    """
    with site.ledger.reading() as connection:
        wanted = asked(site, connection, [value], type, None, None)
        types = subjects.types_tried(connection, type)
        pairs = subjects.expand(connection, wanted[0][0] or [])
        tokens = {token for _, token in pairs}
        open_ones = connection.execute(
            select(request_table.c.id, request_table.c.tokens)
            .where(request_table.c.state.in_(OPEN))
            .order_by(request_table.c.received_at)
        )
        waiting = [row.id for row in open_ones if tokens & {token for _, token in row.tokens or ()}]
    effects = preview(site, wanted).effects
    found = {
        kind: {each.name: each.n_records for each in effects if each.target == kind}
        for kind in ("dataset", "model")
    }
    return {
        "known": bool(found["dataset"]),
        "types": types,
        "n_identities": len(pairs),
        "datasets": found["dataset"],
        "models": found["model"],
        "requests": waiting,
    }
