"""Decides order, ties, duplicates and extra queries of a run, once; looks for problems."""
