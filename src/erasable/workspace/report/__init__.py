"""One page that shows a workspace: requests against their due dates, models, evidence."""

__all__: list[str] = []
