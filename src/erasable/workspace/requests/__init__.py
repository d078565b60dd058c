"""Requests for erasure and correction: taken in, answered, carried out and attested."""
