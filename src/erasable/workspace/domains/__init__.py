"""Removals of unwanted domains from data sets and models, by their most characteristic records.

The law kept here: a plan changes nothing; what is deleted is what the plan chose, or nothing; and a
record that a model was trained on is never called fresh.
"""
