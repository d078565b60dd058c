"""One page that shows a workspace: requests against their due dates, models, evidence."""
