"""What whoever made a request must be told, in words that can be sent as they are."""

from __future__ import annotations

from erasable.core.errors import WorkspaceError
from erasable.workspace.requests import calendar
from erasable.workspace.requests.intake import Request

_LAWS = {
    "gdpr": "Article 12(3) GDPR, which allows two further months",
    "ccpa": "section 7021(b) of the CCPA regulations, which allows 45 further days",
}


def extension(request: Request, reason: str) -> str:
    """Write the notice of an extension; it must be sent before the first due date.

    Parameters
    ----------
    request : Request
        As it is after the extension.
    reason : str

    Raises
    ------
    WorkspaceError
        It was not extended.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 3, 1, tzinfo=UTC)
    >>> due = datetime(2026, 6, 1, tzinfo=UTC)
    >>> extended = Request("R-1", "pending", "gdpr", at, due, at, None, None, None, None)
    >>> print(extension(extended, "many requests at once"))
    Your request R-1 to erase your data reached us on 2026-03-01. We will answer it by 2026-06-01,
    and not by 2026-04-01, because of this: many requests at once. The law is Article 12(3) GDPR,
    which allows two further months. You may complain to the supervisory authority, or go to court.
    """
    if request.extended_at is None or request.regulation not in _LAWS or request.due_at is None:
        raise WorkspaceError(
            f"request {request.id} is not extended; expected one that is; extend it first"
        )
    first = calendar.due(request.regulation, request.received_at)
    before = "" if first is None else f", and not by {first:%Y-%m-%d}"
    message = (
        f"Your request {request.id} to erase your data reached us on "
        f"{request.received_at:%Y-%m-%d}. We will answer it by {request.due_at:%Y-%m-%d}{before}, "
        f"because of this: {reason.rstrip('.')}. The law is {_LAWS[request.regulation]}."
    )
    if request.regulation == "gdpr":
        message += " You may complain to the supervisory authority, or go to court."
    return message
