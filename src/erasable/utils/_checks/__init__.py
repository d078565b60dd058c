"""The checks behind `erasable.utils.estimator_checks`, by subject."""
