"""What a finding costs where ranks of the job were not recorded: one of them may come later still."""

import pytest

from tests.attribute.jobs import traces_of
from tests.given import US, Trace, rows_of
from tests.stories import told

# twelve iterations of 150 us, of which rank 1 causes 40:
#   rank 0   |compute 100·|w 40······|t 10|
#   rank 1   |+40······|compute 100··|t 10|
#   rank 2   |compute 100·|w 40······|t 10|
STRAGGLER = {(i, 1): 40 * US for i in range(12)}
FINDING = "SELECT subject, confidence, delay_ns_per_iteration, delay_low_ns, cost_note, summary FROM attribute.finding"
VERDICT = "SELECT explanation, confidence FROM attribute.verdict"


def test_where_most_ranks_are_unknown_a_late_one_costs_at_most_what_it_shows() -> None:
    store = told(*traces_of(STRAGGLER, iterations=12), world_size=8)

    ((subject, confidence, delay_ns, low_ns, note, summary),) = rows_of(store, FINDING)
    assert (subject, confidence, delay_ns, low_ns) == ("1", "medium", 40 * US, 0)
    assert note == "Less, or nothing, where a rank that was not recorded comes later still."
    assert str(summary).endswith("It costs the job up to 40.0 µs an iteration (27 %).")
    ((explanation, of_verdict),) = rows_of(store, VERDICT)
    assert of_verdict == "medium"
    assert str(explanation).startswith(
        "Ranks of the job were not recorded: if one of them comes later still, mending this saves less, or nothing."
    )


@pytest.mark.parametrize("world_size", [3, None])
def test_where_all_are_there_the_cost_is_as_sure_as_the_ranks_show_it(world_size: int | None) -> None:
    store = told(*traces_of(STRAGGLER, iterations=12), world_size=world_size)

    # What a replay may miss, 2 %, is the only doubt.
    ((_, confidence, _, low_ns, note, _),) = rows_of(store, FINDING)
    assert (confidence, low_ns, note) == ("high", 39_216, None)
    assert "not recorded" not in str(rows_of(store, VERDICT))


def test_one_rank_of_eleven_that_is_lacking_casts_no_doubt_on_the_others() -> None:
    store = told(*traces_of(STRAGGLER, iterations=12, ranks=10), world_size=11)

    ((_, confidence, _, low_ns, *_),) = rows_of(store, FINDING)
    assert (confidence, low_ns) == ("high", 39_216)


@pytest.mark.parametrize(("members", "grade", "least_ns"), [(8, "medium", 0), (3, "high", 39_216)])
def test_ranks_that_nobody_who_was_recorded_meets_hide_nothing(members: int, grade: str, least_ns: int) -> None:
    # given three ranks of eight, whose calls are all of these three, or of all eight
    traces = traces_of(STRAGGLER, iterations=12)
    for trace in traces:
        trace.groups = [("0", "dp", range(members))]
    store = told(*traces, world_size=8)

    ((_, confidence, _, low_ns, *_),) = rows_of(store, FINDING)
    assert (confidence, low_ns) == (grade, least_ns)
    assert ("comes later still" in str(rows_of(store, VERDICT))) == (members == 8)


# The all-reduce takes 60 us instead of 10 in every fourth iteration: it begins when the last rank is there.
TRANSFERS = traces_of({}, iterations=12, transfer_ns=[10 * US if i % 4 else 60 * US for i in range(12)])
# Each rank is 40 us late in its turn, so that no rank is the last.
IN_TURNS = traces_of({(i, i % 3): 40 * US for i in range(12)}, iterations=12)


@pytest.mark.parametrize("traces", [TRANSFERS, IN_TURNS], ids=["transfers", "in turns"])
def test_slow_transfers_and_delays_in_turns_cost_what_they_do_whoever_else_is_late(traces: list[Trace]) -> None:
    store = told(*traces, world_size=8)

    ((_, confidence, _, _, note, summary),) = rows_of(store, FINDING)
    assert confidence != "low"
    assert "later still" not in f"{note} {summary} {rows_of(store, VERDICT)}"
