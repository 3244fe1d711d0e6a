"""Requirements that a result meets, fails, or is too uncertain to decide."""
