"""Many requests to an OpenAI-compatible server: once each, paced, counted, remembered."""
