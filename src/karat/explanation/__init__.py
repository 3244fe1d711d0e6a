"""A query told step by step, and why dialects differ about it."""
