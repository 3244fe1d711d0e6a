"""Watch an application: take its traces in, break its index, and see how soon the alarm comes.

    python watch.py [FOLDER]

Runs `app.py`, an instrumented LangChain retriever, with a healthy index and then with a broken one;
its traces go to `findwell monitor serve`. Nobody has labelled anything: the local judge looks at
every call. `APP_PYTHON` names the Python that has the libraries of `app.py`, if it is another one.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

import findwell

APP = Path(__file__).with_name("app.py")
HEALTHY, BROKEN = 300, 300  # questions
EVERY = 5  # a check after so many questions
MARK = "index rebuilt"
ALERTS = ["context_precision drops", "empty>2%"]
BASELINE = f"before:{MARK}"


@contextmanager
def receiving(store: Path) -> Iterator[str]:
    """Run `findwell monitor serve`; give the address that exporters send to."""
    command = [sys.executable, "-m", "findwell", "monitor", "serve", "--store", str(store)]
    with subprocess.Popen(  # noqa: S603
        [*command, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None  # noqa: S101
        try:
            yield server.stdout.readline().strip().removesuffix("/v1/traces")
        finally:
            server.terminate()


def ask(address: str, *options: str) -> None:
    """Run the application as it is, for a while."""
    python = os.environ.get("APP_PYTHON", sys.executable)
    where = {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
    subprocess.run([python, str(APP), *options], env=os.environ | where, check=True)  # noqa: S603


def main(folder: Path) -> int:
    """Return how many questions it took; 0 if no alarm came."""
    store = folder / "store"
    with receiving(store) as address:
        ask(address, str(HEALTHY))
        with findwell.monitor.Monitor.open(store) as monitor:
            print(f"healthy: {monitor.counts().calls} calls")
            mark = monitor.mark(MARK)
            ask(address, str(BROKEN), "--broken", "--seed", "2")

            times = monitor.store.scan(mark.time).select(pl.col("time").sort()).collect()["time"]
            print(f"broken: {len(times)} calls")
            # as a check would have seen it that ran after every few questions, which are asked one
            # after another and drawn at random: each is an observation of its own
            for asked in range(EVERY, len(times), EVERY):
                report = monitor.check(
                    ALERTS,
                    baseline=BASELINE,
                    judge="local:text",
                    until=times[asked],
                    period="call",
                    settle="0",
                )
                for alarm in report.news:
                    print(f"alarm after {asked} questions: {alarm.alert}, {alarm.signal} "
                          f"{alarm.before:.2f} -> {alarm.now:.2f}")  # fmt: skip
                if report.raised:
                    return asked
    print("no alarm")
    return 0


if __name__ == "__main__":
    if sys.argv[1:]:
        raise SystemExit(0 if main(Path(sys.argv[1])) else 1)
    with tempfile.TemporaryDirectory() as made:
        raise SystemExit(0 if main(Path(made)) else 1)
