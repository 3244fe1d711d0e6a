"""Successive halving: rungs, who goes on, and that the final claim rests on other queries."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from findwell.core.errors import InputError, OptionError, RetrieverError
from findwell.loop.tuning.choice import against_best
from findwell.loop.tuning.halving import (
    Halving,
    HalvingPlan,
    deal_queries,
    fewest_queries,
    halve,
    plan_halving,
)
from findwell.statistics.paired import paired

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Table:
    """Answers from a table of values, and remembers who was asked what."""

    def __init__(self, values: Floats, failing: Sequence[int] = ()) -> None:
        self.values, self.failing = values, failing
        self.asked: list[tuple[int, int]] = []

    def __call__(self, settings: Sequence[int], queries: Ints) -> tuple[Floats, NDArray[np.bool_]]:
        self.asked += [(setting, int(query)) for setting in settings for query in queries]
        failed = np.array([setting in self.failing for setting in settings])
        found = self.values[list(settings)][:, queries].copy()
        found[failed] = np.nan
        return found, failed


def run(table: Table, current: int | None = None, **options: int) -> tuple[Halving, HalvingPlan]:
    settings, queries = table.values.shape
    plan = plan_halving(settings, queries, **options)
    order, final = deal_queries([f"question {n}" for n in range(queries)], plan)
    return halve(table, plan, order, final, current=current), plan


@pytest.mark.parametrize("settings", [2, 3, 4, 9, 10, 27, 40, 100])
@pytest.mark.parametrize("queries", [40, 95, 500])
def test_a_plan_keeps_its_promises(settings: int, queries: int) -> None:
    plan = plan_halving(settings, queries)
    assert plan.rungs[0].settings == settings
    assert plan.rungs[0].queries >= fewest_queries(settings)
    for before, after in zip(plan.rungs, plan.rungs[1:], strict=False):
        assert after.settings == -(-before.settings // plan.eta)
        assert after.queries == before.queries * plan.eta
    # one more step leaves one, or the queries of one more rung could not separate the settings
    fewer = plan.searched // plan.eta ** len(plan.rungs)
    assert plan.rungs[-1].settings <= plan.eta or fewer < fewest_queries(settings)
    assert plan.searched + plan.final == queries
    assert plan.final >= max(10, queries // 3)
    table = Table(np.random.default_rng(0).random((settings, queries)))
    run(table, current=0)
    assert len(table.asked) == len(set(table.asked))  # nobody is asked twice
    both = {setting for setting, _ in table.asked[-plan.final :]}
    assert len(table.asked) in (plan.calls(2), plan.calls(1))
    assert len(both) <= 2


@pytest.mark.parametrize(
    ("settings", "queries", "options", "message"),
    [
        (1, 100, {}, "one setting leaves nothing to choose"),
        (3, 23, {}, "3 settings need 14 queries to choose by and 10 others .* are 23"),
        (27, 95, {"first": 70}, "27 settings need 70 queries .* there are 95"),
        (1000, 40, {"eta": 2}, "1000 settings need 32 queries to choose by"),
    ],
)
def test_fewer_queries_than_the_first_rung_needs_are_an_error(
    settings: int, queries: int, options: dict[str, int], message: str
) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        plan_halving(settings, queries, **options)
    assert caught.value.fix


@pytest.mark.parametrize("settings", [2, 3, 10, 27, 73, 200])
def test_the_first_rung_has_queries_enough_to_separate_the_settings(settings: int) -> None:
    """A setting that loses wherever it differs from the best is shown to be worse, corrected."""
    queries = fewest_queries(settings)
    values = np.full((queries, settings), 0.5)
    values[: queries // 2, 1:] = 0.4  # half of the queries differ
    tests = against_best(values + np.arange(settings) * 1e-6 * (values < 0.5), 0)
    assert max(each.p for each in tests if each.p is not None) <= 0.05
    fewer = np.delete(values, [0], axis=0)
    tests = against_best(fewer + np.arange(settings) * 1e-6 * (fewer < 0.5), 0)
    assert min(each.p for each in tests if each.p is not None) > 0.05


def test_settings_are_never_ranked_on_a_handful_of_queries() -> None:
    """73 settings once fell to 9 on 11 questions."""
    for queries in range(36, 400):
        for rung in plan_halving(73, queries).rungs:
            assert rung.queries >= 24
    # each rung keeps as many settings as its questions are fewer: they cost about the same
    assert str(plan_halving(73, 300)).startswith("settings × queries: 73 × 66, 25 × 198;")
    assert plan_halving(73, 95, first=11).rungs[0].queries == 11  # asked for


def test_the_best_is_left_and_the_current_one_is_asked_in_the_end() -> None:
    rng = np.random.default_rng(1)
    truth = np.linspace(0.2, 0.8, 27)
    table = Table(truth[:, None] + rng.normal(0, 0.05, (27, 300)))
    found, plan = run(table, current=3)
    assert found.chosen == 26
    assert {setting for setting, query in table.asked if query in found.final} == {3, 26}
    assert not set(found.search) & set(found.final)
    assert len(found.rungs) == len(plan.rungs) == 3
    assert set(found.rungs[2]) < set(found.rungs[1]) < set(found.rungs[0])
    unasked = np.isnan(found.values).sum(axis=1)
    assert (found.asked + np.isin(range(27), [3, 26]) * plan.final == 300 - unasked).all()


def test_equal_settings_leave_the_current_one() -> None:
    table = Table(np.full((9, 90), 0.5))
    assert run(table, current=7)[0].chosen == 7
    assert run(table)[0].chosen == 0


def test_less_is_better_where_the_measure_says_so() -> None:
    values = np.repeat(np.linspace(0.1, 0.9, 6)[:, None], 60, axis=1)
    plan = plan_halving(6, 60)
    order, final = deal_queries([str(n) for n in range(60)], plan)
    assert halve(Table(values), plan, order, final, higher_is_better=False).chosen == 0


def test_a_setting_that_fails_does_not_win_and_does_not_stop_the_others() -> None:
    values = np.repeat(np.linspace(0.1, 0.9, 6)[:, None], 60, axis=1)
    table = Table(values, failing=[5])
    found, _ = run(table)
    assert found.chosen == 4
    with pytest.raises(RetrieverError, match="every setting failed in rung 1"):
        run(Table(values, failing=range(6)))


def test_queries_without_a_value_are_left_out_of_the_means() -> None:
    values = np.repeat(np.array([0.2, 0.4])[:, None], 60, axis=1)
    values[:, ::2] = np.nan
    assert run(Table(values))[0].chosen == 1
    with pytest.raises(InputError, match="no setting has a value"):
        run(Table(np.full((2, 60), np.nan)))


def test_the_order_of_queries_and_their_names_do_not_matter() -> None:
    rng = np.random.default_rng(2)
    questions = [f"question {n}" for n in range(80)]
    plan = plan_halving(9, 80)
    first = [[questions[at] for at in side] for side in deal_queries(questions, plan)]
    shuffled = [questions[at] for at in rng.permutation(80)]
    assert [[shuffled[at] for at in side] for side in deal_queries(shuffled, plan)] == first
    other = [[questions[at] for at in side] for side in deal_queries(questions, plan, seed=1)]
    assert other != first


def test_a_cluster_and_a_repeated_question_stay_on_one_side() -> None:
    questions = [f"question {n}" for n in range(120)]
    clusters = [f"page {n // 6}" if n < 114 else None for n in range(120)]
    plan = plan_halving(9, 120)
    search, final = deal_queries(questions, plan, clusters=clusters)
    shared = {clusters[at] for at in search} & {clusters[at] for at in final}
    assert shared <= {None}
    assert len(search) == plan.searched
    assert plan.final - 5 <= len(final) <= plan.final
    twice = [f"question {n // 2}" for n in range(120)]
    search, final = deal_queries(twice, plan)
    assert not {twice[at] for at in search} & {twice[at] for at in final}
    with pytest.raises(OptionError, match="queries are left for the final claim"):
        deal_queries(questions, plan, clusters=["one"] * 120)


def simulate(seed: int) -> tuple[float, float, float]:
    """Tune settings without any real difference; return gains in sample and held out, and p."""
    rng = np.random.default_rng(seed)
    hard = rng.beta(2, 2, 90)
    values = np.clip(hard + rng.normal(0, 0.25, (27, 90)), 0, 1)
    plan = plan_halving(27, 90)
    order, final = deal_queries([f"{seed} {n}" for n in range(90)], plan)
    found = halve(Table(values), plan, order, final, current=0)
    gain = found.values[found.chosen] - found.values[0]
    (test,) = paired(found.values[0, final], found.values[found.chosen, final], permutations=400)
    return float(np.nanmean(gain[order])), float(gain[final].mean()), float(test.test.p or 1.0)


def test_without_real_differences_the_final_claim_has_no_optimism() -> None:
    """The queries of the final claim never chose: what they say is right on average."""
    found = np.array([simulate(seed) for seed in range(120)])
    in_sample, held_out = found[:, 0], found[:, 1]
    error = held_out.std(ddof=1) / np.sqrt(len(found))
    assert abs(held_out.mean()) < 3 * error < 0.03
    assert in_sample.mean() > 8 * error  # the queries that chose make it look better
    assert (found[:, 2] < 0.05).mean() <= 0.12  # of 120 at 5 %: 6 expected, 14 are very unlikely


def test_the_final_queries_have_no_say_in_the_choice() -> None:
    """Whatever the values there are, the same setting is chosen."""
    rng = np.random.default_rng(5)
    values = rng.random((27, 90))
    found, _ = run(Table(values))
    for seed in range(5):
        values[:, found.final] = np.random.default_rng(seed).random((27, len(found.final)))
        assert run(Table(values))[0].chosen == found.chosen
