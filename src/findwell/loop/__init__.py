"""What is done again and again: tuning, labels, monitoring."""
