"""Names: what other tools call a measure, what is refused, and that canonical names stay."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import findwell
from findwell.core.errors import MeasureError
from findwell.plugins import parse_measure
from tests.members import over

TREC_EVAL = {
    "map": "AP",
    "map_cut_10": "AP@10",
    "map_cut.10": "AP@10",
    "map_cut_1000": "AP@1000",
    "gm_map": "GMAP",
    "P_5": "P@5",
    "P.5": "P@5",
    "P_1000": "P@1000",
    "recall_100": "recall@100",
    "recall.100": "recall@100",
    "ndcg": "nDCG",
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut.10": "nDCG@10",
    "recip_rank": "RR",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "infAP": "infAP",
    "success_1": "success@1",
    "success.10": "success@10",
    "set_P": "P",
    "set_recall": "recall",
    "set_F": "F",
    "set_F.0.5": f"F(beta={math.sqrt(0.5)!r})",
    "set_F_0.5": f"F(beta={math.sqrt(0.5)!r})",
    "set_F.4.0": "F(beta=2)",
    "set_F.1.0": "F",
    "set_F.4": "F(beta=2)",
    "set_F.1": "F",
    "set_F_4": "F(beta=2)",
    "iprec_at_recall_0.00": "IPrec@0",
    "iprec_at_recall_0.10": "IPrec@0.1",
    "iprec_at_recall.0.10": "IPrec@0.1",
    "iprec_at_recall_1.00": "IPrec@1",
    "11pt_avg": "11pt",
    "num_q": "queries",
    "num_ret": "retrieved",
    "num_rel": "relevant",
    "num_rel_ret": "relevant_retrieved",
    "unjudged_10": "unjudged@10",
    "unj_10": "unjudged@10",
    "unj.10": "unjudged@10",
    "G": "G",
    "binG": "binG",
    "Rndcg": "Rndcg",
    "ndcg_rel": "ndcg_rel",
    "relative_P_5": "relative_P@5",
    "relative_P.5": "relative_P@5",
    "set_relative_P": "relative_P",
    "set_map": "set_map",
    "Rprec_mult_0.20": "Rprec_mult@0.2",
    "Rprec_mult.0.2": "Rprec_mult@0.2",
    "gm_bpref": "gm_bpref",
    "num_nonrel_judged_ret": "rejected_retrieved",
    "utility": "utility",
    "utility_2,-1,0,0": "utility(hit=2)",
    "utility.1,-2.5,-1,.5": "utility(noise=-2.5,miss=-1,rest=0.5)",
    "rbp": "RBP",
    "rbp.p=0.5": "RBP(p=0.5)",
    "rbp_p=0.95": "RBP(p=0.95)",
    "rbp_resid": "RBP_residual",
    "rbp_resid_p=0.5": "RBP_residual(p=0.5)",
    "iprec_at_recall..25": "IPrec@0.25",
    "P5": "P@5",  # as version 8 printed it
}
RANX = {
    "hits": "relevant_retrieved",
    "hits@10": "relevant_retrieved@10",
    "hit_rate": "success",
    "hit_rate@5": "success@5",
    "precision": "P",
    "precision@10": "P@10",
    "precision@10-l2": "P(rel=2)@10",
    "recall": "recall",
    "recall@100": "recall@100",
    "recall@100-l3": "recall(rel=3)@100",
    "f1": "F",
    "f1@5": "F@5",
    "r-precision": "Rprec",
    "bpref": "bpref",
    "rbp.95": "RBP(p=0.95)",
    "rbp.8": "RBP",
    "rbp.5": "RBP(p=0.5)",
    "mrr": "RR",
    "mrr@10": "RR@10",
    "map": "AP",
    "map@100": "AP@100",
    "map@100-l2": "AP(rel=2)@100",
    "dcg": "DCG",
    "dcg@10": "DCG@10",
    "dcg_burges@10": "DCG(gain=exp)@10",
    "ndcg": "nDCG",
    "ndcg@10": "nDCG@10",
    "ndcg_burges": "nDCG(gain=exp)",
    "ndcg_burges@10": "nDCG(gain=exp)@10",
    # a level without a cutoff
    "mrr-l2": "RR(rel=2)",
    "precision-l2": "P(rel=2)",
    "r-precision-l2": "Rprec(rel=2)",
}
IR_MEASURES = {
    "P@5": "P@5",
    "P(rel=2)@5": "P(rel=2)@5",
    "nDCG": "nDCG",
    "nDCG@10": "nDCG@10",
    "nDCG(dcg='exp-log2')@10": "nDCG(gain=exp)@10",
    'nDCG(dcg="log2")@10': "nDCG@10",
    "R@100": "recall@100",
    "RR": "RR",
    "RR(rel=2)@10": "RR(rel=2)@10",
    "MRR@10": "RR@10",
    "AP": "AP",
    "MAP": "AP",
    "AP(rel=2)@100": "AP(rel=2)@100",
    "Rprec": "Rprec",
    "RPrec": "Rprec",
    "Bpref": "bpref",
    "BPref(rel=2)": "bpref(rel=2)",
    "infAP": "infAP",
    "ERR@20": "ERR@20",
    "RBP(p=0.8)": "RBP",
    "RBP(p=0.8,rel=2)": "RBP(rel=2)",
    "RBP(rel=1)@10": "RBP@10",
    "Precision@5": "P@5",
    "Recall@5": "recall@5",
    "NDCG@10": "nDCG@10",
    "SetAP": "set_map",
    "SetRelP": "relative_P",
    "SetP": "P",
    "SetP(rel=2)": "P(rel=2)",
    "SetR": "recall",
    "SetF": "F",
    "SetF(beta=2)": "F(beta=2)",
    "SetF(beta=2.0)": "F(beta=2)",
    "IPrec@0.1": "IPrec@0.1",
    "IPrec(rel=2)@0.5": "IPrec(rel=2)@0.5",
    "Success@10": "success@10",
    "Judged@10": "judged@10",
    "NumQ": "queries",
    "NumRet": "retrieved",
    "NumRel": "relevant",
    "NumRelRet": "relevant_retrieved",
    "StRecall@10": "recall@10",
    "alpha_nDCG@20": "alpha_nDCG@20",
    "α_nDCG@20": "alpha_nDCG@20",
    "alpha_nDCG(alpha=0.9)@20": "alpha_nDCG(alpha=0.9)@20",
}
OWN = {
    "nDCG(gain=linear)": "nDCG",
    "nDCG(gain=0:1:3)@5": "nDCG(gain=0:1:3)@5",
    "AP(over=relevant)": "AP",
    "AP(over=retrieved)": "AP(over=retrieved)",
    "AP(rel=2,over=min)@5": "AP(rel=2,over=min)@5",
    "AP( over = min , rel = 2 )@5": "AP(rel=2,over=min)@5",
    "all-found@3": "all_found@3",
    "complete_recall": "all_found",
    "Recall@5/ids": "recall@5/ids",
    "recall/claims": "context_recall",
    "recall(rel=2)@3/entities": "context_entities_recall(rel=2)@3",
    "context_entity_recall@3": "context_entities_recall@3",
    "AP(over=retrieved)@5/relevance": "context_precision@5",
    "AP/relevance": "AP/relevance",
    "P@5/statements": "context_relevancy@5",
    "P()@5": "P@5",
    "P(rel=1.0)": "P",
    "P(rel=0.5)": "P(rel=0.5)",
    "RBP(p=.5)": "RBP(p=0.5)",
    "ERR(max=3)@10": "ERR(max=3)@10",
    "accuracy@1": "success@1",
    "Rprec_mult@2": "Rprec_mult@2",
    "utility(hit=2,noise=-2)": "utility(hit=2,noise=-2)",
    "f1_5": "F@5",
    "F1@5": "F@5",
    "F_0.5": "F(beta=0.5)",
    "f2_score@5": "F(beta=2)@5",
    "nDCG at 10": "nDCG@10",
}
# one tool, one way of writing the same few words
OTHERS = {
    # LlamaIndex
    "hit_rate": "success",
    "mrr": "RR",
    "ap": "AP",
    # what the same is called elsewhere, joined, parted or in capitals
    "hitrate@5": "success@5",
    "HitRate@5": "success@5",
    "hit-rate@5": "success@5",
    "hit rate@5": "success@5",
    "hit@5": "success@5",
    "hit_ratio@5": "success@5",
    "HR@10": "success@10",
    "top_k_accuracy": "success",
    "averageprecision": "AP",
    "mean_average_precision@5": "AP@5",
    "Mean Reciprocal Rank@10": "RR@10",
    "normalized_discounted_cumulative_gain@10": "nDCG@10",
    # Haystack
    "recall_single_hit": "success",
    "recall_multi_hit": "recall",
    # BEIR
    "MRR@10": "RR@10",
    "R_cap@10": "relative_P@10",
    "Accuracy@10": "success@10",
    # MTEB
    "ndcg_at_10": "nDCG@10",
    "map_at_10": "AP@10",
    "mrr_at_10": "RR@10",
    "recall_at_10": "recall@10",
    "precision_at_10": "P@10",
    "hit_rate_at_10": "success@10",
    # AutoRAG and torchmetrics
    "retrieval_f1": "F",
    "retrieval_ndcg": "nDCG",
    "retrieval_mrr": "RR",
    "retrieval_map": "AP",
    "retrieval_hit_rate@5": "success@5",
    "retrieval_normalized_dcg": "nDCG",
    "retrieval_r_precision": "Rprec",
    # ragas and deepeval
    "context_precision": "context_precision",
    "contextual_precision": "context_precision",
    "contextual_recall": "context_recall",
    "contextual_relevancy": "context_relevancy",
    "id_based_context_precision": "P/ids",
    "id_based_context_recall@5": "recall@5/ids",
    "IDBasedContextRecall": "recall/ids",
    "llm_context_recall": "context_recall",
    "llm_context_precision_with_reference": "context_precision",
    "context_entity_recall": "context_entities_recall",
}


@over(("name", "canonical"), TREC_EVAL.items())
def test_names_of_trec_eval(name: str, canonical: str) -> None:
    assert str(findwell.plugins.parse_measure(name)) == canonical


@over(("name", "canonical"), RANX.items())
def test_names_of_ranx(name: str, canonical: str) -> None:
    assert str(findwell.plugins.parse_measure(name)) == canonical


@over(("name", "canonical"), IR_MEASURES.items())
def test_names_of_ir_measures(name: str, canonical: str) -> None:
    assert str(findwell.plugins.parse_measure(name)) == canonical


@over(("name", "canonical"), OTHERS.items())
def test_names_of_other_tools(name: str, canonical: str) -> None:
    assert str(findwell.plugins.parse_measure(name)) == canonical


@pytest.mark.parametrize(
    ("name", "what", "fix"),
    [
        ("non_llm_context_recall", "by edit distance", "-m recall/rouge"),
        ("NonLLMContextPrecisionWithReference", "by edit distance", "AP(over=retrieved)/rouge"),
        ("llm_context_precision_without_reference", "generated answer", "-m context_precision"),
        ("context_utilization", "by the generated answer", "-m context_precision"),
        ("nv_context_relevance", "from 0 to 2", "-m context_relevancy"),
        ("faithfulness", "is about the generated answer", "-m context_recall"),
    ],
)
def test_measures_of_ragas_that_differ(name: str, what: str, fix: str) -> None:
    with pytest.raises(findwell.FindwellError, match=what) as error:
        findwell.plugins.parse_measure(name)
    assert fix in error.value.fix
    if (typed := error.value.fix.partition("-m ")[2]).count(" ") < 1:
        findwell.plugins.parse_measure(typed.strip("'"))


@over(("name", "canonical"), OWN.items())
def test_names_of_our_own(name: str, canonical: str) -> None:
    assert str(findwell.plugins.parse_measure(name)) == canonical


@over(name=[*TREC_EVAL, *RANX, *IR_MEASURES, *OTHERS, *OWN])
def test_every_name_in_any_case(name: str) -> None:
    # values of parameters, names of relations and ranx's -l keep their case
    if "(" not in name and "/" not in name and "-l" not in name:
        assert (
            findwell.plugins.parse_measure(name.upper())
            == findwell.plugins.parse_measure(name.lower())
            == findwell.plugins.parse_measure(name)
        )


@over(
    ("name", "suggestion"),
    [
        ("ndgc", "nDCG"),
        ("ngcd@10", "nDCG"),
        ("recal@5", "recall"),
        ("presicion", "precision"),
        ("sucess@1", "success"),
        ("mpa", "MAP"),
        ("bperf", "bpref"),
        ("alpha_dncg@5", "alpha_nDCG"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, suggestion: str) -> None:
    with pytest.raises(MeasureError, match="unknown measure") as caught:
        findwell.plugins.parse_measure(name)
    assert "did you mean" in caught.value.fix
    assert suggestion in caught.value.fix


@over(
    name=[
        "",
        " ",
        "@",
        "@5",
        "/",
        "()",
        "P@0",
        "P@-1",
        "P@5@6",
        "P@5.0",
        "P@five",
        "nDCG@5.5",
        "nDCG@",
        "nDCG(",
        "nDCG)",
        "nDCG((gain=exp))",
        "nDCG(foo=1)",
        "nDCG(gain)",
        "nDCG(gain=)",
        "nDCG(gain=3:1)",
        "nDCG(gain=1:2)",
        "nDCG(gain=0)",
        "nDCG(gain=0:x)",
        "nDCG(gain=0:inf)",
        "nDCG(rel=2)",
        "AP(over=nothing)",
        "AP(rel=0)",
        "AP(rel=-1)",
        "AP(rel=nan)",
        "AP(rel=x)",
        "RBP(p=2)",
        "RBP(p=0)",
        "RBP(p=1)",
        "RBP(p=nan)",
        "F(beta=0)",
        "F(beta=-1)",
        "F(beta=inf)",
        "set_F.0.0",
        "alpha_nDCG(alpha=2)",
        "alpha_nDCG(alpha=-0.1)",
        "ERR(max=-1)",
        "IPrec@2",
        "IPrec@-0.1",
        "IPrec@x",
        "Rprec@5",
        "bpref@10",
        "11pt@5",
        "queries@5",
        "relevant@5",
        "P_5_5",
        "P_-5",
        "P.-5",
        "bpref_5",
        "G@5",
        "Rprec_mult@0",
        "Rprec_mult@-1",
        "utility_1,2",
        "utility_1,2,3",
        "utility(docs=-1)",
        "P@5/",
        "P@5/two words",
        "P@5 and more",
        "nonsense",
        "\0",
        "P\n@5\n\n@",
    ],
)
def test_what_is_not_a_measure(name: str) -> None:
    with pytest.raises(MeasureError) as caught:
        findwell.plugins.parse_measure(name)
    assert caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize(
    "name",
    [
        "x" * 1_000_000,
        "P" * 100_000 + "@5",
        "P@" + "9" * 100_000,
        "P@" + "-l" * 100_000,
        "nDCG(" + "gain=exp," * 100_000 + "oops)",
        "set_F_" + "1" * 100_000,
        "rbp" + "." * 100_000,
        "P" + "(" * 100_000,
        "-" * 100_000,
        "set_F_" + "1" * 100_000 + "x",
        "1_" * 100_000 + "P",
        "utility_" + "1," * 100_000,
    ],
    ids=[
        "x",
        "P",
        "cutoff",
        "levels",
        "parameters",
        "digits",
        "dots",
        "parentheses",
        "dashes",
        "digits and more",
        "digits apart",
        "numbers",
    ],
)
def test_a_very_long_name_is_refused(name: str) -> None:
    # a pattern that backtracks would not come back from these
    with pytest.raises(MeasureError):
        findwell.plugins.parse_measure(name)


def test_a_measure_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="unknown measure"):
        findwell.plugins.parse_measure("nonsense")


def test_the_error_names_what_was_written() -> None:
    with pytest.raises(MeasureError, match="nonsense"):
        findwell.plugins.parse_measure("nonsense@10")


def test_canonical_names_stay() -> None:
    # people keep them in files, dashboards and gates: add, never change
    assert list(findwell.plugins.known_measures()) == [
        "11pt",
        "age",
        "all_found",
        "alpha_nDCG",
        "AP",
        "binG",
        "bpref",
        "context_cost",
        "cost_to",
        "DCG",
        "ERR",
        "F",
        "forbidden",
        "G",
        "gm_bpref",
        "GMAP",
        "in_third",
        "infAP",
        "IoU",
        "IPrec",
        "items_per",
        "judged",
        "nDCG",
        "ndcg_rel",
        "near_duplicates",
        "P",
        "position",
        "queries",
        "RBP",
        "RBP_residual",
        "recall",
        "redundancy",
        "rejected_retrieved",
        "relative_P",
        "relevant",
        "relevant_retrieved",
        "retrieved",
        "Rndcg",
        "Rprec",
        "Rprec_mult",
        "RR",
        "set_map",
        "success",
        "unjudged",
        "utility",
    ]


def test_canonical_spellings_stay() -> None:
    spelled = {name: str(cls()) for name, cls in findwell.plugins.known_measures().items()}
    assert {name: text for name, text in spelled.items() if name != text} == {
        "IPrec": "IPrec@0.1",
        "Rprec_mult": "Rprec_mult@1",
    }
    assert {name: cls.parameters() for name, cls in findwell.plugins.known_measures().items()} == {
        "11pt": {"rel": 1.0},
        "all_found": {"rel": 1.0, "support": 0.0},
        "age": {"on": "", "of": "mean"},
        "context_cost": {"unit": "tokens"},
        "cost_to": {"recall": 1.0, "unit": "ranks", "rel": 1.0},
        "forbidden": {},
        "in_third": {"third": "middle", "rel": 1.0},
        "items_per": {"unit": "tokens", "rel": 1.0},
        "near_duplicates": {},
        "position": {"of": "first", "rel": 1.0},
        "redundancy": {"rel": 1.0},
        "alpha_nDCG": {"alpha": 0.5, "rel": 1.0},
        "AP": {"rel": 1.0, "over": "relevant"},
        "binG": {"rel": 1.0},
        "bpref": {"rel": 1.0},
        "DCG": {"gain": "linear"},
        "ERR": {"max": 4.0},
        "F": {"rel": 1.0, "beta": 1.0},
        "G": {"gain": "linear"},
        "gm_bpref": {"rel": 1.0},
        "GMAP": {"rel": 1.0, "over": "relevant"},
        "infAP": {"rel": 1.0},
        "IoU": {"rel": 1.0, "support": 0.0},
        "IPrec": {"recall": 0.1, "rel": 1.0},
        "judged": {},
        "nDCG": {"gain": "linear"},
        "ndcg_rel": {"gain": "linear"},
        "P": {"rel": 1.0},
        "queries": {},
        "RBP": {"rel": 1.0, "p": 0.8},
        "RBP_residual": {"p": 0.8},
        "recall": {"rel": 1.0, "support": 0.0},
        "rejected_retrieved": {"rel": 1.0},
        "relative_P": {"rel": 1.0},
        "relevant": {"rel": 1.0},
        "relevant_retrieved": {"rel": 1.0},
        "retrieved": {},
        "Rndcg": {"gain": "linear", "rel": 1.0},
        "Rprec": {"rel": 1.0},
        "Rprec_mult": {"multiple": 1.0, "rel": 1.0},
        "RR": {"rel": 1.0},
        "set_map": {"rel": 1.0},
        "success": {"rel": 1.0},
        "unjudged": {},
        "utility": {
            "rel": 1.0,
            "hit": 1.0,
            "noise": -1.0,
            "miss": 0.0,
            "rest": 0.0,
            "docs": 0.0,
        },
    }


@pytest.mark.parametrize("tool", ["trec-eval", "ranx", "ragas", "deepeval", "llamaindex"])
def test_the_tables_of_names_are_true(tool: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / f"from-{tool}.md"
    table = page.read_text(encoding="utf-8").partition("## Names\n\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ")[:2] for line in table.splitlines()[2:]]
    assert len(rows) >= 3
    for theirs, ours in rows:
        name = theirs.partition(" (")[0].strip("`")
        assert str(parse_measure(name)) == str(parse_measure(ours.strip("`"))), theirs
