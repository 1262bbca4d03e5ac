"""Live recordings: what was flushed is read, what is damaged is counted, and no file can do harm."""

import json
import struct
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.given import add_facts, built
from tests.live.jobs import MS, TRANSFER_NS, HandClock, record_job, recorder
from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.live.layout import HEAD, MAGIC, MARK, RowKind, facts_frame, rows_frame
from traceforge.records import Batch, ReadOptions
from traceforge.sources.live_log import LiveLogSource
from traceforge.sources.live_log.innermost import innermost
from traceforge.store.database import Store

OPENING = facts_frame({"rank": 1, "world_size": 2, "host": "node7", "pid": 9, "clock": [[1_000, 5_000]]})
NAMES = facts_frame(
    {
        "names": [
            [0, ["phase", "forward"]],
            [1, ["collective", "all_reduce", "dp", [0, 1], 4, 4, "float", None]],
            [2, ["device", "power_mw"]],
        ]
    }
)


def read(path: Path) -> Reading:
    batches: list[Batch] = []
    return Reading(LiveLogSource().read(path, batches.append, ReadOptions()), batches)


def read_bytes(tmp_path: Path, *frames: bytes) -> Reading:
    path = tmp_path / "rank1.live"
    path.write_bytes(MAGIC + b"".join(frames))
    return read(path)


def test_times_are_the_recorders_on_the_epoch(tmp_path: Path) -> None:
    # given a reading of both clocks that are 4,000 ns apart, a step, a phase in it and a collective in the phase
    rows = [
        (RowKind.PHASE, 0, 10, 40, 0, 0, 0),
        (RowKind.COLLECTIVE, 1, 20, 30, 7, 10, 0),
        (RowKind.STEP, 0, 5, 50, 3, 0, 0),
    ]
    reading = read_bytes(tmp_path, OPENING, NAMES, rows_frame(rows), facts_frame({"ended": True}))

    # then the phase is cut where the collective holds the thread
    events = sorted((e["raw_start_ns"] - 4_000, e["duration_ns"], e["name"]) for e in reading.events)
    assert events == [
        (5, 45, "ProfilerStep#3"),
        (10, 10, "forward"),
        (20, 10, "c10d::all_reduce"),
        (20, 10, "gloo:all_reduce"),
        (30, 10, "forward"),
    ]
    [call] = reading.rows("collective")
    assert (call["sequence"], call["process_group_name"], call["in_elements"], call["dtype"]) == (7, "dp", 4, "float")
    assert reading.rows("process_group") == [{"process_group_name": "dp", "ranks": "[0, 1]", "size": 2}]
    assert (reading.summary.rank, reading.summary.world_size, reading.summary.host) == (1, 2, "node7")
    assert reading.codes == []


def test_what_lies_in_a_damaged_frame_is_left_out_with_its_steps(tmp_path: Path) -> None:
    # given a step in each of four frames, of which the second has a changed byte: it may have held rows of the third
    frames = [rows_frame([(RowKind.STEP, 0, 10 * n, 10 * n + 10, n, 0, 0)]) for n in range(4)]
    frames[1] = frames[1][:-1] + bytes([frames[1][-1] ^ 1])

    reading = read_bytes(tmp_path, OPENING, *frames, facts_frame({"ended": True}))

    assert reading.names == ["ProfilerStep#0", "ProfilerStep#3"]
    assert reading.issue("live_log_damaged_frame").count == 1


def test_a_step_during_which_rows_were_dropped_is_left_out(tmp_path: Path) -> None:
    # given a loss that is told after the first step, while the second is under way
    steps = [rows_frame([(RowKind.STEP, 0, 10 * n, 10 * n + 10, n, 0, 0)]) for n in range(3)]
    frames = [steps[0], facts_frame({"dropped": 4}), steps[1], steps[2], facts_frame({"ended": True})]

    reading = read_bytes(tmp_path, OPENING, *frames)

    assert reading.names == ["ProfilerStep#0", "ProfilerStep#2"]
    assert reading.issue("live_log_rows_dropped").lost_events == 4
    assert reading.summary.event_count == reading.summary.stored_count + 5


def test_a_file_that_is_cut_anywhere_is_whole_before(tmp_path: Path) -> None:
    [path, _] = record_job(tmp_path, steps=4)
    data = path.read_bytes()
    whole = read(path)

    for size in range(len(data) - 400, len(data), 37):
        path.write_bytes(data[:size])
        reading = read(path)
        assert "live_log_truncated" in reading.codes
        assert len(reading.events) <= len(whole.events)


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rank0.live"
    path.write_bytes(b"traceforge live 2\n" + OPENING)

    with pytest.raises(InputUnusableError, match="unknown version"):
        read(path)


