"""Relations that are drawn from the verdicts of a judge."""
