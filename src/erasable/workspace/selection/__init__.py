"""Choose the records of a table to acquire; `choice.select` is the way in."""