def test_a_file_without_its_first_facts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError, match="first frame"):
        read_bytes(tmp_path, rows_frame([(RowKind.STEP, 0, 0, 10, 0, 0, 0)]))


@pytest.mark.parametrize(
    "frame",
    [
        # A frame that claims to be far larger than any, one that inflates to more than it says, and a block that
        # claims more rows than there are bytes.
        HEAD.pack(MARK, b"ROWS", 2**31, 0, 2**31) + b"x",
        HEAD.pack(MARK, b"ROWS", len(bomb := zlib.compress(bytes(10_000_000))), zlib.crc32(bomb), 100) + bomb,
        HEAD.pack(MARK, b"ROWS", len(lie := zlib.compress(struct.pack("<BI", 0, 2**31))), zlib.crc32(lie), 5) + lie,
    ],
    ids=["huge", "bomb", "lie"],
)
def test_a_frame_that_lies_is_skipped(tmp_path: Path, frame: bytes) -> None:
    steps = [rows_frame([(RowKind.STEP, 0, 10 * n, 10 * n + 10, n, 0, 0)]) for n in range(2)]

    reading = read_bytes(tmp_path, OPENING, frame, *steps, facts_frame({"ended": True}))

    assert reading.names == ["ProfilerStep#1"]
    assert reading.issue("live_log_damaged_frame").count == 1


def test_rows_without_a_name_or_at_impossible_times_are_counted(tmp_path: Path) -> None:
    rows = [
        (RowKind.PHASE, 77, 0, 10, 0, 0, 0),
        (RowKind.PHASE, 0, 30, 20, 0, 0, 0),
        (RowKind.STEP, 0, -5, 10, 0, 0, 0),
        (9, 0, 0, 10, 0, 0, 0),
    ]

    reading = read_bytes(tmp_path, OPENING, NAMES, rows_frame(rows), facts_frame({"ended": True}))

    assert reading.events == []
    assert reading.issue("live_log_unknown_row").lost_events == 4


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
_row = st.tuples(st.integers(0, 4), st.integers(-1, 3), *[st.integers(-(2**63), 2**63 - 1)] * 5)


@settings(max_examples=60, deadline=None)
@given(
    facts=st.dictionaries(st.sampled_from(["names", "dropped", "clock", "failures", "ended", "pid"]), _json),
    rows=st.lists(_row, max_size=8),
    noise=st.binary(max_size=40),
)
def test_whatever_a_file_claims_is_read_or_counted(
    tmp_path_factory: pytest.TempPathFactory, facts: dict[str, object], rows: list[tuple[int, ...]], noise: bytes
) -> None:
    with np.errstate(over="ignore"):
        hostile = rows_frame(rows)  # type: ignore[arg-type]
    plain = json.dumps(facts).encode()
    body = zlib.compress(plain)
    told = HEAD.pack(MARK, b"FACT", len(body), zlib.crc32(body), len(plain)) + body

    reading = read_bytes(tmp_path_factory.mktemp("live"), OPENING, NAMES, told, hostile, noise, hostile)

    assert reading.summary.stored_count == len(reading.events)
    assert reading.summary.event_count >= reading.summary.stored_count


def test_the_innermost_of_stretches_is_told_at_each_instant() -> None:
    # 0 |--------------------|
    # 1     |------|
    # 2       |--|    |--| 3, and 4 of no length
    starts = np.array([0, 4, 6, 15, 9])
    ends = np.array([22, 12, 10, 19, 9])

    owner, since, until = innermost(starts, ends)

    assert list(zip(owner.tolist(), since.tolist(), until.tolist(), strict=True)) == [
        (0, 0, 4), (1, 4, 6), (2, 6, 10), (1, 10, 12), (0, 12, 15), (3, 15, 19), (0, 19, 22),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=12))
def test_pieces_never_overlap_and_lie_within_their_stretch(stretches: list[tuple[int, int]]) -> None:
    starts, ends = np.array([min(s) for s in stretches], int), np.array([max(s) for s in stretches], int)

    _owner, since, until = innermost(starts, ends)

    assert (since[1:] >= until[:-1]).all()
    assert (until > since).all()


