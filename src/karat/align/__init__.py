"""The one place that decides order, ties, duplicates, missing and extra queries."""
