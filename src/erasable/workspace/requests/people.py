"""What is kept of one person."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from erasable.workspace.identity import subjects, suppression
from erasable.workspace.ledger.schema import request as request_table
from erasable.workspace.requests.intake import OPEN, asked
from erasable.workspace.requests.preview import preview
from erasable.workspace.site import Site


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
        known, types (under which it was looked for), searched (in which columns: dataset, column
        and type of each), n_identities, datasets (name: records),
        models (name: records), requests (ids of open ones), suppressed (what is on the list of
        whom to keep out: type, request_id and since of each).
    """
    with site.ledger.reading() as connection:
        wanted = asked(site, connection, [value], type, None, None)
        types = subjects.types_tried(connection, type)
        pairs = subjects.expand(connection, wanted[0][0] or [])
        tokens = {token for _, token in pairs}
        kept_out = suppression.entries_of(connection, tokens)
        open_ones = connection.execute(
            select(request_table.c.id, request_table.c.tokens)
            .where(request_table.c.state.in_(OPEN))
            .order_by(request_table.c.received_at)
        )
        waiting = [row.id for row in open_ones if tokens & {token for _, token in row.tokens or ()}]
    looked = preview(site, wanted, types)
    effects = looked.effects
    found = {
        kind: {each.name: each.n_records for each in effects if each.target == kind}
        for kind in ("dataset", "model")
    }
    return {
        "known": bool(found["dataset"]),
        "types": types,
        "searched": list(looked.searched),
        "n_identities": len(pairs),
        "datasets": found["dataset"],
        "models": found["model"],
        "requests": waiting,
        "suppressed": kept_out,
    }
