"""What of a call is kept: redaction, texts or none, a sample of traces. All before the disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from findwell.core.errors import OptionError
from findwell.core.frames import pl
from findwell.io.read.traces.schema import calls_among

if TYPE_CHECKING:
    from collections.abc import Iterator

REDACTED = "[redacted]"
SAMPLED, OLD, FUTURE = "not in the sample", "older than what is kept", "in the future"
TEXTS = ("question", "error", "service", "session", "user")
LISTS = ("docs", "texts", "doc_metadata", "inputs")
STRUCTS = {"attributes": ("value",), "annotations": ("label", "annotator")}
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # a clock that says less was never set
AHEAD = timedelta(days=1)  # by which the clock of another machine may differ
# characters of an attribute or a label that is kept where no texts are: a name, no prose
SHORT = 64


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """What of the calls that arrive is kept.

    `redact` are regular expressions (of Rust: linear in time, without look-around); what they
    match becomes `[redacted]` in questions, texts, metadata, attributes, errors, and in the ids of
    documents, sessions and users. Without `texts`, neither questions nor texts nor metadata are
    kept, of errors only their kind, and of attributes and labels only short ones. `sample` is
    the share of traces that are kept: always the same ones, whichever process looks at them.

    >>> IntakeRules(redact=("[0-9",))
    Traceback (most recent call last):
    findwell.core.errors.OptionError: '[0-9' is not a regular expression: unclosed character class
      fix: write it as for ripgrep or Rust, without look-around, such as "[\\w.]+@[\\w.]+"
    """

    redact: tuple[str, ...] = ()
    texts: bool = True
    sample: float = 1.0

    def __post_init__(self) -> None:
        for pattern in self.redact:
            _check_pattern(pattern)
        if not 0 < self.sample <= 1:
            raise OptionError(
                f"the sample is {self.sample:g} of the traces",
                fix="give a share above 0 and up to 1, such as 0.1",
            )

    def apply(
        self, frame: pl.DataFrame, *, oldest: datetime | None = None
    ) -> tuple[pl.DataFrame, dict[str, int]]:
        """Return what is kept of calls, and how many were left out for which reason."""
        latest, earliest = datetime.now(UTC) + AHEAD, max(oldest or EARLIEST, EARLIEST)
        dropped: dict[str, int] = {}
        frame = _leave_out(frame, frame["time"] <= latest, FUTURE, dropped)
        frame = _leave_out(frame, frame["time"] >= earliest, OLD, dropped)
        if self.sample < 1:
            chosen = [in_sample(each, self.sample) for each in frame["trace"]]
            frame = _leave_out(frame, pl.Series(chosen, dtype=pl.Boolean), SAMPLED, dropped)
        if not self.texts:
            frame = frame.with_columns(*_without_texts())
        for pattern in self.redact:
            frame = frame.with_columns(*_redacted(pattern))
        return frame, dropped


def in_sample(trace: str, share: float) -> bool:
    """Tell whether a trace is in the sample: the same answer everywhere and always.

    >>> sum(in_sample(f"{number:032x}", 0.1) for number in range(1000))
    99
    """
    digest = hashlib.blake2b(trace.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def _leave_out(
    frame: pl.DataFrame, kept: pl.Series, reason: str, dropped: dict[str, int]
) -> pl.DataFrame:
    if kept.all():
        return frame
    dropped[reason] = frame.filter(~kept).select(calls_among()).item()
    return frame.filter(kept)


def _check_pattern(pattern: str) -> None:
    try:
        pl.Series([""]).str.replace_all(pattern, "")
    except pl.exceptions.ComputeError as error:
        lines = [line for line in str(error).splitlines() if line.startswith("error: ")]
        reason = lines[0].removeprefix("error: ") if lines else str(error).splitlines()[0]
        raise OptionError(
            f"{pattern!r} is not a regular expression: {reason}",
            fix='write it as for ripgrep or Rust, without look-around, such as "[\\w.]+@[\\w.]+"',
        ) from None


def _redacted(pattern: str) -> Iterator[pl.Expr]:
    def clean(text: pl.Expr) -> pl.Expr:
        return text.str.replace_all(pattern, REDACTED)

    for name in TEXTS:
        yield clean(pl.col(name))
    for name in LISTS:
        yield pl.col(name).list.eval(clean(pl.element()))
    for name, fields in STRUCTS.items():
        parts = [clean(pl.element().struct.field(field)).alias(field) for field in fields]
        yield pl.col(name).list.eval(pl.element().struct.with_fields(*parts))


def _without_texts() -> Iterator[pl.Expr]:
    yield pl.lit(None, pl.String).alias("question")
    yield pl.col("error").str.extract(r"^([\w.]*)").alias("error")
    for name in ("texts", "doc_metadata"):
        nothing = pl.when(False).then(pl.element()).otherwise(None)
        yield pl.col(name).list.eval(nothing)
    short = pl.element().struct.field("value").str.len_chars() <= SHORT
    yield pl.col("attributes").list.eval(pl.element().filter(short))
    label = pl.element().struct.field("label")
    kept = pl.when(label.str.len_chars() <= SHORT).then(label).alias("label")
    yield pl.col("annotations").list.eval(pl.element().struct.with_fields(kept))
