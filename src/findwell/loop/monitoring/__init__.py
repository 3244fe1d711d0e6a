"""Production retrieval: calls are taken from traces, kept, summed up by time and watched."""
