"""What becomes of a record that cannot be read: it is refused, or left out and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.findings import EXAMPLES, Finding

if TYPE_CHECKING:
    from karat.errors import InputError


class Broken:
    """Meets the records that cannot be read: raises the first, or counts them all.

    >>> from karat.errors import InputError
    >>> broken = Broken(skip=True)
    >>> broken.meet(InputError("not valid JSON", where="run.jsonl, line 7"))
    >>> broken.findings()[0].examples
    ('run.jsonl, line 7: not valid JSON',)
    """

    def __init__(self, *, skip: bool = False) -> None:
        self.skip = skip
        self._count = 0
        self._first: list[InputError] = []

    def meet(self, error: InputError) -> None:
        """Raise the error, or remember it if such records are left out."""
        if not self.skip:
            raise error
        self._count += 1
        if len(self._first) < EXAMPLES:
            self._first.append(error)

    def check_rest(self, rows: int) -> None:
        """Raise the first error after all if it was so with every record."""
        if self._first and not rows:
            raise self._first[0]

    def findings(self) -> tuple[Finding, ...]:
        """Return what was left out, as a finding."""
        if not self._count:
            return ()
        return (
            Finding(
                "skipped-record",
                self._count,
                tuple(f"{error.where}: {error.what}" for error in self._first),
                "record that cannot be read: left out",
                "mend the input; without --skip-bad (skip_bad) the first one is an error",
            ),
        )


REFUSE = Broken()
