"""From inputs to a result: what is read, what draws the relations, and who judges."""
