"""Asking retrievers: every question once, several at a time, with what each answer cost.

`retriever` says what a retriever is and how it is called, `retrieve` what it is asked, `dispatch`
asks with threads or tasks, `answers` keeps answers on disk as they come and makes a run of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from findwell.core.namespaces import lazy_names

if TYPE_CHECKING:
    from findwell.retrievers.http import HttpRetriever
    from findwell.retrievers.retriever import Retriever

__all__ = ["HttpRetriever", "Retriever"]

if not TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = lazy_names(__name__)
