"""Questions that a model writes: what is kept, what is dropped and why, what it costs."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import findwell
from findwell.core import display
from findwell.core.errors import InputError, OptionError
from findwell.judges.client.cache import Cache
from findwell.loop.labels.synthetic.passages import PassageIndex, cut, cut_passages, spread
from findwell.loop.labels.synthetic.questions import forecast_questions
from findwell.loop.labels.synthetic.writing import DropReason
from tests.client.server import Reaction, chat, error, serve
from tests.labels.author import answer, corpus, kind_of, model_of, spoilt, well

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.client.server import Call, Server

ONLY = {"single-hop": 1.0}


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(well) as started:
        yield started


def reasons(made: Any) -> dict[str, int]:
    return dict(made.dropped.select("reason", "count").rows())


def test_each_kind_has_its_share_and_spans_that_stand_there(server: Server) -> None:
    documents = corpus()
    made = findwell.labels.questions(documents, judge=model_of(server), n=20)
    kinds = Counter(record["kind"] for record in made.records)
    assert kinds == {"single-hop": 8, "paraphrased": 6, "multi-hop": 4, "unanswerable": 2}
    assert len({record["query"] for record in made.records}) == 20
    for record in made.records:
        spans = record["gold"]
        wanted = {"multi-hop": 2, "unanswerable": 0}.get(record["kind"], 1)
        assert len(spans) == wanted
        assert len({span["doc"] for span in spans}) == wanted  # of two documents where it can be
        for span in spans:
            assert documents[span["doc"]][span["start"] : span["end"]] == span["quote"]
        assert record["synthetic"] == "openai:some-model"
    assert made.summary["kept"].to_list() == [8, 6, 4, 2]
    assert not made.findings
    assert len(server.calls) == 8 * 3 + 6 * 3 + 4 * 4 + 2 * 2


def test_the_passages_are_spread_over_the_documents(server: Server) -> None:
    made = findwell.labels.questions(
        corpus(12, 40), judge=model_of(server), n=24, shares=ONLY, passage_tokens=60
    )
    sources = [record["source"] for record in made.records]
    assert len(set(sources[:12])) == 12
    assert set(Counter(sources).values()) == {2}


def test_the_seed_decides_and_the_order_of_the_corpus_does_not(server: Server) -> None:
    documents = corpus(30)
    first = findwell.labels.questions(documents, judge=model_of(server), n=10)
    pairs = [*documents.items()]
    random.Random(1).shuffle(pairs)
    again = findwell.labels.questions(dict(pairs), judge=model_of(server), n=10)
    other = findwell.labels.questions(documents, judge=model_of(server), n=10, seed=1)
    assert first.records == again.records
    assert first.records != other.records


def test_two_passages_are_needed_where_the_question_has_two_hops(server: Server) -> None:
    documents = corpus()
    made = findwell.labels.questions(
        documents, judge=model_of(server), n=4, shares={"multi-hop": 1}
    )
    runs: dict[str, dict[str, list[str]]] = {"both": {}, "one": {}}
    for record in made.records:
        docs = [span["doc"] for span in record["gold"]]
        runs["both"][record["query"]], runs["one"][record["query"]] = docs, docs[:1]
    result = findwell.evaluate(
        runs, made.gold(), ["recall@2", "all_found@2"], by="spans", corpus=documents
    )
    assert result.only("both").values == {"recall@2": 1.0, "all_found@2": 1.0}
    assert result.only("one").values == {"recall@2": 0.5, "all_found@2": 0.0}


def test_a_question_that_nothing_answers_is_left_out_of_the_mean(
    server: Server, tmp_path: Path
) -> None:
    documents = corpus()
    made = findwell.labels.questions(documents, judge=model_of(server), n=10)
    made.write(tmp_path / "questions.jsonl")
    run = {
        record["query"]: [span["doc"] for span in record["gold"]] or ["doc1"]
        for record in made.records
    }
    result = findwell.evaluate(
        run, tmp_path / "questions.jsonl", ["recall@5"], by="spans", corpus=documents
    )
    [row] = result.summary.to_dicts()
    assert (row["value"], row["n"], row["undefined"]) == (1.0, 9, 1)
    about = json.loads((tmp_path / "questions.manifest.json").read_text())
    assert about["prompts"]["single-hop"]["version"] == "1"
    assert len(about["prompts"]["write"]["sha256"]) == 64
    assert about["judge"]["calls"] == len(server.calls)


def test_what_is_synthetic_says_so_wherever_it_goes(server: Server, tmp_path: Path) -> None:
    documents = corpus()
    made = findwell.labels.questions(documents, judge=model_of(server), n=5, shares=ONLY)
    records = [*made.records, {"query": "mine", "question": "?", "gold": [{"doc": "doc1"}]}]
    run = {record["query"]: ["doc1"] for record in records}

    def evaluated() -> findwell.Result:
        return findwell.evaluate(run, records, ["recall@5"], by="spans", corpus=documents)

    evaluated().save(tmp_path / "saved")
    for result in (evaluated(), findwell.load(tmp_path / "saved")):
        [found] = [each for each in result.findings if each.kind == "synthetic-question"]
        assert found.count == 5
        assert "openai:some-model" in found.message
        assert result.synthetic == result.as_dict()["synthetic"] == 5
        assert result.queries["synthetic"].drop_nulls().to_list() == ["openai:some-model"] * 5
        assert "6 queries (5 synthetic)" in display.render(result, "markdown")
        assert found.message in findwell.report(result)
    compared = findwell.compare(evaluated(), evaluated())
    assert "synthetic-question" in [finding.kind for finding in compared.findings]


@pytest.mark.parametrize(
    ("value", "count"),
    [(True, 1), ("yes", 1), ("m", 1), (1, 1), (False, 0), (None, 0), ("false", 0), ("", 0), (0, 0)],
)
def test_the_mark_may_be_any_yes_or_no(value: object, count: int) -> None:
    gold = [{"query": "q", "gold": ["d"], "synthetic": value}]
    assert findwell.evaluate({"q": ["d"]}, gold, ["RR"]).synthetic == count


def test_a_retriever_is_asked_the_questions(server: Server) -> None:
    documents = corpus()
    made = findwell.labels.questions(documents, judge=model_of(server), n=5, shares=ONLY)
    index = PassageIndex([*documents.values()])
    names = [*documents]

    def search(question: str) -> list[str]:
        return [names[number] for number in index.search(question)][:3]

    result = findwell.evaluate(search, made.gold(), ["recall@3"], by="spans", corpus=documents)
    assert result["recall@3"] == 1.0
    asked = findwell.retrieve(search, list(made.records))
    judged = findwell.judges.judge(
        asked, ["context_precision"], judge="local:text", corpus=documents
    )
    assert judged.synthetic == 5


def drop(spoil: Any, server: Server, kind: str = "single-hop", n: int = 4, **more: Any) -> Any:
    server.script = spoilt(spoil)
    return findwell.labels.questions(
        corpus(4 * n), judge=model_of(server, **more), n=n, shares={kind: 1.0}
    )


def written(change: dict[str, Any]) -> Any:
    return lambda call, said: said | change if kind_of(call) else said


@pytest.mark.parametrize(
    ("change", "reason", "calls"),
    [
        ({"question": ""}, DropReason.DECLINED, 1),
        ({"question": 7}, DropReason.MALFORMED, 3),
        ({"quotes": []}, DropReason.MALFORMED, 3),
        ({"quotes": "c1"}, DropReason.MALFORMED, 3),
        ({"quotes": [{"chunk": "c9", "quote": "The vessel"}]}, DropReason.MALFORMED, 3),
        ({"quotes": [{"chunk": "c1", "quote": None}]}, DropReason.MALFORMED, 3),
        ({"quotes": [{"chunk": "c1", "quote": "The vessel south carries"}]},
         DropReason.NOT_QUOTED, 3),
        ({"quotes": [{"chunk": "c1", "quote": "…"}]}, DropReason.NOT_QUOTED, 3),
        ({"quotes": [{"chunk": "c1", "quote": "The vessel"}]}, DropReason.AMBIGUOUS, 3),
        ({"question": "What does c1 say?"}, DropReason.MARKED, 3),
        ({"question": "How much unobtainium?"}, DropReason.NOT_ANSWERED, 2),
    ],
)  # fmt: skip
def test_a_bad_answer_is_asked_again_then_dropped(
    change: dict[str, Any], reason: str, calls: int, server: Server
) -> None:
    made = drop(written(change), server)
    assert not made.records
    assert reasons(made) == {reason: 12}  # three drafts for each, no more
    assert made.summary.row(0) == ("single-hop", 4, 12, 0)
    assert len(server.calls) == 12 * calls
    [found] = [each for each in made.findings if each.kind == "too-few-questions"]
    assert (found.count, found.examples) == (4, ("single-hop: 0 of 4",))


def test_a_second_answer_may_be_good(server: Server) -> None:
    def at_first(call: Call, said: dict[str, Any]) -> Any:
        bad = kind_of(call) and "attempt" not in call.prompt
        return said | {"quotes": [{"chunk": "c1", "quote": "nowhere"}]} if bad else said

    made = drop(at_first, server)
    assert len(made) == 4
    assert made.manifest["judge"]["asked_again"] == 4
    again = [call.prompt for call in server.calls if "attempt 2" in call.prompt]
    assert len(again) == 4
    assert all(DropReason.NOT_QUOTED in prompt for prompt in again)


@pytest.mark.parametrize("text", ["I cannot do that.", '{"question": "Who', "[]", ""])
def test_what_is_no_json_is_dropped(text: str, server: Server) -> None:
    made = drop(lambda call, said: text if kind_of(call) else said, server)
    assert not made.records
    assert reasons(made).keys() <= {DropReason.MALFORMED, "not written: empty"}


def test_a_model_that_refuses_is_no_crash(server: Server) -> None:
    def refusing(call: Call, said: dict[str, Any]) -> Any:
        body = {"role": "assistant", "content": None, "refusal": "I would rather not."}
        refusal = {"choices": [{"index": 0, "message": body, "finish_reason": "stop"}]}
        return Reaction(json.dumps(refusal).encode()) if call.number % 2 else said

    made = drop(refusing, server)
    assert reasons(made).keys() <= {"not written: refused", "not checked: refused"}
    assert len(made) + sum(reasons(made).values()) == made.summary["drafts"].sum()


def test_a_server_that_is_busy_is_waited_for(server: Server) -> None:
    seen: set[str] = set()

    def busy(call: Call) -> Reaction:
        if call.prompt in seen:
            return well(call)
        seen.add(call.prompt)
        return error(429, "slow down", headers={"retry-after-ms": "1"})

    server.script = busy
    made = findwell.labels.questions(corpus(4), judge=model_of(server), n=3, shares=ONLY)
    assert len(made) == 3


def test_a_quote_is_found_whatever_its_spaces_and_marks_and_taken_as_it_stands(
    server: Server,
) -> None:
    documents = {
        f"d{n}": f"Intro{n} it is, no more.\n\nThe “vessel{n}x”\n  carries cargo{n}x – as ever."
        for n in range(3)
    }

    def quoted(call: Call, said: dict[str, Any]) -> Any:
        if not kind_of(call):
            return said
        number = re.findall(r"vessel(\d)x", call.prompt)[0]
        quote = f'"the "Vessel{number}x" carries cargo{number}x - as ever."'
        said["quotes"] = [{"chunk": "c1", "quote": quote}]
        return said | {"question": f"Which vessel{number}x carries cargo{number}x?"}

    server.script = spoilt(quoted)
    made = findwell.labels.questions(documents, judge=model_of(server), n=3, shares=ONLY)
    assert len(made) == 3
    for record in made.records:
        [span] = record["gold"]
        assert documents[span["doc"]][span["start"] : span["end"]] == span["quote"]
        assert span["quote"].startswith("The “vessel")


def test_a_question_that_others_answer_is_dropped(server: Server) -> None:
    documents = corpus(4, 1)
    twins = documents | {f"twin-{name}": f"{text} Again." for name, text in documents.items()}
    made = findwell.labels.questions(twins, judge=model_of(server), n=4, shares=ONLY)
    assert not made.records
    assert reasons(made).keys() == {DropReason.ELSEWHERE}
    checks = [call for call in server.calls if not kind_of(call)]
    assert not checks  # the quote stands there: nobody need be asked


def test_a_copy_is_found_although_the_question_has_other_words(server: Server) -> None:
    documents = corpus(12, 1)
    many = documents | {f"twin-{name}": f"{text} Again." for name, text in documents.items()}
    made = findwell.labels.questions(many, judge=model_of(server), n=4, shares={"paraphrased": 1})
    assert reasons(made) == {DropReason.ELSEWHERE: 12}


def test_others_are_judged_where_they_say_it_in_other_words(server: Server) -> None:
    documents = corpus(4, 1)
    turned = {
        name: " ".join(word[::-1] for word in text.split()) for name, text in documents.items()
    }
    both = {**documents, **{f"turned-{name}": text for name, text in turned.items()}}

    def straight(call: Call, said: dict[str, Any]) -> Any:
        if kind_of(call):  # the search must find the words that were turned round
            words = said["question"].removesuffix("?").split()[2:]
            return said | {"answer": " ".join(word[::-1] for word in words)}
        return said

    server.script = spoilt(straight)
    made = findwell.labels.questions(both, judge=model_of(server), n=4, shares=ONLY)
    assert reasons(made) == {DropReason.ELSEWHERE: 8}


def test_a_paraphrase_that_copies_is_dropped(server: Server) -> None:
    def copied(call: Call, said: dict[str, Any]) -> Any:
        if not kind_of(call):
            return said
        return said | {"question": said["quotes"][0]["quote"].replace(".", "?")}

    made = drop(copied, server, "paraphrased")
    assert reasons(made) == {DropReason.COPIED: 12}


def test_a_hop_that_is_not_needed_is_seen(server: Server) -> None:
    def of_one(call: Call, said: dict[str, Any]) -> Any:
        if not kind_of(call):
            return said
        return said | {"question": " ".join(said["question"].split()[:5]) + "?"}

    made = drop(of_one, server, "multi-hop")
    assert reasons(made) == {DropReason.ONE_SUFFICES: 12}


def test_a_hop_without_a_quote_is_malformed(server: Server) -> None:
    def one(call: Call, said: dict[str, Any]) -> Any:
        return said | {"quotes": said["quotes"][:1]} if kind_of(call) else said

    assert reasons(drop(one, server, "multi-hop")) == {DropReason.MALFORMED: 12}


def test_what_is_answered_is_not_unanswerable(server: Server) -> None:
    def answered(call: Call, said: dict[str, Any]) -> Any:
        return (
            said | {"question": said["question"].replace("much unobtainium", "is")}
            if kind_of(call)
            else said
        )

    made = drop(answered, server, "unanswerable")
    assert reasons(made) == {DropReason.ANSWERED: 12}


def test_near_duplicates_are_dropped(server: Server) -> None:
    def same(call: Call, said: dict[str, Any]) -> Any:
        if not kind_of(call):
            sufficient = len(json.loads(json.dumps(said))["sufficiency"][0]["found"]) == 1
            said["sufficiency"][0]["sufficient"] = sufficient
            return said
        return said | {"question": "Which vessel carries what to which harbour?"}

    made = drop(same, server)
    assert len(made) == 1
    assert reasons(made) == {DropReason.NEAR_DUPLICATE: 11}


def test_a_check_that_fails_drops_the_draft_with_its_reason(server: Server) -> None:
    made = drop(lambda call, said: said if kind_of(call) else "maybe", server)
    assert reasons(made) == {"not checked: malformed": 12}


def test_overlapping_chunks_have_one_place(server: Server) -> None:
    documents = corpus(6, 6)
    chunks = []
    for name, text in documents.items():
        ends = [found.end() for found in re.finditer(r"\.", text)]
        for number, start in enumerate([0, *(end + 1 for end in ends[:4])]):
            end = ends[number + 1]
            place = {"source": name, "start": start, "end": end}
            chunks.append({"chunk_id": f"{name}#{number}", "text": text[start:end], **place})
    made = findwell.labels.questions(chunks, judge=model_of(server), n=8, shares=ONLY)
    assert len(made) == 8
    for record in made.records:
        [span] = record["gold"]
        assert documents[span["doc"]][span["start"] : span["end"]] == span["quote"]
    run = {}
    for record in made.records:
        [span] = record["gold"]
        held = [each for each in chunks if each["source"] == span["doc"]]
        inside = [c for c in held if c["start"] <= span["start"] and span["end"] <= c["end"]]
        run[record["query"]] = [inside[0]["chunk_id"]]
    result = findwell.evaluate(run, made.gold(), ["recall@1"], by="spans", corpus=chunks)
    assert result["recall@1"] == 1.0


def test_chunks_whose_offsets_are_wrong_are_named(server: Server) -> None:
    text = corpus(1)["doc0"]
    good = {"chunk_id": "c1", "text": text, "source": "d", "start": 0, "end": len(text)}
    bad = {"chunk_id": "c2", "text": text, "source": "d", "start": 500, "end": 510}
    made = findwell.labels.questions([good, bad], judge=model_of(server), n=1, shares=ONLY)
    assert len(made) == 1
    assert [(found.kind, found.examples) for found in made.findings] == [
        ("misfit-offsets", ("c2",))
    ]
    with pytest.raises(InputError, match="offsets of the chunks do not fit"):
        findwell.labels.questions([bad], judge=model_of(server), n=1)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("local", "compares words and vectors"),
        ("local:text", "compares words and vectors"),
        (lambda _: {}, "verdicts only"),
        (["openai:a", "openai:b"], "verdicts only"),
    ],
)
def test_who_cannot_write_is_refused(judge: object, why: str) -> None:
    with pytest.raises(OptionError, match=why) as stop:
        findwell.labels.questions(corpus(2), judge=judge)
    assert "openai:MODEL" in str(stop.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"n": 2.5}, "n must be"),
        ({"n": True}, "n must be"),
        ({"seed": -1}, "seed must be"),
        ({"passage_tokens": 0}, "passage_tokens must be"),
        ({"shares": {"multihop": 0.5}}, "did you mean multi-hop"),
        ({"shares": {"multi-hop": 1.5}}, "from 0 to 1"),
        ({"shares": {"multi-hop": float("nan")}}, "from 0 to 1"),
        ({"shares": {"multi-hop": 0.7, "single-hop": 0.4}}, "add up to 1.1"),
        ({"shares": dict.fromkeys(["single-hop", "paraphrased", "multi-hop", "unanswerable"], 0)},
         "add up to 0"),
        ({"judge": "openai:"}, "needs the name of a"),
        ({"judge": "opnai:m"}, "unknown judge"),
    ],
)  # fmt: skip
def test_bad_options_are_refused_before_anything_is_asked(
    more: dict[str, Any], message: str, server: Server
) -> None:
    given: dict[str, Any] = {"judge": model_of(server), "n": 3} | more
    with pytest.raises(OptionError, match=message):
        findwell.labels.questions(corpus(2), **given)
    assert not server.calls


@pytest.mark.parametrize("texts", [{"a": "short"}, {"a": " ", "b": "\n\n"}])
def test_a_corpus_that_says_nothing_is_refused(texts: dict[str, str], server: Server) -> None:
    with pytest.raises(InputError, match="no passage has 40 characters"):
        findwell.labels.questions(texts, judge=model_of(server))
    assert not server.calls


def test_a_small_corpus_gives_what_it_can(server: Server) -> None:
    made = findwell.labels.questions(corpus(3), judge=model_of(server), n=40)
    assert 3 <= len(made) < 40
    assert made.summary["drafts"].max() == 3  # no passage twice for one kind
    assert "too-few-questions" in [finding.kind for finding in made.findings]


def test_the_same_again_costs_nothing(server: Server, tmp_path: Path) -> None:
    with Cache.open(tmp_path) as cache:
        first = findwell.labels.questions(corpus(), judge=model_of(server, cache=cache), n=10)
        calls = len(server.calls)
        again = findwell.labels.questions(corpus(), judge=model_of(server, cache=cache), n=10)
        more = findwell.labels.questions(corpus(), judge=model_of(server, cache=cache), n=20)
    assert again.records == first.records
    assert again.manifest["judge"]["calls"] == 0
    assert set(first.jsonl().splitlines()) < set(more.jsonl().splitlines())
    assert max(server.prompts.values()) == 1
    assert calls < len(server.calls)


@pytest.mark.parametrize("limit", [{"max_calls": 11}, {"max_tokens": 6000}])
def test_a_budget_ends_it_and_the_rest_is_asked_later(
    limit: dict[str, int], server: Server, tmp_path: Path
) -> None:
    server.script = lambda call: chat(json.dumps(answer(call)), usage=(400, 100))
    expected = findwell.labels.questions(corpus(), judge=model_of(server), n=10)
    needed = len(server.calls)
    server.calls.clear()
    with Cache.open(tmp_path) as cache:
        rounds, before = 0, -1
        while True:
            made = findwell.labels.questions(
                corpus(), judge=model_of(server, cache=cache, **limit), n=10
            )
            if "max_calls" in limit:
                assert len(server.calls) - max(before, 0) <= 11
            assert len(server.calls) > before
            before, rounds = len(server.calls), rounds + 1
            if len(made) == 10:
                break
            [found] = [each for each in made.findings if each.kind == "too-few-questions"]
            assert "cache" in found.fix
            assert all(reason.endswith(": budget") for reason in reasons(made))
    assert made.records == expected.records
    assert rounds > 1
    assert len(server.calls) == needed


def test_a_dry_run_asks_nobody_and_is_right_if_nothing_is_dropped(
    server: Server, tmp_path: Path
) -> None:
    with Cache.open(tmp_path) as cache:

        def judge() -> findwell.Judge:
            return model_of(server, cache=cache, prices="1,1")

        guess = forecast_questions(corpus(), judge=judge(), n=10)
        assert not server.calls
        findwell.labels.questions(corpus(), judge=judge(), n=10)
        calls = len(server.calls)
        after = forecast_questions(corpus(), judge=judge(), n=10)
    assert guess.calls == calls
    assert guess.cost is not None
    assert (after.calls, after.stored, after.cost) == (0, calls, 0.0)


def test_a_file_of_prompts_replaces_them(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "prompt.toml"
    text = "Write one question that the passage c1 answers. First a rhyme, then."
    path.write_text(
        f"[single-hop]\nversion = 'mine'\ntext = '{text}'\n"
        "[relevance]\nversion = 'x'\ntext = 'Grade each id.'\n"  # the judge's
    )
    made = findwell.labels.questions(
        corpus(3), judge=model_of(server, prompt=path), n=2, shares=ONLY
    )
    assert len(made) == 2
    assert made.manifest["prompts"]["single-hop"]["version"] == "mine"
    assert made.manifest["prompts"]["single-hop"]["own"] is True
    assert any("First a rhyme" in call.prompt for call in server.calls)
    path.write_text("[singel-hop]\nversion = 1\ntext = 'x'\n")
    with pytest.raises(InputError, match="did you mean single-hop"):
        findwell.labels.questions(corpus(3), judge=model_of(server, prompt=path), n=2)


def test_every_passage_of_a_document_is_cut_where_it_says() -> None:
    rng = random.Random(3)
    letters = ["word ", "Ende. ", "\n", "\n\n", "東京", "。", "x" * 70, " ", "\u3000", "\t"]
    for _ in range(300):
        text = "".join(rng.choices(letters, k=rng.randrange(60)))
        tokens = rng.randrange(1, 40)
        places = [*cut(text, tokens)]
        for start, end in places:
            assert text[start:end] == text[start:end].strip() != ""
        assert all(before[1] <= after[0] for before, after in pairwise(places))
        outside = text
        for start, end in reversed(places):
            outside = outside[:start] + outside[end:]
        assert not outside.strip()


def test_the_search_is_bm25() -> None:
    texts = ["a b c a", "b b d", "d e f g h", "", "a a a a a a a"]
    lists = [text.split() for text in texts]
    usual = np.mean([len(words) for words in lists])

    def score(query: str, words: list[str]) -> float:
        total = 0.0
        for term in set(query.split()):
            held = sum(term in each for each in lists)
            often = words.count(term)
            if often:
                rarity = np.log(1 + (len(lists) - held + 0.5) / (held + 0.5))
                long = 1 - 0.75 + 0.75 * len(words) / usual
                total += rarity * often * 2.2 / (often + 1.2 * long)
        return float(total)

    index = PassageIndex(texts)
    for query in ("a", "a b", "b d h", "d a", "z", ""):
        scores = [score(query, words) for words in lists]
        expected = [n for n in sorted(range(5), key=lambda n: -scores[n]) if scores[n]]
        assert [*index.search(query)] == expected


def test_no_document_comes_twice_before_all_came_once() -> None:
    table = findwell.io.load_corpus(corpus(7, 30) | {"long": corpus(1, 300)["doc0"]})
    passages, _ = cut_passages(table, 50, "corpus")
    order = spread(passages, np.random.default_rng(5))
    assert sorted(each.number for each in order) == [each.number for each in passages]
    assert len({each.doc for each in order[:8]}) == 8
    assert len({each.doc for each in order[8:16]}) == 8
