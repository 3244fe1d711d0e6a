"""The route of the server that Prometheus asks."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

from karat.monitoring.alarm_text import prometheus_text
from karat.monitoring.check import check
from tests.monitoring.conftest import serving
from tests.monitoring.watched_calls import at, made_calls

if TYPE_CHECKING:
    from karat.monitoring.store import TraceStore


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
        assert 'karat_alarm_open{alert="empty>3%",signal="empty",slice=""} 1.0\n' in text
        assert 'karat_alarm_open{alert="top_score<0.2",signal="top_score",slice=""} 0.0\n' in text
        assert "karat_store_calls 900\n" in text
        assert ask(port, "POST")[0] == 404
    with serving(store, token="s3cret") as (ready, _):
        port = ready.listener.getsockname()[1]
        assert ask(port)[0] == 401
        assert ask(port, authorization="Bearer s3cret")[0] == 200
