"""Systems on the same queries: paired, tested, planned, compared with requirements; agreement."""
