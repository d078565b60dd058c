"""Requests to erase: taken in, answered in time, carried out everywhere, and attested."""

__all__: list[str] = []
