"""Asking retrievers: every question once, several at a time, with what each answer cost.

`retriever` says what a retriever is and how it is called, `retrieve` what it is asked, `dispatch`
asks with threads or tasks, `answers` keeps answers on disk as they come and makes a run of them.
"""
