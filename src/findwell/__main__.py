"""`findwell` and `python -m findwell`: the command line as a process, with what signals do to it.

    SIGINT (Ctrl-C)   the work stops, temporary files are deleted, exit code 130
    SIGTERM, SIGHUP   the same with 143, 129
    any of them again before that is done: at once, but without temporary files, too

Nothing is imported before signals are taken care of, so an interrupted start prints no traceback.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

CAUGHT_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # where the system has them
UNEXPECTED_FAILURE = 70  # as in findwell.cli, which may not be there
SHOW_CURSOR = "\x1b[?25h"  # which a progress bar hides


class _Stop:
    """The signal that ends this process, if one came."""

    def __init__(self) -> None:
        self.signal = 0
        self.leaving = False  # nothing is left to be interrupted
        for name in CAUGHT_SIGNALS:
            number = getattr(signal, name, None)
            # under nohup, or in the background of a script, some are to be ignored
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.catch)
        sys.unraisablehook = self.lose

    def catch(self, number: int, _: FrameType | None) -> None:
        """Unwind what is under way, which deletes what is temporary; the second time, leave."""
        if self.signal or self.leaving:
            leave(128 + number)
        self.signal = number
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    def lose(self, lost: sys.UnraisableHookArgs) -> None:
        """Obey a signal that came where Python drops exceptions, such as in a destructor."""
        if self.signal and issubclass(lost.exc_type, (KeyboardInterrupt, SystemExit)):
            self.end()
        sys.__unraisablehook__(lost)

    def end(self, *, said: bool = False) -> NoReturn:
        """End the process as the signal wants, and say so unless that was `said` already.

        Not by way of Python's end: threads may still be at work, and an interrupt that was met
        inside of a library may have left its mark.
        """
        self.leaving = True
        if not said:
            name = signal.Signals(self.signal).name
            _say("interrupted" if name == "SIGINT" else f"ended by {name}")
        leave(128 + self.signal)


def main() -> NoReturn:
    """Run the command line as a process of its own."""
    stop = _Stop()
    gc.set_threshold(100_000)  # imports make many objects and no garbage
    code: object = UNEXPECTED_FAILURE
    try:
        try:
            from findwell.cli import main as command_line  # noqa: PLC0415

            command_line()
        except SystemExit as done:
            code = done.code
        except ImportError as error:
            _say(f"findwell is not installed whole: {error}\n  fix: install it again")
        stop.leaving = True
    except (KeyboardInterrupt, SystemExit):  # where the command line could not handle it
        stop.leaving = True
    if stop.signal:
        stop.end(said=code == 128 + signal.SIGINT)
    gc.freeze()  # nothing is looked through once more at the end
    sys.exit(code if isinstance(code, int) else UNEXPECTED_FAILURE)


def leave(code: int) -> NoReturn:
    """End the process here and now, without temporary files."""
    temporary = sys.modules.get("findwell.io.storage.files")
    try:
        if temporary is not None:
            temporary.remove_temporary()
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(sys.stderr.fileno(), SHOW_CURSOR.encode())
    finally:
        os._exit(code)


def _say(text: str) -> None:
    """Print to standard error, if it is still open."""
    try:
        print(f"findwell: {text}", file=sys.stderr, flush=True)  # noqa: T201
    except (OSError, ValueError, AttributeError):
        return


if __name__ == "__main__":
    main()
