"""A query explained step by step, and why dialects differ about it."""
