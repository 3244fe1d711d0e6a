"""Bytes, frames and objects on their way in; files and databases on their way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.evaluation.doctor import doctor
    from findwell.evaluation.evaluate import check
    from findwell.io.read import load_gold, load_run
    from findwell.io.read.corpus import load_corpus

__all__ = ["check", "doctor", "load_corpus", "load_gold", "load_run"]

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)
