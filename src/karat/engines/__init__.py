"""How it runs, never what it computes."""
