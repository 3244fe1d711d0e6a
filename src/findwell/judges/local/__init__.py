"""The judge that needs no key, no server and no download."""

from findwell.judges.local.judge import LocalJudge

__all__ = ["LocalJudge"]
