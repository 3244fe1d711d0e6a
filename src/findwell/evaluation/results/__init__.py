"""What an evaluation returns: numbers, what made them, and how they are kept on disk."""
