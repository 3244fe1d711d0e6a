"""The judge that needs no key, no server and no download."""

from karat.judges.local.judge import LocalJudge

__all__ = ["LocalJudge"]
