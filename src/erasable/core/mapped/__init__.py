"""Models that delete from the files they are kept in, at a cost in proportion to the deletion.

`objects` turns a model with its records and its accelerator into plain values and arrays; `pages`
keeps these in a file that is mapped into memory; `beside` keeps that file beside a saved model.

The files are personal data: they hold the records, or values derived from single records. They are
not part of a model's digest, belong to one version of one model, and can be made again.
"""
