"""Elasticsearch and OpenSearch."""

from __future__ import annotations

import math
from functools import partial

from findwell.loop.tuning.engines import joins, normalisers, snippets
from findwell.loop.tuning.engines.engine import Engine, Formula
from findwell.loop.tuning.engines.rules import ANY, INTERNAL_TIES, NEGATIVE, OF_ONE, by_id, only
from findwell.loop.tuning.engines.values import NormalisedScores, RankValues

ELASTICSEARCH = (
    Engine(
        name="elasticsearch-rrf",
        about="Σ w/(k+r)",
        formulas=only(RankValues(), joins.weighted_sum),
        source="x-pack/plugin/rank-rrf/…/RRFRetrieverBuilder.java",
        paste=snippets.elasticsearch_rrf,
        weights=ANY,
        k=60,
        k_range=(1, math.inf),
        whole_k=True,
        window=10,
        cut=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        notes=("the fused list is no longer than the window (rank_window_size)",),
        precision="single",
    ),
    Engine(
        name="elasticsearch-linear",
        about="Σ w·n",
        formulas={
            version: Formula(
                lists=NormalisedScores(
                    {
                        "none": normalisers.raw,
                        "minmax": minmax,
                        "l2_norm": normalisers.elasticsearch_l2,
                    },
                    single=True,
                ),
                join=joins.weighted_sum,
            )
            for version, minmax in (
                ("current", normalisers.elasticsearch_minmax),
                ("8.18.0", normalisers.elasticsearch_minmax_8_18_0),
            )
        },
        source="x-pack/plugin/rank-rrf/…/linear/*.java; elasticsearch#128689",
        paste=snippets.elasticsearch_linear,
        weights=ANY,
        window=10,
        cut=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        notes=(
            "minmax: equal scores are 1; in 8.18.0 they stayed the lowest score",
            f"minmax: {NEGATIVE}",
            "the fused list is no longer than the window (rank_window_size)",
        ),
        precision="single",
    ),
)
NORMALISATIONS = {
    "min_max": normalisers.opensearch_min_max,
    "l2": normalisers.opensearch_l2,
    "z_score": normalisers.opensearch_z_score,
}
NORMALISATION_NOTES = {
    "min_max": ("0 becomes 0.001; equal scores are 1", NEGATIVE),
    "l2": ("a list without any score but 0 stays 0",),
    "z_score": ("σ is the sample's; up to 0 becomes 0.001; the mean itself is the highest score",),
}
COMBINATIONS = {
    "arithmetic": ("Σ w·n / Σ w", joins.weighted_mean),
    "geometric": ("exp(Σ w·ln n / Σ w)", joins.geometric_mean),
    "harmonic": ("Σ w / Σ (w/n)", joins.harmonic_mean),
}
COMBINATION_NOTES = {
    "arithmetic": "a missing document counts as 0, and its weight stays in the divisor",
    "geometric": "a list that lacks the document, or gives it up to 0, is left out of both sums",
    "harmonic": "a list that lacks the document, or gives it up to 0, is left out of both sums",
}
OPENSEARCH = (
    *(
        Engine(
            name=f"opensearch-{normalisation}-{combination}",
            about=COMBINATIONS[combination][0],
            formulas=only(
                NormalisedScores({normalisation: NORMALISATIONS[normalisation]}, single=True),
                COMBINATIONS[combination][1],
            ),
            source="neural-search …/processor/normalization/*.java, combination/*.java",
            paste=partial(snippets.opensearch_normalization, normalisation, combination),
            weights=OF_ONE,
            ties=by_id,
            exact=f"{INTERNAL_TIES}; several shards count as one",
            notes=(*NORMALISATION_NOTES[normalisation], COMBINATION_NOTES[combination]),
            precision="single",
        )
        for normalisation in NORMALISATIONS
        for combination in COMBINATIONS
        if normalisation != "z_score" or combination == "arithmetic"
    ),
    Engine(
        name="opensearch-rrf",
        about="Σ w·round(1/(k+r), 10)",
        formulas=only(RankValues(digits=10), joins.weighted_sum),
        source="neural-search …/RRFNormalizationTechnique.java",
        paste=snippets.opensearch_rrf,
        weights=OF_ONE,
        k=60,
        k_range=(1, 10_000),
        whole_k=True,
        ties=by_id,
        exact=INTERNAL_TIES,
        precision="single",
    ),
)
# what OpenSearch itself refuses, and why
REFUSED = {
    f"opensearch-z_score-{combination}": "OpenSearch combines z_score only by arithmetic_mean"
    for combination in ("geometric", "harmonic")
}
