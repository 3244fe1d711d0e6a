"""Draws the relation: which retrieved unit covers which gold item."""
