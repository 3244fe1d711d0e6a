"""Finding quoted texts in documents, although copies of them differ."""
