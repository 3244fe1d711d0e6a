"""How an input is read: what becomes of a broken record, and whether texts are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karat.findings import EXAMPLES, Finding

if TYPE_CHECKING:
    from karat.data import NamedBy
    from karat.errors import InputError


class Reading:
    """The choices for one input, and the records that it left out.

    `skip` leaves out records that cannot be read instead of raising the first. `texts` keeps the
    texts and the character offsets beside the ids, which matching by text needs. `about` keeps all
    that a run says about its queries, such as the questions, and not only what its timing needs.
    `names` says what names a query first; a record that lacks it goes by the next best.

    >>> from karat.errors import InputError
    >>> reading = Reading(skip=True)
    >>> reading.meet(InputError("not valid JSON", where="run.jsonl, line 7"))
    >>> reading.findings()[0].examples
    ('run.jsonl, line 7: not valid JSON',)
    """

    def __init__(
        self,
        *,
        skip: bool = False,
        texts: bool = False,
        about: bool = False,
        names: NamedBy = "id",
    ) -> None:
        self.skip = skip
        self.texts = texts
        self.about = about
        self.names = names
        self._count = 0
        self._first: list[InputError] = []

    def afresh(self) -> Reading:
        """Return the same choices for another pass over the input."""
        return Reading(skip=self.skip, texts=self.texts, about=self.about, names=self.names)

    def meet(self, error: InputError) -> None:
        """Raise the error of a broken record, or remember it if such records are left out."""
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


STRICT = Reading()
