"""Proofs for an auditor who does not trust us: the log, its heads, and receipts.

Nothing that leaves this package holds an identity, a token, the id of a record or a bare digest of
a model. Digests go out as salted commitments, free texts as keyed hashes.
"""
