"""Requests to erase: taken in, answered in time, carried out everywhere, and attested."""
