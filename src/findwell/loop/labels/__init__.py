"""Labels that survive: quotes found in documents, and found again when these change."""
