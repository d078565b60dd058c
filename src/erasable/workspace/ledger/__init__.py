"""What a workspace knows, in a database: everything but data, models and keys."""
