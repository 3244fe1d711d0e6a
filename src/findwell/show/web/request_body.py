"""What the script of a page sends, checked, and what it gets back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from findwell.core.errors import FindwellError, SaveError

if TYPE_CHECKING:
    from starlette.requests import Request

LARGEST_REQUEST = 200_000  # bytes of a request


class RequestError(Exception):
    """A request that cannot be answered, with the status and what the page gets back."""

    def __init__(self, status: int, what: str, **more: object) -> None:
        super().__init__(what)
        self.status = status
        self.answer = {"error": what, **more}


@dataclass(frozen=True, slots=True)
class RequestFields:
    """The fields of the JSON object that a page sends."""

    fields: dict[str, Any]

    @classmethod
    async def of(cls, request: Request) -> Self:
        """Read the body of a request."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            raise RequestError(415, "the page sends JSON")
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_REQUEST:
                raise RequestError(413, "this is too long to be saved")
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError):
            raise RequestError(400, "this is not JSON") from None
        if not isinstance(fields, dict):
            raise RequestError(400, "a JSON object is needed")
        return cls(fields)

    def text(self, name: str, *, most: int | None = None, needed: bool = True) -> str:
        """Return a field that is a text; one that is not needed may be missing."""
        value = self.fields.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or _has_lone_surrogates(value):
            raise RequestError(400, f"{name} must be a text")
        if most is not None and len(value) > most:
            raise RequestError(400, f"{name} has {len(value):,} characters; {most:,} are allowed")
        return value

    def whole_number(self, name: str) -> int | None:
        """Return a field that is a whole number, or None."""
        value = self.fields.get(name)
        if value is None or type(value) is int:
            return value
        raise RequestError(400, f"{name} must be a whole number")


def _has_lone_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


FieldsT = TypeVar("FieldsT", bound=RequestFields)


def receive(
    kind: type[FieldsT], take: Callable[[FieldsT], dict[str, Any]]
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers requests that send something."""

    async def answer(request: Request) -> Response:
        try:
            sent = await kind.of(request)
        except RequestError as error:
            return JSONResponse(error.answer, status_code=error.status)
        return await answered(lambda: take(sent))

    return answer


async def answered(tell: Callable[[], dict[str, Any]]) -> Response:
    """Return the answer, or why it failed; what was not saved is never reported as saved."""
    try:
        return JSONResponse(await run_in_threadpool(tell))
    except RequestError as error:
        return JSONResponse(error.answer, status_code=error.status)
    except FindwellError as error:
        return JSONResponse({"error": error.what, "fix": error.fix}, status_code=status_of(error))


def status_of(error: FindwellError) -> int:
    """A failure of the disk may pass, a mistake stays one."""
    return 503 if isinstance(error, SaveError) else 400
