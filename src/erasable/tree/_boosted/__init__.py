"""Trees of gradient boosting: bins, losses, growth, and the rounds."""
