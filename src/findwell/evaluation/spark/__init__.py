"""Evaluations on Apache Spark; `findwell.spark` has the public names."""
