"""Bytes, frames and objects on their way in; files and databases on their way out."""
