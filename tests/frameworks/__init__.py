"""Real retrieval frameworks, in an environment of their own (`make .venv/frameworks`)."""
