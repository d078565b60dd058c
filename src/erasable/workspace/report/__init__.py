"""Report: a page that shows requests against their due dates, models, and evidence."""