def test_a_straggler_is_found_in_a_live_recording(tmp_path: Path) -> None:
    # given four ranks, of which rank 2 computes 5 ms longer, on a device that clocks lower
    record_job(tmp_path, ranks=4, steps=14, late_ns={2: 5 * MS}, clocks_mhz=[1_755, 1_755, 1_410, 1_755])
    # and what another tool read of the device on bus 81
    (tmp_path / "smi.csv").write_text("pci.bus_id, temperature.gpu\n" + "00000000:81:00.0, 55\n" * 3)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "fabric.telemetry_series", "attribute.delay", "attribute.finding")
        found = store.query(
            "SELECT subject_kind, subject, cause, confidence FROM attribute.finding WHERE confidence <> 'low'"
        ).rows()
        [(advice,)] = store.rows("SELECT next_step FROM attribute.finding WHERE confidence = 'high'")
        joined = store.rows("SELECT DISTINCT rank, joined_by FROM fabric.telemetry_series ORDER BY rank")
        [(cost,)] = store.query("SELECT AVG(delay_ns) FROM attribute.delay WHERE rank = 2").rows()
        waits = store.query("SELECT rank, SUM(wait_ns) > 0 FROM timeline.arrival GROUP BY rank ORDER BY rank").rows()
        transfers = store.query("SELECT transfer_ns FROM timeline.collective")["transfer_ns"]
        [(steps,)] = store.query("SELECT COUNT(*) FROM timeline.iteration").rows()

    assert found == [("rank", "2", "slow_compute", "high")]
    assert sorted(joined) == [(0, "trace"), (1, "pci"), (1, "trace"), (2, "trace"), (3, "trace")]
    assert "clocks at 1,410 against 1,755 MHz" in advice
    assert abs(cost - 5 * MS) < MS / 10
    assert steps == 14
    assert all(waited for _, waited in waits)
    # Each rank reads the epoch for itself.
    assert (transfers - TRANSFER_NS).abs().max() < 10_000  # type: ignore[operator]


def test_a_killed_job_is_read_up_to_its_last_flush(tmp_path: Path) -> None:
    record_job(tmp_path, ranks=2, steps=12, killed=True)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "timeline.collective", "timeline.iteration")
        steps = store.query("SELECT COUNT(*) FROM timeline.iteration").rows()
        matched = store.query("SELECT COUNT(*) FROM timeline.collective WHERE complete").rows()

    assert steps[0][0] >= 11
    assert matched[0][0] >= 22


def test_times_below_a_phase_of_an_epoch_are_told_once(tmp_path: Path) -> None:
    # given a phase that lasts for two steps, and a shorter one in each
    clock = HandClock()
    with recorder(tmp_path, clock) as one, one.phase("epoch"):
        for _ in range(2):
            with one.phase("forward"):
                clock.now_ns += MS
            clock.now_ns += MS
            one.step()

    events = [e for e in read(tmp_path / "rank0.live").events if e["name"] in ("epoch", "forward")]
    spans = sorted((e["raw_start_ns"], e["raw_start_ns"] + e["duration_ns"]) for e in events)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_facts_that_are_no_utf8_cost_their_frame_alone(tmp_path: Path) -> None:
    body = zlib.compress(b'{"host": "\xf8"}')
    damaged = HEAD.pack(MARK, b"FACT", len(body), zlib.crc32(body), len(b'{"host": "\xf8"}')) + body

    rows = rows_frame([(RowKind.PHASE, 0, 10, 40, 0, 0, 0)])

    reading = read_bytes(tmp_path, OPENING, damaged, NAMES, rows)

    assert reading.names == ["forward"]
    assert "live_log_damaged_frame" in reading.codes


def test_messages_and_groups_of_one_rank_find_their_ends(tmp_path: Path) -> None:
    # given three ranks, of which the first has a group of its own, and sends to the second what it waits for
    clocks = [HandClock() for _ in range(3)]
    recorders = [recorder(tmp_path, clock, rank, ranks=3) for rank, clock in enumerate(clocks)]
    for one in recorders:
        one.__enter__()
    for _ in range(4):
        for rank, (one, clock) in enumerate(zip(recorders, clocks, strict=True)):
            with one.phase("forward"):
                clock.turn(3 * MS)
            if rank == 0:
                with one.collective("all_reduce", "own", ranks=[0], size_bytes=8):
                    clock.turn(MS // 10)
            if rank < 2:
                message = one.collective(("send", "recv")[rank], ranks=range(3), size_bytes=64, peer=1 - rank)
                clock.turn(MS // 10)
                message.returned()
                clock.turn(MS // 10)
                message.end()
            whole = one.collective("all_reduce", ranks=range(3), size_bytes=1 << 20)
            clock.now_ns = max(clock.now_ns for clock in clocks) + TRANSFER_NS
            whole.end()
            one.step()
    for one in recorders:
        one.close()

    # when the job is analysed
    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "align")
        messages = store.rows("SELECT DISTINCT source_rank, destination_rank, size_bytes FROM align.message")
        count = store.rows("SELECT COUNT(*) FROM align.message")
        groups = store.rows("SELECT name, ranks FROM align.communicator ORDER BY ALL")
        codes = {code for (code,) in store.rows("SELECT code FROM meta.issue")}

    # then each message has both its ends, and no call is taken for one of another group
    assert (messages, count) == ([(0, 1, 64)], [(4,)])
    assert groups == [("own", [0]), ("world", [0, 1, 2])]
    assert not codes & {"collective_unmatched", "message_unmatched"}
