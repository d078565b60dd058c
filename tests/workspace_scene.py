"""Who and what the tests of evidence are about; see tests/workspace/evidence/conftest.py."""

from __future__ import annotations

from datetime import UTC, datetime

PERSON, REASON, HOLD = "anna.schmidt@example.org", "Anna Schmidt is unknown", "court order 4711"
DIGEST = "erasable.naive_bayes.GaussianNB:1:5f3a91c07be2"
RECEIVED = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)
DUE = datetime(2026, 12, 2, 9, 30, tzinfo=UTC)
DONE = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
