"""What comes into a store: the rules of intake, applied before the disk, and files of traces."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from findwell.core.errors import InputError, OptionError
from findwell.core.frames import pl
from findwell.core.progress import Progress
from findwell.io.read.format import Source
from findwell.io.read.traces import read_traces
from findwell.io.read.traces.schema import calls_among

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from findwell.core.progress import Report
    from findwell.io.read.traces import Decoded
    from findwell.loop.monitoring.store import Added, TraceStore

REDACTED_TEXT = "[redacted]"
OUTSIDE_SAMPLE, TOO_OLD, IN_FUTURE = "not in the sample", "older than what is kept", "in the future"
TEXTS = ("question", "error", "service", "session", "user")
LISTS = ("docs", "texts", "doc_metadata", "inputs")
STRUCTS = {"attributes": ("value",), "annotations": ("label", "annotator")}
EARLIEST_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # a clock that says less was never set
CLOCK_AHEAD = timedelta(days=1)  # by which the clock of another machine may differ
# characters of an attribute or a label that is kept without texts: a name, not prose
SHORT_LENGTH = 64


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """Which parts of incoming calls to store.

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
        latest = datetime.now(UTC) + CLOCK_AHEAD
        earliest = max(oldest or EARLIEST_TIME, EARLIEST_TIME)
        dropped: dict[str, int] = {}
        frame = _leave_out(frame, frame["time"] <= latest, IN_FUTURE, dropped)
        frame = _leave_out(frame, frame["time"] >= earliest, TOO_OLD, dropped)
        if self.sample < 1:
            chosen = [in_sample(each, self.sample) for each in frame["trace"]]
            frame = _leave_out(frame, pl.Series(chosen, dtype=pl.Boolean), OUTSIDE_SAMPLE, dropped)
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
        return text.str.replace_all(pattern, REDACTED_TEXT)

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
    short = pl.element().struct.field("value").str.len_chars() <= SHORT_LENGTH
    yield pl.col("attributes").list.eval(pl.element().filter(short))
    label = pl.element().struct.field("label")
    kept = pl.when(label.str.len_chars() <= SHORT_LENGTH).then(label).alias("label")
    yield pl.col("annotations").list.eval(pl.element().struct.with_fields(kept))


PARTS_AHEAD = 4  # that are read before they are written


@dataclass(slots=True)
class Ingested:
    """What became of a file."""

    file: str
    spans: int = 0
    new: int = 0  # calls
    repeated: int = 0
    dropped: int = 0
    malformed: Counter[str] = field(default_factory=Counter)

    def count(self, added: Added) -> None:
        """Add up what became of a part."""
        self.new += added.new
        self.repeated += added.repeated
        self.dropped += sum(added.dropped.values())


def ingest_traces(
    files: Sequence[str | os.PathLike[str]],
    store: str | os.PathLike[str],
    *,
    rules: IntakeRules | None = None,
    keep: timedelta | None = None,
    id_from: str | None = None,
    progress: Report | None = None,
) -> Iterator[Ingested]:
    """Put the calls of files into a store, which is made when there is something to put there."""
    from findwell.loop.monitoring.store import TraceStore  # noqa: PLC0415 - it applies these rules

    for file in files:
        if not Path(file).is_dir():
            Source.of(file)  # or it says what is wrong with it, before anything is written
    with contextlib.ExitStack() as held:
        opened: TraceStore | None = None
        for number, file in enumerate(files):
            found = Ingested(str(file))
            read = read_traces(file, id_from=id_from)
            parts = _with_spans(read, found, number, len(files), progress)
            first = next(parts, None)
            if first is None:
                said = ", ".join(found.malformed)
                raise InputError(
                    "there are no spans in it" + (f": {said}" if said else ""),
                    where=str(file),
                    fix="name files of traces; docs/traces.md lists the formats",
                )
            if opened is None:
                opened = held.enter_context(TraceStore.open(store, create=True, rules=rules))
                opened.keep = keep
            _write(opened, chain([first], parts), found)
            yield found
        if opened is not None:
            opened.flush()
            opened.compact()
            if keep is not None:
                opened.retain(keep)


def _with_spans(
    parts: Iterable[Decoded], found: Ingested, number: int, total: int, progress: Report | None
) -> Iterator[Decoded]:
    """Yield the parts that hold spans, and count; what stands before the first goes with it."""
    before: Counter[str] = Counter()
    for part in parts:
        found.spans += part.spans
        found.malformed.update(part.malformed)
        if progress is not None:
            progress(Progress(number, total, note=f"{found.spans:,} spans"))
        before.update(part.malformed)
        if part.spans or found.spans:
            part.malformed.update(before)
            before.clear()
            yield part


def _write(store: TraceStore, parts: Iterable[Decoded], found: Ingested) -> None:
    """Write parts while the next ones are read."""
    from findwell.loop.monitoring.store import Batch, StoreWriter  # noqa: PLC0415

    writer = StoreWriter(store)
    waiting: deque[Future[Added]] = deque()
    try:
        for part in parts:
            waiting.append(writer.submit(Batch(part.frame, part.spans, part.malformed)))
            if len(waiting) > PARTS_AHEAD:
                found.count(waiting.popleft().result())
        while waiting:
            found.count(waiting.popleft().result())
    finally:
        writer.close()
