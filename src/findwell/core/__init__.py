"""The nouns: what was retrieved, what should be found, and the relation between them."""
