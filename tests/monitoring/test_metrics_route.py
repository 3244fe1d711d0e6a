"""The route of the server that Prometheus asks."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

from findwell.loop.monitoring.alarm_report import prometheus_text
from findwell.loop.monitoring.check import check
from tests.monitoring.conftest import serving
from tests.monitoring.watched_calls import at, made_calls

if TYPE_CHECKING:
    from findwell.loop.monitoring.store import TraceStore


def ask(port: int, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, "/metrics", headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["content-type"], text


def test_prometheus_reads_the_state_of_alarms(store: TraceStore) -> None:
    store.add(made_calls(900, range(700, 900)))
    assert check(store, ["score_top1<0.2", "empty>3%"], until=at(900)).exit_code == 1
    with serving(store) as (ready, _):
        port = ready.listener.getsockname()[1]
        status, kind, text = ask(port)
        assert (status, kind.split(";")[0]) == (200, "text/plain")
        assert text == prometheus_text(store)
        rest = 'slice="",baseline="",kind="retriever"}'
        assert f'findwell_alarm_open{{alert="empty>3%",signal="empty",{rest} 1.0\n' in text
        assert f'findwell_alarm_open{{alert="top_score<0.2",signal="top_score",{rest} 0.0\n' in text
        assert "findwell_store_calls 900\n" in text
        assert ask(port, "POST")[0] == 404
    with serving(store, token="s3cret") as (ready, _):
        port = ready.listener.getsockname()[1]
        assert ask(port)[0] == 401
        assert ask(port, authorization="Bearer s3cret")[0] == 200


def test_no_two_series_have_the_same_labels(store: TraceStore) -> None:
    """The same alert against several baselines, about rerankers as well; what has no evidence."""
    store.add(made_calls(900))
    for baseline in ("2026-11-02/2026-11-03", "2026-11-02/2026-11-04", "2020-01-01/2020-01-02"):
        for kind in ("retriever", "reranker"):
            known = {"baseline": baseline, "kind": kind, "period": "1h"}
            check(store, "empty rises", until=at(900), **known)  # type: ignore[arg-type]
    series = [each.rpartition(" ") for each in prometheus_text(store).splitlines()]
    names = [name for name, _, _ in series if not name.startswith("#")]
    assert len(names) == len(set(names))
    evidence = {name for name in names if name.startswith("findwell_alarm_log_evidence")}
    assert len(evidence) == 2  # JSON has null for the others
    assert sum(name.startswith("findwell_alarm_undecided") for name in names) == 6
