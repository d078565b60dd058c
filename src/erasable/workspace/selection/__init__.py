"""Choose the records of a table to acquire; `choice.select` is the way in."""

from __future__ import annotations

__all__ = ["UTILITIES"]

UTILITIES = ("nearest-neighbor", "naive-bayes", "mutual-information", "variance-reduction")
"""What `choice.select` accepts as `utility`."""
