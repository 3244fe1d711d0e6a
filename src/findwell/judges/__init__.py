"""Judged relations: a language model or a local model decides which unit covers which item."""
