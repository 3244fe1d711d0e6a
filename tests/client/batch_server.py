"""Files and batches of OpenAI's protocol, as a script for the test server.

It keeps files, runs the lines of a batch through another script (a model), and writes an output
file and an error file, with their lines in any order. What would be paid for is counted.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.client.server import Call, Reaction, Script, as_json, echo, error

EXPIRED = {"code": "batch_expired", "message": "This request could not be executed in time."}


@dataclass
class BatchServer:
    """Answers files and batches; everything else is answered by the model itself."""

    model: Script = echo
    polls: int = 1  # times that a batch is not ready
    status: str = "completed"  # in which batches end
    spared: Callable[[Any], bool] = lambda _: False  # lines that are not worked on any more
    errors: list[dict[str, Any]] = field(default_factory=list)  # of a batch that failed
    root: str = "/v1"
    before: Callable[[Call], Reaction | None] = lambda _: None  # takes precedence
    after_create: Callable[[], Reaction | None] = lambda: None  # what is said in place of the batch
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    paid: Counter[str] = field(default_factory=Counter)  # prompts that were worked on
    polled: threading.Event = field(default_factory=threading.Event)
    hold: bool = False  # batches are never ready

    def __call__(self, call: Call) -> Reaction:
        if (first := self.before(call)) is not None:
            return first
        path = urlsplit(call.path).path.removeprefix(self.root)
        match (call.method, path):
            case ("POST", "/files"):
                return self._take_file(call)
            case ("POST", "/batches"):
                return self._create(call)
            case ("GET", "/batches"):
                return self._list(parse_qs(urlsplit(call.path).query))
            case _:
                return self._about(path)

    def _about(self, path: str) -> Reaction:
        if found := re.fullmatch(r"/batches/(\w+)", path):
            return self._show(found[1])
        if found := re.fullmatch(r"/files/(\w+)/content", path):
            known = self.files.get(found[1])
            return error(404, "no such file") if known is None else Reaction(known)
        return error(404, f"nothing at {path}")

    def _take_file(self, call: Call) -> Reaction:
        boundary = re.search(r"boundary=(\S+)", call.headers["content-type"])
        assert boundary
        parts = call.body.split(b"--" + boundary[1].encode())[1:-1]
        form: dict[str, bytes] = {}
        for part in parts:
            head, _, content = part.partition(b"\r\n\r\n")
            name = re.search(rb'name="(\w+)"', head)
            assert name
            form[name[1].decode()] = content.removesuffix(b"\r\n")
        assert form["purpose"] == b"batch"
        file = f"file{len(self.files)}"
        self.files[file] = form["file"]
        return as_json({"id": file, "object": "file", "bytes": len(form["file"])})

    def _create(self, call: Call) -> Reaction:
        name = f"batch{len(self.batches)}"
        said = call.body
        assert said["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[said["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        assert {line["url"] for line in lines} == {said["endpoint"]}
        assert {line["method"] for line in lines} == {"POST"}
        self.batches[name] = {
            "id": name,
            "status": "validating",
            "input_file_id": said["input_file_id"],
            "metadata": said["metadata"],
            "polls": self.polls,
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        return self.after_create() or as_json(self.batches[name])

    def _list(self, query: dict[str, list[str]]) -> Reaction:
        names = [*self.batches][::-1]
        if after := query.get("after"):
            names = names[names.index(after[0]) + 1 :]
        rows = [self.batches[name] for name in names[:1]]  # short pages
        return as_json({"object": "list", "data": rows, "has_more": len(names) > 1})

    def _show(self, name: str) -> Reaction:
        batch = self.batches.get(name)
        if batch is None:
            return error(404, "no such batch")
        self.polled.set()
        if batch["status"] in ("validating", "in_progress") and not self.hold:
            batch["status"] = "in_progress"
            batch["polls"] -= 1
            if batch["polls"] < 0:
                self._finish(batch)
        return as_json(batch)

    def _finish(self, batch: dict[str, Any]) -> None:
        batch["status"] = self.status
        if self.status == "failed":
            batch["errors"] = {"object": "list", "data": self.errors}
            return
        output, failed = [], []
        for text in self.files[batch["input_file_id"]].splitlines():
            line = json.loads(text)
            done: dict[str, Any] = {"id": "line", "custom_id": line["custom_id"]}
            if self.spared(line["body"]):
                failed.append(done | {"response": None, "error": EXPIRED})
                continue
            reaction = self.model(Call(0, line["url"], {}, line["body"]))
            response = {"status_code": reaction.status, "body": json.loads(reaction.body)}
            whole = done | {"response": response, "error": None}
            if reaction.status == 200:
                self.paid[line["body"]["messages"][-1]["content"]] += 1
                output.append(whole)
            else:
                failed.append(whole)
        Random(len(output)).shuffle(output)
        for part, lines in (("output_file_id", output), ("error_file_id", failed)):
            if lines:
                batch[part] = f"file{len(self.files)}"
                written = "".join(f"{json.dumps(line)}\n" for line in lines)
                self.files[batch[part]] = written.encode()
