"""Models of a workspace: what makes them, what they learn from, how they forget, and the proof.

The law kept here: a model of the workspace is a function of its recipe and of the records of its
data sets. What took part in a fit by chance, a seed that was drawn, becomes part of the recipe at
the first fit; so a refit is the same model, and so is the model after a deletion.
"""
