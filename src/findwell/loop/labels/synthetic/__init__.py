"""Questions that a model writes about the passages of a corpus, with gold spans, and checked."""
