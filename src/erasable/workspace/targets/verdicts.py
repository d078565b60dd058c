"""Words of what can be said after an erasure from a target; `steps` says when."""

NOTHING = "no record found"
PURGED = "purged"
NOT_PROVED = "deleted, not proved gone"
