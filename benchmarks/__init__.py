"""findwell side by side with the tools of the field: `python -m benchmarks.bench`."""
