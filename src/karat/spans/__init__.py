"""Where a quoted text stands in a document, although copies of it differ."""
