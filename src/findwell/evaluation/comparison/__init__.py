"""Systems on the same queries: paired, tested, planned, held against requirements; agreement."""
