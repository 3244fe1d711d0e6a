"""Servers that do not know a field get the request again without it, and are remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from findwell.judges.client.protocol import (
    Answer,
    CallFormat,
    Failure,
    Reason,
    ServerSupport,
    read_error,
)
from tests.client.asking import SCHEMA, ask, endpoint_of, question
from tests.client.server import Call, Reaction, as_json, echo, error, serve

OPTIONS: dict[str, Any] = {"temperature": 0, "seed": 7, "max_tokens": 50}


def form(call: Call) -> str:
    return str(call.body.get("response_format", {}).get("type", "none"))


def knows(*forms: str, status: int = 400, message: str = "what?") -> Callable[[Call], Reaction]:
    """Answer only requests for these forms of output."""
    return lambda call: echo(call) if form(call) in forms else error(status, message)


@pytest.mark.parametrize("status", [400, 404, 422, 500])
@pytest.mark.parametrize("message", ["what?", "response_format must be text", "bad json_schema"])
@pytest.mark.parametrize("best", ["json_schema", "json_object", "none"])
def test_the_strictest_form_that_a_server_knows_is_found_and_kept(
    status: int, message: str, best: str
) -> None:
    with serve(knows(best, "none", status=status, message=message)) as server:
        endpoint = endpoint_of(server)
        [found] = ask(server, question("first", schema=SCHEMA), endpoint=endpoint)
        assert isinstance(found, Answer)
        assert found.output_mode == best
        before = len(server.calls)
        outcomes = ask(server, *[question(n, schema=SCHEMA) for n in range(5)], endpoint=endpoint)
        assert {each.output_mode for each in outcomes if isinstance(each, Answer)} == {best}
        assert len(server.calls) == before + 5
        assert endpoint.support.summary() == {"forms": [best], "left_out": []}


def test_a_schema_is_sent_whole_and_in_order() -> None:
    with serve() as server:
        ask(server, question(schema=SCHEMA, name="verdict"), question("free"))
        with_schema, without = sorted(server.calls, key=form)
    assert "response_format" not in without.body
    assert with_schema.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
    }


def test_one_bad_request_does_not_cost_the_others_their_form() -> None:
    def script(call: Call) -> Reaction:
        return error(400, "no idea") if call.prompt == "bad" else echo(call)

    with serve(script) as server:
        endpoint = endpoint_of(server)
        requests = [question(text, schema=SCHEMA) for text in ("a", "bad", "b")]
        for request in requests:
            ask(server, request, endpoint=endpoint)
        assert [form(call) for call in server.calls if call.prompt != "bad"] == ["json_schema"] * 2
        assert server.prompts["bad"] == 1  # the form had been answered before: it is not the form


def test_a_bad_request_on_its_own_ends_without_a_form_and_is_not_remembered() -> None:
    with serve(lambda _: error(400, "no idea")) as server:
        endpoint = endpoint_of(server)
        [outcome] = ask(server, question(schema=SCHEMA), endpoint=endpoint)
        assert isinstance(outcome, Failure)
        assert outcome.reason is Reason.REJECTED
        assert [form(call) for call in server.calls] == ["json_schema", "json_object", "none"]
        assert endpoint.support.format == CallFormat()


def test_one_chance_error_does_not_cost_the_form() -> None:
    with serve(lambda call: echo(call) if call.number else error(500, "oops")) as server:
        [found] = ask(server, question(schema=SCHEMA))
        assert isinstance(found, Answer)
        assert found.output_mode == "json_schema"


def pydantic(field: str) -> Any:
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": "not permitted"}]}


COMPLAINTS: dict[str, Callable[[str], Any]] = {
    "param": lambda field: {"error": {"message": "unsupported", "param": field, "code": "x"}},
    "param with a dot": lambda field: {"error": {"message": "bad", "param": f"{field}.type"}},
    "param beside a form": lambda field: {
        "error": {"message": "not with response_format json_schema", "param": field}
    },
    "message": lambda field: {"error": {"message": f"'{field}' is not supported with this model"}},
    "text": lambda field: {"error": f"unknown field: {field}"},
    "list": lambda field: {"object": "error", "message": f"does not know ['{field}']"},
    "validator": pydantic,
}


@pytest.mark.parametrize("kind", COMPLAINTS)
@pytest.mark.parametrize("field", ["temperature", "seed", "stream"])
def test_a_field_that_a_server_complains_about_is_left_out_from_then_on(
    kind: str, field: str
) -> None:
    def script(call: Call) -> Reaction:
        return as_json(COMPLAINTS[kind](field), status=400) if field in call.body else echo(call)

    with serve(script) as server:
        endpoint = endpoint_of(server)
        for text in ("a", "b"):
            request = question(text, schema=SCHEMA, options=OPTIONS)
            assert isinstance(ask(server, request, endpoint=endpoint)[0], Answer)
        assert len(server.calls) == 3
        last = server.calls[-1].body
        assert {*OPTIONS, "stream"} - last.keys() == {field}
        assert last["response_format"]["type"] == "json_schema"
        assert endpoint.support.summary() == {"forms": ["json_schema"], "left_out": [field]}


def test_the_limit_of_tokens_goes_by_its_new_name_where_the_old_is_unknown() -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."

    def script(call: Call) -> Reaction:
        return error(400, message) if "max_tokens" in call.body else echo(call)

    with serve(script) as server:
        assert isinstance(ask(server, question(options=OPTIONS))[0], Answer)
        assert server.calls[-1].body["max_completion_tokens"] == 50
        assert len(server.calls) == 2


def test_no_limit_of_tokens_where_neither_name_is_known() -> None:
    def script(call: Call) -> Reaction:
        for name in ("max_tokens", "max_completion_tokens"):
            if name in call.body:
                return error(422, f"{name} is unknown")
        return echo(call)

    with serve(script) as server:
        assert isinstance(ask(server, question(options=OPTIONS))[0], Answer)
        assert len(server.calls) == 3


def test_everything_can_be_unknown_at_once() -> None:
    allowed = {"model", "messages"}

    def script(call: Call) -> Reaction:
        unknown = sorted(call.body.keys() - allowed)
        return error(400, f"unknown: {unknown[0]}") if unknown else echo(call)

    with serve(script) as server:
        outcomes = ask(server, *[question(n, schema=SCHEMA, options=OPTIONS) for n in range(30)])
        assert all(isinstance(outcome, Answer) for outcome in outcomes)
        assert server.calls[-1].body.keys() == allowed
        assert len(server.calls) < 80


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "'max_tokens' is too large: 50. This model's maximum context length is 20 tokens"),
        (404, "The model `max_tokens` does not exist"),
        (401, "temperature"),
        (429, "temperature"),
        (413, "temperature"),
    ],
)
def test_other_errors_are_not_about_the_format(status: int, message: str) -> None:
    error = read_error(status, {}, message.encode())
    request = question(schema=SCHEMA, options=OPTIONS)
    assert ServerSupport().fallback(CallFormat(), request, error) is None
