"""Places outside of the workspace in which there may be records of people it knows."""
