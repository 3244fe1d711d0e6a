"""Systems on the same queries: paired, tested, corrected; how many queries it takes; agreement."""
