"""The search: who is named, for which causes together, in which iterations; iterations take 100."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attribute.findings.runs import found_in, judged_run, lost, subjects
from tests.replay.models import lockstep_model
from traceforge.attribute.findings.candidates import _without_companions, _without_parts
from traceforge.attribute.findings.search import cause_nodes, search
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.attribute.ledger.shapley import share_lateness

HOSTS = ["a"] * 4 + ["b"] * 4


def noise(seed: int, size: float = 0.2, ranks: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size, (20, ranks))


def test_a_slow_host_is_named_though_only_one_of_its_ranks_is_waited_for() -> None:
    # given a host whose ranks all work 8 longer; the last of them, now this and now that one, owns what it costs
    own, cost = noise(0), noise(1, 0.05)
    own[:, :4] += 8
    cost[np.arange(20), np.random.default_rng(2).integers(0, 4, 20)] += 8

    found = found_in(judged_run(20, 8, hosts=HOSTS), lost({"slow_compute": own}, {"slow_compute": cost}))
    assert subjects(found) == [("host", "a", "slow_compute", "persistent", "high")]


def test_a_rank_that_is_late_for_a_new_reason_each_time_is_one_finding_with_its_parts() -> None:
    # given rank 3 that loses 9, now by this and now by that; no one cause is enough
    causes = ("garbage_collection", "input_stall", "slow_compute", "late_launch", "host_stall")
    losses = {name: noise(n, 0.02) for n, name in enumerate(causes)}
    for i in range(20):
        losses[causes[i % 5]][i, 3] += 9

    (found,) = found_in(judged_run(20, 8), lost(losses))
    assert (found.subject.name, found.cause.name, found.cause.mode) == ("3", "several_causes", "runtime_control_plane")
    assert found.parts["slow_compute"] == pytest.approx(9 * 4 / 20, abs=0.1)
    assert sum(found.parts.values()) == pytest.approx(found.effect.delay_ns_per_iteration)


def test_two_causes_that_count_alone_stay_two_findings() -> None:
    compute, stall = noise(3), noise(4)
    compute[:, 5] += 20
    stall[::2, 5] += 40

    found = found_in(judged_run(20, 8), lost({"slow_compute": compute, "input_stall": stall}))
    assert [(one.subject.name, one.cause.name) for one in found] == [("5", "slow_compute"), ("5", "input_stall")]


def test_what_all_ranks_lose_in_the_same_iteration_is_the_jobs() -> None:
    # given a pause of 300 of all ranks in iteration 12; their onsets differ, so that one of them owns what it costs
    own, cost = noise(5), noise(6, 0.05)
    own[12] += np.linspace(280, 300, 8)
    cost[12, 7] += 290

    found = found_in(judged_run(20, 8, hosts=HOSTS), lost({"checkpoint_pause": own}, {"checkpoint_pause": cost}))
    assert subjects(found) == [("job", "all", "checkpoint_pause", "one_off", "medium")]
    assert found[0].effect.affected.tolist() == [12]


def test_what_all_ranks_lose_in_the_first_iteration_may_be_a_warm_up() -> None:
    both = noise(7)
    both[0] += 300 / 8

    assert found_in(judged_run(20, 8), lost({"host_stall": 8 * both}, {"host_stall": both})) == []


def test_a_named_pause_of_one_rank_counts_once_but_a_slow_kernel_does_not() -> None:
    stall = noise(8, 0.05)
    stall[9, 2] += 120

    run = judged_run(20, 8)
    assert subjects(found_in(run, lost({"garbage_collection": stall}))) == [
        ("rank", "2", "garbage_collection", "one_off", "medium")
    ]
    assert found_in(run, lost({"slow_compute": stall})) == []


def test_a_cause_that_was_named_already_is_no_part_of_what_is_left() -> None:
    # given rank 5 that computes 20 longer, and loses 1.6 by each of three other causes
    losses = {"slow_compute": noise(0, 0.02)}
    losses["slow_compute"][:, 5] += 20
    for n, name in enumerate(("garbage_collection", "input_stall", "host_stall")):
        losses[name] = noise(n, 0.02)
        losses[name][:, 5] += 1.6

    first, rest = found_in(judged_run(20, 8), lost(losses))
    assert list(first.parts) == ["slow_compute"]
    assert set(rest.parts) == {"garbage_collection", "input_stall", "host_stall"}


def test_a_cause_that_explains_one_of_a_hosts_ranks_is_no_part_of_what_the_host_loses_besides() -> None:
    # given host a, all of whose ranks lose 0.5 each by two causes; rank 1 computes 40 longer, the others 0.6
    compute, stall, collection = noise(3, 0.05), noise(4, 0.05), noise(5, 0.05)
    compute[:, 1] += 40
    compute[:, [0, 2, 3]] += 0.6
    stall[:, :4] += 0.5
    collection[:, :4] += 0.5

    losses = {"slow_compute": compute, "host_stall": stall, "garbage_collection": collection}
    rank, *others = found_in(judged_run(20, 8, hosts=HOSTS), lost(losses))

    # then the host's finding leaves out what the rank's explains, or a replay would take it away twice
    assert (rank.subject.name, rank.cause.name) == ("1", "slow_compute")
    together = [one for one in others if len(one.parts) > 1]
    assert [one.subject.name for one in together] == ["a"]
    assert "slow_compute" not in together[0].parts


def test_what_is_explained_is_taken_out_and_the_rest_searched_again() -> None:
    # given rank 1 that loses 30, and beside it rank 6 that loses 8
    both = noise(9)
    both[:, 1] += 30
    both[:, 6] += 8

    losses = lost({"input_stall": both})
    found = found_in(judged_run(20, 8), losses)
    assert [one.subject.name for one in found] == ["1", "6"]
    assert losses.cost_ns[:, [1, 6]].sum() == 0


def test_pauses_that_always_strike_one_rank_are_no_taken_cores() -> None:
    # given eight ranks without devices on one host; rank 4 pauses for 6 in each iteration, or one or another does
    always, at_random = noise(10, 0.05), noise(11, 0.05)
    always[:, 4] += 6
    at_random[np.arange(20), np.random.default_rng(0).integers(0, 8, 20)] += 6

    run = judged_run(20, 8, hosts=["a"] * 8, has_device=False)
    assert [one.subject.name for one in found_in(run, lost({"host_stall": always}))] == ["4"]
    assert found_in(run, lost({"host_stall": at_random})) == []


def test_a_healthy_run_is_left_alone() -> None:
    names = ("slow_compute", "host_stall", "input_stall")
    for seed in range(30):
        losses = lost({name: noise(100 * seed + n, 0.3) for n, name in enumerate(names)})
        assert found_in(judged_run(20, 8, hosts=HOSTS), losses) == []


def test_what_is_left_of_a_rank_that_is_named_already_is_a_by_product() -> None:
    # given rank 5 that computes 20 longer, and loses 1.6 by each of three other causes
    losses = {"slow_compute": noise(0, 0.02)}
    losses["slow_compute"][:, 5] += 20
    for n, name in enumerate(("garbage_collection", "input_stall", "host_stall")):
        losses[name] = noise(n, 0.02)
        losses[name][:, 5] += 1.6

    first, rest = _without_companions(found_in(judged_run(20, 8), lost(losses)))
    assert (first.confidence, first.companion_of) == ("high", None)
    assert (rest.confidence, rest.companion_of) == ("low", "slow_compute")


@pytest.mark.parametrize(("rank", "companion"), [(6, "host_stall"), (3, None)])
def test_what_else_a_rank_loses_that_is_named_with_another_is_a_by_product(rank: int, companion: str | None) -> None:
    # given ranks 1 and 6 that pause for 30 each time, and one rank that computes 3 longer
    pauses, computes = noise(0, 0.02), noise(1, 0.02)
    pauses[:, [1, 6]] += 30
    computes[:, rank] += 3

    losses = lost({"host_stall": pauses, "slow_compute": computes})
    both, alone = _without_companions(list(search(judged_run(20, 8), losses)))
    assert (both.subject.name, both.cause.name, both.companion_of) == ("1, 6", "host_stall", None)
    assert (alone.subject.name, alone.cause.name, alone.companion_of) == (str(rank), "slow_compute", companion)


def test_the_order_of_ranks_does_not_matter() -> None:
    both = noise(12)
    both[:, [2, 5]] += 12
    order = np.random.default_rng(3).permutation(8)

    (found,) = found_in(judged_run(20, 8), lost({"input_stall": both[:, order]}))
    assert sorted(order[list(found.subject.places)].tolist()) == [2, 5]


def test_the_tree_of_causes_has_leaves_then_all_then_modes() -> None:
    names = ("host_stall", "input_stall", "slow_compute")

    assert [node.numbers for node in cause_nodes(names)] == [(0,), (1,), (2,), (0, 1, 2), (0, 1)]


def test_what_does_not_count_alone_is_not_listed_beside_what_it_is_part_of() -> None:
    causes = ("garbage_collection", "input_stall", "host_stall")
    losses = {name: noise(n, 0.02) for n, name in enumerate(causes)}
    for name in causes:
        losses[name][:, 3] += 1.6

    found = _without_parts(list(search(judged_run(20, 8), lost(losses))))
    assert [one.cause.name for one in found] == ["several_causes"]


def test_a_pause_of_everyone_that_shows_as_two_causes_is_one_finding() -> None:
    # given a pause of 60 of all ranks in every fourth iteration, which on half of them ends with a late launch
    stall, launch = noise(30, 0.02), noise(31, 0.02)
    stall[::4, :4] += 60
    launch[::4, 4:] += 60
    # of the 60 each iteration takes longer, the ledger gives every rank an eighth
    costs = {"host_stall": stall / 8, "late_launch": launch / 8}

    (found,) = found_in(judged_run(20, 8), lost({"host_stall": stall, "late_launch": launch}, costs))
    assert (found.subject.kind, found.subject.name, found.cause.mode) == ("job", "all", "runtime_control_plane")
    assert found.parts.keys() == {"host_stall", "late_launch"}
    assert found.effect.delay_ns_per_iteration == pytest.approx(60 * 5 / 20, rel=0.05)


@pytest.mark.parametrize("owner", [None, 7], ids=["all own it", "the last owns it"])
def test_what_all_ranks_lose_in_the_first_iterations_alone_is_a_warm_up_and_accuses_nobody(owner: int | None) -> None:
    # given 40 more of all ranks in the first five of 20 iterations, of which all or one own what it costs
    own, cost = noise(7), noise(8, 0.05)
    own[:5] += 40
    cost[:5, slice(None) if owner is None else owner] += 5 if owner is None else 40

    (found,) = search(judged_run(20, 8, hosts=HOSTS), lost({"input_stall": own}, {"input_stall": cost}))
    assert (found.subject.kind, found.confidence, found.effect.affected.tolist()) == ("job", "low", [*range(5)])

    # then a pace that is slower from the sixth iteration on is the job's
    later = search(judged_run(20, 8, hosts=HOSTS), lost({"input_stall": own[::-1]}, {"input_stall": cost[::-1]}))
    assert [one.confidence for one in later if one.subject.kind == "job"] == ["high"]


@pytest.mark.parametrize("has_device", [True, False], ids=["devices", "hosts that share cores"])
def test_a_pause_of_one_rank_after_the_other_is_nobodys_in_particular(has_device: bool) -> None:
    # given a stall of 60 in each iteration, on one rank after the other
    stalls = noise(9)
    stalls[np.arange(20), np.arange(20) % 8] += 60
    run = judged_run(20, 8, hosts=["a"] * 8, has_device=has_device)

    # then it is the job's; and where other programs may take cores, unless it is little
    expected = [("job", "all", "host_stall", "rotating", "high")]
    assert subjects(found_in(run, lost({"host_stall": stalls}))) == expected
    assert subjects(found_in(run, lost({"host_stall": stalls / 4}))) == (expected if has_device else [])


def test_a_rank_that_only_leads_more_often_than_others_is_not_named_for_all() -> None:
    # given four ranks that lose 10 in turns: rank 2 in 13 of 24 iterations, which chance does once in a hundred runs
    delays = np.zeros((24, 4))
    leaders = [2] * 13 + [0] * 4 + [1] * 4 + [3] * 3
    delays[np.arange(24), np.random.default_rng(5).permutation(leaders)] = 10

    found = found_in(judged_run(24, 4), lost({"slow_compute": delays}))
    assert subjects(found) == [("job", "all", "slow_compute", "rotating", "medium")]

    # and rank 2 is, where the others lose next to nothing
    delays[:, [0, 1, 3]] /= 20
    (found_alone,) = found_in(judged_run(24, 4), lost({"slow_compute": delays}))
    assert found_alone.subject.name == "2"


@pytest.mark.parametrize(
    ("extra", "named"), [((0, 300, 0), []), ((100, 100, 100), ["2"])], ids=["one kernel", "wherever it works"]
)
def test_a_kernel_that_takes_long_once_is_a_tail_at_any_size(extra: tuple[int, ...], named: list[str]) -> None:
    # given eight ranks that work 30 before each of three collectives, and 300 more on rank 2 in iteration 12
    work = np.full((24, 3, 8), 30)
    work[12, :, 2] += extra
    model = lockstep_model(work, transfer_ns=3, kinds=(("slow_compute", None),))
    run = replace(judged_run(24, 8), ledger=LedgerInput(model, (0,), np.zeros(model.group.shape, dtype=np.int64)))
    losses = np.zeros((24, 8))
    losses[12, 2] = 300

    found = found_in(run, lost({"slow_compute": losses}))
    assert [one.subject.name for one in found] == named


def test_a_rank_that_leads_in_turns_by_a_rare_chance_is_not_named_for_all() -> None:
    # given four ranks that lose 9 to 10 in turns: rank 2 in 15 of 24 iterations, once in two thousand runs
    delays = np.zeros((24, 4))
    leaders = [2] * 15 + [0] * 3 + [1] * 3 + [3] * 3
    delays[np.arange(24), np.random.default_rng(5).permutation(leaders)] = 10
    delays[:, 2] *= 0.88

    assert subjects(found_in(judged_run(24, 4), lost({"slow_compute": delays}))) == [
        ("job", "all", "slow_compute", "rotating", "medium")
    ]


def test_devices_that_differ_for_a_whole_run_accuse_nobody() -> None:
    # given eight devices that differ by 0.6 % for a whole run, waits that cost twice that, and nothing wrong
    for seed in range(60):
        own, cost = unlike_devices(seed, 0.006)
        found = found_in(judged_run(24, 8, hosts=HOSTS), lost({"slow_compute": own}, {"slow_compute": cost}))
        assert subjects(found) == [], seed


def test_a_host_that_is_slower_than_devices_differ_is_named() -> None:
    # given devices that differ by 0.2 %, and a host on which all ranks take 1.7 longer, which costs the job 3 to 5
    for seed in range(10):
        own, cost = unlike_devices(seed, 0.002, slower_host=1.7)
        (found,) = found_in(judged_run(24, 8, hosts=HOSTS), lost({"slow_compute": own}, {"slow_compute": cost}))
        assert (found.subject.kind, found.subject.name) == ("host", "a"), seed


def unlike_devices(seed: int, differ: float, slower_host: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Work above the usual rank's by iteration and rank, and what it costs where waits slow transfers down."""
    rng = np.random.default_rng(seed)
    own = 90 * (differ * rng.standard_normal(8) + 0.003 * rng.standard_normal((24, 8)))
    own[:, :4] += slower_host
    # Half of the ranks are the host's: the usual rank is one of the others.
    own -= np.median(own[:, 4:] if slower_host else own)
    return own, 2.2 * share_lateness(own)


