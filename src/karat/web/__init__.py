"""The local page: results as reports show them, to explore; it owns no logic of its own."""
