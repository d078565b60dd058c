"""Take an unwanted domain out of a data set and its models, by its most telling records.

The law kept here: a plan changes nothing; what is deleted is what the plan chose, or nothing; and a
record that a model was trained on is never called fresh.
"""
