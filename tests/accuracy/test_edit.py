"""An edit of a recording, by hand and on a sample: who moves, who waits longer, and how much the run grows."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.accuracy.edit import Edit, propagate
from tests.accuracy.recording import RankRecording, matched, read

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "healthy"
US = 1_000
HOST, DEVICE = (1, 1), (0, 7)


@cache
def sample() -> list[RankRecording]:
    """The sample as it is; not to be changed."""
    return read(SAMPLE)


def event(category: str, name: str, lane: tuple[int, int], start_us: float, end_us: float) -> dict[str, Any]:
    pid, tid = lane
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start_us, "dur": end_us - start_us}


def two_ranks(folder: Path) -> list[RankRecording]:
    """Two iterations of 1,000 us.

    rank 0  |work 100..400|all-reduce 400····900|work 910..990|   and again from 1,000
    rank 1  |work 100..........700|all-r. 700··900|work 910..990|
    """
    for rank, until in ((0, 400), (1, 700)):
        events = []
        for base in (0, 1_000):
            events += [
                event("user_annotation", f"ProfilerStep#{base // 1_000}", HOST, base + 10, base + 1_000),
                event("cpu_op", "aten::mm", HOST, base + 20, base + 30),
                event("kernel", "gemm", DEVICE, base + 100, base + until),
                event("kernel", "ncclDevKernel_AllReduce", (0, 20), base + until, base + 900),
                event("kernel", "adam", DEVICE, base + 910, base + 990),
            ]
            events.append({"ph": "f", "name": "ac2g", "pid": 0, "tid": 20, "ts": base + until, "id": 1})
        document = {"distributedInfo": {"rank": rank, "world_size": 2}, "host_name": "h", "traceEvents": events}
        (folder / f"rank{rank}.pt.trace.json").write_text(json.dumps(document))
    return read(folder)


def bounds(ranks: list[RankRecording], name: str) -> list[list[tuple[float, float]]]:
    """Of all events of a name, us, by rank."""
    documents = [json.loads(recording.text()) for recording in ranks]
    return [
        [(e["ts"], e["ts"] + e["dur"]) for e in one["traceEvents"] if e["name"].startswith(name) and "dur" in e]
        for one in documents
    ]


def test_a_delay_of_the_last_rank_delays_everyone(tmp_path: Path) -> None:
    # given 50 us more in the first kernel of rank 1, which the other waits for
    ranks = two_ranks(tmp_path)
    ranks[1].insert(300 * US, 50 * US)
    propagate(ranks, {})

    # then the kernel lasts longer, the collective ends later on both, and everything after it moves
    assert bounds(ranks, "gemm") == [[(100, 400), (1_150, 1_450)], [(100, 750), (1_150, 1_750)]]
    assert bounds(ranks, "nccl") == [[(400, 950), (1_450, 1_950)], [(750, 950), (1_750, 1_950)]]
    assert bounds(ranks, "adam") == [[(960, 1_040), (1_960, 2_040)]] * 2
    assert bounds(ranks, "ProfilerStep") == [[(10, 1_050), (1_060, 2_050)]] * 2


def test_who_had_waited_anyway_delays_nobody_until_the_wait_is_used_up(tmp_path: Path) -> None:
    # given 100 us more on rank 0, which waits for 300
    ranks = two_ranks(tmp_path)
    ranks[0].insert(300 * US, 100 * US)
    propagate(ranks, {})

    # then it arrives later, waits less, and nobody notices
    assert bounds(ranks, "nccl") == [[(500, 900), (1_400, 1_900)], [(700, 900), (1_700, 1_900)]]
    assert bounds(ranks, "adam")[0] == bounds(ranks, "adam")[1] == [(910, 990), (1_910, 1_990)]

    # and given 350 us, 50 of them are the job's
    ranks = two_ranks(tmp_path)
    ranks[0].insert(300 * US, 350 * US)
    propagate(ranks, {})
    assert bounds(ranks, "nccl") == [[(750, 950), (1_450, 1_950)], [(700, 950), (1_750, 1_950)]]


def test_a_longer_transfer_ends_later_on_all_ranks(tmp_path: Path) -> None:
    ranks = two_ranks(tmp_path)
    propagate(ranks, {400 * US: 25 * US})

    assert bounds(ranks, "nccl") == [[(400, 925), (1_425, 1_925)], [(700, 925), (1_725, 1_925)]]


def test_flows_follow_the_events_that_they_point_to(tmp_path: Path) -> None:
    ranks = two_ranks(tmp_path)
    ranks[1].insert(300 * US, 50 * US)
    propagate(ranks, {})

    events = json.loads(ranks[1].text())["traceEvents"]
    starts = [e["ts"] for e in events if e["name"].startswith("nccl")]
    assert [e["ts"] for e in events if e["ph"] == "f"] == starts


def test_whole_microseconds_stay_whole_and_a_bare_list_stays_one(tmp_path: Path) -> None:
    events = [event("kernel", "gemm", DEVICE, 5, 9), event("kernel", "gemm", DEVICE, 10.5, 11.25)]
    (tmp_path / "rank0.pt.trace.json").write_text(json.dumps(events))
    (recording,) = read(tmp_path)
    recording.insert(7 * US, 3 * US)

    written = json.loads(recording.text())
    assert [(e["ts"], e["dur"]) for e in written] == [(5, 7), (13.5, 0.75)]
    assert isinstance(written[0]["dur"], int)


def test_ranks_that_never_meet_are_refused(tmp_path: Path) -> None:
    ranks = two_ranks(tmp_path)
    for one in ranks[1].collectives:
        one.start_ns += 10_000 * US
        one.end_ns += 10_000 * US

    with pytest.raises(ValueError, match="does not meet on all ranks"):
        matched(ranks)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("edited") / "run"
    Edit(SAMPLE, "slow work", 0.3, rank=2, first=5, last=9).write(folder)
    return folder


def test_transfers_of_a_recording_take_as_long_as_they_did(edited: Path) -> None:
    transfers = []
    for ranks in (sample(), read(edited)):
        meetings = matched(ranks)
        transfers.append([max(e.end_ns for e in one) - max(e.start_ns for e in one) for one in meetings])

    assert transfers[0] == pytest.approx(transfers[1], abs=2)


def test_the_truth_is_what_the_iterations_grew_by(edited: Path) -> None:
    truth = json.loads((edited / "truth.json").read_text())
    before, after = (max(e.end_ns for r in ranks for e in r.steps) for ranks in (sample(), read(edited)))

    # given 0.3 of an iteration in five of them, of which rank 2 had waited for a part
    (trouble,) = truth["troubles"]
    typical = sum(truth["duration_ns"]) / 30
    assert [ns > 0.1 * typical for ns in trouble["removed_ns"]] == [5 <= i <= 9 for i in range(30)]
    assert sum(trouble["removed_ns"]) == pytest.approx(after - before, rel=0.01)
    assert (trouble["subject_kind"], trouble["subject"]) == ("rank", "2")


def test_an_edit_of_nothing_changes_no_event(tmp_path: Path) -> None:
    Edit(SAMPLE, "slow work", 0.0).write(tmp_path / "run")

    for before, after in zip(sample(), read(tmp_path / "run"), strict=True):
        assert [(e.start_ns, e.end_ns) for e in before.events] == [(e.start_ns, e.end_ns) for e in after.events]
    assert set(json.loads((tmp_path / "run" / "truth.json").read_text())["excess_ns"]) == {0}


def test_everyone_pauses_once_and_the_run_grows_by_one_pause(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    two_ranks(tmp_path / "made")
    Edit(tmp_path / "made", "everyone pauses", 2.0, first=1, last=1).write(tmp_path / "run")

    # given iterations of 990 us, of which the second grows by two, to 1 us
    truth = json.loads((tmp_path / "run" / "truth.json").read_text())
    assert truth["excess_ns"] == [0, 1_980 * US]
    assert truth["troubles"][0]["subject_kind"] == "job"


def test_a_collective_waits_for_the_one_before_it_on_its_stream(tmp_path: Path) -> None:
    # both ranks  |compute 100························1,000|
    #             |all-reduce 400··600|all-reduce 600··800|
    for rank in (0, 1):
        events = [
            event("user_annotation", "ProfilerStep#0", HOST, 10, 1_000),
            event("kernel", "gemm", DEVICE, 100, 1_000),
            event("kernel", "ncclDevKernel_AllReduce", (0, 20), 400, 600),
            event("kernel", "ncclDevKernel_AllReduce", (0, 20), 600, 800),
        ]
        document = {"distributedInfo": {"rank": rank}, "traceEvents": events}
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(json.dumps(document))
    ranks = read(tmp_path)
    # given 100 us more in the first transfer
    propagate(ranks, {400 * US: 100 * US})

    # then the second one begins and ends later, and compute, which nobody held up, does not move
    assert bounds(ranks, "nccl") == [[(400, 700), (700, 900)]] * 2
    assert bounds(ranks, "gemm") == [[(100, 1_000)]] * 2