@pytest.mark.parametrize(("loss", "named"), [(50, True), (12, False)])
def test_hard_pauses_that_recur_on_one_rank_alone_are_no_taken_cores(loss: int, named: bool) -> None:
    # given ranks of one host without devices, of which rank 3 of four pauses in seven iterations of twenty
    stall = noise(11, 0.2, ranks=4)
    stall[1::3, 3] += loss

    run = judged_run(20, 4, hosts=["a"] * 4, has_device=False)
    found = found_in(run, lost({"host_stall": stall}))
    assert [one.subject.name for one in found] == (["3"] if named else [])


@pytest.mark.parametrize(("struck", "named"), [([4, 9, 14, 19], True), ([3, 9, 13, 19], False)])
def test_pauses_that_come_every_fifth_step_of_a_rank_are_no_taken_cores(struck: list[int], named: bool) -> None:
    # given ranks of one host without devices, of which rank 0 of four pauses for about half a step in four of twenty
    stall = noise(12, 0.2, ranks=4)
    stall[struck, 0] += [50, 41, 59, 46]

    found = found_in(judged_run(20, 4, hosts=["a"] * 4, has_device=False), lost({"host_stall": stall}))
    assert [one.subject.name for one in found] == (["0"] if named else [])


@pytest.mark.parametrize(("every", "named"), [(1, True), (4, False)])
def test_delays_that_only_every_fourth_step_could_show_are_not_spaced_by_their_rank(every: int, named: bool) -> None:
    # given pauses of rank 0 in four of twenty steps, every fourth, of a job that communicates in each or in those alone
    stall = noise(12, 0.2, ranks=4)
    stall[[3, 7, 11, 15], 0] += [50, 41, 59, 46]
    run = judged_run(20, 4, hosts=["a"] * 4, has_device=False)
    calls = np.where(np.arange(1, 21) % every == 0, run.ledger.model.calls, 0)
    run = replace(run, ledger=replace(run.ledger, model=replace(run.ledger.model, calls=calls)))

    found = found_in(run, lost({"host_stall": stall}))
    assert [one.subject.name for one in found] == (["0"] if named else [])


def test_a_hint_names_the_host_that_has_all_delays_in_place_of_its_ranks() -> None:
    # given two hosts of two ranks; in 6 of 20 iterations one rank of host b or the other loses 9
    stalls = np.zeros((20, 4))
    stalls[[2, 5, 9, 13, 14, 18], [2, 3, 3, 2, 3, 2]] = 9.0
    run = judged_run(20, 4, hosts=["a", "a", "b", "b"])

    # then six are too few for a finding, and the host is less likely by chance than one of its ranks
    assert subjects(list(search(run, lost({"host_stall": stalls})))) == [
        ("host", "b", "host_stall", "transient", "low")
    ]

    # but not where a rank of the other host loses as much
    stalls[[1, 7, 12], 0] = 9.0
    found = list(search(run, lost({"host_stall": stalls})))
    assert {one.subject.kind for one in found} == {"rank"}
