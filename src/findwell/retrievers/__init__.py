"""Asking retrievers: every question once, several at a time, with what each answer cost.

`retriever` says what a retriever is and how it is called, `questions` what it is asked, `dispatch`
asks with threads or tasks, `log` keeps answers on disk as they come, `answers` makes a run of them.
"""
