"""The pages of `findwell labels serve`: passages to label, disagreements to settle, progress."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from findwell.core.errors import FindwellError, OptionError, SaveError
from findwell.core.frames import pl
from findwell.loop.labels.label_pool import SAMPLE
from findwell.loop.labels.labels import STATES, annotator_name, scale_of
from findwell.show.html import LABELLING, document
from findwell.show.web.overview import overview
from findwell.show.web.passages import disagreement_json, label_json, pair_json, progress_json
from findwell.show.web.request_body import RequestError, RequestFields, answered, receive, status_of
from findwell.show.web.server import Site

if TYPE_CHECKING:
    from starlette.requests import Request

    from findwell.loop.labels.labels import Labels, Pair

NOTE_LENGTH = 2_000
GUIDELINES_LENGTH = 20_000
KINDS = {"set": "label", "skip": "skip", "unsure": "unsure"}  # of events, by what the page sends


@dataclass(frozen=True, slots=True)
class _LabelFields(RequestFields):
    """What the script of the page sent about a pair."""

    def grade(self) -> int:
        """Return the grade."""
        grade = self.whole_number("grade")
        if grade is None:
            raise RequestError(400, "grade is missing")
        return grade

    @property
    def annotator(self) -> str:
        """Who sent it."""
        return annotator_name(self.text("annotator"))

    @property
    def quotes(self) -> bool:
        """Whether the quotes of the judge were asked for."""
        return self.fields.get("quotes") is True


class _LabelPages:
    """The pages, and what their script asks for and sends."""

    def __init__(self, labels: Labels, pool: str, annotator: str) -> None:
        self._labels = labels
        self._pool = pool
        self._annotator = annotator
        self._scale = [asdict(each) for each in scale_of(labels.highest)]
        self._quotes = bool(labels.settings.get("judge"))  # which alone quotes
        self._store = hashlib.sha256(str(labels.path.resolve()).encode()).hexdigest()[:16]

    # pages

    def start(self, request: Request) -> Response:
        """Go on labelling if it is known who labels; otherwise ask."""
        del request
        if self._annotator:
            return RedirectResponse(_address("/label", self._annotator))
        return self._overview()

    def show_overview(self, request: Request) -> Response:
        """Show who labels, how far they are and how far they agree."""
        del request
        return self._overview()

    def label(self, request: Request) -> Response:
        """Show the page on which passages are labelled, or disagreements are settled."""
        try:
            name = annotator_name(request.query_params.get("annotator", ""))
        except OptionError as error:
            return self._overview(f"{error.what}: {error.fix}", 400)
        page = request.url.path.strip("/")
        data = {
            "labelling": {
                "page": page,
                "annotator": name,
                "scale": self._scale,
                "store": self._store,
                "guidelines": self._labels.guidelines,
            }
        }
        binary = self._labels.highest == 1
        shown = document(
            "label.html.j2",
            "findwell labels serve",
            data=data,
            live={},
            kind=LABELLING,
            links=_links(page, name),
            page=page,
            annotator=name,
            pool=self._pool,
            scale=self._scale,
            quotes=self._quotes,
            note_key="N" if binary else "n",
        )
        return HTMLResponse(shown)

    def _overview(self, refused: str = "", status: int = 200) -> Response:
        found = overview(self._labels, self._pool)
        for each in found["annotators"]:
            each["address"] = _address("/label", each["name"])
        shown = document(
            "label_overview.html.j2",
            "findwell labels serve",
            live={},
            kind=LABELLING,
            links=_links("overview", self._annotator),
            refused=refused,
            **found,
        )
        return HTMLResponse(shown, status_code=status)

    # what the script asks for

    def pair(self, request: Request) -> dict[str, Any]:
        """Return the next pair of an annotator."""
        name, quotes = _asked(request)
        return {"pair": self._next(name, quotes=quotes), "progress": self._progress(name)}

    def passages(self, request: Request) -> dict[str, Any]:
        """Return the passages of a question: the one that is asked for, or the next one."""
        name, quotes = _asked(request)
        query = request.query_params.get("query")
        pairs = [] if query is None else self._of_question(query, name)
        after = self._labels.next(name)
        if after is not None and all(each.state for each in pairs):
            pairs = self._of_question(after.query, name)
        return {
            "pairs": [pair_json(each, quotes=quotes) for each in pairs],
            "next": None if after is None else pair_json(after, quotes=quotes),
            "progress": self._progress(name),
        }

    def disagreements(self, request: Request) -> dict[str, Any]:
        """Return what is to be settled."""
        _asked(request)
        return self._unsettled()

    # what the script sends

    def save(self, sent: _LabelFields) -> dict[str, Any]:
        """Save a label, a skip or a doubt; it is on disk when this returns."""
        name, query, doc = sent.annotator, sent.text("query"), sent.text("doc")
        note = sent.text("note", most=NOTE_LENGTH, needed=False)
        start, end = sent.whole_number("start"), sent.whole_number("end")
        action = sent.text("action")
        with self._labels.at_once():  # other servers may serve the same pool
            before = self._pair(query, doc, name)
            self._refuse_overwriting(sent, before)
            if action not in KINDS:
                raise RequestError(400, "action is set, skip or unsure")
            label: dict[str, Any] = {"annotator": name, "note": note}
            if action == "set":
                label |= {"grade": sent.grade(), "start": start, "end": end}
            self._labels.say(KINDS[action], query, doc, **label)
        return {
            "saved": label_json(self._pair(query, doc, name)),
            "next": self._next(name, quotes=sent.quotes),
            "progress": self._progress(name),
        }

    def _refuse_overwriting(self, sent: _LabelFields, before: Pair) -> None:
        """Refuse to replace a label of the same annotator that the page did not show."""
        known = label_json(before)
        if known is None or sent.fields.get("overwrite") is True:
            return
        seen = sent.fields.get("seen")
        state = STATES.get(KINDS.get(sent.text("action"), ""))
        wanted = (state, sent.whole_number("grade") if state == "labelled" else None)
        if seen == known or wanted == (known["state"], known["grade"]):
            return  # the second is the same request again, whose answer did not arrive
        raise RequestError(409, "this pair was labelled in another window", label=known)

    def undo(self, sent: _LabelFields) -> dict[str, Any]:
        """Take back what an annotator did last."""
        name = sent.annotator
        undone = self._labels.undo(name)
        return {
            "undone": None if undone is None else pair_json(undone, quotes=sent.quotes),
            "progress": self._progress(name),
        }

    def adjudicate(self, sent: _LabelFields) -> dict[str, Any]:
        """Save what is to count for a pair."""
        name, query, doc = sent.annotator, sent.text("query"), sent.text("doc")
        note = sent.text("note", most=NOTE_LENGTH, needed=False)
        grade = sent.grade()
        with self._labels.at_once():
            self._pair(query, doc, name)
            self._refuse_deciding_again(sent, query, doc, grade)
            self._labels.adjudicate(query, doc, grade, annotator=name, note=note)
        saved = {"state": "labelled", "grade": grade}
        return {"saved": saved, **self._unsettled()}

    def _refuse_deciding_again(self, sent: _LabelFields, query: str, doc: str, grade: int) -> None:
        """Refuse to replace a decision: the page only offers pairs without one."""
        decided = self._labels.frame().filter(state="adjudicated", query=query, doc=doc)
        known = [int(each) for each in decided["grade"]]
        if known and known[-1] != grade and sent.fields.get("overwrite") is not True:
            label = {"state": "labelled", "grade": known[-1]}
            raise RequestError(409, "this pair was decided in another window", label=label)

    def guidelines(self, sent: _LabelFields) -> dict[str, Any]:
        """Save the guidelines, unless someone has changed them since they were shown."""
        text, before = sent.text("text", most=GUIDELINES_LENGTH), sent.text("before")
        name = sent.annotator
        with self._labels.at_once():
            known = self._labels.guidelines
            if known not in (before, text):
                raise RequestError(409, "someone has changed the guidelines", text=known)
            if known != text:
                self._labels.annotator = name
                self._labels.guidelines = text
        return {"text": text}

    # inside

    def _pair(self, query: str, doc: str, name: str) -> Pair:
        try:
            return self._labels.pair(query, doc, annotator=name)
        except SaveError:
            raise
        except FindwellError as error:
            raise RequestError(404, error.what, fix=error.fix) from None

    def _next(self, name: str, *, quotes: bool) -> dict[str, Any] | None:
        pair = self._labels.next(name)
        return None if pair is None else pair_json(pair, quotes=quotes)

    def _progress(self, name: str) -> dict[str, Any]:
        known = self._labels.progress(name)
        return progress_json(known, len(self._labels.disagreements()))

    def _of_question(self, query: str, name: str) -> list[Pair]:
        """Return the passages of a question; of a sample, those that were drawn."""
        pairs = self._labels.pairs(query, annotator=name)
        if self._labels.settings.get("design") != SAMPLE:
            return pairs
        candidates = self._labels.candidates().filter("sampled")
        drawn = set(candidates.filter(pl.col("query") == query)["doc"])
        return [each for each in pairs if each.doc in drawn]

    def _unsettled(self) -> dict[str, Any]:
        found, said = self._labels.disagreements(), self._labels.frame()
        settled = said.filter(pl.col("state") == "adjudicated").n_unique(["query", "doc"])
        progress = {
            "done": settled, "total": settled + len(found), "skipped": 0, "unsure": 0,
            "seconds_left": None, "disagreements": len(found),
        }  # fmt: skip
        return {"pairs": [disagreement_json(each, said) for each in found], "progress": progress}


def label_site(labels: Labels, pool: str, annotator: str = "") -> Site:
    """Return what `findwell labels serve` serves; `server` guards it."""
    pages = _LabelPages(labels, pool, annotator)
    routes = [
        Route("/", _page(pages.start)),
        Route("/overview", _page(pages.show_overview)),
        Route("/label", _page(pages.label)),
        Route("/adjudicate", _page(pages.label)),
        Route("/api/pair", _answer(pages.pair)),
        Route("/api/list", _answer(pages.passages)),
        Route("/api/disagreements", _answer(pages.disagreements)),
        Route("/api/label", receive(_LabelFields, pages.save), methods=["POST"]),
        Route("/api/undo", receive(_LabelFields, pages.undo), methods=["POST"]),
        Route("/api/adjudicate", receive(_LabelFields, pages.adjudicate), methods=["POST"]),
        Route("/api/guidelines", receive(_LabelFields, pages.guidelines), methods=["POST"]),
    ]
    return Site(Starlette(routes=routes), "findwell labels serve", (LABELLING,), writes=True)


def _asked(request: Request) -> tuple[str, bool]:
    """Return who asks, and whether the quotes of the judge are wanted."""
    name = annotator_name(request.query_params.get("annotator", ""))
    return name, request.query_params.get("quotes") == "1"


def _links(here: str, annotator: str) -> list[tuple[str, str, bool]]:
    pages = {"label": "Label", "adjudicate": "Disagreements"} if annotator else {}
    links = [(name, _address(f"/{page}", annotator), page == here) for page, name in pages.items()]
    return [*links, ("Overview", "/overview", here == "overview")]


def _address(path: str, annotator: str) -> str:
    return f"{path}?{urlencode({'annotator': annotator})}"


def _page(show: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return await run_in_threadpool(show, request)
        except FindwellError as error:
            shown = document("error.html.j2", "findwell", live={}, kind=LABELLING, error=error)
            return HTMLResponse(shown, status_code=status_of(error))

    return answer


def _answer(
    tell: Callable[[Request], dict[str, Any]],
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await answered(lambda: tell(request))

    return answer
