"""Texts cut into words and sentences."""
