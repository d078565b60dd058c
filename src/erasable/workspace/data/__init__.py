"""Data sets: where records come from, how they are kept, and how they are erased."""
