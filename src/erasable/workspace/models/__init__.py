"""Models of a workspace: recipes, training, deletion and verification.

The law kept here: a model is a function of its recipe and of the records of its data sets. A seed
that was drawn becomes part of the recipe at the first fit; so a refit is the same model, and so is
the model after a deletion.
"""
